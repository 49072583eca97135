// Matmuls with few rows and columns but a long inner dimension: fixed parts of it, which depend on the shape alone, are
// summed separately.
#pragma once

#include <algorithm>

#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/scratch.h"

namespace capibara::cpu {

inline int64_t rounded(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// Number of parts of a long inner dimension, if the result has too few elements to split; else 1.
inline int64_t inner_parts(int64_t m, int64_t n, int64_t inner) {
  constexpr int64_t min_length = 2048;
  if (m * n > 128 * 128 || inner < 2 * min_length) return 1;
  return std::min<int64_t>(16, inner / min_length);
}

// Loops: constructed from a matmul, runs it.
template <class Loops, class K>
void run_in_parts(const Product<K>& product) {
  using P = typename K::Packed;
  using S = typename K::Sum;
  const Axis &rows = product.rows, &columns = product.columns;
  const int64_t m = rows.extent(), n = columns.extent(), inner = product.inner;
  const int64_t parts = inner_parts(m, n, inner);
  if (parts == 1) return Loops(product).run();
  const int64_t part = rounded((inner + parts - 1) / parts, std::max(8, K::together));
  Scratch<S> sums(parts * m * n, "parts of a product");
  const Axis part_rows = Axis::regular(m, n), part_columns = Axis::regular(n, 1);
  parallel_for_cost(parts, multiply_cost<K>(static_cast<double>(m * n) * static_cast<double>(part)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t p = begin; p < end; ++p) {
                        const int64_t first = p * part;
                        auto left_part = [&](int64_t row, int64_t count, int64_t k0, int64_t k, int64_t width, P* to) {
                          product.left(row, count, first + k0, k, width, to);
                        };
                        auto right_part = [&](int64_t row, int64_t count, int64_t k0, int64_t k, int64_t width, P* to) {
                          product.right(row, count, first + k0, k, width, to);
                        };
                        Product<K> own{std::min(part, inner - first), left_part, right_part,
                                       sums.data() + p * m * n,       part_rows, part_columns};
                        if (product.right_in_place) {
                          own.right_in_place = product.right_in_place + first * product.right_stride;
                          own.right_stride = product.right_stride;
                        }
                        if (product.left_in_place) {
                          own.left_in_place = product.left_in_place + first;
                          own.left_stride = product.left_stride;
                        }
                        if (own.inner > 0)
                          Loops(own).run();
                        else
                          std::fill_n(own.out, m * n, S(0));
                      }
                      return 0;
                    });
  for (int64_t i = 0; i < m; ++i) {
    S* total = sums.data() + i * n;
    for (int64_t p = 1; p < parts; ++p) {
      const S* next = sums.data() + (p * m + i) * n;
      for (int64_t j = 0; j < n; ++j) total[j] += next[j];
    }
    S* target = product.out + rows.at(i);
    for (int64_t j = 0; j < n; ++j) target[columns.at(j)] = total[j];
  }
  if (product.finish) (*product.finish)(0, m, 0, n);
}

}  // namespace capibara::cpu
