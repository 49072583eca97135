// Building composites: terms represent connections, and operations on them add models.
#pragma once

#include "models/named/catalog.h"

namespace capibara::models {

class Builder;

// A connection of the composite under construction; operators and functions add operations to it.
class Term {
 public:
  Term(double number) : value_(number) {}
  Term(int number) : value_(number) {}
  Term(Value value) : value_(std::move(value)) {}
  Term(Builder* builder, Value value) : builder_(builder), value_(std::move(value)) {}
  const Value& value() const { return value_; }
  Builder* builder() const { return builder_; }

 private:
  Builder* builder_ = nullptr;
  Value value_;
};

class Builder {
 public:
  explicit Builder(const Arguments& arguments);
  // A key with the value of the argument of the same name, if given.
  Term input(const std::string& key, std::optional<ShapeTemplate> shape = {});
  Term weight(const std::string& key);  // trainable
  Term constant(const std::string& key, const Value& value);
  // Adds a model from the catalog, with its inputs by name. Returns its output.
  Term add(const std::string& model, const Entries& arguments, const std::vector<std::pair<std::string, Term>>& inputs);
  Term add(const Model& model, const std::vector<std::pair<std::string, Term>>& inputs, const std::string& output = {});
  // Names a result; a result that already has a name gets a second one through a Buffer.
  void output(const std::string& key, const Term& term);
  void hidden(const std::string& key, const Term& term);  // named, not exposed
  void shapes(const NamedShapes& shapes) { shapes_.push_back(shapes); }
  Model finish(const std::vector<std::string>& cins = {"input"}, const std::vector<std::string>& couts = {});
  Model& model() { return model_; }

 private:
  const Arguments& arguments_;
  Model model_;
  std::vector<NamedShapes> shapes_;
};

Term operator+(const Term& a, const Term& b);
Term operator-(const Term& a, const Term& b);
Term operator*(const Term& a, const Term& b);
Term operator/(const Term& a, const Term& b);
// A catalog operation with one input.
Term operate(const std::string& model, const Term& input, const Entries& arguments = {});
Term matmul(const Term& a, const Term& b);
Term transpose(const Term& a);
Term power(const Term& base, const Term& exponent, const Entries& arguments = {});
Term index(const Term& a, const Value& position);
Term reshape(const Term& a, const std::vector<Term>& shape);
// A model given as an argument: a Model, a name, or a specification.
Model model_argument(const Value& value);

}  // namespace capibara::models
