// Value: an argument, a connection or an entry of a specification of a named model.
#pragma once

#include <capibara/array.h>

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace capibara::models {

class Model;
class Value;
struct Call;
struct IOKey;
struct ModelBody;

struct Unset {};  // absent: to be determined by its connections
struct None {};   // Python's None

// A key that a model does not have, or one that is missing.
class KeyError : public NameError {
 public:
  using NameError::NameError;
};

// The element types that a tensor may have.
struct ElementTypes {
  bool boolean = true, integer = true, floating = true;
  bool any() const { return boolean || integer || floating; }
  std::string to_string() const;
  friend bool operator==(const ElementTypes&, const ElementTypes&) = default;
};

struct Tensor;

// One end of a connection: a key of a model.
struct Connection {
  std::shared_ptr<ModelBody> model;
  std::string key;
};

using List = std::vector<Value>;
using Entries = std::vector<std::pair<std::string, Value>>;  // a dictionary that keeps its order

class Value {
 public:
  Value() = default;
  Value(Unset) {}
  Value(None) : data_(None{}) {}
  Value(Ellipsis) : data_(Ellipsis{}) {}
  Value(Slice slice) : data_(slice) {}
  Value(bool value) : data_(value) {}
  Value(int value) : data_(static_cast<int64_t>(value)) {}
  Value(int64_t value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(const char* text) : data_(std::string(text)) {}
  Value(std::string text) : data_(std::move(text)) {}
  Value(List list) : data_(std::make_shared<const List>(std::move(list))) {}
  Value(std::initializer_list<Value> list) : Value(List(list)) {}
  Value(const std::vector<int64_t>& list);
  Value(Array array) : data_(std::move(array)) {}
  Value(DType dtype) : data_(dtype) {}
  Value(Tensor tensor);
  Value(IOKey key);
  Value(Call call);
  Value(Connection connection) : data_(std::move(connection)) {}
  Value(const Model& model);
  // A dictionary. Not a constructor: {{"a", 1}} would be ambiguous with a list.
  static Value dictionary(Entries entries);

  bool given() const { return !is<Unset>(); }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(data_);
  }
  bool is_none() const { return is<None>(); }
  bool is_number() const { return is<bool>() || is<int64_t>() || is<double>(); }
  bool is_text() const { return is<std::string>(); }
  bool is_list() const { return is<std::shared_ptr<const List>>(); }
  bool is_dictionary() const { return is<std::shared_ptr<const Entries>>(); }
  bool is_array() const { return is<Array>(); }
  bool is_tensor() const { return is<std::shared_ptr<const Tensor>>(); }
  bool is_call() const { return is<std::shared_ptr<const Call>>(); }
  bool is_key() const { return is<std::shared_ptr<const IOKey>>(); }
  bool is_connection() const { return is<Connection>(); }
  bool is_model() const { return is<std::shared_ptr<ModelBody>>(); }

  // Each raises TypeError if the value is of another kind.
  bool boolean() const;
  int64_t integer() const;
  double number() const;
  const std::string& text() const;
  const List& list() const;
  const Entries& entries() const;
  const Array& array() const;
  DType dtype() const;
  Slice slice() const;
  const Tensor& tensor() const;
  const Call& call() const;
  const IOKey& key() const;
  const Connection& connection() const;
  Model model() const;
  std::vector<int64_t> integers() const;  // of a list, or of a single integer

  // The entry of a dictionary; unset if there is none.
  const Value& operator[](const std::string& name) const;
  bool has(const std::string& name) const;

  std::string to_string() const;  // as Python prints it
  // True if two plain values are equal; arrays, tensors and models are equal only to themselves.
  friend bool operator==(const Value& a, const Value& b);

 private:
  std::variant<Unset, None, Ellipsis, Slice, bool, int64_t, double, std::string, std::shared_ptr<const List>,
               std::shared_ptr<const Entries>, Array, DType, std::shared_ptr<const Tensor>,
               std::shared_ptr<const IOKey>, std::shared_ptr<const Call>, Connection, std::shared_ptr<ModelBody>>
      data_;
};

// Parses JSON text: objects become dictionaries, arrays lists. ParseError reports line and column.
Value parse_json(const std::string& text);

}  // namespace capibara::models
