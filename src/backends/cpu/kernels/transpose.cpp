// transpose: merges dimensions that stay adjacent, then copies square blocks so that both sides stay in cache.
#include <algorithm>
#include <cstring>
#include <memory>

#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/visit_bytes.h"
#include "backends/reference/kernels.h"
#include "core/array/element.h"
#include "core/runtime/thread_pool.h"

namespace capibara::cpu {

namespace {

struct TransposePlan {
  // The plane that is cut into blocks: the output's last dimension by the input's last one, if they differ.
  Axis from, to;                                      // all other dimensions of the output
  int64_t rows = 1, columns = 1;                      // of the plane
  int64_t row_from = 0, row_to = 0, column_from = 1;  // steps; the output's column step is 1
};

template <class T>
void copy_plane(const TransposePlan& plan, const T* from, T* to, int64_t first, int64_t last) {
  constexpr int64_t block = 64 / sizeof(T) < 8 ? 8 : 64 / sizeof(T);  // a cache line
  if (plan.column_from == 1) {
    for (int64_t r = first; r < last; ++r)
      std::memcpy(to + r * plan.row_to, from + r * plan.row_from, static_cast<std::size_t>(plan.columns) * sizeof(T));
    return;
  }
  for (int64_t r0 = first; r0 < last; r0 += block) {
    for (int64_t c0 = 0; c0 < plan.columns; c0 += block) {
      const int64_t r1 = std::min(r0 + block, last), c1 = std::min(c0 + block, plan.columns);
      for (int64_t r = r0; r < r1; ++r) {
        for (int64_t c = c0; c < c1; ++c) to[r * plan.row_to + c] = from[r * plan.row_from + c * plan.column_from];
      }
    }
  }
}

HostKernel make_transpose(const KernelRequest& request) {
  const ArrayType &x = request.inputs[0], &out = request.outputs[0];
  const Ints& permutation = request.attrs.ints("permutation");
  const int64_t count = out.size(), size = storage_size(x.dtype);
  Ints in_strides = reference::row_major_strides(x.shape), out_strides = reference::row_major_strides(out.shape);
  Ints shape, from, to;
  for (std::size_t d = 0; d < permutation.size(); ++d) {
    const int64_t extent = out.shape[d], step = in_strides[static_cast<std::size_t>(permutation[d])];
    if (extent == 1) continue;
    if (!shape.empty() && from.back() == step * extent) {  // also the next dimension of the input
      shape.back() *= extent;
      from.back() = step;
      to.back() = out_strides[d];
    } else {
      shape.push_back(extent);
      from.push_back(step);
      to.push_back(out_strides[d]);
    }
  }
  auto plan = std::make_shared<TransposePlan>();
  if (!shape.empty()) {
    plan->columns = shape.back();
    plan->column_from = from.back();
    for (Ints* list : {&shape, &from, &to}) list->pop_back();
    // Rows of the plane: the input's contiguous dimension, else the longest run of rows.
    if (!shape.empty()) {
      std::size_t row = shape.size() - 1;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        if (from[d] == 1) row = d;
      }
      plan->rows = shape[row];
      plan->row_from = from[row];
      plan->row_to = to[row];
      for (Ints* list : {&shape, &from, &to}) list->erase(list->begin() + static_cast<std::ptrdiff_t>(row));
    }
  }
  plan->from = Axis(shape, from);
  plan->to = Axis(shape, to);
  return [plan, count, size](std::byte* const* buffers) {
    if (count == 0) return;
    constexpr int64_t strip = 64;  // rows that one task copies
    const int64_t strips = (plan->rows + strip - 1) / strip;
    const double cost = static_cast<double>(std::min(strip, plan->rows) * plan->columns) *
                        (plan->column_from == 1 ? 0.1 * static_cast<double>(size) : 1.0);
    visit_bytes(size, [&]<class T>(Type<T>) {
      parallel_for_cost(plan->from.extent() * strips, cost, [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t plane = task / strips, first = task % strips * strip;
          copy_plane(*plan, reinterpret_cast<const T*>(buffers[0]) + plan->from.at(plane),
                     reinterpret_cast<T*>(buffers[1]) + plan->to.at(plane), first, std::min(first + strip, plan->rows));
        }
        return 0;
      });
    });
  };
}

}  // namespace

KernelMakers transpose_makers() { return {{"transpose", make_transpose}}; }

}  // namespace capibara::cpu
