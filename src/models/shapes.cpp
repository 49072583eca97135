// The solver of shapes: templates with named and variadic dimensions, rules of operations, and tracing.
#include "models/shapes.h"

#include <capibara/jit.h>

namespace capibara::models {

ShapeSystem::ShapeSystem(const FlatGraph& graph, bool safe)
    : graph_(graph), edges_(graph.edges.size()), rank_sources_(graph.edges.size()), traced_(graph.operations.size()) {
  for (const FlatShapes& flat : graph.templates) scopes_.push_back({flat.label, flat.shapes, {}, {}});
  for (const FlatOperation& operation : graph.operations) {
    Scope scope{operation.label, {}, {}, {}};
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
    throw ValueError(concat("models: shape of '", graph_.edges[at(edge)].name, "': dimension ", axis, " is ", *sizes_[at(a)],
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
      if (has_sequence && bound == scope.sequences.end()) continue;
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
  scopes_.push_back({source, {{edge, shape}}, {}, {}});
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

// Stages the operation on arrays of the shapes of its inputs.
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
    return true;  // its result depends on values: known when it runs
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
    // Both directions in turn: shapes flow along chains of operations in one pass.
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

// ---- rules ----------------------------------------------------------------------------------------------------------

const std::optional<std::vector<DimId>>& RuleScope::dims(const std::string& key) const { return system_.dims(keys_.at(key)); }
const Value& RuleScope::value(const std::string& key) const {
  static const Value nothing;
  auto found = keys_.find(key);
  return found == keys_.end() ? nothing : values_[at(found->second)];
}
const Value& RuleScope::argument(const std::string& name) const {
  static const Value nothing;
  for (const auto& [key, value] : arguments_) {
    if (key == name) return value;
  }
  return nothing;
}
std::optional<int64_t> RuleScope::size(DimId dim) const { return system_.size(dim); }
DimId RuleScope::fresh() { return system_.fresh(); }
DimId RuleScope::known(int64_t size) { return system_.known(size); }
void RuleScope::equate(DimId a, DimId b, const std::string& key) { system_.equate(a, b, keys_.at(key), 0); }
void RuleScope::set(const std::string& key, const std::vector<DimId>& dims) { system_.set(keys_.at(key), dims); }

namespace {

// Scalars that are plain numbers have no dimensions.
std::optional<std::vector<DimId>> operand_dims(const RuleScope& scope, const std::string& key) {
  if (scope.value(key).is_number()) return std::vector<DimId>{};
  return scope.dims(key);
}

void broadcast_axis(RuleScope& scope, DimId a, DimId b, DimId out, const std::string& keys) {
  std::optional<int64_t> x = scope.size(a), y = scope.size(b), z = scope.size(out);
  if (x && y) {
    if (*x != *y && *x != 1 && *y != 1) {
      throw ValueError(concat("models: ", keys, ": sizes ", *x, " and ", *y, " cannot be broadcast to each other"));
    }
    scope.equate(out, *x == 1 ? b : a, "output");
  } else if (x && *x == 1) {
    scope.equate(out, b, "output");
  } else if (y && *y == 1) {
    scope.equate(out, a, "output");
  } else if (z && *z == 1) {
    scope.equate(a, out, "output");
    scope.equate(b, out, "output");
  } else if (x && !y) {
    scope.equate(out, a, "output");
  } else if (y && !x) {
    scope.equate(out, b, "output");
  }
}

}  // namespace

ShapeRule broadcast_rule(std::string left, std::string right, std::string output) {
  return [=](RuleScope& scope) {
    std::optional<std::vector<DimId>> a = operand_dims(scope, left), b = operand_dims(scope, right);
    if (scope.value(output).given()) return;  // plain numbers
    if (a && b && !(scope.value(left).is_number() && scope.value(right).is_number())) {
      std::size_t rank = std::max(a->size(), b->size());
      if (!scope.dims(output)) {
        std::vector<DimId> fresh;
        for (std::size_t i = 0; i < rank; ++i) {
          // Where only one operand has the dimension, or both are the same one, the result has it too.
          bool in_a = i + a->size() >= rank, in_b = i + b->size() >= rank;
          if (in_a && !in_b) fresh.push_back((*a)[i + a->size() - rank]);
          else if (in_b && !in_a) fresh.push_back((*b)[i + b->size() - rank]);
          else fresh.push_back(scope.fresh());
        }
        scope.set(output, fresh);
      }
      const std::vector<DimId> out = *scope.dims(output);
      if (out.size() != rank) {
        throw ValueError(concat("models: '", left, "' and '", right, "' give ", rank, " dimensions, '", output, "' has ",
                                out.size()));
      }
      for (std::size_t i = 0; i < rank; ++i) {
        bool in_a = i + a->size() >= rank, in_b = i + b->size() >= rank;
        if (in_a && in_b) {
          broadcast_axis(scope, (*a)[i + a->size() - rank], (*b)[i + b->size() - rank], out[i], concat("'", left, "' and '", right, "'"));
        } else {
          scope.equate(out[i], in_a ? (*a)[i + a->size() - rank] : (*b)[i + b->size() - rank], output);
        }
      }
      return;
    }
    // An operand of fewer dimensions than the result: the other one has them all.
    for (const auto& [one, other] : {std::pair(left, right), std::pair(right, left)}) {
      std::optional<std::vector<DimId>> known = operand_dims(scope, one);
      if (!known || operand_dims(scope, other) || !scope.dims(output)) continue;
      const std::vector<DimId> out = *scope.dims(output);
      if (known->size() >= out.size()) continue;
      std::vector<DimId> dims;
      for (std::size_t i = 0; i < out.size(); ++i) dims.push_back(i < out.size() - known->size() ? out[i] : scope.fresh());
      scope.set(other, dims);
    }
  };
}

ShapeRule matmul_rule() {
  return [](RuleScope& scope) {
    const auto a = scope.dims("left"), b = scope.dims("right");
    if (!a || !b || a->empty() || b->empty()) return;
    if (b->size() < 2 || a->size() < 2) return;  // vectors: found by tracing
    scope.equate(a->back(), (*b)[b->size() - 2], "left");
    if (scope.dims("output")) {
      const std::vector<DimId> out = *scope.dims("output");
      if (out.size() >= 2) {
        scope.equate(out.back(), b->back(), "output");
        scope.equate(out[out.size() - 2], (*a)[a->size() - 2], "output");
      }
      return;
    }
    if (b->size() == 2) {
      std::vector<DimId> dims(a->begin(), a->end() - 1);
      dims.push_back(b->back());
      scope.set("output", dims);
    } else if (a->size() == b->size()) {
      std::vector<DimId> dims;
      for (std::size_t i = 0; i + 2 < a->size(); ++i) {
        if (scope.size((*a)[i]) != scope.size((*b)[i]) || !scope.size((*a)[i])) return;
        dims.push_back((*a)[i]);
      }
      dims.push_back((*a)[a->size() - 2]);
      dims.push_back(b->back());
      scope.set("output", dims);
    }
  };
}

ShapeRule reduce_rule() {
  return [](RuleScope& scope) {
    const auto input = scope.dims("input");
    const Value& axis = scope.value("axis");
    const Value& keep = scope.value("keepdim");
    if (!keep.is_number() || !axis.given()) return;
    if (axis.is_none() && !keep.boolean()) {
      scope.set("output", {});
      return;
    }
    if (!input) return;
    int64_t rank = static_cast<int64_t>(input->size());
    std::vector<bool> reduced(input->size(), axis.is_none());
    if (!axis.is_none()) {
      for (int64_t i : axis.integers()) {
        if (i < -rank || i >= rank) {
          throw ValueError(concat("models: axis ", i, " is out of range for 'input' with ", rank, " dimensions"));
        }
        reduced[static_cast<std::size_t>(i < 0 ? i + rank : i)] = true;
      }
    }
    std::vector<DimId> dims;
    for (std::size_t i = 0; i < input->size(); ++i) {
      if (!reduced[i]) dims.push_back((*input)[i]);
      else if (keep.boolean()) dims.push_back(scope.known(1));
    }
    scope.set("output", dims);
  };
}

ShapeRule transpose_rule() {
  return [](RuleScope& scope) {
    const Value& axes = scope.value("axes");
    if (!axes.given()) return;
    for (const auto& [from, to] : {std::pair("input", "output"), std::pair("output", "input")}) {
      const auto known = scope.dims(from);
      if (!known || scope.dims(to)) continue;
      std::vector<DimId> dims(known->size());
      bool back = std::string(from) == "output";
      int64_t rank = static_cast<int64_t>(known->size());
      std::vector<int64_t> order;
      if (axes.is_none()) {
        for (int64_t i = rank - 1; i >= 0; --i) order.push_back(i);
      } else {
        order = axes.integers();
      }
      if (static_cast<int64_t>(order.size()) != rank) return;
      for (std::size_t i = 0; i < order.size(); ++i) {
        int64_t axis = order[i] < 0 ? order[i] + rank : order[i];
        if (axis < 0 || axis >= rank) return;
        if (back) dims[static_cast<std::size_t>(axis)] = (*known)[i];
        else dims[i] = (*known)[static_cast<std::size_t>(axis)];
      }
      scope.set(to, dims);
    }
  };
}

ShapeRule flatten_rule() {
  return [](RuleScope& scope) {
    const auto input = scope.dims("input");
    if (!input || !scope.value("start_dim").is_number() || !scope.value("end_dim").is_number()) return;
    int64_t rank = static_cast<int64_t>(input->size());
    int64_t start = scope.value("start_dim").integer(), end = scope.value("end_dim").integer();
    if (start < 0) start += rank;
    if (end < 0) end += rank;
    if (start < 0 || end >= rank || start > end) return;
    std::vector<DimId> dims(input->begin(), input->begin() + start);
    int64_t product = 1;
    bool all = true;
    for (int64_t i = start; i <= end; ++i) {
      std::optional<int64_t> size = scope.size((*input)[static_cast<std::size_t>(i)]);
      all = all && size;
      product *= size.value_or(1);
    }
    if (all) {
      dims.push_back(scope.known(product));
    } else if (!scope.dims("output")) {
      dims.push_back(scope.fresh());
    } else {
      dims.push_back((*scope.dims("output"))[static_cast<std::size_t>(start)]);
    }
    dims.insert(dims.end(), input->begin() + end + 1, input->end());
    scope.set("output", dims);
  };
}

ShapeRule swap_axes_rule() {
  return [](RuleScope& scope) {
    if (!scope.value("axis1").is_number() || !scope.value("axis2").is_number()) return;
    for (const auto& [from, to] : {std::pair("input", "output"), std::pair("output", "input")}) {
      const auto known = scope.dims(from);
      if (!known || scope.dims(to)) continue;
      std::vector<DimId> dims = *known;
      int64_t rank = static_cast<int64_t>(dims.size());
      int64_t a = scope.value("axis1").integer(), b = scope.value("axis2").integer();
      if (a < 0) a += rank;
      if (b < 0) b += rank;
      if (a < 0 || b < 0 || a >= rank || b >= rank) return;
      std::swap(dims[static_cast<std::size_t>(a)], dims[static_cast<std::size_t>(b)]);
      scope.set(to, dims);
    }
  };
}

}  // namespace capibara::models
