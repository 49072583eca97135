// Reads attention from the quotient of its softmax: forward to the matmul with values, back to the one with keys.
#include <algorithm>
#include <cmath>

#include "kernels/attention/plain.h"
#include "program/ir/handles.h"

namespace capibara::kernels {

namespace {

bool one_of(const Equation& equation, std::initializer_list<Primitive> primitives) {
  return std::find(primitives.begin(), primitives.end(), equation.primitive) != primitives.end();
}

// float32 and float64 must not request a named algorithm; narrower types may.
bool has_usual_precision(const Equations& equations, const Equation& dot) {
  const Attr* precision = dot.attrs.find("precision");
  const DType dtype = equations.type(dot.inputs[0]).dtype;
  const bool narrow = dtype == DType::bfloat16 || dtype == DType::float16;
  return narrow || !precision || precision->is_none() || !precision->get_if<std::string>();
}

constexpr std::size_t operand_sides[] = {0, 1};

class AttentionReader {
 public:
  explicit AttentionReader(const Equations& equations) : equations_(equations) {}

  std::optional<PlainAttention> read(int quotient) {
    const bool found = read_softmax(quotient) && read_values() && read_logits(logits_, true);
    std::reverse(all_.steps.begin(), all_.steps.end());
    return found ? std::optional<PlainAttention>(std::move(all_)) : std::nullopt;
  }

 private:
  // exp(x - max(x)) / sum(exp(x - max(x))), each over one axis.
  bool read_softmax(int at) {
    const Equation& quotient = equations_[at];
    all_.exponentials = quotient.inputs[0];
    const Equation* exponential = equations_.made_by(all_.exponentials, prim::exp());
    const Equation* difference = exponential ? equations_.made_by(exponential->inputs[0], prim::sub()) : nullptr;
    if (!difference) return false;
    all_.sizes = equations_.type(all_.exponentials).shape;
    for (std::size_t i = 0; i < all_.sizes.size(); ++i)
      axes_.push_back(all_.sizes[i] == 1 ? no_axis : static_cast<int>(i));
    const Atom x = difference->inputs[0];
    if (equations_.type(x).shape != all_.sizes || equations_.type(quotient.outputs[0]).shape != all_.sizes)
      return false;
    keep({at, equations_.maker(all_.exponentials), equations_.maker(exponential->inputs[0])});
    const std::optional<Labelled> totals = reduced(quotient.inputs[1], prim::reduce_sum(), all_.exponentials);
    const std::optional<Labelled> greatest = reduced(difference->inputs[1], prim::reduce_max(), x);
    if (!totals || !greatest) return false;
    all_.totals = *totals;
    all_.probabilities = quotient.outputs[0];
    logits_ = {x, axes_};
    return true;
  }

  void keep(std::initializer_list<int> equations) { all_.inner.insert(all_.inner.end(), equations); }

  // The reduction of `of` over the key axis of which an array is a view.
  std::optional<Labelled> reduced(Atom view, const Primitive& reduction, Atom of) {
    Labelled x = equations_.source(equations_.beside(view, axes_), true, &all_.inner);
    if (const Equation* least = equations_.made_by(x.atom, prim::max())) {  // max(-inf, x)
      const bool first = equations_.number(least->inputs[0]).value_or(0) == -INFINITY;
      if (!first && equations_.number(least->inputs[1]).value_or(0) != -INFINITY) return std::nullopt;
      keep({equations_.maker(x.atom)});
      x = equations_.source({least->inputs[first ? 1 : 0], x.axes}, true, &all_.inner);
    }
    const Equation* reduce = equations_.made_by(x.atom, reduction);
    if (!reduce || reduce->attrs.ints("axes").size() != 1 || !read_key(x.axes)) return std::nullopt;
    Axes before = x.axes;
    before.insert(before.begin() + reduce->attrs.ints("axes")[0], all_.key);
    if (!equations_.same({reduce->inputs[0], before}, {of, axes_})) return std::nullopt;
    keep({equations_.maker(x.atom)});
    return x;
  }

  // The only axis that rows lack; the same one each time.
  bool read_key(const Axes& rows) {
    Axes left = logit_axes(axes_);
    std::erase_if(left, [&](int axis) { return holds(rows, axis); });
    if (left.size() != 1 || (all_.key >= 0 && all_.key != left[0])) return false;
    all_.key = left[0];
    return true;
  }

  // The matmul of the probabilities, or of their narrower copy, that contracts the keys.
  bool read_values() {
    for (int at : equations_.readers(all_.probabilities)) {
      if (read_product(at)) return true;
      const Equation& copy = equations_[at];
      if (copy.primitive != prim::convert_element_type() || !is_floating(equations_.type(copy.outputs[0]).dtype))
        continue;
      for (int next : equations_.readers(copy.outputs[0])) {
        if (!read_product(next)) continue;
        keep({at});
        all_.probabilities = copy.outputs[0];
        return true;
      }
    }
    read_narrow_copy();
    return true;  // the derivative may determine the values
  }

  void read_narrow_copy() {
    const std::span<const int> readers = equations_.readers(all_.probabilities);
    const bool copied = readers.size() == 1 && equations_[readers[0]].primitive == prim::convert_element_type();
    if (!copied) return;
    keep({readers[0]});
    all_.probabilities = equations_[readers[0]].outputs[0];
  }

  bool read_product(int at) {
    const Equation& dot = equations_[at];
    if (dot.primitive != prim::dot_general() || !has_usual_precision(equations_, dot)) return false;
    for (const std::size_t side : operand_sides) {
      const Atom own = dot.inputs[side];
      const bool reads = !own.is_literal() && (own == all_.probabilities || is_copy(own));
      if (!reads || equations_.contracted(dot, side, axes_) != Axes{all_.key}) continue;
      auto [values, result] = equations_.other_operand(dot, side, axes_);
      if (count_of(values.axes, feature_axis) > 1) continue;
      all_.values = values;
      all_.result = at;
      all_.result_axes = result;
      return true;
    }
    return false;
  }

  bool is_copy(Atom atom) const {
    const Equation* copy = equations_.made_by(atom, prim::convert_element_type());
    return copy && copy->inputs[0] == all_.probabilities;
  }

  // Runs `read`; on failure the state from before is restored.
  template <class F>
  bool tried(F&& read) {
    PlainAttention before = all_;
    if (read()) return true;
    all_ = std::move(before);
    return false;
  }

  // select(condition, scale * product + biases, hidden): each part may be absent.
  bool read_logits(Labelled x, bool outermost) {
    x = equations_.source(x, false, &all_.inner);
    const int at = equations_.maker(x.atom);
    if (at < 0) return false;
    const Equation& equation = equations_[at];
    const DType dtype = equations_.type(x.atom).dtype;
    keep({at});
    if (equation.primitive == prim::dot_general()) return read_logit_product(equation, x.axes);
    if (equation.primitive == prim::convert_element_type()) {
      all_.steps.push_back({LogitStep::convert, dtype});
      return read_logits({equation.inputs[0], x.axes}, outermost);
    }
    if (equation.primitive == prim::select_n()) return outermost && read_condition(equation, x.axes);
    if (one_of(equation, {prim::mul(), prim::div()})) return read_scale(equation, x.axes);
    if (!one_of(equation, {prim::add(), prim::add_any()}) || all_.scale != 1) return false;
    return std::any_of(std::begin(operand_sides), std::end(operand_sides), [&](std::size_t side) {
      const Atom next = equation.inputs[side], bias = equation.inputs[1 - side];
      return equations_.type(next).shape == equations_.type(x.atom).shape && tried([&] {
               all_.steps.push_back({LogitStep::add, dtype, 1, all_.biases.size()});
               all_.biases.push_back(equations_.source(equations_.beside(bias, x.axes), true));
               return read_logits({next, x.axes}, false);
             });
    });
  }

  bool read_scale(const Equation& equation, const Axes& axes) {
    const bool quotient = equation.primitive == prim::div();
    const DType dtype = equations_.type(equation.outputs[0]).dtype;
    return std::any_of(std::begin(operand_sides), std::end(operand_sides), [&](std::size_t side) {
      const std::optional<double> factor = equations_.number(equation.inputs[1 - side]);
      return factor && (side == 0 || !quotient) && tried([&] {
               all_.steps.push_back({quotient ? LogitStep::divide : LogitStep::multiply, dtype, *factor});
               all_.scale *= quotient ? 1 / *factor : *factor;
               return read_logits({equation.inputs[side], axes}, false);
             });
    });
  }

  bool read_condition(const Equation& select, const Axes& axes) {
    if (select.inputs.size() != 3 || equations_.type(select.inputs[0]).dtype != DType::bool_) return false;
    const std::optional<double> hidden = equations_.number(select.inputs[1]);
    if (!hidden) return false;
    all_.condition = equations_.beside(select.inputs[0], axes);
    all_.hidden = *hidden;
    return equations_.type(select.inputs[2]).shape == equations_.type(select.outputs[0]).shape &&
           read_logits({select.inputs[2], axes}, false);
  }

  bool read_logit_product(const Equation& dot, const Axes& axes) {
    if (!has_usual_precision(equations_, dot)) return false;
    auto [first, second] = equations_.operands(dot, axes);
    if (holds(first.axes, all_.key)) std::swap(first, second);
    all_.queries = first;
    all_.keys = second;
    all_.dtype = equations_.type(first.atom).dtype;
    all_.product = equations_.type(dot.outputs[0]).dtype;
    return read_axes();
  }

  // Classifies the axes as batches, groups and heads; the values must have the same ones.
  bool read_axes() {
    Axes batch = logit_axes(all_.keys.axes), with_queries = logit_axes(all_.queries.axes);
    if (count_of(all_.keys.axes, feature_axis) > 1 || count_of(all_.queries.axes, feature_axis) > 1) return false;
    if (all_.result >= 0 && batch != logit_axes(all_.values.axes)) return false;
    if (std::erase(batch, all_.key) != 1) return false;
    if (with_queries != all_.row_axes()) return false;
    for (int axis : with_queries) {
      if (!holds(batch, axis)) all_.heads.push_back(axis);
    }
    if (all_.heads.empty() || with_queries.size() != batch.size() + all_.heads.size()) return false;
    all_.query = all_.heads.back();
    all_.heads.pop_back();
    all_.batch = std::move(batch);
    return true;
  }

  const Equations& equations_;
  PlainAttention all_;
  Axes axes_;  // of the logits in the softmax
  Labelled logits_;
};

}  // namespace

int64_t PlainAttention::size(std::span<const int> axes) const {
  int64_t product = 1;
  for (int axis : axes) product *= sizes[static_cast<std::size_t>(axis)];
  return product;
}

Axes PlainAttention::row_axes() const {
  Axes rows;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1 && static_cast<int>(i) != key) rows.push_back(static_cast<int>(i));
  }
  return rows;
}

std::optional<PlainAttention> read_attention(const Equations& equations, int quotient) {
  return AttentionReader(equations).read(quotient);
}

}  // namespace capibara::kernels
