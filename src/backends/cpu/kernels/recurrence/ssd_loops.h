// Element loops of Mamba-2's state space dual, for the widest vectors of this processor.
#pragma once

#include <cstdint>
#include <span>

namespace capibara::cpu {

// The causal matrix of a chunk, by panels of a left operand: weights of each source for a few targets.
template <class C>
struct DualPanel {
  const C* scores;  // [sources][stride]: targets are contiguous
  int64_t stride;
  const C* sums;   // cumulative sums of log2 of the decays
  const C* first;  // index of the first source that a target sees; null if it sees all before it
  int64_t target, height, sources;
  C* out;  // [sources][height], and up to one vector more
};

// A panel of a head's columns, whole vectors: [rows][width] at offset `start` times the rows. `own` columns exist.
struct DualColumns {
  int64_t start, width, own;
};

// step * x as panels of a right operand, and its part that remains at the end of the steps.
template <class C>
struct DualDrive {
  const C* x;  // [steps], readable one vector past the last column
  int64_t stride, steps, panel_rows;
  const C *step, *decay;
  C *driven, *to_state;
};

// A state as panels: copied to rows [states][dim] unless that is null, then multiplied by a factor.
template <class C>
struct DualState {
  C* state;
  int64_t states, panel_rows;
  C* kept;
  int64_t dim;
  C factor;
};

inline constexpr int64_t dual_vector = 16;  // elements: arrays over steps are padded to multiples of it

template <class C>
struct DualCode {
  void (*weigh)(const DualPanel<C>&);
  // step += bias, then softplus if has_softplus.
  void (*make_steps)(C* step, C bias, int64_t count, bool has_softplus);
  void (*exp2)(C* values, int64_t count);
  void (*gate)(C* y, const C* z, int64_t count);                           // y *= silu(z)
  void (*scale)(C* rows, const C* factors, int64_t count, int64_t width);  // each row by its factor
  void (*drive)(const DualDrive<C>&, std::span<const DualColumns>);
  void (*pass_on)(const DualState<C>&, std::span<const DualColumns>);
};

template <class C>
DualCode<C> dual_code();  // float or double

}  // namespace capibara::cpu
