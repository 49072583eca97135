// Constants, positions and slices: building blocks of jax.numpy's composed functions.
#include <capibara/lax.h>

#include "lax/operators/plain_number.h"
#include "lax/operators/promote.h"
#include "library/numpy/steps.h"
#include "program/trace/trace.h"

namespace capibara::steps {

namespace lax = jax::lax;

Array constant(const Array& x, double value) { return number_as(Array(value), x.dtype(), false); }

Array arange(int64_t size) { return lax::iota(default_int(), size); }

Array positions(const Shape& shape, int64_t axis) { return lax::broadcasted_iota(default_int(), shape, axis); }

Array cut(const Array& x, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t axis) {
  std::vector<Index> indices(static_cast<std::size_t>(canonical_axis("slice", axis, x.ndim())), Index(slice()));
  indices.push_back(Index(slice(start, stop)));
  return index(x, indices);
}

void require_values(const char* function, const char* argument, const Array& x) {
  // A value without a tangent derived from a differentiated value is concrete if that value is.
  if (!x.is_tracer() || !lax::eq(x, x).is_tracer()) return;
  throw ConcretizationTypeError(
      concat(function, ": argument '", argument, "' must be concrete, since the size of the result depends on its ",
             "values; got a traced array of type ", to_string(x.type()), ". Give a static size where the function ",
             "takes one, or call it outside of jit.", origin_line(x)));
}

}  // namespace capibara::steps
