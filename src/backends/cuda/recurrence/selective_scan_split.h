// The split of the selective scan over a GPU, shared by its kernels and their claim.
#pragma once

#include <cstdint>

namespace capibara::cuda {

inline constexpr int max_states = 64, sub_chunk = 8, tile_steps = 16, max_chunk = 64;

// A warp has `own` states of all channels of its block, a lane `per_lane` neighbouring channels; `parts` warps together
// have all states. `share`: with segments, the time of the first kernel in percent of the second.
struct ScanSplit {
  int own, parts, per_lane, blocks;  // enough to keep a multiprocessor busy
  int share;
  constexpr int threads() const { return parts * 32; }
  constexpr int channels() const { return per_lane * 32; }
  constexpr int width() const { return own * parts; }  // states, including padding
  constexpr int64_t blocks_of(int64_t dim) const { return (dim + channels() - 1) / channels(); }
};
// Forward, many warps hide each other's latency; backward, sums over channels matter more.
constexpr ScanSplit forward_split(int64_t states) {
  return states <= 16 ? ScanSplit{4, 4, 1, 4, 80} : ScanSplit{8, 8, 1, 1, 80};
}
constexpr ScanSplit backward_split(int64_t states) {
  return states <= 16 ? ScanSplit{4, 4, 2, 2, 30} : ScanSplit{8, 8, 1, 1, 30};
}

// The shared memory of a backward block.
constexpr int64_t backward_bytes(const ScanSplit& split) {
  return 4 * (3 * max_chunk * split.channels() + 2 * max_chunk * split.width() +
              max_chunk / sub_chunk * split.per_lane * split.own * split.threads() +
              split.parts * 3 * sub_chunk * split.channels() + 2 * split.channels());
}

// The number of segments, of whole chunks, that blocks process in parallel. If there are several, another kernel first
// computes the contribution of each to the state after it.
constexpr int64_t scan_segments(const ScanSplit& split, int64_t batch, int64_t dim, int64_t chunks,
                                int64_t multiprocessors) {
  const int64_t blocks = batch * split.blocks_of(dim), room = split.blocks * multiprocessors;
  int64_t best = 1, least = 0;
  for (int64_t count = 1; count <= 16 && count <= chunks; ++count) {
    const int64_t own = (chunks + count - 1) / count, waves = (blocks * count + room - 1) / room;
    const int64_t cost = waves * own * (count > 1 ? 100 + split.share : 100);
    if ((chunks + own - 1) / own == count && (count == 1 || cost <= least)) best = count, least = cost;
  }
  return best;
}

// The contribution of a segment, [states + added_rows][dim]: states, sum of the steps, and 1 if no step cleared.
inline constexpr int added_rows = 2;

}  // namespace capibara::cuda
