// Tiles of attention in shared memory: their layout, copying them, and the list of tiles that a block visits.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace capibara::cuda::attention {

inline constexpr int block_threads = 128, block_rows = 64;  // four warps

// Starts copying 16 bytes, or sets them to 0.
inline __device__ void copy_piece(uint32_t to, const void* from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(exists ? 16 : 0));
}

// Rows of D elements, in the layout that Hopper's tensor cores read: 128-byte parts of all rows, one part after the
// other, in which a row's 16-byte pieces are permuted by its index, so that eight rows have no bank conflicts.
template <class T, int D, int Rows>
struct TileOf {
  static constexpr int pieces = D * static_cast<int>(sizeof(T)) / 16, per_piece = 16 / static_cast<int>(sizeof(T));
  static constexpr int part_bytes = Rows * 128, bytes = Rows * D * static_cast<int>(sizeof(T));

  static __device__ uint32_t at(int row, int piece) {
    return (piece >> 3) * part_bytes + row * 128 + (((piece ^ row) & 7) * 16);
  }

  // Starts copying `Count` rows of `width` elements to the first ones; rows from `exist` on, and columns beyond the
  // width, become zeros. `Threads` threads copy; `thread` is this one's index.
  template <int Threads = block_threads, int Count = Rows>
  static __device__ void copy(uint32_t to, const T* from, int exist, int width, int thread = threadIdx.x) {
    if (width % per_piece != 0) return copy_odd<Threads, Count>(to, from, exist, width, thread);
    // A thread copies the same piece every `step` rows: the permutation repeats every eight rows.
    constexpr int step = Threads / pieces;
    if constexpr (Threads % pieces == 0 && step % 8 == 0) {
      const int first = thread / pieces, piece = thread % pieces;
      const int rows = piece * per_piece < width ? exist : 0;
      const T* source = from + static_cast<int64_t>(first) * width + piece * per_piece;
      to += at(first, piece);
#pragma unroll
      for (int row = 0; row < Count; row += step) {
        if (Count % step != 0 && first + row >= Count) break;
        copy_piece(to + row * 128, first + row < rows ? source : from, first + row < rows);
        source += static_cast<int64_t>(step) * width;
      }
    } else {
#pragma unroll 4
      for (int i = thread; i < Count * pieces; i += Threads) {
        const int row = i / pieces, piece = i % pieces;
        const bool exists = row < exist && piece * per_piece < width;
        const T* source = exists ? from + static_cast<int64_t>(row) * width + piece * per_piece : from;
        copy_piece(to + at(row, piece), source, exists);
      }
    }
  }

 private:
  template <int Threads, int Count>
  static __device__ void copy_odd(uint32_t to, const T* from, int exist, int width, int thread) {
    for (int i = thread; i < Count * pieces; i += Threads) {
      const int row = i / pieces, piece = i % pieces;
      union {
        T elements[per_piece];
        uint32_t words[4];
      } part;
#pragma unroll
      for (int e = 0; e < per_piece; ++e) {
        const int column = piece * per_piece + e;
        part.elements[e] =
            row < exist && column < width ? from[static_cast<int64_t>(row) * width + column] : static_cast<T>(0.0f);
      }
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to + at(row, piece)), "r"(part.words[0]),
                   "r"(part.words[1]), "r"(part.words[2]), "r"(part.words[3]));
    }
  }
};

inline __device__ void end_copies() { asm volatile("cp.async.commit_group;"); }
template <int Left>
__device__ void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Left));
}

// ---- lists of visited tiles -----------------------------------------------------------------------------------------

// Lists the tiles of [first, first + block_threads) below `end` for which `level(tile)` is not `none`: twice their
// index, plus 1 if not all elements are visible. Returns their count; every thread of the block calls it.
template <class F>
__device__ int list_tiles(int* list, int first, int end, F&& level) {
  __shared__ int counts[block_threads / 32];
  const int tile = first + static_cast<int>(threadIdx.x), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int found = tile < end ? level(tile) : 0;
  const unsigned votes = __ballot_sync(0xffffffffu, found != 0);
  if (lane == 0) counts[warp] = __popc(votes);
  __syncthreads();
  int before = 0, total = 0;
  for (int w = 0; w < block_threads / 32; ++w) {
    before += w < warp ? counts[w] : 0;
    total += counts[w];
  }
  if (found != 0) list[before + __popc(votes & ((1u << lane) - 1))] = 2 * tile + (found - 1);
  __syncthreads();
  return total;
}

// Calls copy(stage, tile) and use(stage, tile, all visible) for the tiles of a list, copying one tile ahead of its use.
template <class Copy, class Use>
__device__ void visit(const int* list, int count, Copy&& copy, Use&& use) {
  if (count > 0) copy(0, list[0] >> 1);
  end_copies();
  for (int i = 0; i < count; ++i) {
    if (i + 1 < count) copy((i + 1) & 1, list[i + 1] >> 1);
    end_copies();
    await_copies<1>();
    __syncthreads();
    use(i & 1, list[i] >> 1, (list[i] & 1) == 0);
    __syncthreads();
  }
}

}  // namespace capibara::cuda::attention
