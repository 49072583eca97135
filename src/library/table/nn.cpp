// Table rows for jax.nn and for custom_activations, capibara's own.
#include <capibara/nn.h>

#include "library/table/families.h"
#include "library/table/named_axes.h"

namespace capibara::library {

namespace nn = jax::nn;

namespace {

Value attention(const Arguments& a) {
  nn::AttentionOptions options{.bias = a.optional_array("bias"),
                               .mask = a.optional_array("mask"),
                               .scale = a.optional_array("scale"),
                               .is_causal = a.flag("is_causal"),
                               .query_seq_lengths = a.optional_array("query_seq_lengths"),
                               .key_value_seq_lengths = a.optional_array("key_value_seq_lengths"),
                               .implementation = a.text("implementation")};
  if (std::optional<Ints> window = a.optional_ints("local_window_size")) {
    if (window->size() == 1 && !a["local_window_size"].sequence()) window->push_back(window->front());
    if (window->size() != 2) {
      throw ValueError(concat(a.function(), ": local_window_size must be one or two integers, got ", window->size()));
    }
    options.local_window_size = {(*window)[0], (*window)[1]};
  }
  const Array query = a.array("query"), key = a.array("key"), value = a.array("value");
  if (a.flag("return_residual")) return nn::dot_product_attention_with_residual(query, key, value, options);
  return nn::dot_product_attention(query, key, value, options);
}

Value one_hot(const Arguments& a) {
  nn::OneHotOptions options{.dtype = a.optional_dtype("dtype")};
  if (const std::string* axis_name = a["axis"].get_if<std::string>()) {
    options.axis_name = *axis_name;
  } else {
    options.axis = a.integer("axis");
  }
  return nn::one_hot(a.array_like("x"), a.integer("num_classes"), options);
}

Value standardize(const Arguments& a) {
  return nn::standardize(a.array("x"), {.axis = a.axis("axis"),
                                        .mean = a.optional_array("mean"),
                                        .variance = a.optional_array("variance"),
                                        .epsilon = a.array("epsilon"),
                                        .where = a.optional_array("where"),
                                        .algorithm = a.text("algorithm")});
}

Value logsumexp(const Arguments& a) {
  const nn::LogsumexpOptions options{.axis = a.axis("axis"),
                                     .b = a.optional_array("b"),
                                     .keepdims = a.flag("keepdims"),
                                     .where = a.optional_array("where")};
  if (a.flag("return_sign")) return nn::logsumexp_with_sign(a.array("a"), options);
  return nn::logsumexp(a.array("a"), options);
}

Value softmax(const Arguments& a) {
  return nn::softmax(a.array("x"), {.axis = a.axis("axis"), .where = a.optional_array("where")});
}
Value log_softmax(const Arguments& a) {
  return nn::log_softmax(a.array("x"), {.axis = a.axis("axis"), .where = a.optional_array("where")});
}

Value swiglu(const Arguments& a) { return nn::swiglu(a.array("x"), {.axis = a.integer("axis")}); }
Value contextual_relu(const Arguments& a) { return nn::contextual_relu(a.array("x"), a.array("context")); }

constexpr std::string_view swiglu_doc =
    "silu(first half) * second half of an axis: a gated linear unit without weights. Capibara's own.";
constexpr std::string_view contextual_relu_doc =
    "relu(x - tanh(mean(context, axis=-1, keepdims=True))): a ReLU whose threshold follows the context. Capibara's "
    "own.";

#define CAPIBARA_ACTIVATION(name, doc)                                                  \
  {                                                                                     \
#name, "x", [](const Arguments& a) -> Value { return nn::name(a.array("x")); }, doc \
  }

const Function nn_rows[] = {
    CAPIBARA_ACTIVATION(identity, "x itself."),
    CAPIBARA_ACTIVATION(relu, "max(x, 0), with derivative 0 at 0."),
    CAPIBARA_ACTIVATION(relu6, "min(max(x, 0), 6), with derivative 0 at both ends."),
    CAPIBARA_ACTIVATION(sigmoid, "1 / (1 + exp(-x))."),
    CAPIBARA_ACTIVATION(softplus, "log(1 + exp(x))."),
    CAPIBARA_ACTIVATION(sparse_plus, "0 up to -1, x from 1 on, and (x + 1)^2 / 4 between."),
    CAPIBARA_ACTIVATION(sparse_sigmoid, "0 up to -1, 1 from 1 on, and (x + 1) / 2 between."),
    CAPIBARA_ACTIVATION(soft_sign, "x / (|x| + 1)."),
    CAPIBARA_ACTIVATION(silu, "x sigmoid(x)."),
    CAPIBARA_ACTIVATION(swish, "x sigmoid(x): silu by its other name."),
    CAPIBARA_ACTIVATION(mish, "x tanh(softplus(x))."),
    CAPIBARA_ACTIVATION(log_sigmoid, "The logarithm of the sigmoid."),
    CAPIBARA_ACTIVATION(hard_tanh, "x clamped to [-1, 1]."),
    CAPIBARA_ACTIVATION(hard_sigmoid, "relu6(x + 3) / 6."),
    CAPIBARA_ACTIVATION(hard_silu, "x hard_sigmoid(x)."),
    CAPIBARA_ACTIVATION(hard_swish, "x hard_sigmoid(x): hard_silu by its other name."),
    CAPIBARA_ACTIVATION(selu, "The scaled exponential linear unit, which keeps zero mean and unit variance."),
    CAPIBARA_ACTIVATION(log1mexp, "log(1 - exp(-x)) for x >= 0, accurate near 0 and far from it."),
    {"tanh", "x, /", [](const Arguments& a) -> Value { return nn::tanh(a.array("x")); }, "The hyperbolic tangent."},
    {"squareplus", "x, b=4",
     [](const Arguments& a) -> Value { return nn::squareplus(a.array("x"), {.b = a.array("b")}); },
     "(x + sqrt(x^2 + b)) / 2."},
    {"elu", "x, alpha=1.0",
     [](const Arguments& a) -> Value { return nn::elu(a.array("x"), {.alpha = a.array("alpha")}); },
     "x where it is positive, else alpha (exp(x) - 1)."},
    {"celu", "x, alpha=1.0",
     [](const Arguments& a) -> Value { return nn::celu(a.array("x"), {.alpha = a.array("alpha")}); },
     "x where it is positive, else alpha (exp(x / alpha) - 1)."},
    {"leaky_relu", "x, negative_slope=0.01",
     [](const Arguments& a) -> Value {
       return nn::leaky_relu(a.array("x"), {.negative_slope = a.array("negative_slope")});
     },
     "x where it is not negative, else negative_slope x."},
    {"gelu", "x, approximate=True",
     [](const Arguments& a) -> Value { return nn::gelu(a.array("x"), {.approximate = a.flag("approximate")}); },
     "x times the normal distribution function of x, by default approximated with tanh."},
    {"glu", "x, axis=-1",
     [](const Arguments& a) -> Value { return nn::glu(a.array("x"), {.axis = a.integer("axis")}); },
     "first half * sigmoid(second half) of an axis."},
    {"softmax", "x, axis: int | Sequence[int] | None = -1, where=None", scaled_over_names<softmax>,
     "exp(x) divided by its sum along axes."},
    {"log_softmax", "x, axis: int | Sequence[int] | None = -1, where=None", scaled_over_names<log_softmax>,
     "The logarithm of softmax."},
    {"logsumexp",
     "a, axis=None, b=None, keepdims=False, return_sign=False, where=None -> tuple[Array, Array] if return_sign else "
     "Array",
     reduced_over_names<logsumexp>,
     "log(sum(b exp(a))) along axes; with return_sign, of the absolute sum, and its sign."},
    {"logmeanexp", "x, axis=None, where=None, keepdims=False",
     [](const Arguments& a) -> Value {
       return nn::logmeanexp(
           a.array("x"), {.axis = a.axis("axis"), .where = a.optional_array("where"), .keepdims = a.flag("keepdims")});
     },
     "log(mean(exp(x))) along axes."},
    {"standardize",
     "x, axis: int | Sequence[int] | None = -1, mean=None, variance=None, epsilon=1e-05, where=None, *, algorithm: str "
     "= 'fast'",
     standardize, "(x - mean) / sqrt(variance + epsilon)."},
    {"one_hot", "x: Any, num_classes, *, dtype=None, axis: int | str = -1", one_hot,
     "1 where the class along a new axis is x, else 0; axis may name a mapped axis of that size."},
    {"dot_product_attention",
     "query, key, value, bias: ArrayLike = None, mask=None, *, scale: float = None, is_causal=False, "
     "query_seq_lengths=None, key_value_seq_lengths=None, local_window_size=None, implementation: str = None, "
     "return_residual=False -> tuple[Array, Array] if return_residual else Array",
     attention, "softmax(scale query key^T + bias) value, with grouped heads, masks, lengths and windows."},
    {"swiglu", "x, axis=-1", swiglu, swiglu_doc},
    {"contextual_relu", "x, context", contextual_relu, contextual_relu_doc},
};

const Function own_activations[] = {
    {"swiglu", "x, axis=-1", swiglu, swiglu_doc},
    {"contextual_relu", "x, context", contextual_relu, contextual_relu_doc},
};

}  // namespace

Family nn_functions() { return nn_rows; }
Family custom_activations() { return own_activations; }

}  // namespace capibara::library
