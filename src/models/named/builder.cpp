// Building composites: terms that add operations to the model under construction.
#include "models/named/builder.h"

namespace capibara::models {

namespace {

Builder& owner(const Term& a, const Term& b) {
  Builder* builder = a.builder() ? a.builder() : b.builder();
  if (!builder) throw InternalError("models: an operation on two numbers needs no model");
  return *builder;
}

}  // namespace

Builder::Builder(const Arguments& arguments) : arguments_(arguments) { model_.body()->type = arguments.model(); }

Term Builder::input(const std::string& key, std::optional<ShapeTemplate> shape) {
  IOKey io{.name = key, .value = arguments_[key], .shape = std::move(shape)};
  if (io.value.is_tensor()) {
    io.types = io.value.tensor().types;
    io.differentiable = io.value.tensor().differentiable;
    if (!io.value.tensor().value.given()) io.value = {};
  }
  key_of_value(model_.body(), io);
  return Term(this, Connection{model_.body(), key});
}

Term Builder::weight(const std::string& key) {
  Term term = input(key);
  EdgePointer edge = model_.body()->edge(key);
  edge->tensor = true;
  if (!edge->value.given()) edge->differentiable = true;
  return term;
}

Term Builder::constant(const std::string& key, const Value& value) {
  key_of_value(model_.body(), IOKey{.name = key, .value = value});
  return Term(this, Connection{model_.body(), key});
}

Term Builder::add(const Model& model, const std::vector<std::pair<std::string, Term>>& inputs,
                  const std::string& output) {
  Entries connections;
  for (const auto& [key, term] : inputs) connections.emplace_back(key, term.value());
  model_ |= model.connect(connections);
  std::string key = output.empty() ? model.cout().key : output;
  return Term(this, Connection{model.body(), key});
}

Term Builder::add(const std::string& model, const Entries& arguments,
                  const std::vector<std::pair<std::string, Term>>& inputs) {
  return add(make(model, arguments), inputs);
}

void Builder::hidden(const std::string& key, const Term& term) {
  const std::shared_ptr<ModelBody>& body = model_.body();
  std::string own = key_of_value(body, term.value());
  if (body->generated(own)) {
    model_.rename_key(Connection{body, own}, key);
  } else {
    model_ |= make("Buffer").connect({{"input", Connection{body, own}}, {"output", key}});
  }
}

void Builder::output(const std::string& key, const Term& term) {
  hidden(key, term);
  model_.expose_keys({key});
}

Model Builder::finish(const std::vector<std::string>& cins, const std::vector<std::string>& couts) {
  for (const NamedShapes& shapes : shapes_) {
    model_.body()->templates.push_back(shapes);
    for (const auto& shape : shapes) model_.body()->edge(model_.body()->require(shape.first, "shapes"))->tensor = true;
  }
  model_.body()->cins = cins;
  if (!couts.empty()) {
    model_.body()->couts = couts;
  } else if (model_.body()->exposed.size() >= 1 && model_.body()->has("output")) {
    model_.body()->couts = std::vector<std::string>{"output"};
  }
  model_.body()->frozen = true;
  return model_;
}

Term operator+(const Term& a, const Term& b) { return owner(a, b).add("Add", {}, {{"left", a}, {"right", b}}); }
Term operator-(const Term& a, const Term& b) { return owner(a, b).add("Subtract", {}, {{"left", a}, {"right", b}}); }
Term operator*(const Term& a, const Term& b) { return owner(a, b).add("Multiply", {}, {{"left", a}, {"right", b}}); }
Term operator/(const Term& a, const Term& b) {
  return owner(a, b).add("Divide", {}, {{"numerator", a}, {"denominator", b}});
}
Term operate(const std::string& model, const Term& input, const Entries& arguments) {
  return owner(input, input).add(model, arguments, {{"input", input}});
}
Term matmul(const Term& a, const Term& b) { return owner(a, b).add("MatrixMultiply", {}, {{"left", a}, {"right", b}}); }
Term transpose(const Term& a) { return operate("Transpose", a); }
Term power(const Term& base, const Term& exponent, const Entries& arguments) {
  return owner(base, exponent).add("Power", arguments, {{"base", base}, {"exponent", exponent}});
}
Term index(const Term& a, const Value& position) { return operate("Indexer", a, {{"index", position}}); }

Term reshape(const Term& a, const std::vector<Term>& shape) {
  List sizes;
  for (const Term& size : shape) sizes.push_back(size.value());
  return owner(a, a).add("Reshape", {}, {{"input", a}, {"shape", Term(Value(sizes))}});
}

Model model_argument(const Value& value) {
  if (value.is_model()) return value.model();
  return from_specification(value);
}

}  // namespace capibara::models
