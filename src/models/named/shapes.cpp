// The shape solver: templates with named and variadic dimensions, rules of operations, and tracing.
#include "models/named/shapes.h"

#include <capibara/jit.h>

namespace capibara::models {

ShapeSystem::ShapeSystem(const FlatGraph& graph, bool safe)
    : graph_(graph),
      edges_(graph.edges.size()),
      ends_(graph.edges.size()),
      rank_sources_(graph.edges.size()),
      traced_(graph.operations.size()) {
  for (const FlatShapes& flat : graph.templates) scopes_.push_back({flat.label, flat.shapes, {}, {}, {}});
  for (const FlatOperation& operation : graph.operations) {
    Scope scope{operation.label, {}, {}, {}, {}};
    const bool recommended = safe && !operation.record->safe.empty();
    const Ports wanted = recommended ? parse_ports(operation.record->safe) : Ports{};
    for (std::size_t i = 0; i < operation.ports.all.size(); ++i) {
      Port port = operation.ports.all[i];
      for (const Port& meant : wanted.all) {
        if (meant.key == port.key) port.shape = meant.shape;
      }
      if (!port.shape) continue;
      std::size_t inputs = operation.ports.inputs;
      scope.shapes.emplace_back(i < inputs ? operation.inputs[i] : operation.outputs[i - inputs], *port.shape);
    }
    if (!scope.shapes.empty()) scopes_.push_back(std::move(scope));
  }
}

DimId ShapeSystem::fresh() {
  parents_.push_back(static_cast<DimId>(parents_.size()));
  sizes_.emplace_back();
  names_.emplace_back();
  sources_.emplace_back();
  return parents_.back();
}

DimId ShapeSystem::known(int64_t size) {
  DimId dim = fresh();
  sizes_.back() = size;
  sources_.back() = source_;
  return dim;
}

DimId ShapeSystem::find(DimId dim) const {
  while (parents_[at(dim)] != dim) {
    parents_[at(dim)] = parents_[at(parents_[at(dim)])];
    dim = parents_[at(dim)];
  }
  return dim;
}

std::optional<int64_t> ShapeSystem::size(DimId dim) const { return sizes_[at(find(dim))]; }

void ShapeSystem::equate(DimId a, DimId b, int edge, std::size_t axis) {
  a = find(a);
  b = find(b);
  if (a == b) return;
  if (sizes_[at(a)] && sizes_[at(b)]) {
    if (*sizes_[at(a)] == *sizes_[at(b)]) {
      parents_[at(b)] = a;
      return;
    }
    throw ValueError(
        concat("models: shape of '", graph_.edges[at(edge)].name, "': dimension ", axis, " is ", *sizes_[at(a)],
               " for ", sources_[at(a)], " and ", *sizes_[at(b)], " for ", sources_[at(b)],
               source_ == sources_[at(a)] || source_ == sources_[at(b)] ? "" : concat(", says ", source_)));
  }
  changed_ = true;
  if (!sizes_[at(a)]) std::swap(a, b);
  parents_[at(b)] = a;
  if (names_[at(a)].empty()) names_[at(a)] = names_[at(b)];
}

void ShapeSystem::set(int edge, const std::vector<DimId>& dims) {
  std::optional<std::vector<DimId>>& known = edges_[at(edge)];
  if (!known) {
    known = dims;
    rank_sources_[at(edge)] = source_;
    changed_ = true;
    for (const auto& [position, dim] : ends_[at(edge)].head) {
      if (position < dims.size()) equate(dims[position], dim, edge, position);
    }
    for (const auto& [position, dim] : ends_[at(edge)].tail) {
      if (position < dims.size()) equate(dims[dims.size() - 1 - position], dim, edge, dims.size() - 1 - position);
    }
    return;
  }
  if (known->size() != dims.size()) {
    throw ValueError(concat("models: shape of '", graph_.edges[at(edge)].name, "': ", known->size(), " dimensions, ",
                            text(edge), ", for ", rank_sources_[at(edge)], " and ", dims.size(), " for ", source_));
  }
  for (std::size_t i = 0; i < dims.size(); ++i) equate((*known)[i], dims[i], edge, i);
}

DimId ShapeSystem::named(Scope& scope, const TemplateDim& dim) {
  if (dim.size) return known(*dim.size);
  if (dim.name.empty()) return fresh();
  auto found = scope.names.find(dim.name);
  if (found != scope.names.end()) return found->second;
  DimId id = fresh();
  names_[at(id)] = dim.name;
  scope.names[dim.name] = id;
  return id;
}

void ShapeSystem::note(std::map<std::size_t, DimId>& ends, std::size_t position, DimId dim, int edge) {
  auto [slot, added] = ends.try_emplace(position, dim);
  if (added)
    changed_ = true;
  else
    equate(slot->second, dim, edge, position);
}

// Matches templates at their first and last dimensions before the number of dimensions is known.
void ShapeSystem::apply_ends(Scope& scope, int edge, const ShapeTemplate& shape, std::size_t variadic) {
  Ends& own = ends_[at(edge)];
  const std::size_t before = variadic, after = shape.dims.size() - 1 - variadic;
  for (std::size_t i = 0; i < shape.dims.size(); ++i) {
    if (i == variadic || (shape.dims[i].name.empty() && !shape.dims[i].size)) continue;
    if (i < variadic)
      note(own.head, i, named(scope, shape.dims[i]), edge);
    else
      note(own.tail, shape.dims.size() - 1 - i, named(scope, shape.dims[i]), edge);
  }
  // What is known about the variadic sequence itself, from the side where no dimension precedes it.
  Ends& sequence = scope.sequence_ends[shape.dims[variadic].name];
  auto exchange = [&](std::map<std::size_t, DimId>& mine, std::map<std::size_t, DimId>& shared, std::size_t offset) {
    for (const auto& [position, dim] : std::map<std::size_t, DimId>(mine)) {
      if (position >= offset) note(shared, position - offset, dim, edge);
    }
    for (const auto& [position, dim] : std::map<std::size_t, DimId>(shared)) note(mine, position + offset, dim, edge);
  };
  if (before == 0) exchange(own.tail, sequence.tail, after);
  if (after == 0) exchange(own.head, sequence.head, before);
}

void ShapeSystem::apply(Scope& scope) {
  source_ = scope.label;
  for (const auto& [edge, shape] : scope.shapes) {
    std::size_t variadic = shape.dims.size();
    for (std::size_t i = 0; i < shape.dims.size(); ++i) {
      if (shape.dims[i].variadic) variadic = i;
    }
    bool has_sequence = variadic != shape.dims.size();
    std::size_t fixed = shape.dims.size() - (has_sequence ? 1 : 0);
    const std::string& sequence = has_sequence ? shape.dims[variadic].name : std::string();
    auto bound = scope.sequences.find(sequence);
    if (!edges_[at(edge)]) {
      if (has_sequence && bound == scope.sequences.end()) {
        apply_ends(scope, edge, shape, variadic);
        continue;
      }
      std::vector<DimId> dims;
      for (std::size_t i = 0; i < shape.dims.size(); ++i) {
        if (i == variadic) {
          dims.insert(dims.end(), bound->second.begin(), bound->second.end());
        } else {
          dims.push_back(named(scope, shape.dims[i]));
        }
      }
      set(edge, dims);
      continue;
    }
    const std::vector<DimId> dims = *edges_[at(edge)];
    bool fits = has_sequence ? dims.size() >= fixed : dims.size() == fixed;
    if (fits && has_sequence && bound != scope.sequences.end()) fits = bound->second.size() == dims.size() - fixed;
    if (!fits) {
      throw ValueError(concat("models: shape of '", graph_.edges[at(edge)].name, "': ", scope.label, " needs ",
                              shape.to_string(), ", ", rank_sources_[at(edge)], " gave ", text(edge)));
    }
    std::size_t length = dims.size() - fixed;
    if (has_sequence && bound == scope.sequences.end()) {
      auto begin = dims.begin() + static_cast<std::ptrdiff_t>(variadic);
      scope.sequences[sequence] = std::vector<DimId>(begin, begin + static_cast<std::ptrdiff_t>(length));
      changed_ = true;
    } else if (has_sequence) {
      for (std::size_t i = 0; i < length; ++i) equate(dims[variadic + i], bound->second[i], edge, variadic + i);
    }
    for (std::size_t i = 0; i < shape.dims.size(); ++i) {
      if (i == variadic) continue;
      if (shape.dims[i].name.empty() && !shape.dims[i].size) continue;
      std::size_t axis = i < variadic ? i : i + length - 1;
      equate(dims[axis], named(scope, shape.dims[i]), edge, axis);
    }
  }
}

void ShapeSystem::require(int edge, const ShapeTemplate& shape, const std::string& source) {
  scopes_.push_back({source, {{edge, shape}}, {}, {}, {}});
  apply(scopes_.back());
}

void ShapeSystem::apply_rule(const FlatOperation& operation, const std::vector<Value>& values) {
  if (!operation.record->rule) return;
  std::map<std::string, int> keys;
  for (std::size_t i = 0; i < operation.ports.all.size(); ++i) {
    std::size_t inputs = operation.ports.inputs;
    keys[operation.ports.all[i].key] = i < inputs ? operation.inputs[i] : operation.outputs[i - inputs];
  }
  source_ = operation.label;
  RuleScope scope(*this, keys, values, operation.body->arguments);
  operation.record->rule(scope);
}

// Stages the operation on arrays with the shapes of its inputs.
bool ShapeSystem::trace(const FlatOperation& operation, std::vector<Value>& values, DType dtype) {
  std::vector<Value> inputs;
  std::vector<ArrayType> types;
  std::vector<std::size_t> tensors;
  for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
    int edge = operation.inputs[i];
    const Value& value = values[at(edge)];
    if (value.given()) {
      inputs.push_back(value);
      continue;
    }
    if (!edges_[at(edge)]) return false;
    Shape shape;
    for (DimId dim : *edges_[at(edge)]) {
      if (!size(dim)) return false;
      shape.push_back(*size(dim));
    }
    const ElementTypes& kinds = graph_.edges[at(edge)].source->types;
    DType type = kinds.floating ? dtype : (kinds.integer ? DType::int32 : DType::bool_);
    types.push_back(ArrayType{shape, type, false, false, {}});
    tensors.push_back(i);
    inputs.push_back(Value());
  }
  Value result;
  auto function = [&](std::span<const Array> arrays) {
    for (std::size_t i = 0; i < tensors.size(); ++i) inputs[tensors[i]] = arrays[i];
    result = operation.record->compute(Operands(operation.ports.all, inputs, operation.body->arguments, dtype));
    return Arrays{};
  };
  try {
    detail::stage_program(function, types, operation.label);
  } catch (const ConcretizationTypeError&) {
    return true;  // the result depends on values: known at run time
  } catch (const Error& error) {
    throw ValueError(concat("models: shapes of ", operation.label, ": ", error.what()));
  }
  int edge = operation.outputs[0];
  if (result.is_array()) {
    source_ = operation.label;
    std::vector<DimId> dims;
    for (int64_t size : result.array().shape()) dims.push_back(known(size));
    set(edge, dims);
  } else if (!values[at(edge)].given()) {
    bool plain = true;
    if (result.is_list()) {
      for (const Value& entry : result.list()) plain = plain && !entry.is_array();
    }
    if (plain) {
      values[at(edge)] = result;
      changed_ = true;
    }
  }
  return true;
}

void ShapeSystem::solve(std::vector<Value>& values, DType dtype) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i].is_array()) continue;
    source_ = concat("the value of '", graph_.edges[i].name, "'");
    std::vector<DimId> dims;
    for (int64_t size : values[i].array().shape()) dims.push_back(known(size));
    set(static_cast<int>(i), dims);
  }
  bool backwards = false;
  do {
    changed_ = false;
    // Alternates directions: shapes propagate along chains of operations in one pass.
    for (std::size_t i = 0; i < scopes_.size(); ++i) apply(scopes_[backwards ? scopes_.size() - 1 - i : i]);
    for (std::size_t i = 0; i < graph_.operations.size(); ++i) {
      std::size_t op = backwards ? graph_.operations.size() - 1 - i : i;
      apply_rule(graph_.operations[op], values);
    }
    if (!changed_) {
      for (std::size_t i = 0; i < graph_.operations.size(); ++i) {
        if (!traced_[i]) traced_[i] = trace(graph_.operations[i], values, dtype);
      }
    }
    backwards = !backwards;
  } while (changed_);
}

std::string ShapeSystem::text(int edge) const {
  if (!edges_[at(edge)]) {
    for (const Scope& scope : scopes_) {
      for (const auto& [other, shape] : scope.shapes) {
        if (other == edge) return shape.to_string();
      }
    }
    return {};
  }
  std::string text;
  for (DimId dim : *edges_[at(edge)]) {
    if (!text.empty()) text += ", ";
    DimId id = find(dim);
    text += sizes_[at(id)] ? concat(*sizes_[at(id)]) : (names_[at(id)].empty() ? concat("u", id) : names_[at(id)]);
  }
  return "[" + text + "]";
}

}  // namespace capibara::models
