// Value: an argument or result of a library function, dynamically typed for callers such as Python.
#pragma once

#include <capibara/array.h>
#include <capibara/primitive.h>

#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace capibara::library {

class Value;
using Values = std::vector<Value>;
using Callable = std::function<Value(const Values&)>;

// An object only the caller understands; the library passes it on or rejects it by name.
class Foreign {
 public:
  virtual ~Foreign() = default;
  virtual std::string type_name() const = 0;
  virtual std::optional<Shape> shape() const { return std::nullopt; }  // if it is like an array
  virtual std::optional<Array> as_dtype(DType) const {
    return std::nullopt;
  }                                                // if it is an array only for a given dtype
  virtual std::string hint() const { return ""; }  // for users who passed it as an array
};

std::string hint_of(const Value& value);  // with a leading space; empty if there is none

// A sequence: a list, a tuple, or a tuple with named entries.
struct Sequence {
  Values items;
  bool is_list = false;
  std::string type_name;            // of a named tuple, for example SVDResult
  std::vector<std::string> fields;  // of a named tuple
};

class Value {
 public:
  using Content = std::variant<std::monostate, bool, int64_t, double, std::complex<double>, std::string, DType, Array,
                               std::shared_ptr<const Sequence>, Callable, std::shared_ptr<const Foreign>>;

  Value() = default;  // None
  Value(bool value) : content_(value) {}
  Value(int value) : content_(static_cast<int64_t>(value)) {}
  Value(int64_t value) : content_(value) {}
  Value(double value) : content_(value) {}
  Value(std::complex<double> value) : content_(value) {}
  Value(const char* text) : content_(std::string(text)) {}
  Value(std::string text) : content_(std::move(text)) {}
  Value(DType dtype) : content_(dtype) {}
  Value(Array array) : content_(std::move(array)) {}
  Value(Callable function) : content_(std::move(function)) {}
  Value(std::shared_ptr<const Foreign> object) : content_(std::move(object)) {}
  Value(Sequence sequence) : content_(std::make_shared<const Sequence>(std::move(sequence))) {}
  Value(const Arrays& list) : Value(list_of(list)) {}
  template <class A, class B>
  Value(const std::pair<A, B>& both) : Value(tuple_of({Value(both.first), Value(both.second)})) {}
  template <class... Ts>
  Value(const std::tuple<Ts...>& all)
      : Value(std::apply([](const auto&... item) { return tuple_of({Value(item)...}); }, all)) {}

  static Value tuple_of(Values items) { return Sequence{std::move(items), false, {}, {}}; }
  static Value tuple_of(const Ints& items) { return tuple_of(Values(items.begin(), items.end())); }  // a shape
  static Value tuple_of(const Arrays& items) { return tuple_of(Values(items.begin(), items.end())); }
  static Value list_of(Values items) { return Sequence{std::move(items), true, {}, {}}; }
  static Value list_of(const Arrays& items) { return list_of(Values(items.begin(), items.end())); }
  static Value named_tuple(std::string type, std::vector<std::string> fields, Values items) {
    return Sequence{std::move(items), false, std::move(type), std::move(fields)};
  }

  const Content& content() const { return content_; }
  bool is_none() const { return std::holds_alternative<std::monostate>(content_); }
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&content_);
  }
  const Sequence* sequence() const {
    const auto* pointer = get_if<std::shared_ptr<const Sequence>>();
    return pointer ? pointer->get() : nullptr;
  }
  const Array* array() const { return get_if<Array>(); }
  // A number of the host language: bool, int, float or complex.
  bool is_number() const;
  std::string type_name() const;  // Python's name of the type: int, list, Array, ...

 private:
  Content content_;
};

}  // namespace capibara::library
