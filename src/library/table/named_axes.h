// Reductions whose argument `axis` may name axes bound by vmap: jnp.sum(x, axis='i'), jnp.mean(x, axis=('i', 0)).
#pragma once

#include "library/table/function.h"

namespace capibara::library {

using Row = Value (*)(const Arguments&);

bool names_axes(const Arguments& a);
// Runs a row with the named axes all-gathered to the front of its operand, the first argument, and of arrays aligned
// with it. If the result keeps the operand's shape, each lane receives its own part of it.
Value call_gathered(const Arguments& a, Row row, bool keeps_shape);
[[noreturn]] void refuse_names(const Arguments& a);  // NotImplementedError

template <Row row>
Value reduced_over_names(const Arguments& a) {
  return names_axes(a) ? call_gathered(a, row, false) : row(a);
}
template <Row row>
Value scaled_over_names(const Arguments& a) {
  return names_axes(a) ? call_gathered(a, row, true) : row(a);
}
template <Row row>
Value without_names(const Arguments& a) {
  if (names_axes(a)) refuse_names(a);
  return row(a);
}

}  // namespace capibara::library
