// Table rows for capibara.kernels: mixtures of experts.
#include <capibara/kernels/experts.h>

#include "library/table/families.h"

namespace capibara::library {

namespace {

Value routing_value(const kernels::MoeRouting& routing) {
  return Value::named_tuple("MoeRouting",
                            {"weights", "experts", "permutation", "inverse", "group_sizes", "load", "aux_loss"},
                            {routing.weights, routing.experts, routing.permutation, routing.inverse,
                             routing.group_sizes, routing.load, routing.aux_loss});
}

const Function expert_rows[] = {
    {"grouped_matmul", "x, weights, group_sizes, *, transpose_weights: bool = False",
     [](const Arguments& a) -> Value {
       return kernels::grouped_matmul(a.array("x"), a.array("weights"), a.array("group_sizes"),
                                      {.transpose_weights = a.flag("transpose_weights")});
     },
     "Matmul of each group of rows with its own matrix: [..., rows, inner] x [groups, inner, columns]; rows are sorted "
     "by group."},
    {"moe_routing_kernel",
     "tokens, num_experts: int, top_k: int, load_balancing: bool = True, *, gate=None, renormalize: bool = True, "
     "capacity_factor: float | None = None -> MoeRouting(weights, experts, permutation, inverse, group_sizes, load, "
     "aux_loss)",
     [](const Arguments& a) -> Value {
       return routing_value(kernels::moe_routing_kernel(a.array("tokens"), a.integer("num_experts"), a.integer("top_k"),
                                                        a.flag("load_balancing"),
                                                        {.gate = a.optional_array("gate"),
                                                         .renormalize = a.flag("renormalize"),
                                                         .capacity_factor = a.optional_real("capacity_factor")}));
     },
     "Routes tokens to the top_k experts with the largest logits: weights, experts, permutation, inverse, group_sizes, "
     "load, "
     "aux_loss."},
    {"moe_feed_forward",
     "tokens, gate, up, down, top_k: int, *, gate_weights=None, activation: str = 'silu', load_balancing: bool = True, "
     "renormalize: bool = True, capacity_factor: float | None = None -> MoeFeedForwardResult(output, aux_loss)",
     [](const Arguments& a) -> Value {
       const kernels::MoeFeedForwardResult result = kernels::moe_feed_forward(
           a.array("tokens"), a.array("gate"), a.array("up"), a.array("down"), a.integer("top_k"),
           {.gate_weights = a.optional_array("gate_weights"),
            .activation = a.text("activation"),
            .load_balancing = a.flag("load_balancing"),
            .renormalize = a.flag("renormalize"),
            .capacity_factor = a.optional_real("capacity_factor")});
       return Value::named_tuple("MoeFeedForwardResult", {"output", "aux_loss"}, {result.output, result.aux_loss});
     },
     "The feed-forward layer of a mixture of experts: routing, a matmul for each expert, activation, another matmul, "
     "the "
     "weighted sum."},
};

}  // namespace

Family fused_experts() { return expert_rows; }

}  // namespace capibara::library
