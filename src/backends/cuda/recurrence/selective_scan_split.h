// How the selective scan is cut up for a GPU: what its kernels and their claim have to agree on.
#pragma once

#include <cstdint>

namespace capibara::cuda {

inline constexpr int max_states = 64, sub_chunk = 8, tile_steps = 16, max_chunk = 64;

// A warp has `own` states of all channels of its block, a lane `per_lane` neighbouring channels; `parts` warps together
// have all states. `share`: of the time, in percent, that the first of two kernels takes where there are segments.
struct ScanSplit {
  int own, parts, per_lane, blocks;  // those that keep a multiprocessor busy
  int share;
  constexpr int threads() const { return parts * 32; }
  constexpr int channels() const { return per_lane * 32; }
  constexpr int width() const { return own * parts; }  // states, with those that only fill up
  constexpr int64_t blocks_of(int64_t dim) const { return (dim + channels() - 1) / channels(); }
};
// Forward many warps hide what one waits for; backward sums over channels count for more.
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

// Whole chunks of the sequence that blocks work on side by side. Where they are several, another kernel goes through
// them first for what each adds to the state behind it.
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

// What a segment adds, [states + added_rows][dim]: states, the sum of the steps, and 1 unless the state was cleared.
inline constexpr int added_rows = 2;

}  // namespace capibara::cuda
