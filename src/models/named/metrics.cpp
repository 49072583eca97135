// Metrics of classifications.
#include "models/named/builder.h"

#include <capibara/numpy.h>

namespace capibara::models {

namespace jnp = jax::numpy;

namespace {

// Class numbers of predictions and labels: from one-hot rows, from probabilities by a threshold, or given directly.
struct Classes {
  Array predicted, label;
};

Array class_numbers(const Array& x, bool one_hot) { return one_hot ? jnp::argmax(x, {.axis = -1}) : x; }

Array predicted_classes(const Operands& c) {
  Array predicted = c.array("pred");
  bool one_hot = c.argument("is_pred_one_hot").boolean();
  if (c.argument("is_binary").boolean() && !one_hot) {
    if (!c.argument("threshold").is_number())
      throw ValueError("is_binary=True needs a threshold for predictions that are not one-hot");
    return (predicted > Array(c.argument("threshold").number())).astype(DType::int32);
  }
  return class_numbers(predicted, one_hot);
}

Classes classes_of(const Operands& c) {
  Array predicted = predicted_classes(c);
  return {predicted, class_numbers(c.array("label"), c.argument("is_label_one_hot").boolean())};
}

Array count(const Array& condition, DType dtype) { return jnp::sum(condition.astype(dtype)); }

Value accuracy(const Operands& c) {
  Classes k = classes_of(c);
  return count(k.predicted == k.label, c.dtype()) / Array(k.label.shape(0));
}

// hits / (hits + extra) for each class, averaged. `share` weights the two kinds of mistakes.
struct Mistakes {
  double false_positives, false_negatives;
};

Value score(const Operands& c, Mistakes share) {
  Classes k = classes_of(c);
  DType dtype = c.dtype();
  const std::string& average = c.argument("average").text();
  if (average == "micro") {
    Array hits = count(k.predicted == k.label, dtype), misses = count(k.predicted != k.label, dtype);
    return hits / (hits + misses * Array(share.false_positives + share.false_negatives));
  }
  if (average != "macro" && average != "weighted") {
    throw ValueError(concat("average is 'micro', 'macro' or 'weighted', got '", average, "'"));
  }
  if (!c.argument("n_classes").is_number()) throw ValueError(concat("average='", average, "' needs n_classes"));
  int64_t classes = c.argument("n_classes").integer();
  Array numbers = jnp::expand_dims(jnp::arange(classes), 1);
  Array is_label = jnp::expand_dims(k.label, 0) == numbers, is_predicted = jnp::expand_dims(k.predicted, 0) == numbers;
  auto each = [&](const Array& condition) { return jnp::sum(condition.astype(dtype), {.axis = 1}); };
  Array hits = each(is_label & is_predicted);
  Array false_positives = each(is_predicted & ~is_label) * Array(share.false_positives);
  Array total = hits + false_positives + each(is_label & ~is_predicted) * Array(share.false_negatives);
  Array scores = hits / jnp::where(total == Array(0.0), Array(1.0), total);
  Array members = each(is_label);
  if (average == "weighted") return jnp::sum(scores * members) / Array(k.label.shape(0));
  return jnp::sum(scores) / count(members > Array(0.0), dtype);
}

Value area_under_curve(const Operands& c) {
  Array predicted = c.array("pred");
  Array label = class_numbers(c.array("label"), c.argument("is_label_one_hot").boolean());
  int64_t classes = c.argument("n_classes").integer();
  Array total = Array(0.0);
  for (int64_t k = 0; k < classes; ++k) {
    Array scores = classes == 1 && predicted.ndim() == 1 ? predicted : predicted(slice(), k);
    Array positive = label == Array(classes == 1 ? 1 : k);
    Array thresholds = jnp::flip(jnp::sort(scores));
    Array chosen = jnp::expand_dims(scores, 0) >= jnp::expand_dims(thresholds, 1);
    auto rate = [&](const Array& of) {
      Array hits = jnp::sum((chosen & jnp::expand_dims(of, 0)).astype(c.dtype()), {.axis = 1});
      return hits / count(of, c.dtype());
    };
    Array sensitivity = rate(positive);
    Array area = jnp::trapezoid(sensitivity, {.x = rate(~positive)});
    total = total + jnp::absolute(area);
  }
  return total / Array(classes);
}

// Differences of class numbers: 0 for a correct prediction.
Model metric(const Arguments& a) {
  Builder b(a);
  auto classes = [&](const Term& term, bool one_hot) {
    return one_hot ? operate("ArgMax", term, {{"axis", -1}}) : term;
  };
  Term label = classes(b.input("label"), a.flag("is_label_one_hot"));
  Term pred = b.input("pred");
  if (a.flag("is_binary") && !a.flag("is_pred_one_hot")) {
    if (!a.given("threshold")) throw ValueError("models: Metric: is_binary=True needs a threshold");
    Term above = b.add("Greater", {}, {{"left", pred}, {"right", Term(a["threshold"])}});
    pred =
        b.add("Where", {}, {{"cond", above}, {"input1", Term(Value(Tensor{1}))}, {"input2", Term(Value(Tensor{0}))}});
  } else {
    pred = classes(pred, a.flag("is_pred_one_hot"));
  }
  b.output("output", pred - label);
  b.output("pred_formatted", operate("Buffer", pred));
  b.output("label_formatted", operate("Buffer", label));
  return b.finish({"pred"}, {"output"});
}

}  // namespace

Records metric_records() {
  const char* kinds = "threshold=None, is_binary=False, is_pred_one_hot=True, is_label_one_hot=True, pred, label";
  std::string averaged = concat("average='micro', n_classes=None, ", kinds);
  const char* keys = "pred[?], label[?] -> output[?]";
  return {
      {"Metric", kinds, "", "Differences of predicted and true classes.", {}, {}, metric},
      {"Accuracy", kinds, keys, "The share of right predictions.", accuracy},
      {"Precision", averaged, keys, "The share of right ones among the predictions of a class.",
       [](const Operands& c) {
         return score(c, {1, 0});
       }},
      {"Recall", averaged, keys, "The share of a class that was predicted.",
       [](const Operands& c) {
         return score(c, {0, 1});
       }},
      {"F1", averaged, keys, "The harmonic mean of precision and recall.",
       [](const Operands& c) {
         return score(c, {0.5, 0.5});
       }},
      {"AUC", "n_classes, is_label_one_hot=True, pred, label", keys,
       "The area under the curve of true over false positives.", area_under_curve},
  };
}

}  // namespace capibara::models
