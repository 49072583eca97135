// Index arithmetic of the primitives that move elements.
#include "backends/cpu/groups/access.h"
#include "program/ir/handles.h"

#include <algorithm>

namespace capibara::cpu {

void Terms::add(Symbol symbol, int64_t factor) {
  if (factor == 0) return;
  if (empty()) {
    one_ = {symbol, factor};
    has_one_ = true;
    return;
  }
  if (more_.empty() && one_.first == symbol) {
    one_.second += factor;
    has_one_ = one_.second != 0;
    return;
  }
  if (more_.empty()) more_.push_back(one_);
  auto it =
      std::lower_bound(more_.begin(), more_.end(), symbol, [](const Term& term, Symbol s) { return term.first < s; });
  if (it == more_.end() || it->first != symbol) {
    more_.insert(it, {symbol, factor});
    return;
  }
  it->second += factor;
  if (it->second == 0) more_.erase(it);
  has_one_ = false;  // `more_` may have become empty
}

Affine Affine::of(Symbol symbol, int64_t factor) {
  Affine result;
  result.terms.add(symbol, factor);
  return result;
}

int64_t Affine::factor(Symbol symbol) const {
  for (const auto& [own, factor] : terms) {
    if (own == symbol) return factor;
  }
  return 0;
}

Affine& Affine::add(const Affine& other, int64_t factor) {
  constant += other.constant * factor;
  if (factor == 0) return *this;
  for (const auto& [symbol, own] : other.terms) terms.add(symbol, own * factor);
  return *this;
}

bool is_constant(const Index& index) {
  return std::all_of(index.begin(), index.end(), [](const Affine& entry) { return entry.is_constant(); });
}

Affine linear(const Index& index, std::span<const int64_t> shape) {
  Affine sum;
  int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1) sum.add(index[d], stride);
    stride *= shape[d];
  }
  return sum;
}

Index constant_index(int64_t number, std::span<const int64_t> shape) {
  Index index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d].constant = number % shape[d];
    number /= shape[d];
  }
  return index;
}

Index stretched_index(const Index& index, std::span<const int64_t> operand) {
  if (operand.empty()) return {};
  Index result = index;
  for (std::size_t d = 0; d < operand.size(); ++d) {
    if (operand[d] == 1) result[d] = Affine();
  }
  return result;
}

bool differs_by_units(std::span<const int64_t> from, std::span<const int64_t> to) {
  std::size_t i = 0, j = 0;
  while (true) {
    while (i < from.size() && from[i] == 1) ++i;
    while (j < to.size() && to[j] == 1) ++j;
    if (i == from.size() || j == to.size()) return i == from.size() && j == to.size();
    if (from[i++] != to[j++]) return false;
  }
}

std::optional<Index> reshaped_index(const Index& index, std::span<const int64_t> from, std::span<const int64_t> to) {
  // An empty array is never read: any index will do.
  if (std::find(from.begin(), from.end(), 0) != from.end()) return Index(from.size());
  if (is_constant(index)) return constant_index(linear(index, to).constant, from);
  // Matches runs of dimensions whose sizes have equal products.
  Index result(from.size());
  std::size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    std::size_t first_from = i, first_to = j;
    int64_t left = i < from.size() ? from[i++] : 1, right = j < to.size() ? to[j++] : 1;
    while (left != right) {
      if (left < right) {
        if (i == from.size()) return std::nullopt;
        left *= from[i++];
      } else {
        if (j == to.size()) return std::nullopt;
        right *= to[j++];
      }
    }
    Affine joined = linear(
        Index(index.begin() + static_cast<std::ptrdiff_t>(first_to), index.begin() + static_cast<std::ptrdiff_t>(j)),
        to.subspan(first_to, j - first_to));
    std::size_t wide = 0, place = first_from;
    for (std::size_t d = first_from; d < i; ++d) {
      if (from[d] != 1) {
        ++wide;
        place = d;
      }
    }
    if (wide == 0) continue;
    if (wide == 1) {
      result[place] = joined;
    } else if (joined.is_constant()) {
      Index parts = constant_index(joined.constant, from.subspan(first_from, i - first_from));
      std::copy(parts.begin(), parts.end(), result.begin() + static_cast<std::ptrdiff_t>(first_from));
    } else {
      return std::nullopt;
    }
  }
  return result;
}

std::optional<Index> moved_index(const Equation& equation, const Index& index, std::span<const int64_t> operand,
                                 std::span<const int64_t> output, const StartSymbol& start) {
  const Primitive& primitive = equation.primitive;
  const Attrs& attrs = equation.attrs;
  Index result(operand.size());
  if (primitive == prim::broadcast_in_dim()) {
    const Ints& dims = attrs.ints("broadcast_dimensions");
    for (std::size_t d = 0; d < operand.size(); ++d) {
      if (operand[d] != 1) result[d] = index[at(dims[d])];
    }
    return result;
  }
  if (primitive == prim::reshape() || primitive == prim::squeeze()) return reshaped_index(index, operand, output);
  if (primitive == prim::transpose()) {
    const Ints& permutation = attrs.ints("permutation");
    for (std::size_t d = 0; d < operand.size(); ++d) result[at(permutation[d])] = index[d];
    return result;
  }
  if (primitive == prim::rev()) {
    result = index;
    for (int64_t d : attrs.ints("dimensions")) {
      Affine turned(operand[at(d)] - 1);
      result[at(d)] = turned.add(index[at(d)], -1);
    }
    return result;
  }
  if (primitive == prim::slice()) {
    const Ints& starts = attrs.ints("start_indices");
    const Attr& strides = attrs["strides"];
    for (std::size_t d = 0; d < operand.size(); ++d) {
      result[d] = Affine(starts[d]);
      result[d].add(index[d], strides.is_none() ? 1 : attrs.ints("strides")[d]);
    }
    return result;
  }
  if (primitive == prim::dynamic_slice()) {
    for (std::size_t d = 0; d < operand.size(); ++d) {
      result[d] = index[d];
      const int64_t last = operand[d] - output[d];
      if (last > 0) result[d].add(Affine::of(start(equation, static_cast<int64_t>(d), last)));
    }
    return result;
  }
  return index;
}

}  // namespace capibara::cpu
