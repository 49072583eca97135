// jax.lax: dot products.
#include <capibara/config.h>
#include <capibara/lax.h>
#include <capibara/primitive.h>

#include "lax/contract.h"
#include "lax/ragged_dot.h"
#include "library/lax_attrs.h"

namespace capibara::jax::lax {

Array dot_general(const Array& lhs, const Array& rhs, const DotDimensionNumbers& dimension_numbers,
                  const DotOptions& options) {
  static const Primitive p = primitive("dot_general");
  return capibara::bind(p, Arrays{lhs, rhs},
                        {{"dimension_numbers", dimension_numbers},
                         {"precision", precision_attr("dot_general", options.precision)},
                         {"preferred_element_type", canonical_attr(options.preferred_element_type)},
                         {"out_sharding", Attr()}})[0];
}

Array dot(const Array& lhs, const Array& rhs, const DotOptions& options) {
  bool simple = lhs.ndim() >= 1 && lhs.ndim() <= 2 && rhs.ndim() >= 1 && rhs.ndim() <= 2 && lhs.shape(-1) == rhs.shape(0);
  if (!simple) {
    throw ValueError(concat("dot: expected vectors or matrices with lhs.shape[-1] == rhs.shape[0], got ",
                            to_string(lhs.type()), " and ", to_string(rhs.type()), "; use dot_general for other products"));
  }
  return dot_general(lhs, rhs, {{lhs.ndim() - 1}, {0}, {}, {}}, options);
}

Array batch_matmul(const Array& lhs, const Array& rhs, const DotOptions& options) {
  if (lhs.ndim() < 2 || rhs.ndim() < 2) {
    throw ValueError(concat("batch_matmul: arguments must be at least 2D, got ", to_string(lhs.type()), " and ", to_string(rhs.type())));
  }
  if (lhs.ndim() != rhs.ndim()) {
    throw ValueError(concat("batch_matmul: arguments must have the same ndim, got ", to_string(lhs.type()), " and ", to_string(rhs.type())));
  }
  Ints batch = counting(0, static_cast<std::size_t>(lhs.ndim() - 2));
  return dot_general(lhs, rhs, {{lhs.ndim() - 1}, {rhs.ndim() - 2}, batch, batch}, options);
}

Array ragged_dot(const Array& lhs, const Array& rhs, const Array& group_sizes, const DotOptions& options) {
  return ragged_dot_general(lhs, rhs, group_sizes, {{{1}, {1}, {}, {}}, {0}, {0}}, options);
}

Array ragged_dot_general(const Array& lhs, const Array& rhs, const Array& group_sizes,
                         const RaggedDimensions& dimensions, const DotOptions& options) {
  static const Primitive p = primitive("ragged_dot_general");
  Attr numbers = ragged_attr(dimensions.dot, dimensions.lhs_ragged_dimensions, dimensions.rhs_group_dimensions);
  return capibara::bind(p, Arrays{lhs, rhs, group_sizes},
                        {{"ragged_dot_dimension_numbers", std::move(numbers)},
                         {"precision", precision_attr("ragged_dot", options.precision)},
                         {"preferred_element_type", canonical_attr(options.preferred_element_type)},
                         {"group_offset", Attr()},
                         {"out_sharding", Attr()}})[0];
}

}  // namespace capibara::jax::lax
