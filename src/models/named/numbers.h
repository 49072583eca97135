// Operations of primitives on plain numbers, lists and arrays.
#pragma once

#include "models/named/catalog.h"

namespace capibara::models {

using Binary = Array (*)(const Array&, const Array&);
using Unary = Array (*)(const Array&);

// Plain numbers give a plain number; integers stay integers if `whole` is given.
inline Value on_numbers(const Operands& c, Binary arrays, double (*numbers)(double, double), bool whole) {
  const Value &a = c.at(0), &b = c.at(1);
  if (a.is_list() && b.is_list()) {  // tuples are concatenated
    List list = a.list();
    list.insert(list.end(), b.list().begin(), b.list().end());
    return list;
  }
  if (a.is_number() && b.is_number()) {
    double result = numbers(a.number(), b.number());
    if (whole && !a.is<double>() && !b.is<double>()) return static_cast<int64_t>(result);
    return result;
  }
  // A number combined with an array is weakly typed, as in Python.
  auto operand = [&](const Value& value) {
    if (!value.is_number()) return to_array(value, c.dtype());
    if (value.is<double>()) return Array(value.number());
    if (value.is<bool>()) return Array(value.boolean());
    return Array(value.integer());
  };
  Array x = operand(a), y = operand(b);
  return arrays(x, y);
}

inline Compute unary(Unary function) {
  return [function](const Operands& c) -> Value { return function(c.array(0)); };
}

}  // namespace capibara::models
