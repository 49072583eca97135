// Shape rules for operations that templates cannot describe.
#include "models/named/shape_rules.h"

#include "models/named/shapes.h"

#include <algorithm>

namespace capibara::models {

const std::optional<std::vector<DimId>>& RuleScope::dims(const std::string& key) const {
  return system_.dims(keys_.at(key));
}
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
          // A dimension that only one operand has is also the result's.
          bool in_a = i + a->size() >= rank, in_b = i + b->size() >= rank;
          if (in_a && !in_b)
            fresh.push_back((*a)[i + a->size() - rank]);
          else if (in_b && !in_a)
            fresh.push_back((*b)[i + b->size() - rank]);
          else
            fresh.push_back(scope.fresh());
        }
        scope.set(output, fresh);
      }
      const std::vector<DimId> out = *scope.dims(output);
      if (out.size() != rank) {
        throw ValueError(concat("models: '", left, "' and '", right, "' give ", rank, " dimensions, '", output,
                                "' has ", out.size()));
      }
      for (std::size_t i = 0; i < rank; ++i) {
        bool in_a = i + a->size() >= rank, in_b = i + b->size() >= rank;
        if (in_a && in_b) {
          broadcast_axis(scope, (*a)[i + a->size() - rank], (*b)[i + b->size() - rank], out[i],
                         concat("'", left, "' and '", right, "'"));
        } else {
          scope.equate(out[i], in_a ? (*a)[i + a->size() - rank] : (*b)[i + b->size() - rank], output);
        }
      }
      return;
    }
    // If one operand has fewer dimensions than the result, the other has all of them.
    for (const auto& [one, other] : {std::pair(left, right), std::pair(right, left)}) {
      std::optional<std::vector<DimId>> known = operand_dims(scope, one);
      if (!known || operand_dims(scope, other) || !scope.dims(output)) continue;
      const std::vector<DimId> out = *scope.dims(output);
      if (known->size() >= out.size()) continue;
      std::vector<DimId> dims;
      for (std::size_t i = 0; i < out.size(); ++i)
        dims.push_back(i < out.size() - known->size() ? out[i] : scope.fresh());
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
      if (!reduced[i])
        dims.push_back((*input)[i]);
      else if (keep.boolean())
        dims.push_back(scope.known(1));
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
        if (back)
          dims[static_cast<std::size_t>(axis)] = (*known)[i];
        else
          dims[i] = (*known)[static_cast<std::size_t>(axis)];
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
