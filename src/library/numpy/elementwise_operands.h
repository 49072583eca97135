// Shared by the elementwise functions: constants of an operand's type, booleans as integers, named calls.
#pragma once

#include <utility>

#include "lax/operators/plain_number.h"
#include "lax/operators/promote.h"

namespace capibara {

// A constant of x's dtype, a literal in programs; weak only for a weak scalar, so that arrays become strong.
inline Array constant_like(const Array& x, const Array& value) {
  return number_as(value, x.dtype(), x.weak_type() && x.ndim() == 0);
}

// The same, strongly typed.
inline Array strong_constant(DType dtype, const Array& value) { return number_as(value, dtype, false); }

// Promoted operands with booleans as int32: for functions that are not defined on booleans.
Arrays promote_args_numeric(const char* name, const Arrays& operands);

// f(xs...) as one named equation while tracing.
template <class F, class... Xs>
Array named(const char* name, F f, const Xs&... xs) {
  return named_call(name, {xs...}, [&f](std::span<const Array> in) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) { return Arrays{f(in[i]...)}; }
    (std::index_sequence_for<Xs...>());
  });
}

}  // namespace capibara
