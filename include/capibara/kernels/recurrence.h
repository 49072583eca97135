// Recurrences along a sequence: linear ones, the selective scan of Mamba, the chunked form of Mamba-2.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <utility>

namespace capibara::kernels {

struct LinearRecurrenceOptions {
  std::optional<Array> initial;  // the value before the first step, of the shape of a without `axis`; zero by default
  int64_t axis = 0;
  bool reverse = false;  // from the last step to the first
};
// The linear recurrence h[t] = a[t] * h[t - 1] + b[t] along an axis.
// h[t] = a[t] * h[t - 1] + b[t] along an axis, of floats or complex numbers; a and b have one type.
Array linear_recurrence(const Array& a, const Array& b, const LinearRecurrenceOptions& options = {});

struct SelectiveScanOptions {
  std::optional<Array> D;              // [dim]: adds D * u to the output
  std::optional<Array> z;              // [..., length, dim]: the output is multiplied by silu(z)
  std::optional<Array> delta_bias;     // [dim]: added to delta
  bool delta_softplus = false;         // the step is softplus(delta + delta_bias)
  std::optional<Array> initial_state;  // [..., dim, state]; zero by default
  std::optional<Array> segment_ids;    // integers [..., length]: the state is cleared where they change
  int64_t axis = -2;                   // the length axis of u, of operands of the same rank, and of segment_ids
};
// The selective scan of Mamba: h[t] = exp(delta[t] * A) * h[t - 1] + delta[t] * B[t] * u[t], y[t] = C[t] . h[t].
// u and delta are [..., length, dim], A is [dim, state], B and C are [..., length, state]. The state is at least
// float32. Returns y, which has u's shape, and the state after the last step, [..., dim, state].
std::pair<Array, Array> selective_scan(const Array& u, const Array& delta, const Array& A, const Array& B,
                                       const Array& C, const SelectiveScanOptions& options = {});

struct MambaOptions : SelectiveScanOptions {
  std::optional<Array> delta;        // of the shape of the inputs; without it every step is 1
  bool use_associative_scan = true;  // false: a plain loop over the steps, a literal transcription of the definition
};
// Mamba's state space model; without delta every step is 1, without use_associative_scan it is a plain loop.
// A layer of Mamba's state space model by selective_scan; B and C without leading axes are shared.
Array mamba_ssm_kernel(const Array& inputs, const Array& A_matrix, const Array& B_matrix, const Array& C_matrix,
                       const MambaOptions& options = {});

struct SsdOptions {
  std::optional<Array> D;              // [heads]: adds D * x to the output
  std::optional<Array> z;              // of the shape of x: the output is multiplied by silu(z)
  std::optional<Array> dt_bias;        // [heads]: added to dt
  bool dt_softplus = false;            // the step is softplus(dt + dt_bias)
  std::optional<Array> initial_state;  // [..., heads, dim, state]; zero by default
  std::optional<Array> segment_ids;    // integers [..., length]: the state is cleared where they change
  int64_t chunk_size = 64;
};
// The state space dual of Mamba-2: a selective scan with one decay A for each head, computed by matmuls in chunks.
// x is [..., length, heads, dim], dt is [..., length, heads], A is [heads], B and C are [..., length, groups, state];
// heads are split evenly among the groups. Returns y and the state after the last step, [..., heads, dim, state].
std::pair<Array, Array> ssd(const Array& x, const Array& dt, const Array& A, const Array& B, const Array& C,
                            const SsdOptions& options = {});

}  // namespace capibara::kernels
