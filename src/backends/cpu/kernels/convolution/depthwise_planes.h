// Convolutions of each feature alone, and the gradients of their kernels, with rows of images contiguous in memory.
//
// A band of an image is laid out in phases, with its padding; then every element of the window is one multiplication of
// a vector that may begin anywhere. Padding, strides and dilations cost nothing in the loop.
#pragma once

#include <algorithm>
#include <vector>

#include "backends/cpu/kernels/planes/layout.h"
#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/scratch.h"
#include "core/runtime/thread_pool.h"

namespace capibara::cpu {

template <class T>
struct DepthwisePlanes {
  PlaneDimension rows, columns;
  int64_t groups, group_features, batch;
  int64_t lhs_batch_stride, lhs_feature_stride, lhs_row_step;
  const Axis& kernel_inner;
  int64_t kernel_feature_stride;
  int64_t out_batch_stride, out_feature_stride, out_row_step, out_step;
  const T *lhs, *rhs;
  T* out;

  void run() const {
    const PlaneCode<T>& code = plane_code<T>();
    const int64_t band = PlaneLayout::band(rows, columns, sizeof(T)), bands = (rows.places + band - 1) / band;
    const PlaneLayout layout(rows, columns, band, code.lanes);
    const int64_t taps = rows.size * columns.size;
    const double cost =
        static_cast<double>(band * layout.pitch()) * (0.15 + 0.03 * static_cast<double>(taps * group_features));
    parallel_for_cost(batch * groups * bands, cost, [&](int64_t begin, int64_t end) {
      Scratch<T> planes(layout.elements(), "planes of a convolution");
      Scratch<T> sums(band * layout.pitch() + code.lanes, "sums of a convolution");
      std::vector<const T*> starts;
      for (int64_t tap : layout.taps()) starts.push_back(planes.data() + tap);
      std::vector<T> weights(static_cast<std::size_t>(taps));
      std::fill_n(planes.data(), layout.elements(), T(0));
      for (int64_t task = begin; task < end; ++task) {
        const int64_t g = task / bands % groups, image = task / bands / groups, first = task % bands * band;
        const int64_t count = std::min(band, rows.places - first);
        layout.lay(code, lhs + image * lhs_batch_stride + g * lhs_feature_stride, lhs_row_step, first, count, T(0),
                   planes.data());
        for (int64_t f = g * group_features; f < (g + 1) * group_features; ++f) {
          for (int64_t t = 0; t < taps; ++t)
            weights[static_cast<std::size_t>(t)] = rhs[f * kernel_feature_stride + kernel_inner.at(t)];
          code.sum(starts.data(), weights.data(), taps, sums.data(), layout.count(count));
          T* target = out + image * out_batch_stride + f * out_feature_stride + first * out_row_step;
          for (int64_t r = 0; r < count; ++r)
            code.put(sums.data() + r * layout.pitch(), target + r * out_row_step, out_step, columns.places);
        }
      }
      return 0;
    });
  }
};

// What such a kernel gets of its images: the window is an image here, and its places are the elements of the kernel.
template <class T>
struct DepthwiseGradient {
  PlaneDimension rows, columns;  // of the kernel over the padded plane: places are those of the image
  int64_t groups, batch, images;
  int64_t lhs_batch_stride, lhs_feature_stride, lhs_row_step;
  int64_t image_group_stride, image_stride, image_row_step;
  const Axis& places;  // [batch][element of the kernel] in the output
  int64_t out_feature_stride;
  const T *lhs, *rhs;
  T* out;

  void run() const {
    const PlaneCode<T>& code = plane_code<T>();
    const int64_t band = PlaneLayout::band(rows, columns, sizeof(T));
    const PlaneLayout layout(rows, columns, band, code.lanes);
    const int64_t taps = rows.size * columns.size;
    const double cost =
        static_cast<double>(images * rows.places * layout.pitch()) * (0.1 + 0.03 * static_cast<double>(taps));
    parallel_for_cost(groups * batch, cost, [&](int64_t begin, int64_t end) {
      Scratch<T> planes(layout.elements(), "planes of a convolution");
      std::fill_n(planes.data(), layout.elements(), T(0));
      std::vector<const T*> starts;
      for (int64_t tap : layout.taps()) starts.push_back(planes.data() + tap);
      std::vector<T> sums(static_cast<std::size_t>(taps));
      for (int64_t task = begin; task < end; ++task) {
        const int64_t g = task / batch, b = task % batch;
        std::fill(sums.begin(), sums.end(), T(0));
        for (int64_t i = 0; i < images; ++i) {
          for (int64_t first = 0; first < rows.places; first += band) {
            const int64_t count = std::min(band, rows.places - first);
            layout.lay(code, lhs + task * lhs_batch_stride + i * lhs_feature_stride, lhs_row_step, first, count, T(0),
                       planes.data());
            const T* image = rhs + g * image_group_stride + i * image_stride + first * image_row_step;
            code.dots({starts.data(), taps, layout.pitch(), image, image_row_step, count, columns.places, sums.data()});
          }
        }
        for (int64_t t = 0; t < taps; ++t)
          out[g * out_feature_stride + places.at(b * taps + t)] = sums[static_cast<std::size_t>(t)];
      }
      return 0;
    });
  }
};

}  // namespace capibara::cpu
