// Reads which keys a condition keeps visible: comparisons of positions become window limits, the rest stays arrays.
#include <algorithm>

#include "kernels/attention/plain.h"
#include "program/ir/handles.h"

namespace capibara::kernels {

namespace {

class SeenReader {
 public:
  SeenReader(const Equations& equations, const PlainAttention& attention)
      : equations_(equations), attention_(attention) {}

  Seen read(const Labelled& condition) {
    split(condition);
    return std::move(seen_);
  }

 private:
  struct Position {
    int axis;
    int64_t offset;
    IntegerRange range;  // of all positions along the axis, including the offset
  };

  // Splits a conjunction into its conditions.
  void split(const Labelled& condition) {
    const Labelled x = equations_.source(condition, true);
    if (const Equation* all = equations_.made_by(x.atom, prim::and_())) {
      for (Atom input : all->inputs) split(equations_.beside(input, x.axes));
      return;
    }
    const Equation* both = equations_.made_by(x.atom, prim::select_n());
    if (both && both->inputs.size() == 3 && is_all(both->inputs[1], false) &&
        equations_.type(both->inputs[0]).dtype == DType::bool_) {
      for (const std::size_t side : {std::size_t{0}, std::size_t{2}})
        split(equations_.beside(both->inputs[side], x.axes));
      return;
    }
    if (!is_all(x.atom, true) && !read_order(x)) seen_.masks.push_back(x);
  }

  bool is_all(Atom atom, bool truth) const {
    if (const Equation* spread = equations_.made_by(atom, prim::broadcast_in_dim()))
      return is_all(spread->inputs[0], truth);
    return atom.is_literal() && equations_.type(atom).dtype == DType::bool_ &&
           equations_.program().literal(atom).item<bool>() == truth;
  }

  bool read_order(const Labelled& x) {
    const int at = equations_.maker(x.atom);
    if (at < 0 || equations_[at].inputs.size() != 2) return false;
    const Equation& equation = equations_[at];
    const std::optional<Position> a = position(equations_.beside(equation.inputs[0], x.axes));
    const std::optional<Position> b = position(equations_.beside(equation.inputs[1], x.axes));
    if (!a || !b) return false;
    if (equation.primitive == prim::ge()) return not_before(*a, *b, 0);
    if (equation.primitive == prim::gt()) return not_before(*a, *b, 1);
    if (equation.primitive == prim::le()) return not_before(*b, *a, 0);
    return equation.primitive == prim::lt() && not_before(*b, *a, 1);
  }

  // later + offset >= earlier + offset + strict.
  bool not_before(const Position& later, const Position& earlier, int64_t strict) {
    const int64_t reach = later.offset - earlier.offset - strict;
    if (reach < 0) return false;
    std::optional<int64_t>* limit = nullptr;
    if (later.axis == attention_.query && earlier.axis == attention_.key) limit = &seen_.right;
    if (later.axis == attention_.key && earlier.axis == attention_.query) limit = &seen_.left;
    // There are no keys beyond the last.
    const int64_t all = std::max(attention_.size({&attention_.query, 1}), attention_.size({&attention_.key, 1}));
    if (limit) *limit = std::min({limit->value_or(reach), reach, all});
    return limit != nullptr;
  }

  // A position along one axis plus an offset. Only in types that represent every position exactly: sums then do not
  // wrap, counts are not rounded, and comparisons are those of integers.
  std::optional<Position> position(const Labelled& view) const {
    const Labelled x = equations_.source(view, true);
    const DType dtype = equations_.type(x.atom).dtype;
    const auto exact = [&](const Position& p) {
      return holds_exactly(dtype, p.range) ? std::optional<Position>(p) : std::nullopt;
    };
    if (const Equation* count = equations_.made_by(x.atom, prim::iota())) {
      const auto dimension = static_cast<std::size_t>(count->attrs.integer("dimension"));
      if (x.axes[dimension] < 0) return std::nullopt;
      return exact({x.axes[dimension], 0, {0, equations_.type(x.atom).shape[dimension] - 1}});
    }
    for (const Primitive& primitive : {prim::add(), prim::sub()}) {
      const Equation* sum = equations_.made_by(x.atom, primitive);
      if (!sum) continue;
      const bool plus = primitive == prim::add(), first = plus && integer(sum->inputs[0]).has_value();
      const std::optional<int64_t> term = integer(sum->inputs[first ? 0 : 1]);
      const std::optional<Position> of = position(equations_.beside(sum->inputs[first ? 1 : 0], x.axes));
      if (!term || !of) return std::nullopt;
      const int64_t by = plus ? *term : -*term;
      return exact({of->axis, of->offset + by, of->range.shifted(by)});
    }
    return std::nullopt;
  }

  // An integer literal small enough that sums with array positions cannot overflow int64_t.
  std::optional<int64_t> integer(Atom atom) const {
    constexpr int64_t limit = int64_t{1} << 40;
    if (const Equation* spread = equations_.made_by(atom, prim::broadcast_in_dim())) return integer(spread->inputs[0]);
    if (!atom.is_literal() || !is_integer(equations_.type(atom).dtype)) return std::nullopt;
    const auto value = equations_.program().literal(atom).item<int64_t>();
    return value > -limit && value < limit ? std::optional<int64_t>(value) : std::nullopt;
  }

  const Equations& equations_;
  const PlainAttention& attention_;
  Seen seen_;
};

}  // namespace

Seen read_seen(const Equations& equations, const PlainAttention& attention) {
  return attention.condition ? SeenReader(equations, attention).read(*attention.condition) : Seen();
}

}  // namespace capibara::kernels
