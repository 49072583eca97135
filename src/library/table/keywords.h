// The keyword arguments of functions that take **keywords: a named sequence, or None where there are none.
#pragma once

#include "library/table/function.h"

namespace capibara::library {

// The values by name: `fields` and `items`. Empty where none were given.
inline const Sequence& keywords_of(const Arguments& arguments, std::string_view parameter) {
  static const Sequence none;
  const Sequence* given = arguments[parameter].sequence();
  return given ? *given : none;
}

inline const Value* keyword(const Arguments& arguments, std::string_view parameter, std::string_view name) {
  const Sequence& all = keywords_of(arguments, parameter);
  for (std::size_t i = 0; i < all.fields.size(); ++i) {
    if (all.fields[i] == name) return &all.items[i];
  }
  return nullptr;
}

// The arguments of a call to a function of the caller: `first`, then *args and **kwargs as they were given. Keywords
// travel as a last sequence of the type name "keywords".
inline Values forwarded(const Arguments& arguments, Values first, std::string_view variadic, std::string_view named) {
  const Values& rest = arguments.variadic(variadic);
  first.insert(first.end(), rest.begin(), rest.end());
  const Sequence& all = keywords_of(arguments, named);
  if (!all.items.empty()) first.push_back(Value::named_tuple("keywords", all.fields, all.items));
  return first;
}

}  // namespace capibara::library
