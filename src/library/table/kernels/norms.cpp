// Table rows for capibara.kernels: operations on rows of arrays (norms, softmax, cross-entropy).
#include <capibara/kernels/norms.h>

#include "library/table/families.h"

namespace capibara::library {

namespace {

const Function norm_rows[] = {
    {"layer_norm", "x, scale, bias, *, epsilon: float = 1e-05",
     [](const Arguments& a) -> Value {
       return kernels::layer_norm(a.array("x"), a.array("scale"), a.array("bias"), {.epsilon = a.real("epsilon")});
     },
     "Layer normalization: (x - mean) / sqrt(variance + epsilon) * scale + bias over the last axis."},
    {"fast_layer_norm",
     "x, weight: ArrayLike | None = None, bias: ArrayLike | None = None, *, eps: float = 1e-05, memory_efficient: bool "
     "= "
     "False",
     [](const Arguments& a) -> Value {
       return kernels::fast_layer_norm(a.array("x"), {.weight = a.optional_array("weight"),
                                                      .bias = a.optional_array("bias"),
                                                      .epsilon = a.real("eps"),
                                                      .memory_efficient = a.flag("memory_efficient")});
     },
     "Layer normalization with optional weight and bias."},
    {"rms_norm", "x, scale, *, epsilon: float = 1e-06",
     [](const Arguments& a) -> Value {
       return kernels::rms_norm(a.array("x"), a.array("scale"), {.epsilon = a.real("epsilon")});
     },
     "Root mean square normalization: x / sqrt(mean(x^2) + epsilon) * scale over the last axis."},
    {"softmax", "x, *, axis: int = -1",
     [](const Arguments& a) -> Value { return kernels::softmax(a.array("x"), {.axis = a.integer("axis")}); },
     "exp(x) divided by its sum along one axis."},
    {"cross_entropy", "logits, labels, *, label_smoothing: float = 0.0, ignore_index: int = -100",
     [](const Arguments& a) -> Value {
       return kernels::cross_entropy(
           a.array("logits"), a.array("labels"),
           {.label_smoothing = a.real("label_smoothing"), .ignore_index = a.integer("ignore_index")});
     },
     "Minus the logarithm of the softmax probability of each row's label; the probabilities are never stored."},
};

}  // namespace

Family fused_norms() { return norm_rows; }

}  // namespace capibara::library
