// Keyword arguments of functions that take **keywords: a named sequence, or None if there are none.
#pragma once

#include "library/table/function.h"

namespace capibara::library {

// The values by name: `fields` and `items`. Empty if none were given.
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

// The arguments for calling a user function: `first`, then *args and **kwargs as given. Keywords
// are passed as a final sequence with the type name "keywords".
inline Values forwarded(const Arguments& arguments, Values first, std::string_view variadic, std::string_view named) {
  const Values& rest = arguments.variadic(variadic);
  first.insert(first.end(), rest.begin(), rest.end());
  const Sequence& all = keywords_of(arguments, named);
  if (!all.items.empty()) first.push_back(Value::named_tuple("keywords", all.fields, all.items));
  return first;
}

}  // namespace capibara::library
