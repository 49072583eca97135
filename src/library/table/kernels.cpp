// The rows of capibara.kernels: fused operations, capibara's own.
#include <capibara/kernels.h>

#include "library/table/families.h"

namespace capibara::library {

namespace {

const Function kernel_rows[] = {
    {"layer_norm", "x, scale, bias, *, epsilon: float = 1e-05",
     [](const Arguments& a) -> Value {
       return kernels::layer_norm(a.array("x"), a.array("scale"), a.array("bias"), {.epsilon = a.real("epsilon")});
     },
     "Layer normalization: (x - mean) / sqrt(variance + epsilon) * scale + bias over the last axis."},
};

}  // namespace

Family fused_kernels() { return kernel_rows; }

}  // namespace capibara::library
