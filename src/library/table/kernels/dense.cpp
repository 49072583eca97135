// Table rows for capibara.kernels: dense parts of networks (matmuls, einsum, GELU with dropout, Adam, lists).
#include <capibara/kernels/dense.h>

#include "library/table/einsum_order.h"
#include "library/table/families.h"
#include "library/table/keywords.h"

namespace capibara::library {

namespace {

Value fused_einsum(const Arguments& a) {
  return kernels::einsum_optimize(a.text("equation"), a.arrays("operands"),
                                  {.optimize = einsum_order(a),
                                   .memory_efficient = a.flag("memory_efficient"),
                                   .memory_limit = a.optional_integer("memory_limit"),
                                   .precision = a.text("precision")});
}

Value fused_einsum_plan(const Arguments& a) {
  std::vector<Shape> shapes;
  for (const Array& operand : a.arrays("operands")) shapes.push_back(operand.shape());
  return kernels::einsum_plan(a.text("equation"), shapes,
                              {.optimize = einsum_order(a),
                               .memory_efficient = a.flag("memory_efficient"),
                               .memory_limit = a.optional_integer("memory_limit")});
}

Value fused_adam(const Arguments& a) {
  const kernels::AdamState state = kernels::adam_update(a.arrays("parameters"), a.arrays("gradients"),
                                                        a.arrays("means"), a.arrays("squares"), a.array("step"),
                                                        {.learning_rate = a.array("learning_rate"),
                                                         .b1 = a.real("b1"),
                                                         .b2 = a.real("b2"),
                                                         .epsilon = a.real("eps"),
                                                         .weight_decay = a.real("weight_decay")});
  return std::tuple(state.parameters, state.means, state.squares);
}

Value fused_batch(const Arguments& a) {
  const Sequence& given = keywords_of(a, "parameters");
  kernels::BatchOperationsOptions options{.parallel_execution = a.flag("parallel_execution")};
  for (std::size_t i = 0; i < given.fields.size(); ++i) {
    if (!given.items[i].is_none()) options.parameters[given.fields[i]] = array_of(given.items[i], "batch_operations");
  }
  return kernels::batch_operations(a.text("operation_type"), a.arrays("inputs"), options);
}

const Function dense_rows[] = {
    {"adaptive_matmul", "a, b, *, precision: str = 'default', tpu_strategy: str = 'auto'",
     [](const Arguments& a) -> Value {
       return kernels::adaptive_matmul(a.array("a"), a.array("b"),
                                       {.precision = a.text("precision"), .tpu_strategy = a.text("tpu_strategy")});
     },
     "The matrix product over the last two axes, leading ones being batches, computed where its operands are."},
    {"optimized_matmul",
     "a, b, *, transpose_a: bool = False, transpose_b: bool = False, precision: str = 'default', algorithm: str = "
     "'auto'",
     [](const Arguments& a) -> Value {
       return kernels::optimized_matmul(a.array("a"), a.array("b"),
                                        {.transpose_a = a.flag("transpose_a"),
                                         .transpose_b = a.flag("transpose_b"),
                                         .precision = a.text("precision"),
                                         .algorithm = a.text("algorithm")});
     },
     "The matrix product of operands that may be transposed."},
    {"einsum_optimize",
     "equation: str, operands, *, optimize: str | bool | Sequence[tuple[int, ...]] = 'auto', memory_efficient: bool = "
     "False, "
     "memory_limit: int | None = None, precision: str = 'default'",
     fused_einsum, "einsum with a bound on what is stored between its steps."},
    {"einsum_plan",
     "equation: str, operands, *, optimize: str | bool | Sequence[tuple[int, ...]] = 'auto', memory_efficient: bool = "
     "False, "
     "memory_limit: int | None = None -> str",
     fused_einsum_plan,
     "What einsum_optimize does: the labels it slices along, and its steps, as a text of one line each."},
    {"fused_gelu_dropout",
     "x, rate: float = 0.1, key: ArrayLike | None = None, *, training: bool = True, inplace: bool = False, "
     "approximate: bool "
     "= True",
     [](const Arguments& a) -> Value {
       return kernels::fused_gelu_dropout(a.array("x"), {.rate = a.real("rate"),
                                                         .key = a.optional_array("key"),
                                                         .training = a.flag("training"),
                                                         .inplace = a.flag("inplace"),
                                                         .approximate = a.flag("approximate")});
     },
     "GELU, of which a share is set to zero and the rest scaled by 1 / (1 - rate)."},
    {"adam_update",
     "parameters: Sequence[ArrayLike], gradients: Sequence[ArrayLike], means: Sequence[ArrayLike], squares: "
     "Sequence[ArrayLike], step, *, learning_rate: ArrayLike = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = "
     "1e-08, weight_decay: float = 0.0 -> tuple[list[Array], list[Array], list[Array]]",
     fused_adam, "One step of Adam on many tensors at once."},
    {"batch_operations",
     "operation_type: str, inputs: Sequence[ArrayLike], *, parallel_execution: bool = True, **parameters: ArrayLike -> "
     "list[Array]",
     fused_batch, "One operation on each array of a list: 'layer_norm', 'rms_norm', 'softmax', 'gelu' or 'matmul'."},
};

}  // namespace

Family fused_dense() { return dense_rows; }

}  // namespace capibara::library
