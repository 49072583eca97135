// The state space dual on the CPU: its operands, how a sequence is cut into pieces, and the sizes of packed operands.
#pragma once

#include <algorithm>
#include <vector>

#include "backends/cpu/kernels/attention/panels.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/recurrence/recurrence_elements.h"
#include "backends/cpu/kernels/recurrence/ssd_loops.h"

namespace capibara::cpu {

using attention::ColumnPanels;
using attention::round_up;
using attention::Tiles;

inline constexpr double log2_e = 1.4426950408889634;
inline constexpr int64_t max_piece = 64;  // steps: more of them only lengthen the products inside of a piece
inline constexpr int64_t max_shared_bytes = 8 << 20;    // of the packed operands of groups, where one piece has no more
inline constexpr int64_t max_states_bytes = 384 << 10;  // of the heads of a task: a part of the second cache
inline constexpr int64_t max_states = 2 * max_inner_bytes / 8;  // that packing has rows of zeros for
inline constexpr const char* ssd_name = "ssd";

struct Piece {
  int64_t begin, steps;
  int64_t chunk;  // that begins here, or -1
};

struct DualExtents {
  int64_t batch, length, heads, dim, groups, states, chunk;
  bool has_softplus, gated, resets;
  bool is_read[3];  // whether anything reads y, the last state, the states at the starts of chunks

  int64_t chunks() const { return (length + chunk - 1) / chunk; }
  int64_t piece() const { return std::min({chunk, length, max_piece}); }
  std::vector<Piece> pieces() const {
    std::vector<Piece> all;
    for (int64_t c = 0; c < chunks(); ++c) {
      const int64_t end = std::min(length, (c + 1) * chunk);
      for (int64_t t = c * chunk; t < end; t += max_piece)
        all.push_back({t, std::min(max_piece, end - t), t == c * chunk ? c : -1});
    }
    return all;
  }
};

// The type that packing reads elements as.
template <class T>
struct PackedFrom {
  using type = T;
};
template <>
struct PackedFrom<BFloat16> {
  using type = BrainBits;
};
template <>
struct PackedFrom<Half> {
  using type = HalfBits;
};

template <class T>
struct DualBuffers {
  using C = SumOf<T>;
  const T *x, *dt, *B, *out, *z;
  const C *A, *D, *bias, *initial;
  const std::uint8_t* reset;
  T* y;  // this one and the others: null where nothing reads them
  C *last, *starts;

  DualBuffers(std::byte* const* buffers, const DualExtents& e) {
    auto narrow_at = [&](int i) { return reinterpret_cast<T*>(buffers[i]); };
    auto wide_at = [&](int i) { return reinterpret_cast<C*>(buffers[i]); };
    const int results = 8 + e.gated + e.resets;
    x = narrow_at(0), dt = narrow_at(1), B = narrow_at(3), out = narrow_at(4);
    z = e.gated ? narrow_at(8) : nullptr;
    A = wide_at(2), D = wide_at(5), bias = wide_at(6), initial = wide_at(7);
    reset = e.resets ? reinterpret_cast<const std::uint8_t*>(buffers[e.gated ? 9 : 8]) : nullptr;
    y = e.is_read[0] ? narrow_at(results) : nullptr;
    last = e.is_read[1] ? wide_at(results + 1) : nullptr;
    starts = e.is_read[2] ? wide_at(results + 2) : nullptr;
  }
};

// Sizes of packed operands, in elements.
template <class K>
struct DualLayout {
  Tiles<K> tiles;
  int64_t steps, states, state_rows, stride, width;  // stride: of scores; width: columns of a head as whole vectors
  int64_t outs, columns, scores;                     // C, the transpose of B, their scores

  explicit DualLayout(const DualExtents& e)
      : steps(e.piece()),
        states(e.states),
        state_rows(tiles.packed_rows(e.states)),
        stride(round_up(steps, tiles.lanes())),
        width(round_up(e.dim, tiles.lanes())),
        outs(tiles.packed_rows(steps) * states),
        columns(state_rows * steps),
        scores(tiles.packed_rows(steps) * stride + max_tile_columns) {}
  int64_t shared() const { return round_up(outs + columns + scores, 16); }
  int64_t state() const { return state_rows * width; }
  // Heads of a task: as many as have their states in the second cache, in so many tasks that all threads have some.
  int64_t heads_together(int64_t heads, int64_t threads) const {
    const int64_t bytes = state() * static_cast<int64_t>(sizeof(typename K::Sum));
    return std::clamp<int64_t>(max_states_bytes / bytes, 1, std::max<int64_t>(1, heads / (2 * threads)));
  }
  std::vector<DualColumns> column_panels(int64_t dim) const {
    std::vector<DualColumns> all;
    const ColumnPanels panels = tiles.panels(dim);
    for (int64_t p = 0; p < panels.count(); ++p) {
      const int64_t start = panels.start(p) * tiles.lanes(), own_width = panels.width(p) * tiles.lanes();
      all.push_back({start, own_width, std::min(own_width, dim - start)});
    }
    return all;
  }
};

// What the heads of a group share of one piece.
template <class C>
struct SharedPiece {
  C *outs, *columns, *scores;
  template <class Layout>
  SharedPiece(const Layout& layout, C* memory)
      : outs(memory), columns(memory + layout.outs), scores(columns + layout.columns) {}
};

}  // namespace capibara::cpu
