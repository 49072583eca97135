// Operations outside of jit: each of them runs a program or a kernel of this backend, which is made once for its types
// and attributes.
#pragma once

#include "backends/backend.h"

namespace capibara::cpu {

Arrays run_eagerly(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs);

}  // namespace capibara::cpu
