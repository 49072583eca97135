// Table rows for capibara.kernels: recurrences (linear ones, the selective scan of Mamba, Mamba-2).
#include <capibara/kernels/recurrence.h>

#include "library/table/families.h"

namespace capibara::library {

namespace {

kernels::SelectiveScanOptions scan_options(const Arguments& a) {
  kernels::SelectiveScanOptions options;
  options.D = a.optional_array("D");
  options.z = a.optional_array("z");
  options.delta_bias = a.optional_array("delta_bias");
  options.delta_softplus = a.flag("delta_softplus");
  options.initial_state = a.optional_array("initial_state");
  options.segment_ids = a.optional_array("segment_ids");
  options.axis = a.integer("axis");
  return options;
}

Value with_state(const std::pair<Array, Array>& both, bool wanted) { return wanted ? Value(both) : Value(both.first); }

const Function recurrence_rows[] = {
    {"linear_recurrence", "a, b, initial=None, *, axis: int = 0, reverse: bool = False",
     [](const Arguments& a) -> Value {
       const Array factors = a.array("a"), inputs = a.array("b");
       return kernels::linear_recurrence(
           factors, inputs,
           {.initial = a.optional_array("initial"), .axis = a.integer("axis"), .reverse = a.flag("reverse")});
     },
     "The linear recurrence h[t] = a[t] * h[t - 1] + b[t] along an axis."},
    {"selective_scan",
     "u, delta: ArrayLike, A, B, C, D: ArrayLike | None = None, z=None, delta_bias: ArrayLike | None = None, *, "
     "delta_softplus: bool = False, initial_state: ArrayLike | None = None, segment_ids=None, "
     "return_last_state: bool = False, axis: int = -2 -> Array | tuple[Array, Array]",
     [](const Arguments& a) -> Value {
       const Array u = a.array("u"), delta = a.array("delta"), A = a.array("A"), B = a.array("B"), C = a.array("C");
       return with_state(kernels::selective_scan(u, delta, A, B, C, scan_options(a)), a.flag("return_last_state"));
     },
     "The selective scan of Mamba: h[t] = exp(delta[t] * A) * h[t - 1] + delta[t] * B[t] * u[t], y[t] = C[t] . h[t]."},
    {"mamba_ssm_kernel",
     "inputs: ArrayLike, A_matrix: ArrayLike, B_matrix: ArrayLike, C_matrix: ArrayLike, *, delta: ArrayLike | None = "
     "None, D: ArrayLike | None = None, "
     "z=None, delta_bias: ArrayLike | None = None, delta_softplus: bool = False, "
     "initial_state: ArrayLike | None = None, segment_ids=None, use_associative_scan: bool = True, "
     "axis: int = -2",
     [](const Arguments& a) -> Value {
       const Array inputs = a.array("inputs"), A = a.array("A_matrix"), B = a.array("B_matrix"),
                   C = a.array("C_matrix");
       kernels::MambaOptions options{scan_options(a), a.optional_array("delta"), a.flag("use_associative_scan")};
       return kernels::mamba_ssm_kernel(inputs, A, B, C, options);
     },
     "Mamba's state space model; without delta every step is 1, without use_associative_scan it is a plain loop."},
    {"ssd",
     "x, dt: ArrayLike, A, B, C, D: ArrayLike | None = None, z=None, dt_bias: ArrayLike | None = None, *, "
     "dt_softplus: bool = False, initial_state: ArrayLike | None = None, segment_ids=None, "
     "chunk_size: int = 64, return_last_state: bool = False -> Array | tuple[Array, Array]",
     [](const Arguments& a) -> Value {
       const Array x = a.array("x"), dt = a.array("dt"), A = a.array("A"), B = a.array("B"), C = a.array("C");
       kernels::SsdOptions options;
       options.D = a.optional_array("D");
       options.z = a.optional_array("z");
       options.dt_bias = a.optional_array("dt_bias");
       options.dt_softplus = a.flag("dt_softplus");
       options.initial_state = a.optional_array("initial_state");
       options.segment_ids = a.optional_array("segment_ids");
       options.chunk_size = a.integer("chunk_size");
       return with_state(kernels::ssd(x, dt, A, B, C, options), a.flag("return_last_state"));
     },
     "The state space dual of Mamba-2: a selective scan with one decay for each head, by matmuls in chunks."},
};

}  // namespace

Family fused_recurrence() { return recurrence_rows; }

}  // namespace capibara::library
