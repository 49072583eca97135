// Constants, polynomials and maps of scalar functions for the formulas of jax.nn and jax.scipy.
#include "library/nn/terms.h"

#include "library/numpy/linalg/linalg_vectorize.h"

namespace capibara::terms {

Array constant(const Array& x, double value) {
  return lax::convert_element_type(Array(value), x.dtype(), x.weak_type() && x.ndim() == 0);
}

Array typed_constant(const Array& x, double value) { return lax::full({}, value, x.dtype()); }

Array polynomial(const Array& x, std::initializer_list<double> coefficients) {
  Array result = lax::zeros_like(x);
  for (double coefficient : coefficients) {
    Array product = result * x;
    result = product + typed_constant(x, coefficient);
  }
  return result;
}

Array map_scalars(const char* name, const Arrays& arguments, const std::function<Array(const Arrays&)>& function) {
  return vectorize(
      name, [&](std::span<const Array> in) { return Arrays{function(Arrays(in.begin(), in.end()))}; }, arguments,
      Ints(arguments.size(), 0))[0];
}

void require_real(const char* function, const Array& x) {
  if (is_complex(x.dtype())) {
    throw ValueError(concat(function, " does not support complex-valued inputs, got ", to_string(x.type())));
  }
}

}  // namespace capibara::terms
