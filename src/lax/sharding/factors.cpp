// Factors: the graph of matched dimensions, and the factors of an equation by its record or by traits.
#include "lax/sharding/factors.h"

#include <algorithm>
#include <numeric>

namespace capibara {

// ---- the graph ------------------------------------------------------------------------------------------------------

DimensionFactors FactorGraph::dimension(int64_t size) {
  if (size == 1) return {};
  nodes_.push_back({{size, size == 0 ? FactorUse::whole : FactorUse::free, Monoid::add}});
  return {static_cast<int>(nodes_.size()) - 1};
}

ValueFactors FactorGraph::value(const ArrayType& type) {
  ValueFactors value;
  for (int64_t size : type.shape) value.push_back(dimension(size));
  return value;
}

int FactorGraph::root(int id) const {
  while (nodes_[static_cast<std::size_t>(id)].same_as >= 0) id = nodes_[static_cast<std::size_t>(id)].same_as;
  return id;
}

DimensionFactors FactorGraph::resolved(const DimensionFactors& dimension) const {
  DimensionFactors out;
  for (int id : dimension) {
    const int at = root(id);
    const Node& node = nodes_[static_cast<std::size_t>(at)];
    if (node.outer < 0) {
      out.push_back(at);
      continue;
    }
    for (int part : resolved(DimensionFactors{node.outer, node.inner})) out.push_back(part);
  }
  return out;
}

ValueFactors FactorGraph::resolved(const ValueFactors& value) const {
  ValueFactors out;
  for (const DimensionFactors& dimension : value) out.push_back(resolved(dimension));
  return out;
}

// Whole is the strictest; a factor that is combined in one place and kept in another must be whole.
void FactorGraph::restrict_use(int id, FactorUse use, Monoid monoid) {
  Factor& factor = node(id).factor;
  if (use == FactorUse::free || factor.use == FactorUse::whole) return;
  const bool differ = factor.use == FactorUse::combined && use == FactorUse::combined && factor.monoid != monoid;
  factor.use = differ ? FactorUse::whole : use;
  factor.monoid = monoid;
}

void FactorGraph::cut(int id, int64_t outer_size) {
  const Factor whole = node(id).factor;
  nodes_.push_back({{outer_size, whole.use, whole.monoid}});
  nodes_.push_back({{whole.size / outer_size, whole.use, whole.monoid}});
  node(id).outer = static_cast<int>(nodes_.size()) - 2;
  node(id).inner = static_cast<int>(nodes_.size()) - 1;
}

void FactorGraph::join(int a, int b) {
  if (a == b) return;
  restrict_use(a, node(b).factor.use, node(b).factor.monoid);
  node(b).same_as = a;
}

void FactorGraph::match(const DimensionFactors& a, const DimensionFactors& b) {
  DimensionFactors left = resolved(a), right = resolved(b);
  while (!left.empty() && !right.empty()) {
    const int x = left.front(), y = right.front();
    const int64_t x_size = node(x).factor.size, y_size = node(y).factor.size;
    if (x_size == y_size) {
      join(x, y);
    } else if (x_size > y_size && y_size > 0 && x_size % y_size == 0) {
      cut(x, y_size);
    } else if (y_size > x_size && x_size > 0 && y_size % x_size == 0) {
      cut(y, x_size);
    } else {
      break;
    }
    left = resolved(left);
    right = resolved(right);
    while (!left.empty() && !right.empty() && left.front() == right.front()) {
      left.erase(left.begin());
      right.erase(right.begin());
    }
  }
  require_whole(left);
  require_whole(right);
}

void FactorGraph::match(const ValueFactors& a, const ValueFactors& b) {
  for (std::size_t d = 0; d < a.size(); ++d) match(a[d], b[d]);
}

void FactorGraph::require_whole(const DimensionFactors& dimension) {
  for (int id : resolved(dimension)) node(id).factor.use = FactorUse::whole;
}

void FactorGraph::combine(const DimensionFactors& dimension, Monoid monoid) {
  for (int id : resolved(dimension)) restrict_use(id, FactorUse::combined, monoid);
}

Factors FactorGraph::finish(const std::vector<ValueFactors>& operands, const std::vector<ValueFactors>& results) const {
  Factors out;
  std::vector<int> number(nodes_.size(), -1);
  auto numbered = [&](const ValueFactors& value) {
    ValueFactors renamed = resolved(value);
    for (DimensionFactors& dimension : renamed) {
      for (int& id : dimension) {
        int& known = number[static_cast<std::size_t>(id)];
        const Factor& factor = nodes_[static_cast<std::size_t>(id)].factor;
        if (known < 0) known = out.add(factor.size, factor.use, factor.monoid);
        id = known;
      }
    }
    return renamed;
  };
  for (const ValueFactors& value : operands) out.operands.push_back(numbered(value));
  for (const ValueFactors& value : results) out.results.push_back(numbered(value));
  return out;
}

// ---- one equation ---------------------------------------------------------------------------------------------------

FactorBuilder::FactorBuilder(const EquationTypes& equation) : equation_(equation) {
  for (const ArrayType& type : equation.operands) operands_.push_back(graph_.value(type));
  for (const ArrayType& type : equation.results) results_.push_back(graph_.value(type));
}

void FactorBuilder::allow(const DimensionFactors& dimension) { allowed_.push_back(dimension); }

void FactorBuilder::keep(std::size_t operand, int64_t dim, std::size_t result, int64_t result_dim) {
  const auto d = static_cast<std::size_t>(dim), e = static_cast<std::size_t>(result_dim);
  if (equation_.operands[operand].shape[d] != equation_.results[result].shape[e]) return;
  graph_.match(operands_[operand][d], results_[result][e]);
  allow(operands_[operand][d]);
}

void FactorBuilder::tie(std::size_t operand, int64_t dim, std::size_t result, int64_t result_dim) {
  const auto d = static_cast<std::size_t>(dim), e = static_cast<std::size_t>(result_dim);
  graph_.match(operands_[operand][d], results_[result][e]);
}

void FactorBuilder::pair(std::size_t operand, int64_t dim, std::size_t other, int64_t other_dim) {
  const auto d = static_cast<std::size_t>(dim), e = static_cast<std::size_t>(other_dim);
  graph_.match(operands_[operand][d], operands_[other][e]);
}

void FactorBuilder::combine(std::size_t operand, int64_t dim, Monoid monoid) {
  const DimensionFactors& dimension = operands_[operand][static_cast<std::size_t>(dim)];
  graph_.combine(dimension, monoid);
  allow(dimension);
}

void FactorBuilder::make(std::size_t result, int64_t dim) { allow(results_[result][static_cast<std::size_t>(dim)]); }

void FactorBuilder::repeat(std::size_t operand, int64_t dim, std::size_t result, int64_t result_dim) {
  const auto d = static_cast<std::size_t>(dim), e = static_cast<std::size_t>(result_dim);
  const int64_t size = equation_.operands[operand].shape[d];
  if (size == 0) return;
  DimensionFactors repeated = graph_.dimension(equation_.results[result].shape[e] / size);
  repeated.insert(repeated.end(), operands_[operand][d].begin(), operands_[operand][d].end());
  graph_.match(repeated, results_[result][e]);
  allow(repeated);
}

void FactorBuilder::keep_order(const Ints& operand_dims) {
  DimensionFactors in, out;
  for (int64_t d : operand_dims)
    for (int id : operands_[0][static_cast<std::size_t>(d)]) in.push_back(id);
  for (const DimensionFactors& dimension : results_[0])
    for (int id : dimension) out.push_back(id);
  graph_.match(in, out);
  allow(in);
  allow(out);
}

Factors FactorBuilder::finish() {
  std::vector<int> allowed;
  for (const DimensionFactors& dimension : allowed_)
    for (int id : graph_.resolved(dimension)) allowed.push_back(id);
  for (const auto* values : {&operands_, &results_}) {
    for (const ValueFactors& value : *values) {
      for (const DimensionFactors& dimension : graph_.resolved(value)) {
        for (int id : dimension) {
          if (std::find(allowed.begin(), allowed.end(), id) == allowed.end())
            graph_.require_whole(DimensionFactors{id});
        }
      }
    }
  }
  return graph_.finish(operands_, results_);
}

// ---- by record or traits -------------------------------------------------------------------------------------------

bool has_factors(const PrimitiveRecord& record) {
  return record.factors || record.lower || record.traits.elementwise != Elementwise::no;
}

Factors factors_of(const EquationTypes& equation) {
  const PrimitiveRecord& record = equation.primitive.record();
  if (record.factors) return record.factors(equation);
  if (record.traits.elementwise != Elementwise::no) return elementwise_factors(equation);
  return record.lower ? lowered_factors(equation) : whole_factors(equation);
}

}  // namespace capibara
