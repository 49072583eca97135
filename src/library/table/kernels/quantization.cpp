// Table rows for capibara.kernels: vector quantization.
#include <capibara/kernels/quantization.h>

#include "library/table/families.h"

namespace capibara::library {

namespace {

constexpr const char* state_result = "VqState";

Value named(const kernels::VqState& state) {
  return Value::named_tuple(state_result, {"codebook", "cluster_size", "cluster_sum"},
                            {state.codebook, state.cluster_size, state.cluster_sum});
}

kernels::VqState state_of(const Arguments& a) {
  const Arrays parts = a.arrays("state");
  if (parts.size() != 3)
    throw TypeError(concat(a.function(), ": expected (codebook, cluster_size, cluster_sum) (argument 'state'), got ",
                           parts.size(), " arrays; vq_state makes one"));
  return {parts[0], parts[1], parts[2]};
}

const Function quantization_rows[] = {
    {"vq_encode", "inputs, codebook, *, distance_metric: str = 'euclidean', residual: bool = False",
     [](const Arguments& a) -> Value {
       return kernels::vq_encode(a.array("inputs"), a.array("codebook"),
                                 {.distance_metric = a.text("distance_metric"), .residual = a.flag("residual")});
     },
     "The index of the code nearest to each vector, to each part of a vector, or to what earlier stages leave."},
    {"vq_decode", "codes, codebook, *, residual: bool = False",
     [](const Arguments& a) -> Value {
       return kernels::vq_decode(a.array("codes"), a.array("codebook"), {.residual = a.flag("residual")});
     },
     "The vectors encoded by codes."},
    {"vq_quantize",
     "inputs, codebook, *, distance_metric: str = 'euclidean', residual: bool = False, commitment_cost: float = 0.25, "
     "codebook_cost: float = 1.0 -> tuple[Array, Array, Array]",
     [](const Arguments& a) -> Value {
       const kernels::VqQuantized result = kernels::vq_quantize(a.array("inputs"), a.array("codebook"),
                                                                {.distance_metric = a.text("distance_metric"),
                                                                 .residual = a.flag("residual"),
                                                                 .commitment_cost = a.real("commitment_cost"),
                                                                 .codebook_cost = a.real("codebook_cost")});
       return Value::named_tuple("VqQuantized", {"quantized", "codes", "loss"},
                                 {result.quantized, result.codes, result.loss});
     },
     "Vectors replaced by their nearest codes, with the straight-through gradient; the codes; a loss for both."},
    {"vq_state", "codebook -> tuple[Array, Array, Array]",
     [](const Arguments& a) -> Value { return named(kernels::vq_state(a.array("codebook"))); },
     "The state of a codebook that vq_update moves: codebook, cluster sizes, cluster sums."},
    {"vq_update",
     "state: tuple[ArrayLike, ArrayLike, ArrayLike], inputs, codes, *, decay: float = 0.99, epsilon: float = 1e-05, "
     "dead_threshold: float = 0.0, key=None -> tuple[Array, Array, Array]",
     [](const Arguments& a) -> Value {
       return named(kernels::vq_update(state_of(a), a.array("inputs"), a.array("codes"),
                                       {.decay = a.real("decay"),
                                        .epsilon = a.real("epsilon"),
                                        .dead_threshold = a.real("dead_threshold"),
                                        .key = a.optional_array("key")}));
     },
     "A codebook moved towards the vectors it encoded, by moving averages; codes used too little start again at drawn "
     "vectors."},
    {"kmeans",
     "inputs, clusters: int, key, *, iterations: int = 10, init: str = 'k-means++' -> tuple[Array, Array, Array]",
     [](const Arguments& a) -> Value {
       const kernels::KMeansResult result =
           kernels::kmeans(a.array("inputs"), a.integer("clusters"), a.array("key"),
                           {.iterations = a.integer("iterations"), .init = a.text("init")});
       return Value::named_tuple("KMeansResult", {"codebook", "codes", "inertia"},
                                 {result.codebook, result.codes, result.inertia});
     },
     "Clusters of vectors by Lloyd's iterations: the codebook, each vector's code, the sum of squared distances."},
    {"kmeans_plus_plus", "inputs, clusters: int, key",
     [](const Arguments& a) -> Value {
       return kernels::kmeans_plus_plus(a.array("inputs"), a.integer("clusters"), a.array("key"));
     },
     "Vectors drawn by their squared distance from those drawn before: where k-means starts."},
};

}  // namespace

Family fused_quantization() { return quantization_rows; }

}  // namespace capibara::library
