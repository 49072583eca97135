// Sliding windows over arrays: their attributes, and the shapes they give.
#pragma once

#include <capibara/attributes.h>
#include <capibara/lax.h>

namespace capibara {

// One window over an array of equal rank.
struct Window {
  Ints dimensions, strides;
  jax::lax::Padding padding;
  Ints base_dilation, window_dilation;

  // From the attributes window_dimensions, window_strides, padding and, where present, base_dilation, window_dilation.
  static Window of(const Attrs& attrs);
  // With a dimension inserted at `dim` that the window does not cover.
  Window with_batch(int64_t dim) const;
  // The attributes of reduce_window_sum and related primitives.
  Attrs attrs() const;
  Attrs attrs_without_dilation() const;
};

Attr padding_attr(const jax::lax::Padding& padding);
jax::lax::Padding padding_of(const Attr& attr);

int64_t dilated(int64_t size, int64_t dilation);
// Number of positions of a window of `window` elements, `stride` apart, in `size` elements; never negative.
int64_t window_count(int64_t size, int64_t window, int64_t stride);

// Raises if lengths differ from the operand's rank or values are not positive.
Shape window_output_shape(const std::string& op, const ArrayType& operand, const Window& window);

// The padding of the cotangent such that sliding the reversed window over it gives the operand's shape.
jax::lax::Padding transposed_padding(const Shape& in, const Shape& window, const Ints& strides, const Shape& out,
                                     const jax::lax::Padding& padding, const Ints& base_dilation,
                                     const Ints& window_dilation);

}  // namespace capibara
