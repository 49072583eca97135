// Layer norm and RMS norm backward, row by row: bound by memory, each row is read once into shared memory.
//
// A block owns one row at a time, a thread the same 16-byte pieces of every row. The rows that follow are on their way
// while one is worked on, each thread copying what it will read itself. Gradients of scale and bias are summed in
// registers and written once for each block; norm_sums.h adds the blocks.
#pragma once

#include "backends/cuda/block_sums.h"
#include "backends/cuda/rows/norm_split.h"
#include "backends/cuda/rows/norm_stages.h"

namespace capibara::cuda {
namespace {

// dx for every row, and for each block the sums of dy * normalized x and of dy over its rows.
template <class T, int pieces, int stages, bool centered>
__global__ void __launch_bounds__(max_norm_threads) pull_back(NormGradients<T> in) {
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ Exchange<float2> exchange;
  constexpr int size = Piece<T>::size;
  const int per_row = in.columns / size;
  auto* const staged = reinterpret_cast<Piece<T>*>(memory);  // [stages][x, dy][per_row]
  Piece<T> factor[pieces];
  float scale_sums[pieces][size], bias_sums[centered ? pieces : 1][size];
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    const int at = threadIdx.x + p * blockDim.x;
    if (at < per_row) factor[p] = reinterpret_cast<const Piece<T>*>(in.scale)[at];
#pragma unroll
    for (int i = 0; i < size; ++i) scale_sums[p][i] = bias_sums[centered ? p : 0][i] = 0;
  }
  auto copy = [&](int64_t row, int slot) { copy_row<T, pieces>(in, row, staged + 2 * slot * per_row); };
  const int64_t step = gridDim.x;
#pragma unroll
  for (int s = 0; s + 1 < stages; ++s) copy(blockIdx.x + s * step, s);
  const float inverse = 1.0f / static_cast<float>(in.columns);
  // Of the row that is written next and of the one behind it, where registers have room; else they are made again.
  constexpr bool held = pieces == 2;
  float normals[2][held ? pieces : 1][size], weights[2][held ? pieces : 1][size];
  auto make = [&](const Row& row, int p, int i, const Piece<T>& x, const Piece<T>& dy, float& normal, float& weight) {
    normal = as_float(x.values[i]) * row.deviation + row.shift;
    weight = as_float(dy.values[i]) * as_float(factor[p].values[i]);
  };
  // What a row adds to the sums of columns, and its own two sums, which the block will know after its next barrier.
  auto add_row = [&](auto parity, const Row& row, int iteration) {
    const Piece<T>* const own = staged + 2 * row.slot * per_row;
    float sum = 0, product = 0;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at >= per_row) continue;
      const Piece<T> x = own[at], dy = own[per_row + at];
#pragma unroll
      for (int i = 0; i < size; ++i) {
        float normal, weight;
        make(row, p, i, x, dy, normal, weight);
        const float slope = as_float(dy.values[i]);
        scale_sums[p][i] += slope * normal;
        if (centered) {
          bias_sums[p][i] += slope;
          sum += weight;
        }
        product += weight * normal;
        if (held) {
          normals[parity.value][p][i] = normal;
          weights[parity.value][p][i] = weight;
        }
      }
    }
    publish_sums(sum, product, exchange, iteration);
  };
  auto write_row = [&](auto parity, const Row& row, float2 sums) {
    const Piece<T>* const own = staged + 2 * row.slot * per_row;
    const float share = -row.deviation * inverse, by_normal = sums.y * share;
    const float everywhere = centered ? sums.x * share : 0.0f;
#pragma unroll
    for (int p = 0; p < pieces; ++p) {
      const int at = threadIdx.x + p * blockDim.x;
      if (at >= per_row) continue;
      Piece<T> x, dy;
      if (!held) x = own[at], dy = own[per_row + at];
      float result[size];
#pragma unroll
      for (int i = 0; i < size; ++i) {
        float normal, weight;
        if (held)
          normal = normals[parity.value][p][i], weight = weights[parity.value][p][i];
        else
          make(row, p, i, x, dy, normal, weight);
        result[i] = weight * row.deviation + (normal * by_normal + everywhere);
      }
      put_piece(in.dx + row.number * in.columns + at * size, result);
    }
  };
  auto row_at = [&](int64_t number, int slot) {
    const bool exists = number < in.rows;
    const float deviation = exists ? in.deviations[number] : 0, mean = exists && centered ? in.means[number] : 0;
    return Row{number, slot, deviation, -mean * deviation};
  };
  // The sums of a row are on their way through the block while the row before it is written.
  Row now = row_at(blockIdx.x, 0);
  wait_pieces<stages - 2>();
  add_row(std::integral_constant<int, 0>{}, now, 0);
  auto advance = [&](auto parity, int iteration) {
    const Row next = row_at(now.number + step, now.slot + 1 == stages ? 0 : now.slot + 1);
    copy(now.number + (stages - 1) * step, now.slot == 0 ? stages - 1 : now.slot - 1);
    const float2 sums = published_sums(exchange, iteration);
    wait_pieces<stages - 2>();
    if (next.number < in.rows) add_row(std::integral_constant<int, 1 - parity.value>{}, next, iteration + 1);
    write_row(parity, now, sums);
    now = next;
    return now.number < in.rows;
  };
  for (int iteration = 0; advance(std::integral_constant<int, 0>{}, iteration); iteration += 2) {
    if (!advance(std::integral_constant<int, 1>{}, iteration + 1)) break;
  }
  const int64_t columns = in.columns;
#pragma unroll
  for (int p = 0; p < pieces; ++p) {
    const int at = threadIdx.x + p * blockDim.x;
    if (at < per_row) {
      float* const own = in.partial + blockIdx.x * columns + static_cast<int64_t>(at) * size;
#pragma unroll
      for (int i = 0; i < size; ++i) {
        own[i] = scale_sums[p][i];
        if (centered) own[gridDim.x * columns + i] = bias_sums[p][i];
      }
    }
  }
}

}  // namespace
}  // namespace capibara::cuda
