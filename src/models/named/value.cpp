// Values of models: their types, printing and comparison.
#include <capibara/models.h>

#include <cmath>

namespace capibara::models {

namespace {

[[noreturn]] void throw_kind(const char* expected, const Value& got) {
  throw TypeError(concat("models: ", expected, " is needed, got ", got.to_string()));
}

std::string number_text(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return concat(static_cast<int64_t>(value), ".0");
  return concat(value);
}

}  // namespace

std::string ElementTypes::to_string() const {
  std::string text;
  auto add = [&](bool has, const char* name) {
    if (has) text += (text.empty() ? "" : " | ") + std::string(name);
  };
  add(integer, "int");
  add(floating, "float");
  add(boolean, "bool");
  return text.empty() ? "nothing" : text;
}

Value::Value(const std::vector<int64_t>& list) : Value(List(list.begin(), list.end())) {}
Value::Value(Tensor tensor) : data_(std::make_shared<const Tensor>(std::move(tensor))) {}
Value::Value(IOKey key) : data_(std::make_shared<const IOKey>(std::move(key))) {}
Value::Value(Call call) : data_(std::make_shared<const Call>(std::move(call))) {}
Value::Value(const Model& model) : data_(model.body()) {}

Value Value::dictionary(Entries entries) {
  Value value;
  value.data_ = std::make_shared<const Entries>(std::move(entries));
  return value;
}

bool Value::boolean() const {
  if (is<bool>()) return std::get<bool>(data_);
  if (is<int64_t>()) return std::get<int64_t>(data_) != 0;
  throw_kind("a bool", *this);
}

int64_t Value::integer() const {
  if (is<int64_t>()) return std::get<int64_t>(data_);
  if (is<bool>()) return std::get<bool>(data_) ? 1 : 0;
  if (is<double>() && std::floor(number()) == number()) return static_cast<int64_t>(number());
  throw_kind("an integer", *this);
}

double Value::number() const {
  if (is<double>()) return std::get<double>(data_);
  if (is<int64_t>()) return static_cast<double>(std::get<int64_t>(data_));
  if (is<bool>()) return std::get<bool>(data_) ? 1.0 : 0.0;
  throw_kind("a number", *this);
}

const std::string& Value::text() const {
  if (!is_text()) throw_kind("a string", *this);
  return std::get<std::string>(data_);
}

const List& Value::list() const {
  if (!is_list()) throw_kind("a list", *this);
  return *std::get<std::shared_ptr<const List>>(data_);
}

const Entries& Value::entries() const {
  if (!is_dictionary()) throw_kind("a dictionary", *this);
  return *std::get<std::shared_ptr<const Entries>>(data_);
}

const Array& Value::array() const {
  if (!is_array()) throw_kind("an array", *this);
  return std::get<Array>(data_);
}

DType Value::dtype() const {
  if (is_text()) {
    std::string word = text().substr(text().rfind('.') + 1);
    if (std::optional<DType> found = dtype_from_name(word)) return *found;
  }
  if (!is<DType>()) throw_kind("a dtype", *this);
  return std::get<DType>(data_);
}

Slice Value::slice() const {
  if (!is<Slice>()) throw_kind("a slice", *this);
  return std::get<Slice>(data_);
}

const Tensor& Value::tensor() const {
  if (!is_tensor()) throw_kind("a Tensor", *this);
  return *std::get<std::shared_ptr<const Tensor>>(data_);
}

const Call& Value::call() const {
  if (!is_call()) throw_kind("a call of a model", *this);
  return *std::get<std::shared_ptr<const Call>>(data_);
}

const IOKey& Value::key() const {
  if (!is_key()) throw_kind("an IOKey", *this);
  return *std::get<std::shared_ptr<const IOKey>>(data_);
}

const Connection& Value::connection() const {
  if (!is_connection()) throw_kind("a connection", *this);
  return std::get<Connection>(data_);
}

Model Value::model() const {
  if (!is_model()) throw_kind("a model", *this);
  return Model(std::get<std::shared_ptr<ModelBody>>(data_));
}

std::vector<int64_t> Value::integers() const {
  if (!is_list()) return {integer()};
  std::vector<int64_t> result;
  for (const Value& entry : list()) result.push_back(entry.integer());
  return result;
}

const Value& Value::operator[](const std::string& name) const {
  static const Value nothing;
  if (is_dictionary()) {
    for (const auto& [key, value] : entries()) {
      if (key == name) return value;
    }
  }
  return nothing;
}

bool Value::has(const std::string& name) const {
  if (!is_dictionary()) return false;
  for (const auto& entry : entries()) {
    if (entry.first == name) return true;
  }
  return false;
}

std::string Value::to_string() const {
  if (!given()) return "TBD";
  if (is_none()) return "None";
  if (is<Ellipsis>()) return "...";
  if (is<bool>()) return std::get<bool>(data_) ? "True" : "False";
  if (is<int64_t>()) return concat(std::get<int64_t>(data_));
  if (is<double>()) return number_text(std::get<double>(data_));
  if (is_text()) return concat("'", text(), "'");
  if (is_array()) return capibara::to_string(array().type());
  if (is<DType>()) return std::string(dtype_name(std::get<DType>(data_)));
  if (is_tensor()) return concat("Tensor(", tensor().value.given() ? tensor().value.to_string() : "", ")");
  if (is_key()) return concat("IOKey('", key().name, "')");
  if (is_connection()) return concat("connection '", connection().key, "'");
  if (is_call()) return concat("call of ", call().model.type_name());
  if (is_model()) return model().type_name();
  if (is<Slice>()) {
    auto end = [](const std::optional<int64_t>& value) { return value ? concat(*value) : std::string("None"); };
    return concat("slice(", end(slice().start), ", ", end(slice().stop), ", ", end(slice().step), ")");
  }
  std::string text;
  if (is_list()) {
    for (const Value& entry : list()) text += (text.empty() ? "" : ", ") + entry.to_string();
    return "[" + text + "]";
  }
  for (const auto& [key, value] : entries()) {
    text += (text.empty() ? "" : ", ") + concat("'", key, "': ") + value.to_string();
  }
  return "{" + text + "}";
}

bool operator==(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  if (a.data_.index() != b.data_.index()) return false;
  if (a.is_list()) return a.list() == b.list();
  if (a.is_dictionary()) return a.entries() == b.entries();
  if (a.is_array()) return a.array().same_as(b.array());
  if (a.is_text()) return a.text() == b.text();
  if (a.is<DType>()) return a.dtype() == b.dtype();
  if (a.is_tensor())
    return &a.tensor() == &b.tensor() || (a.tensor().value.given() && a.tensor().value == b.tensor().value);
  if (a.is_connection())
    return a.connection().model == b.connection().model && a.connection().key == b.connection().key;
  if (a.is_key()) return &a.key() == &b.key();
  if (a.is_call()) return &a.call() == &b.call();
  if (a.is_model()) return a.model().body() == b.model().body();
  return a.to_string() == b.to_string();
}

// ---- shape templates ------------------------------------------------------------------------------------------------

ShapeTemplate::ShapeTemplate(const char* text) {
  std::string word;
  auto finish = [&] {
    if (word.empty()) return;
    TemplateDim dim;
    if (word.size() > 3 && word.ends_with("...")) {
      dim.name = word.substr(0, word.size() - 3);
      dim.variadic = true;
    } else if (word.find_first_not_of("0123456789") == std::string::npos) {
      dim.size = std::stoll(word);
    } else if (word != "_") {
      dim.name = word;
    }
    dims.push_back(dim);
    word.clear();
  };
  for (const char* c = text; *c; ++c) {
    if (*c == ',' || *c == ' ') {
      finish();
    } else {
      word += *c;
    }
  }
  finish();
}

ShapeTemplate::ShapeTemplate(const Value& list) {
  for (const Value& entry : list.list()) {
    TemplateDim dim;
    if (entry.is_text()) {
      const std::string& text = entry.text();
      std::size_t comma = text.find(",...");
      dim.variadic = comma != std::string::npos || text.ends_with("...");
      dim.name =
          comma != std::string::npos ? text.substr(0, comma) : (dim.variadic ? text.substr(0, text.size() - 3) : text);
    } else if (entry.is_list() && entry.list().size() == 2 && entry.list()[1].is<Ellipsis>()) {
      dim.variadic = true;
      dim.name = entry.list()[0].text();
    } else if (entry.is<Ellipsis>()) {
      dim.variadic = true;
      dim.name = "...";
    } else if (!entry.is_none()) {
      dim.size = entry.integer();
    }
    dims.push_back(dim);
  }
}

std::string ShapeTemplate::to_string() const {
  std::string text;
  for (const TemplateDim& dim : dims) {
    if (!text.empty()) text += ", ";
    text += dim.size ? concat(*dim.size) : (dim.name.empty() ? "_" : dim.name + (dim.variadic ? "..." : ""));
  }
  return "[" + text + "]";
}

}  // namespace capibara::models
