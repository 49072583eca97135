// Rules of dot_general: transposes of its operands and result become dimension numbers.
//
//   b = transpose[(1,0)] a; c = dot_general[((1),(0))] b d    ->    c = dot_general[((0),(0))] a d
#include "compiler/optimise/simplify.h"

#include <algorithm>

namespace capibara::passes {

namespace {

using Result = std::optional<Atom>;

Ints mapped(const Ints& permutation, const Ints& dims) {
  Ints result;
  for (int64_t dim : dims) result.push_back(at(permutation, dim));
  return result;
}

Ints free_dims(int64_t rank, const Ints& contracting, const Ints& batch) {
  auto holds = [](const Ints& list, int64_t dim) { return std::find(list.begin(), list.end(), dim) != list.end(); };
  Ints rest;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (!holds(contracting, dim) && !holds(batch, dim)) rest.push_back(dim);
  }
  return rest;
}

// The operand before its transpose, if its free dimensions keep their order; adjusts the dimension numbers.
Result before_transpose(Site& site, std::size_t side, Ints& contracting, Ints& batch) {
  const Equation* transpose = site.simplifier.made_by(site.inputs[side], prim::transpose());
  if (!transpose) return std::nullopt;
  const Ints& permutation = transpose->attrs.ints("permutation");
  Ints rest = mapped(permutation, free_dims(site.type(side).rank(), contracting, batch));
  if (!std::is_sorted(rest.begin(), rest.end())) return std::nullopt;
  contracting = mapped(permutation, contracting);
  batch = mapped(permutation, batch);
  return transpose->inputs[0];
}

Result dot(Site& site) {
  DotDimensionNumbers numbers = site.attrs.get<DotDimensionNumbers>("dimension_numbers");
  Result lhs = before_transpose(site, 0, numbers.lhs_contracting, numbers.lhs_batch);
  Result rhs = before_transpose(site, 1, numbers.rhs_contracting, numbers.rhs_batch);
  if (!lhs && !rhs) return std::nullopt;
  return site.simplifier.add(site.primitive, {lhs.value_or(site.inputs[0]), rhs.value_or(site.inputs[1])},
                             site.attrs.with("dimension_numbers", numbers), site.source);
}

// batch, rhs free, lhs free: the same products with the operands exchanged. Complex products are left alone: their
// parts would be summed in a different order.
Result transpose_of_dot(Site& site) {
  const Equation* dot = site.only_reader ? site.simplifier.made_by(site.inputs[0], prim::dot_general()) : nullptr;
  if (!dot || !is_plain(dot->attrs) || is_complex(site.type(0).dtype)) return std::nullopt;
  const Atom lhs = dot->inputs[0], rhs = dot->inputs[1];
  if (site.simplifier.type(lhs).dtype != site.simplifier.type(rhs).dtype) return std::nullopt;
  if (const Attr* precision = dot->attrs.find("precision"); precision && !precision->is_none()) {
    const auto* pair = precision->get_if<std::shared_ptr<const Attr::List>>();
    if (!pair || (*pair)->size() != 2 || !((**pair)[0] == (**pair)[1])) return std::nullopt;
  }
  const auto& numbers = dot->attrs.get<DotDimensionNumbers>("dimension_numbers");
  int64_t batch = static_cast<int64_t>(numbers.lhs_batch.size());
  int64_t left = site.simplifier.type(lhs).rank() - batch - static_cast<int64_t>(numbers.lhs_contracting.size());
  int64_t rank = site.type(0).rank();
  Ints exchanged;
  for (int64_t dim = 0; dim < batch; ++dim) exchanged.push_back(dim);
  for (int64_t dim = batch + left; dim < rank; ++dim) exchanged.push_back(dim);
  for (int64_t dim = batch; dim < batch + left; ++dim) exchanged.push_back(dim);
  if (site.attrs.ints("permutation") != exchanged) return std::nullopt;
  Attrs attrs = dot->attrs.with(
      "dimension_numbers",
      DotDimensionNumbers{numbers.rhs_contracting, numbers.lhs_contracting, numbers.rhs_batch, numbers.lhs_batch});
  return site.simplifier.add(prim::dot_general(), {rhs, lhs}, attrs, site.source);
}

}  // namespace

void add_contract_rules(Rules& rules) {
  rules.add(prim::dot_general(), dot);
  rules.add(prim::transpose(), transpose_of_dot);
}

}  // namespace capibara::passes
