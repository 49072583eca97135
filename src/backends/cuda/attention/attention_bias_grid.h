// Partition of the gradients of a bias over blocks: each has a tile of elements, and sums over the axes along which the
// bias is broadcast in a fixed order.
#pragma once

#include "backends/cuda/attention/attention_problem.h"

namespace capibara::cuda::attention {

// True if the rows of the bias consist of 16-byte pieces of the operands' type.
inline __host__ __device__ bool has_bias_pieces(const Problem& p) {
  return !p.wide_bias && p.bias_step[3] == 1 && p.keys % 8 == 0;
}
// True if, in addition, there is a row per query: the copy engine loads and stores them in boxes.
inline __host__ __device__ bool has_bias_boxes(const Problem& p) { return has_bias_pieces(p) && p.bias_step[2]; }
// The index of a queries x keys matrix among those of the bias.
inline __device__ int bias_number(const Problem& p, int batch, int head) {
  return (p.bias_step[0] ? batch : 0) * (p.bias_step[1] ? p.heads : 1) + (p.bias_step[1] ? head : 0);
}
// True if rows are pieces and the bias is not broadcast, so its gradients are those of the logits.
inline __host__ __device__ bool has_own_bias(const Problem& p) {
  return has_bias_pieces(p) && (p.bias_step[0] || p.batch == 1) && (p.bias_step[1] || p.heads == 1) &&
         (p.bias_step[2] || p.queries == 1);
}

// The factors for a bias in pieces, which is divided by the scale so that tensor cores accumulate on it, or any other.
inline void set_factors(Problem& p) {
  constexpr float least = 1e-6f;  // the smallest scale used as a divisor
  p.folded = has_bias_pieces(p) && p.scale > least;
  p.product_factor = p.folded ? 1.0f : p.scale * log2e;
  p.bias_factor = p.folded ? 1.0f / p.scale : log2e;
  p.exponent_factor = p.folded ? p.scale * log2e : 1.0f;
}

// A dimension of the bias: the blocks that partition it, and the iterations in which a block sums over it. If tiles are
// stored, a thread block computes several of these blocks in sequence: the next is copied while one is stored.
struct BiasAxis {
  int blocks, iterations;
  __host__ __device__ BiasAxis(int64_t step, int count) : blocks(step ? count : 1), iterations(step ? 1 : count) {}
  // The index along this axis, which is divided out of the numbers of block and iteration.
  __host__ __device__ int take(int& block, int& iteration) const {
    const int number = blocks > 1 ? block % blocks : iteration % iterations;
    block /= blocks;
    iteration /= iterations;
    return number;
  }
};

// The position of a block in an iteration.
struct BiasPlace {
  int batch, head, query, key;
};

struct BiasGrid {
  int rows, columns;  // of a tile
  BiasAxis batch, head, query, key;

  __host__ __device__ BiasGrid(const Problem& p, int tile_rows, int tile_columns)
      : rows(tile_rows),
        columns(tile_columns),
        batch(p.bias_step[0], p.batch),
        head(p.bias_step[1], p.heads),
        query(p.bias_step[2], (p.queries + tile_rows - 1) / tile_rows),
        key(p.bias_step[3], (p.keys + tile_columns - 1) / tile_columns) {}
  __host__ __device__ int blocks() const { return batch.blocks * head.blocks * query.blocks * key.blocks; }
  __device__ int iterations() const { return batch.iterations * head.iterations * query.iterations * key.iterations; }
  __device__ BiasPlace place(int block, int iteration) const {
    BiasPlace at;
    at.key = key.take(block, iteration) * columns;
    at.query = query.take(block, iteration) * rows;
    at.head = head.take(block, iteration);
    at.batch = batch.take(block, iteration);
    return at;
  }
};

// Steps through the positions of a block without divisions.
struct BiasWalk {
  const BiasGrid& grid;
  const Problem& p;
  BiasPlace at;

  __device__ BiasWalk(const Problem& problem, const BiasGrid& of, int block)
      : grid(of), p(problem), at(of.place(block, 0)) {}
  __device__ void advance() {
    if (step(grid.key, at.key, grid.columns, p.keys) || step(grid.query, at.query, grid.rows, p.queries)) return;
    if (step(grid.head, at.head, 1, p.heads)) return;
    step(grid.batch, at.batch, 1, p.batch);
  }

 private:
  // Steps along an axis along which the bias is broadcast; false at its end, where it starts over.
  static __device__ bool step(const BiasAxis& axis, int& place, int by, int end) {
    if (axis.iterations == 1) return false;
    place = place + by < end ? place + by : 0;
    return place != 0;
  }
};

// Stores a tile of sums from shared memory, rows of Columns + 1 elements, summed along the axes along which the bias is
// broadcast; `first` is the index of the first element of the batch entry and head.
template <class T, int Rows, int Columns>
__device__ void store_bias(const Problem& p, const float* sums, int64_t first, int query, int key, int thread,
                           int threads) {
  const bool by_row = p.bias_step[2] != 0, by_column = p.bias_step[3] != 0;
  const int rows = by_row ? Rows : 1, width = by_column ? Columns : 1;
  for (int i = thread; i < rows * width; i += threads) {
    const int row = i / width, column = i % width;
    if ((by_row && query + row >= p.queries) || (by_column && key + column >= p.keys)) continue;
    float sum = 0;
    for (int r = row; r < (by_row ? row + 1 : Rows); ++r) {
      for (int c = column; c < (by_column ? column + 1 : Columns); ++c) sum += sums[r * (Columns + 1) + c];
    }
    const int64_t to = first + (query + row) * p.bias_step[2] + (key + column) * p.bias_step[3];
    if (p.wide_bias)
      static_cast<float*>(p.dbias)[to] = sum;
    else
      static_cast<T*>(p.dbias)[to] = static_cast<T>(sum);
  }
}

}  // namespace capibara::cuda::attention
