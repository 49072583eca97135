// Reads the reverse derivative of attention written out in a program, starting from the exponentials of its softmax.
//
//   gradient of exponentials = (dP / total - sum(dP exp / total^2)) exp,   dP = cotangent values^T
#include <algorithm>
#include <cmath>

#include "kernels/attention/plain.h"
#include "program/ir/handles.h"

namespace capibara::kernels {

namespace {

constexpr std::size_t sides[] = {0, 1};

class GradientReader {
 public:
  GradientReader(const Equations& equations, const PlainAttention& attention)
      : equations_(equations), attention_(attention) {
    const Shape& sizes = attention.sizes;
    for (std::size_t i = 0; i < sizes.size(); ++i) axes_.push_back(sizes[i] == 1 ? no_axis : static_cast<int>(i));
  }

  std::optional<PlainGradient> read() {
    for (int at : equations_.readers(attention_.exponentials)) {
      all_ = {};
      if (read_gradients(at) && read_value_cotangents() && follow_logits(at)) return std::move(all_);
    }
    return std::nullopt;
  }

 private:
  const Equation* made(Atom atom, std::initializer_list<Primitive> primitives) const {
    const int at = equations_.maker(atom);
    const bool found =
        at >= 0 && std::find(primitives.begin(), primitives.end(), equations_[at].primitive) != primitives.end();
    return found ? &equations_[at] : nullptr;
  }

  void keep(Atom made) { all_.inner.push_back(equations_.maker(made)); }

  // The other factor, if one of them is `factor`.
  static std::optional<Atom> times(const Equation& product, Atom factor) {
    if (product.inputs[0] == factor) return product.inputs[1];
    return product.inputs[1] == factor ? std::optional<Atom>(product.inputs[0]) : std::nullopt;
  }

  Labelled row(Atom atom) { return equations_.source(equations_.beside(atom, axes_), true, &all_.inner); }

  // (quotient + row sums) * exponentials
  bool read_gradients(int at) {
    const Equation& product = equations_[at];
    if (product.primitive != prim::mul()) return false;
    const std::optional<Atom> factor = times(product, attention_.exponentials);
    const Equation* sum = factor ? made(*factor, {prim::add_any(), prim::add()}) : nullptr;
    if (!sum) return false;
    keep(product.outputs[0]);
    keep(*factor);
    return std::any_of(std::begin(sides), std::end(sides), [&](std::size_t side) {
      return read_quotient(sum->inputs[side]) && read_row_sums(sum->inputs[1 - side]) && read_product();
    });
  }

  bool read_quotient(Atom atom) {
    const Equation* quotient = equations_.made_by(atom, prim::div());
    if (!quotient || !is_totals(row(quotient->inputs[1]))) return false;
    keep(atom);
    gradients_ = quotient->inputs[0];
    return true;
  }

  // Compares axes too, those of the softmax's rows: in square logits columns have the same size.
  bool is_totals(const Labelled& x) const {
    return x.atom == attention_.totals.atom && x.axes == attention_.totals.axes;
  }

  // -sum(dP total^-2 exponentials) over the keys
  bool read_row_sums(Atom atom) {
    const Labelled negative = row(atom);
    const Equation* negation = equations_.made_by(negative.atom, prim::neg());
    if (!negation) return false;
    keep(negative.atom);
    const Labelled x = equations_.source({negation->inputs[0], negative.axes}, true, &all_.inner);
    const Equation* sum = equations_.made_by(x.atom, prim::reduce_sum());
    if (!sum || sum->attrs.ints("axes") != Ints{attention_.key}) return false;
    keep(x.atom);
    if (x.axes != axes_left(*sum, axes_)) return false;
    const Equation* product = equations_.made_by(sum->inputs[0], prim::mul());
    const std::optional<Atom> weighted = product ? times(*product, attention_.exponentials) : std::nullopt;
    const Equation* weighting = weighted ? equations_.made_by(*weighted, prim::mul()) : nullptr;
    const std::optional<Atom> weight = weighting ? times(*weighting, gradients_) : std::nullopt;
    if (!weight) return false;
    keep(sum->inputs[0]);
    keep(*weighted);
    const Labelled power = row(*weight);
    const Equation* square = equations_.made_by(power.atom, prim::integer_pow());
    if (!square || square->attrs.integer("y") != -2) return false;
    keep(power.atom);
    return is_totals(equations_.source({square->inputs[0], power.axes}, true, &all_.inner));
  }

  // dP = cotangent values^T
  bool read_product() {
    Labelled x{gradients_, axes_};
    const Equation* dot = nullptr;
    while (!dot) {
      x = equations_.source(x, false, &all_.inner);
      dot = equations_.made_by(x.atom, prim::dot_general());
      const Equation* copy = equations_.made_by(x.atom, prim::convert_element_type());
      if ((!dot && !copy) || !is_usual(x.atom)) return false;
      keep(x.atom);
      if (!dot) x.atom = copy->inputs[0];
    }
    const auto [first, second] = equations_.operands(*dot, x.axes);
    const bool swapped = is_values(first);
    if (!swapped && !is_values(second)) return false;
    all_.values = swapped ? first : second;
    all_.cotangent = swapped ? second : first;
    all_.product = equations_.type(dot->outputs[0]).dtype;
    return equations_.type(all_.cotangent.atom).dtype == attention_.dtype &&
           logit_axes(all_.cotangent.axes) == attention_.row_axes() && count_of(all_.cotangent.axes, feature_axis) <= 1;
  }

  // Gradients must have the type of the operands or the accumulator type: other types would round them, or are
  // integers.
  bool is_usual(Atom gradients) const {
    const DType dtype = equations_.type(gradients).dtype;
    return dtype == attention_.dtype || dtype == equations_.type(attention_.exponentials).dtype;
  }

  bool is_values(const Labelled& x) const {
    if (attention_.result >= 0) return equations_.same(x, attention_.values);
    return logit_axes(x.axes) == logit_axes(attention_.keys.axes) && count_of(x.axes, feature_axis) <= 1 &&
           equations_.type(x.atom).dtype == attention_.dtype;
  }

  // Every other matmul of the probabilities gives the cotangent of values.
  bool read_value_cotangents() {
    for (int at : equations_.readers(attention_.probabilities)) {
      const Equation& dot = equations_[at];
      if (at == attention_.result) continue;
      if (dot.primitive != prim::dot_general()) return false;
      const std::size_t side = dot.inputs[0] == attention_.probabilities ? 0 : 1;
      if (!read_cotangent(at, side, axes_, all_.cotangent, all_.values, PlainCotangent::values)) return false;
    }
    return true;
  }

  // The matmul of gradients with `by` is the cotangent of `to` and has its axes.
  bool read_cotangent(int at, std::size_t side, const Axes& axes, const Labelled& by, const Labelled& to,
                      PlainCotangent::Of of) {
    const auto [other, result] = equations_.other_operand(equations_[at], side, axes);
    if (!equations_.same(other, by) || !is_usual(equations_[at].outputs[0])) return false;
    if (logit_axes(result) != logit_axes(to.axes) || count_of(result, feature_axis) > 1) return false;
    all_.results.push_back({of, 0, at, result});
    return true;
  }

  // Follows the gradients of the softmax's operand to those of logits; hidden ones are 0.
  bool follow_logits(int at) {
    const Atom gradients = equations_[at].outputs[0];
    if (!attention_.condition) return follow(gradients, axes_, 1);
    if (equations_.readers(gradients).size() != 1 || equations_.is_result(gradients)) return false;
    const Equation& select = equations_[equations_.readers(gradients)[0]];
    if (select.primitive != prim::select_n() || select.inputs.size() != 3 || select.inputs[2] != gradients)
      return false;
    if (equations_.number(select.inputs[1]).value_or(1) != 0) return false;
    const Labelled condition = equations_.source(equations_.beside(select.inputs[0], axes_), true);
    const Labelled expected = equations_.source(*attention_.condition, true);
    if (condition.atom != expected.atom || condition.axes != expected.axes) return false;
    keep(select.outputs[0]);
    return follow(select.outputs[0], axes_, 1);
  }

  // Follows the cotangents of logits, times `factor`, to those of the operands. The cotangent of a bias may have other
  // readers.
  bool follow(Atom gradients, const Axes& axes, double factor) {
    const bool is_bias = factor == 1 && read_bias_cotangent(gradients, axes);
    if (is_bias && axes.size() < attention_.sizes.size()) return true;
    for (int at : equations_.readers(gradients)) {
      const std::size_t inner = all_.inner.size(), results = all_.results.size();
      if (follow_reader(at, gradients, axes, factor)) continue;
      if (!is_bias) return false;
      all_.inner.resize(inner);
      all_.results.resize(results);
    }
    return is_bias || !equations_.is_result(gradients);
  }

  bool follow_reader(int at, Atom gradients, const Axes& axes, double factor) {
    const Equation& reader = equations_[at];
    if (reader.primitive == prim::dot_general()) return read_operand_cotangent(at, gradients, axes, factor);
    if (reader.outputs.empty() || reader.outputs[0].dropped() || !is_usual(reader.outputs[0])) return false;
    std::optional<Axes> after = equations_.axes_after(reader, axes);
    if (reader.primitive == prim::reduce_sum() && factor == 1) after = axes_left(reader, axes);
    if (after) {
      all_.inner.push_back(at);
      return follow(reader.outputs[0], *after, factor);
    }
    const std::optional<double> number = scaled(reader, gradients);
    if (!number) return false;
    all_.inner.push_back(at);
    return follow(reader.outputs[0], axes, factor * *number);
  }

  std::optional<double> scaled(const Equation& reader, Atom gradients) const {
    if (reader.primitive == prim::mul()) return equations_.number(*times(reader, gradients));
    if (reader.primitive != prim::div() || reader.inputs[0] != gradients) return std::nullopt;
    const std::optional<double> divisor = equations_.number(reader.inputs[1]);
    return divisor ? std::optional<double>(1 / *divisor) : std::nullopt;
  }

  bool read_operand_cotangent(int at, Atom gradients, const Axes& axes, double factor) {
    const Equation& dot = equations_[at];
    if (std::abs(factor - attention_.scale) > 1e-6 * std::abs(factor)) return false;
    const std::size_t side = dot.inputs[0] == gradients ? 0 : 1;
    const bool of_queries = equations_.contracted(dot, side, axes) == Axes{attention_.key};
    const Labelled &queries = attention_.queries, &keys = attention_.keys;
    return of_queries ? read_cotangent(at, side, axes, keys, queries, PlainCotangent::queries)
                      : read_cotangent(at, side, axes, queries, keys, PlainCotangent::keys);
  }

  static Axes axes_left(const Equation& sum, const Axes& axes) {
    const Ints& dropped = sum.attrs.ints("axes");
    Axes left;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (std::find(dropped.begin(), dropped.end(), static_cast<int64_t>(i)) == dropped.end()) left.push_back(axes[i]);
    }
    return left;
  }

  // Gradients that have exactly the axes of a bias.
  bool read_bias_cotangent(Atom gradients, const Axes& axes) {
    for (std::size_t i = 0; i < attention_.biases.size(); ++i) {
      if (logit_axes(attention_.biases[i].axes) != logit_axes(axes)) continue;
      all_.results.push_back({PlainCotangent::bias, i, equations_.maker(gradients), axes});
      return true;
    }
    return false;
  }

  const Equations& equations_;
  const PlainAttention& attention_;
  PlainGradient all_;
  Axes axes_;  // of the logits in the softmax
  Atom gradients_;
};

}  // namespace

std::optional<PlainGradient> read_gradient(const Equations& equations, const PlainAttention& attention) {
  return GradientReader(equations, attention).read();
}

}  // namespace capibara::kernels
