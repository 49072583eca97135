// What is known of a connection besides its name: constants, shapes with named dimensions, types.
#pragma once

#include <capibara/models/value.h>

namespace capibara::models {

// A tensor as a constant or a type: nested lists of numbers become an array of the backend's dtype at compile.
struct Tensor {
  Value value = {};  // not given: a tensor whose value comes later
  ElementTypes types = {};
  std::optional<bool> differentiable = {};
};

// A dimension of a shape template: a size, a name, a name that stands for any number of dimensions, or anything.
struct TemplateDim {
  std::optional<int64_t> size = {};
  std::string name = {};  // empty with no size: anything
  bool variadic = false;
};
struct ShapeTemplate {
  std::vector<TemplateDim> dims;
  ShapeTemplate() = default;
  ShapeTemplate(std::vector<TemplateDim> entries) : dims(std::move(entries)) {}
  // "N, V..., 3, _": names, variadic names, sizes and anything.
  ShapeTemplate(const char* text);
  ShapeTemplate(const std::string& text) : ShapeTemplate(text.c_str()) {}
  // A list of integers, names, None, "V,..." and ("V", ...).
  explicit ShapeTemplate(const Value& list);
  std::string to_string() const;
};

// A named connection of the model that is being written, with what is known of it.
struct IOKey {
  std::string name = {};  // empty: the model names it
  Value value = {};
  std::optional<ShapeTemplate> shape = {};
  std::optional<ElementTypes> types = {};
  std::optional<bool> differentiable = {};
  bool expose = false;
  std::vector<Value> connections = {};  // also connected with these
};

}  // namespace capibara::models
