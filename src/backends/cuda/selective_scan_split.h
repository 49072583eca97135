// How the selective scan is cut up for a GPU: what its kernels and their claim have to agree on.
#pragma once

#include <cstdint>

namespace capibara::cuda {

inline constexpr int scan_threads = 128, max_states = 64, sub_chunk = 8, max_chunk = 64;

// How the states of a channel are shared: `own` for each of `parts` threads.
struct Split {
  int own, parts;
  constexpr int channels() const { return scan_threads / parts; }  // of a block
  constexpr int width() const { return own * parts; }              // states, with those that only fill up
};
constexpr Split backward_split(int64_t states) { return states <= 16 ? Split{8, 2} : Split{16, 4}; }
constexpr int64_t backward_blocks(int64_t dim, int64_t states) {
  const int64_t channels = backward_split(states).channels();
  return (dim + channels - 1) / channels;
}

}  // namespace capibara::cuda
