// Cholesky factors, triangular solves and lu of batches of small matrices: groups of matrices distributed to threads.
//
// Every matrix goes through the same operations in the same order, whatever the number of threads.
#include "backends/cpu/kernels/linalg/small_matrices.h"

#include <algorithm>

#include "backends/cpu/kernels/scratch.h"
#include "core/runtime/thread_pool.h"

namespace capibara::cpu {

namespace small_matrices {

namespace {

int64_t batch_of(const Shape& shape) {
  int64_t count = 1;
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) count *= shape[i];
  return count;
}

// Calls one(first, used, work) for groups of `lanes` matrices; `cost`: nanoseconds of a group.
template <class R, class F>
void each_group(int64_t batch, int64_t lanes, double cost, int64_t work_size, F&& one) {
  parallel_for_cost((batch + lanes - 1) / lanes, cost, [&](int64_t begin, int64_t end) {
    Scratch<R> work(work_size, "small matrices as vectors");
    for (int64_t g = begin; g < end; ++g) one(g * lanes, std::min(lanes, batch - g * lanes), work.data());
    return 0;
  });
}

template <class R>
HostKernel cholesky_kernel(const KernelRequest& request) {
  const Shape& shape = request.outputs[0].shape;
  const int64_t n = shape.back(), batch = batch_of(shape), lanes = code<R>().lanes;
  const double cost = static_cast<double>(lanes * n * n) + static_cast<double>(n * n * n) / 8;
  return [=](std::byte* const* buffers) {
    const R* in = reinterpret_cast<const R*>(buffers[0]);
    R* out = reinterpret_cast<R*>(buffers[1]);
    each_group<R>(batch, lanes, cost, padded_order(n) * row_stride(n) * lanes,
                  [&](int64_t first, int64_t used, R* work) {
                    code<R>().cholesky({n, used, in + first * n * n, out + first * n * n, work});
                  });
  };
}

template <class R>
HostKernel solve_kernel(const KernelRequest& request) {
  const Attrs& attrs = request.attrs;
  const Shape& shape = request.outputs[0].shape;
  const int64_t rows = shape[shape.size() - 2], cols = shape.back(), batch = batch_of(shape), lanes = code<R>().lanes;
  const bool left = attrs.boolean("left_side"), lower = attrs.boolean("lower"),
             transpose = attrs.boolean("transpose_a"), unit = attrs.boolean("unit_diagonal");
  const int64_t n = left ? rows : cols, others = left ? cols : rows;
  const int64_t work_size =
      (padded_order(n) * (row_stride(n) + 1) + (left ? padded_order(n) * others : others * row_stride(n))) * lanes;
  const double cost = static_cast<double>(lanes * n * (n + others)) + static_cast<double>(n * n * others) / 2;
  if (others == 1 && batch <= max_alone) {
    return [=](std::byte* const* buffers) {
      const R *a = reinterpret_cast<const R*>(buffers[0]), *b = reinterpret_cast<const R*>(buffers[1]);
      R* out = reinterpret_cast<R*>(buffers[2]);
      for (int64_t i = 0; i < batch; ++i) {
        code<R>().solve_vector({n, 1, 1, left, lower, transpose, unit, a + i * n * n, b + i * n, out + i * n, nullptr});
      }
    };
  }
  return [=](std::byte* const* buffers) {
    const R *a = reinterpret_cast<const R*>(buffers[0]), *b = reinterpret_cast<const R*>(buffers[1]);
    R* out = reinterpret_cast<R*>(buffers[2]);
    each_group<R>(batch, lanes, cost, work_size, [&](int64_t first, int64_t used, R* work) {
      code<R>().solve({n, others, used, left, lower, transpose, unit, a + first * n * n, b + first * n * others,
                       out + first * n * others, work});
    });
  };
}

template <class R>
HostKernel lu_kernel(const KernelRequest& request) {
  const Shape& shape = request.outputs[0].shape;
  const int64_t rows = shape[shape.size() - 2], cols = shape.back(), batch = batch_of(shape),
                count = std::min(rows, cols);
  const int64_t lanes = code<R>().lanes;
  const double cost = 2 * static_cast<double>(lanes * rows * cols) + static_cast<double>(rows * cols * count) / 4;
  return [=](std::byte* const* buffers) {
    const R* in = reinterpret_cast<const R*>(buffers[0]);
    R* out = reinterpret_cast<R*>(buffers[1]);
    int *pivots = reinterpret_cast<int*>(buffers[2]), *permutations = reinterpret_cast<int*>(buffers[3]);
    each_group<R>(
        batch, lanes, cost, padded_order(rows) * row_stride(cols) * lanes, [&](int64_t first, int64_t used, R* work) {
          code<R>().lu(
              {rows, cols, used, in + first * rows * cols, out + first * rows * cols, pivots + first * count, work});
          for (int64_t at = first; at < first + used; ++at) {
            int *own = pivots + at * count, *permutation = permutations + at * rows;
            for (int64_t i = 0; i < rows; ++i) permutation[i] = static_cast<int>(i);
            for (int64_t i = 0; i < count; ++i) std::swap(permutation[i], permutation[own[i]]);
          }
        });
  };
}

// Leaves other types and large matrices to the reference kernels, which call LAPACK.
template <class Make>
HostKernel of_small_reals(const KernelRequest& request, int64_t order, Make&& make) {
  const ArrayType& type = request.outputs[0];
  if (order > max_order || type.size() == 0) return {};
  if (type.dtype == DType::float32) return make.template operator()<float>();
  if (type.dtype == DType::float64) return make.template operator()<double>();
  return {};
}

HostKernel make_cholesky(const KernelRequest& request) {
  return of_small_reals(request, request.outputs[0].shape.back(),
                        [&]<class R>() { return cholesky_kernel<R>(request); });
}
HostKernel make_solve(const KernelRequest& request) {
  return of_small_reals(request, request.inputs[0].shape.back(), [&]<class R>() { return solve_kernel<R>(request); });
}
HostKernel make_lu(const KernelRequest& request) {
  const Shape& shape = request.outputs[0].shape;
  return of_small_reals(request, std::max(shape.back(), shape[shape.size() - 2]),
                        [&]<class R>() { return lu_kernel<R>(request); });
}

}  // namespace

}  // namespace small_matrices

KernelMakers small_matrix_makers() {
  return {{"cholesky", small_matrices::make_cholesky},
          {"triangular_solve", small_matrices::make_solve},
          {"lu", small_matrices::make_lu}};
}

}  // namespace capibara::cpu
