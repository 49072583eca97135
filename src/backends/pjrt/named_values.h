// NamedValues: settings by name, in the form that a plugin takes.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "backends/pjrt/api.h"

namespace capibara::pjrt {

class NamedValues {
 public:
  void integer(const std::string& name, int64_t value) { add(name, abi::named_integer).integer = value; }
  void real(const std::string& name, float value) { add(name, abi::named_float).real = value; }
  void boolean(const std::string& name, bool value) { add(name, abi::named_bool).boolean = value; }
  void text(const std::string& name, const std::string& value) {
    abi::NamedValue& added = add(name, abi::named_string);
    texts_.push_back(value);
    added.string = texts_.back().data();
    added.value_size = texts_.back().size();
  }
  void integers(const std::string& name, const std::vector<int64_t>& value) {
    lists_.push_back(value);
    abi::NamedValue& added = add(name, abi::named_integers);
    added.integers = lists_.back().data();
    added.value_size = lists_.back().size();
  }
  const std::vector<abi::NamedValue>& list() const { return values_; }

 private:
  abi::NamedValue& add(const std::string& name, abi::NamedType type) {
    texts_.push_back(name);
    abi::NamedValue value{};
    value.struct_size = sizeof value;
    value.name = texts_.back().data();
    value.name_size = name.size();
    value.type = type;
    value.value_size = 1;
    values_.push_back(value);
    return values_.back();
  }
  std::deque<std::string> texts_;  // values point to them
  std::deque<std::vector<int64_t>> lists_;
  std::vector<abi::NamedValue> values_;
};

}  // namespace capibara::pjrt
