// Losses: the distance of an input from its target, elementwise or per sample.
#include "models/named/numbers.h"

#include <capibara/lax.h>
#include <capibara/nn.h>
#include <capibara/numpy.h>

namespace capibara::models {

namespace jnp = jax::numpy;
namespace lax = jax::lax;

Array log_with_threshold(const Array& x, bool robust, double threshold);

namespace {

Compute of_difference(Unary function) {
  return [function](const Operands& c) -> Value {
    Array input = c.array("input"), target = c.array("target");
    return function(input - target);
  };
}

Array hinge(const Operands& c) {
  Array input = c.array("input"), target = c.array("target");
  return jnp::maximum(Array(0.0), Array(1.0) - target * input);
}

Value quantile_loss(const Operands& c) {
  Array target = c.array("target"), input = c.array("input"), quantile = c.array("quantile");
  Array error = target - input;
  Array above = quantile * error;
  return jnp::maximum(above, (quantile - Array(1.0)) * error);
}

// One weight per class: given ones, or True for the inverse class frequencies.
Array class_weights(const Operands& c, const Array& input, const Array& target, bool categorical) {
  const Value& weights = c["weights"];
  int64_t classes = input.shape(1);
  if (weights.is<bool>() && weights.boolean()) {
    Array one_hot = categorical ? jnp::take(jnp::eye(classes, {.dtype = input.dtype()}), target, {.axis = 0}) : target;
    Array counts = jnp::sum(one_hot, {.axis = 0});
    return Array(one_hot.shape(0)) / (counts * Array(classes));
  }
  bool none = weights.is<bool>() || weights.is_none() || (weights.is_text() && weights.text().empty());
  if (none) return jnp::ones({classes}, {.dtype = input.dtype()});
  Array given = to_array(weights, c.dtype());
  if (given.ndim() != 1 || given.shape(0) != classes) {
    throw ValueError(concat("CrossEntropy: weights need one number for each of the ", classes,
                            " classes of 'input', got ", capibara::to_string(given.type())));
  }
  return given.astype(input.dtype());
}

Value cross_entropy(const Operands& c) {
  Array input = c.array("input"), target = c.array("target");
  bool categorical = c.argument("categorical").boolean();
  const std::string& kind = c.argument("input_type").text();
  bool robust = c.flag("robust");
  double threshold = robust ? c.threshold("threshold") : 0;
  auto log = [&](const Array& x) { return log_with_threshold(x, robust, threshold); };
  if (categorical && is_floating(target.dtype())) {
    throw TypeError(concat("CrossEntropy: 'target' holds class numbers and needs integers, got ",
                           capibara::to_string(target.type()), "; for probabilities give categorical=False"));
  }
  Array weights = class_weights(c, input, target, categorical);
  if (!categorical) {
    Array logs = kind == "log_probs" ? input
                 : kind == "probs"   ? log(input)
                 : !robust           ? jax::nn::log_softmax(input, {.axis = 1})
                                     : input - log(jnp::sum(jnp::exp(input), {.axis = 1, .keepdims = true}));
    if (input.ndim() > 2)
      weights = weights.reshape([&] {
        Shape shape(static_cast<std::size_t>(input.ndim()), 1);
        shape[1] = input.shape(1);
        return shape;
      }());
    return -jnp::sum(target * logs * weights, {.axis = 1});
  }
  auto picked = [&](const Array& x) {
    return jnp::squeeze(jnp::take_along_axis(x, jnp::expand_dims(target, 1), {.axis = 1}), 1);
  };
  Array weight = jnp::take(weights, target, {.axis = 0});
  if (kind == "log_probs") return -picked(input) * weight;
  if (kind == "probs") return -log(picked(input)) * weight;
  Array shifted = input - lax::stop_gradient(jnp::max(input, {.axis = 1, .keepdims = true}));
  Array normalizer = log(jnp::sum(jnp::exp(shifted), {.axis = 1}));
  return (normalizer - picked(shifted)) * weight;
}

Array positive_weight(const Operands& c, const Array& share) {
  const Value& weight = c["pos_weight"];
  const bool automatic = weight.is_text() && weight.text() == "auto";
  if (!weight.is<bool>() && !automatic) return c.array("pos_weight");
  if (automatic) return (Array(1.0) - jnp::mean(share)) / jnp::mean(share);
  if (!weight.boolean()) return Array(1.0);
  Array mean = jnp::mean(share);
  return (Array(1.0) - mean) / mean;
}

Value binary_cross_entropy(const Operands& c) {
  Array input = c.array("input"), target = c.array("target");
  bool robust = c.flag("robust");
  double threshold = robust ? c.threshold("threshold") : 0;
  auto log = [&](const Array& x) { return log_with_threshold(x, robust, threshold); };
  if (c.argument("input_type").text() == "probs") {
    Array weight = positive_weight(c, target);
    Array positive = -weight * target * log(input);
    return positive - (Array(1.0) - target) * log(Array(1.0) - input);
  }
  Array weight = positive_weight(c, jax::nn::sigmoid(target));
  Array small = jnp::exp(-jnp::absolute(input));
  Array rest = robust ? log(Array(1.0) + small) : jnp::log1p(small);
  Array log_sigmoid = jnp::minimum(Array(0.0), input) - rest;
  Array factor = (weight - Array(1.0)) * target + Array(1.0);
  return (Array(1.0) - target) * input - factor * log_sigmoid;
}

Value kl_divergence(const Operands& c) {
  Array input = c.array("input"), target = c.array("target");
  double threshold = c.threshold("threshold");
  Array logs = log_with_threshold(target, true, threshold);
  return target * (logs - log_with_threshold(input, true, threshold));
}

void check_kind(const std::string& model, const std::string& kind, std::initializer_list<const char*> allowed) {
  for (const char* word : allowed) {
    if (kind == word) return;
  }
  std::string words;
  for (const char* word : allowed) words += (words.empty() ? "'" : ", '") + std::string(word) + "'";
  throw ValueError(concat("models: ", model, ": input_type is one of ", words, ", got '", kind, "'"));
}

std::string cross_entropy_keys(const Arguments& arguments) {
  check_kind("CrossEntropy", arguments["input_type"].text(), {"logits", "probs", "log_probs"});
  bool categorical = arguments.flag("categorical");
  std::string target = categorical ? "target[N, V...]!i" : "target[N, C, V...]";
  return "input[N, C, V...], " + target +
         ", weights='', threshold='MIN_POSITIVE_NORMAL', robust=False -> output[N, V...]";
}

std::string binary_cross_entropy_keys(const Arguments& arguments) {
  check_kind("BinaryCrossEntropy", arguments["input_type"].text(), {"logits", "probs"});
  return "input[V...], target[V...], pos_weight=1.0, threshold='MIN_POSITIVE_NORMAL', robust=False -> output[V...]";
}

}  // namespace

Records loss_records() {
  const char* pair = "input[?], target[?] -> output[?]";
  ShapeRule joint = broadcast_rule("input", "target", "output");
  // Unequal shapes would broadcast, which is rarely intended.
  const char* equal = "input[V...], target[V...] -> output[V...]";
  return {
      {"SquaredError", "input, target", pair, "(input - target)^2.", of_difference(jnp::square), joint, nullptr,
       nullptr, equal},
      {"AbsoluteError", "input, target", pair, "|input - target|.", of_difference(jnp::absolute), joint, nullptr,
       nullptr, equal},
      {"HingeLoss", "input, target", pair, "max(0, 1 - target input).",
       [](const Operands& c) -> Value { return hinge(c); }, joint, nullptr, nullptr, equal},
      {"QuadHingeLoss", "input, target", pair, "The hinge loss squared.",
       [](const Operands& c) -> Value { return jnp::square(hinge(c)); }, joint, nullptr, nullptr, equal},
      {"QuantileLoss", "quantile=0.5, input, target", "input[?], target[?], quantile=0.5 -> output[?]",
       "The loss whose minimum is a quantile.", quantile_loss, joint, nullptr, nullptr, equal},
      {"CrossEntropy",
       "input_type='logits', weights='', input, target, robust=False, threshold='MIN_POSITIVE_NORMAL', "
       "categorical=True",
       "",
       "The cross entropy of classes, from logits, probabilities or their logarithms.",
       cross_entropy,
       {},
       nullptr,
       cross_entropy_keys},
      {"KLDivergence", "input, target, threshold='MIN_POSITIVE_NORMAL'",
       "input[?], target[?], threshold='MIN_POSITIVE_NORMAL' -> output[?]", "target log(target / input).",
       kl_divergence, joint, nullptr, nullptr, equal},
      {"BinaryCrossEntropy",
       "input_type='logits', pos_weight=1.0, input, target, threshold='MIN_POSITIVE_NORMAL', robust=False",
       "",
       "The cross entropy of two classes.",
       binary_cross_entropy,
       {},
       nullptr,
       binary_cross_entropy_keys},
  };
}

}  // namespace capibara::models
