// Operations outside of jit: each by a program or kernel of this backend that is made once for its types and
// attributes.
#pragma once

#include "backends/backend.h"

namespace capibara::cpu {

Arrays run_eagerly(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs);

}  // namespace capibara::cpu
