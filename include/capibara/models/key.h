// What is known about a connection besides its name: constants, shapes with named dimensions, types.
#pragma once

#include <capibara/models/value.h>

namespace capibara::models {

// A tensor as a constant or a type: nested lists of numbers become an array of the backend's dtype when compiled.
struct Tensor {
  Value value = {};  // unset: a tensor whose value is supplied later
  ElementTypes types = {};
  std::optional<bool> differentiable = {};
};

// A dimension of a shape template: a size, a name, a name for any number of dimensions, or a wildcard.
struct TemplateDim {
  std::optional<int64_t> size = {};
  std::string name = {};  // empty without a size: a wildcard
  bool variadic = false;
};
struct ShapeTemplate {
  std::vector<TemplateDim> dims;
  ShapeTemplate() = default;
  ShapeTemplate(std::vector<TemplateDim> entries) : dims(std::move(entries)) {}
  // "N, V..., 3, _": names, variadic names, sizes and wildcards.
  ShapeTemplate(const char* text);
  ShapeTemplate(const std::string& text) : ShapeTemplate(text.c_str()) {}
  // A list of integers, names, None, "V,..." and ("V", ...).
  explicit ShapeTemplate(const Value& list);
  std::string to_string() const;
};

// A named connection of the model under construction, with what is known about it.
struct IOKey {
  std::string name = {};  // empty: chosen by the model
  Value value = {};
  std::optional<ShapeTemplate> shape = {};
  std::optional<ElementTypes> types = {};
  std::optional<bool> differentiable = {};
  bool expose = false;
  std::vector<Value> connections = {};  // additional connections to merge with
};

}  // namespace capibara::models
