// jax.numpy.einsum: sums over repeated labels as a chain of dot_general, reductions and transposes.
#include <capibara/lax.h>
#include <capibara/numpy/contraction.h>

#include <algorithm>

#include "lax/operators/promote.h"
#include "lax/shape/shape.h"
#include "lax/sharding/out_sharding.h"
#include "library/numpy/linalg/einsum_subscripts.h"

namespace capibara::jax::numpy {

namespace {

// An operand with a label for each of its axes.
struct Labelled {
  Array array;
  Labels labels;
};

Labels without(Labels labels, const Labels& removed) {
  std::erase_if(labels, [&](char32_t label) { return has(removed, label); });
  return labels;
}

class Einsum {
 public:
  Einsum(ScalarType result, const EinsumOptions& options) : result_(result), options_(options) {}

  // One operand: sums over labels that vanish, and takes diagonals of repeated ones.
  Labelled reduce(Labelled x, const Contraction& step) const {
    x = sum_removed(std::move(x), step.removed, {});
    return merge_repeats(std::move(x), step.result);
  }

  Labelled contract(Labelled lhs, Labelled rhs, const Contraction& step) const {
    lhs = drop_broadcast_axes(std::move(lhs), rhs);
    rhs = drop_broadcast_axes(std::move(rhs), lhs);
    const Labels lhs_before = lhs.labels, rhs_before = rhs.labels;
    lhs = sum_removed(std::move(lhs), step.removed, rhs_before);
    rhs = sum_removed(std::move(rhs), step.removed, lhs_before);
    lhs = merge_repeats(std::move(lhs), step.result + rhs.labels);
    rhs = merge_repeats(std::move(rhs), step.result + lhs.labels);

    Labels batch, contracted;
    for (char32_t label : step.result) {
      if (has(lhs.labels, label) && has(rhs.labels, label)) batch.push_back(label);
    }
    for (char32_t label : sorted(step.removed)) {
      if (has(lhs.labels, label) && has(rhs.labels, label)) contracted.push_back(label);
    }
    const Labels gone = batch + contracted;
    const Labels lhs_free = without(lhs.labels, gone), rhs_free = without(rhs.labels, gone);
    if (batch + rhs_free + lhs_free == step.result) std::swap(lhs, rhs);  // needs no transpose
    const Labels labels = batch + without(lhs.labels, gone) + without(rhs.labels, gone);
    const DotDimensionNumbers numbers{places(lhs, contracted), places(rhs, contracted), places(lhs, batch),
                                      places(rhs, batch)};
    const lax::DotOptions dot{options_.precision, result_.dtype};
    Ints order;
    for (char32_t label : labels) order.push_back(static_cast<int64_t>(step.result.find(label)));
    const OutShardingScope scope(permuted_out_sharding(order));
    Array product = options_.dot_general ? options_.dot_general(lhs.array, rhs.array, numbers, dot)
                                         : lax::dot_general(lhs.array, rhs.array, numbers, dot);
    return {product, labels};
  }

  Array ordered(const Labelled& x, const Labels& order) const { return lax::transpose(x.array, places(x, order)); }

 private:
  static Labels sorted(Labels labels) {
    std::sort(labels.begin(), labels.end());
    return labels;
  }

  static Ints places(const Labelled& x, const Labels& labels) {
    Ints out;
    for (char32_t label : labels) out.push_back(static_cast<int64_t>(x.labels.find(label)));
    return out;
  }

  Array sum(Array x, const Ints& axes) const {
    const DType common = result_type({x, lax::zeros(sample_type(result_.dtype, {}))}).dtype;
    if (common != x.dtype()) x = lax::convert_element_type(x, result_.dtype, false);
    return is_bool(x.dtype()) ? lax::reduce_or(x, {axes}) : lax::reduce_sum(x, {axes});
  }

  // Sums over the labels that vanish, occur once here and not in the other operand.
  Labelled sum_removed(Labelled x, const Labels& removed, const Labels& other) const {
    Labels unique;
    for (char32_t label : sorted(removed)) {
      if (std::count(x.labels.begin(), x.labels.end(), label) == 1 && !has(other, label)) unique.push_back(label);
    }
    if (unique.empty()) return x;
    return {sum(x.array, places(x, unique)), without(x.labels, unique)};
  }

  // Merges axes with the same label: the diagonal, or its sum if the label is not kept.
  Labelled merge_repeats(Labelled x, const Labels& kept) const {
    for (char32_t label : Labels(x.labels)) {
      Ints axes;
      for (std::size_t i = 0; i < x.labels.size(); ++i) {
        if (x.labels[i] == label) axes.push_back(static_cast<int64_t>(i));
      }
      if (axes.size() < 2) continue;
      Array on_diagonal;
      for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
        Array positions = lax::broadcasted_iota(DType::uint32, x.array.shape(), axes[i]);
        Array equal = lax::eq(positions, lax::broadcasted_iota(DType::uint32, x.array.shape(), axes[i + 1]));
        on_diagonal = on_diagonal.defined() ? lax::bitwise_and(on_diagonal, equal) : equal;
      }
      Array diagonal = lax::select(on_diagonal, x.array, lax::zeros_like(x.array));
      if (has(kept, label)) axes.pop_back();
      Labels labels;
      for (std::size_t i = 0; i < x.labels.size(); ++i) {
        if (!contains(axes, static_cast<int64_t>(i))) labels.push_back(x.labels[i]);
      }
      x = {sum(diagonal, axes), labels};
    }
    return x;
  }

  // An axis of size one that matches a longer one under the same label.
  static Labelled drop_broadcast_axes(Labelled x, const Labelled& other) {
    Ints dropped;
    Labels labels;
    for (std::size_t i = 0; i < x.labels.size(); ++i) {
      const std::size_t there = other.labels.find(x.labels[i]);
      if (x.array.shape()[i] == 1 && there != Labels::npos && other.array.shape()[there] != 1) {
        dropped.push_back(static_cast<int64_t>(i));
      } else {
        labels.push_back(x.labels[i]);
      }
    }
    return {lax::squeeze(x.array, dropped), labels};
  }

  ScalarType result_;
  const EinsumOptions& options_;
};

std::vector<Shape> shapes_of(const Arrays& operands) {
  std::vector<Shape> shapes;
  for (const Array& x : operands) shapes.push_back(x.shape());
  return shapes;
}

}  // namespace

Array einsum(const std::string& subscripts, const Arrays& operands, const EinsumOptions& options) {
  const Subscripts equation = parse_subscripts("einsum", subscripts, shapes_of(operands));
  const ContractionPath path = find_path("einsum", equation, options);
  ScalarType result = result_type(operands);
  if (options.preferred_element_type) result = {canonical(*options.preferred_element_type), false};
  const Einsum one(result, options);
  Arrays list = operands;
  for (const Contraction& step : contractions("einsum", equation, path)) {
    std::vector<Labelled> inputs;
    for (std::size_t i = 0; i < step.places.size(); ++i) {
      inputs.push_back({list[static_cast<std::size_t>(step.places[i])], step.inputs[i]});
      list.erase(list.begin() + step.places[i]);
    }
    if (inputs.empty() || inputs.size() > 2) {
      throw NotImplementedError(
          concat("jax.numpy.einsum does not support simultaneous contraction of 3 or more operands, got a step of ",
                 inputs.size(), " in argument 'optimize'"));
    }
    Labelled output = inputs.size() == 1 ? one.reduce(inputs[0], step) : one.contract(inputs[0], inputs[1], step);
    list.push_back(one.ordered(output, step.result));
  }
  return lax::convert_element_type(list[0], result.dtype, result.weak);
}

EinsumPath einsum_path(const std::string& subscripts, const std::vector<Shape>& shapes, const EinsumOptions& options) {
  const Subscripts equation = parse_subscripts("einsum_path", subscripts, shapes);
  EinsumPath out;
  out.path = find_path("einsum_path", equation, options);
  Labels all;
  std::size_t occurrences = 0;
  for (const Labels& input : equation.inputs) {
    out.equation += (out.equation.empty() ? "" : ",") + to_text(input);
    Labels own;
    for (char32_t label : input) {
      if (!has(own, label)) own.push_back(label);
    }
    occurrences += own.size();
    all += without(own, all);
  }
  out.equation += "->" + to_text(equation.output);
  auto cost = [&](const Labels& labels, bool inner, std::size_t terms) {
    return equation.size_of(labels) * (std::max<double>(1, static_cast<double>(terms) - 1) + inner);
  };
  out.naive_cost = cost(all, occurrences > all.size(), equation.inputs.size());
  std::string steps;
  for (const Contraction& step : contractions("einsum_path", equation, out.path)) {
    Labels labels;
    std::string text;
    for (const Labels& input : step.inputs) {
      text += (text.empty() ? "" : ",") + to_text(input);
      for (char32_t label : input) {
        if (!has(labels, label)) labels.push_back(label);
      }
    }
    out.optimized_cost += cost(labels, !step.removed.empty(), step.inputs.size());
    out.largest_intermediate = std::max(out.largest_intermediate, equation.size_of(step.result));
    steps += "  " + std::to_string(labels.size()) + "  " + text + "->" + to_text(step.result) + "\n";
  }
  out.text = concat("  Complete contraction:  ", out.equation, "\n      Naive FLOP count:  ", out.naive_cost,
                    "\n  Optimized FLOP count:  ", out.optimized_cost,
                    "\n  Largest intermediate:  ", out.largest_intermediate, " elements\n  scaling  step\n", steps);
  return out;
}

}  // namespace capibara::jax::numpy
