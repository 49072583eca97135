// Proves, condition by condition, that fused attention computes what a program writes out.
//
// Conditions on values rather than on the program, such as NaN and overflow, are not here: ordinary.cpp checks them in
// each call.
#include "kernels/attention/conditions.h"

#include <algorithm>
#include <cmath>

#include "kernels/attention/spec.h"

namespace capibara::kernels {

namespace {

class Proof {
 public:
  Proof(const Equations& equations, const AttentionMatch& match)
      : equations_(equations), match_(match), attention_(match.attention), gradient_(match.gradient) {}

  bool holds() const {
    return has_one_form() && has_elements() && has_types() && has_scale() && hides_far_below() &&
           is_closed(equations_, match_.inner, match_.last) && reads_nothing_of_itself() && is_in_order();
  }

 private:
  // Rows with keys hidden both by a condition and by a bias of -inf cannot be distinguished by their log-sum-exp.
  bool has_one_form() const {
    const bool both = attention_.condition && !attention_.biases.empty();
    if (both && std::isinf(attention_.hidden)) return false;
    return gradient_ ? !both : attention_.result >= 0;
  }

  // No size may be zero: an empty block does not exist, and sizes are divided by.
  bool has_elements() const {
    Types types;
    for (Atom atom : match_.operands) types.push_back(equations_.type(atom));
    const Shape& sizes = attention_.sizes;
    return !any_empty(types) && std::find(sizes.begin(), sizes.end(), 0) == sizes.end();
  }

  // Operands of one type; logits, their biases and the softmax in that type or in the accumulator type, never narrowed
  // again.
  bool has_types() const {
    const DType dtype = attention_.dtype, wide = attention_sum_dtype(dtype);
    const auto is = [&](Atom atom, DType expected) { return equations_.type(atom).dtype == expected; };
    bool narrow = attention_.product != wide;
    if (!is_floating(dtype) || (narrow && attention_.product != dtype)) return false;
    for (const LogitStep& step : attention_.steps) {
      const bool fits = narrow ? step.dtype == dtype || step.dtype == wide : step.dtype == wide;
      if (!fits) return false;
      // Sums in float16 may overflow where the kernel's do not.
      if (step.kind == LogitStep::add && step.dtype == DType::float16) return false;
      narrow = step.dtype != wide;
    }
    if (narrow || !is(attention_.exponentials, wide) || !is(attention_.queries.atom, dtype) ||
        !is(attention_.keys.atom, dtype) || !is(attention_.probabilities, dtype)) {
      return false;
    }
    if (attention_.result >= 0 && !is(equations_[attention_.result].outputs[0], dtype)) return false;
    return is(match_.operands[2], dtype);
  }

  // Ranges: no intermediate product overflows or underflows unless the final one does.
  bool has_scale() const {
    constexpr double least = 1e-6, greatest = 1e38, rounding = 1.001;
    double factor = 1;
    const double limit = std::max(1.0, std::abs(attention_.scale)) * rounding;
    const auto usual = [&](double x) { return std::abs(x) >= least && std::abs(x) <= greatest; };
    for (const LogitStep& step : attention_.steps) {
      if (step.kind == LogitStep::multiply) factor *= step.number;
      if (step.kind == LogitStep::divide) factor /= step.number;
      if (!usual(factor) || std::abs(factor) > limit) return false;
    }
    return usual(attention_.scale);
  }

  bool hides_far_below() const { return !attention_.condition || attention_.hidden <= hidden_limit; }

  // Operands must not depend on each other: logits are not their own bias, probabilities not their own values.
  // Cotangents may depend on the result.
  bool reads_nothing_of_itself() const {
    std::vector<int> all = match_.inner;
    all.insert(all.end(), match_.last.begin(), match_.last.end());
    if (!are_independent(equations_, match_.operands, all)) return false;
    if (!gradient_) return true;
    const std::vector<Atom> cotangent = {gradient_->cotangent.atom};
    std::vector<int> given;
    if (attention_.result >= 0) given.push_back(attention_.result);
    return are_independent(equations_, cotangent, all, given);
  }

  // The calls replace the last equations: whatever they read must be defined before.
  bool is_in_order() const {
    std::vector<Atom> read = match_.operands;
    const auto all_before = [&](int at) {
      return std::all_of(read.begin(), read.end(), [&](Atom atom) { return equations_.maker(atom) < at; });
    };
    if (attention_.result >= 0 && !all_before(attention_.result)) return false;
    if (!gradient_) return true;
    read.push_back(gradient_->cotangent.atom);
    return std::all_of(gradient_->results.begin(), gradient_->results.end(),
                       [&](const PlainCotangent& result) { return all_before(result.equation); });
  }

  const Equations& equations_;
  const AttentionMatch& match_;
  const PlainAttention& attention_;
  const std::optional<PlainGradient>& gradient_;
};

}  // namespace

bool is_proven(const Equations& equations, const AttentionMatch& match) { return Proof(equations, match).holds(); }

}  // namespace capibara::kernels
