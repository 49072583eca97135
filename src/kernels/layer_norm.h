// The primitives behind layer_norm, for backends that have kernels of their own for them.
#pragma once

#include <capibara/primitive.h>

namespace capibara::kernels {

// (x, scale, bias) -> (y, mean, 1 / deviation); attribute epsilon.
const Primitive& layer_norm_primitive();
// (dy, x, scale, mean, 1 / deviation) -> (dx, dscale, dbias).
const Primitive& layer_norm_grad_primitive();

}  // namespace capibara::kernels
