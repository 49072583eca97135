// Convolutions with one input and one output feature for each group: not matmuls but plain sums over the window,
// vectorised along the features where they are contiguous, else along the last spatial dimension.
#pragma once

#include <algorithm>
#include <vector>

#include "backends/cpu/kernels/convolution/convolution_window.h"
#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/planes/code.h"
#include "backends/cpu/kernels/planes/layout.h"
#include "backends/cpu/kernels/scratch.h"
#include "backends/cpu/kernels/window/window_lanes.h"
#include "core/array/element.h"
#include "core/runtime/thread_pool.h"

// Depthwise convolutions, and the gradients of their kernels, with rows of images contiguous in memory.
//
// A band of an image is laid out in phases, with its padding; each window element is then one multiplication by a
// vector at any offset. Padding, strides and dilations cost nothing in the loop.

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

// The gradient of such a kernel: the window is an image here, and `places` are the elements of the kernel.
template <class T>
struct DepthwiseGradient {
  PlaneDimension rows, columns;  // of the kernel over the padded plane: `places` are positions of the image
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

template <class T>
struct Depthwise {
  const Window& window;
  const std::vector<int64_t>& elements;
  const Axis& places;
  int64_t groups, batch, lhs_batch_stride, lhs_feature_stride;
  const Axis& kernel_inner;
  int64_t kernel_feature_stride, out_feature_stride;
  const T *lhs, *rhs;
  T* out;

  int64_t window_size() const { return kernel_inner.extent(); }
  const int64_t* element(int64_t e) const { return elements.data() + static_cast<std::size_t>(e) * window.size.size(); }

  void run() const {
    const bool along_features =
        window.size.empty() || (lhs_feature_stride == 1 && kernel_feature_stride == 1 && out_feature_stride == 1);
    const int64_t row = along_features ? 1 : window.places.back(), rows = places.extent() / row,
                  features = along_features ? 1 : groups;
    const double cost = 50 + static_cast<double>(window_size() * (along_features ? groups : row)) * 0.15;
    parallel_for_cost(rows * features, cost, [&](int64_t begin, int64_t end) {
      std::vector<int64_t> place(window.size.size());
      std::vector<Tap> taps;
      for (int64_t task = begin; task < end; ++task) {
        const int64_t g = task % features, r = task / features * row;
        int64_t rest = r;
        for (std::size_t d = window.size.size(); d-- > 0; rest /= window.places[d]) place[d] = rest % window.places[d];
        const T* input = lhs + rest * lhs_batch_stride + g * lhs_feature_stride;
        if (along_features)
          sum_features(input, place.data(), out + places.at(r), taps);
        else
          sum_row(input, rhs + g * kernel_feature_stride, place.data(), out + g * out_feature_stride, r, taps);
      }
      return 0;
    });
  }

 private:
  // One window element: its factors, and the results [low, high) it contributes to.
  struct Tap {
    const T* x;
    const T* w;
    int64_t low, high;
  };

  void sum_features(const T* input, const int64_t* place, T* target, std::vector<Tap>& taps) const {
    taps.clear();
    for (int64_t e = 0; e < window_size(); ++e) {
      const int64_t offset = window.tap(place, element(e));
      if (offset >= 0) taps.push_back({input + offset, rhs + kernel_inner.at(e), 0, groups});
    }
    if (window.size.empty()) {
      for (int64_t g = 0; g < groups; ++g) {
        target[g * out_feature_stride] = taps[0].x[g * lhs_feature_stride] * taps[0].w[g * kernel_feature_stride];
      }
      return;
    }
    if constexpr (std::is_floating_point_v<T>) {
      std::vector<const T*> xs, ws;
      for (const Tap& tap : taps) xs.push_back(tap.x), ws.push_back(tap.w);
      return plane_code<T>().sum_each(xs.data(), ws.data(), static_cast<int64_t>(taps.size()), target, groups);
    }
    constexpr int64_t side = 64 / static_cast<int64_t>(sizeof(T));
    int64_t g = 0;
    for (; g + side <= groups; g += side) {
      T sums[side] = {};
      for (const Tap& tap : taps) {
        for (int64_t s = 0; s < side; ++s) sums[s] += tap.x[g + s] * tap.w[g + s];
      }
      for (int64_t s = 0; s < side; ++s) target[g + s] = sums[s];
    }
    for (; g < groups; ++g) {
      T sum(0);
      for (const Tap& tap : taps) sum += tap.x[g] * tap.w[g];
      target[g] = sum;
    }
  }

  // All positions of the last dimension, from `first` on; place.back() is 0.
  void sum_row(const T* input, const T* kernel, const int64_t* place, T* target, int64_t first,
               std::vector<Tap>& taps) const {
    const std::size_t last = window.size.size() - 1;
    const int64_t count = window.places[last];
    target += places.at(first);
    const int64_t out_step = count > 1 ? places.at(first + 1) - places.at(first) : 1;
    if (!window.regular) {
      for (int64_t o = 0; o < count; ++o) target[o * out_step] = T(0);
      for (int64_t e = 0; e < window_size(); ++e) {
        const int64_t outer = window.outer_tap(place, element(e));
        if (outer < 0) continue;
        const int64_t* table = window.taps[last].data() + element(e)[last];
        const T weight = kernel[kernel_inner.at(e)];
        for (int64_t o = 0; o < count; ++o) {
          const int64_t own = table[o * window.size[last]];
          if (own >= 0) target[o * out_step] += input[outer + own] * weight;
        }
      }
      return;
    }
    taps.clear();
    int64_t low = 0, high = count;  // where every window element is in bounds
    const int64_t stride = window.stride[last], step = stride * window.step[last];
    for (int64_t e = 0; e < window_size(); ++e) {
      const int64_t outer = window.outer_tap(place, element(e));
      if (outer < 0) continue;
      const int64_t start = element(e)[last] * window.dilation[last] - window.padding[last],
                    extent = window.extent[last];
      auto steps = [stride](int64_t way) { return stride == 1 ? way : (way + stride - 1) / stride; };
      const int64_t from = std::min(count, start >= 0 ? 0 : steps(-start));
      const int64_t to = std::clamp<int64_t>(start >= extent ? 0 : steps(extent - start), from, count);
      taps.push_back({input + outer + start * window.step[last], kernel + kernel_inner.at(e), from, to});
      low = std::max(low, from);
      high = std::min(high, to);
    }
    high = std::max(low, high);
    auto one = [&](int64_t o) {
      T sum(0);
      for (const Tap& tap : taps) {
        if (o >= tap.low && o < tap.high) sum += tap.x[o * step] * *tap.w;
      }
      target[o * out_step] = sum;
    };
    for (int64_t o = 0; o < low; ++o) one(o);
    int64_t o = low;
    if (out_step == 1 && step == 1)
      o = sum_inside<1>(taps, low, high, target);
    else if (out_step == 1 && step == 2)
      o = sum_inside<2>(taps, low, high, target);
    for (; o < count; ++o) one(o);
  }

  // Results [low, high), which meet every tap, as vectors; the last vector ends at the last result. Returns the end of
  // what was computed.
  template <int Step>
  static int64_t sum_inside(const std::vector<Tap>& taps, int64_t low, int64_t high, T* target) {
    int64_t o = low;
    if constexpr (has_lanes<T>) {
      using L = Lanes<T>;
      // With a stride of 2 a vector reads one element too many: the next result covers it.
      for (; o + 4 * L::count + (Step - 1) <= high; o += 4 * L::count) {
        typename L::V sum[4] = {};
        for (const Tap& tap : taps) {
          const typename L::V weight = L::all(*tap.w);
          const T* x = tap.x + o * Step;
#pragma GCC unroll 4
          for (int v = 0; v < 4; ++v) sum[v] += weight * L::template load<Step>(x + v * L::count * Step);
        }
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) L::store(target + o + v * L::count, sum[v]);
      }
      for (; o + L::count + (Step - 1) <= high; o += L::count) {
        typename L::V sum = {};
        for (const Tap& tap : taps) sum += L::all(*tap.w) * L::template load<Step>(tap.x + o * Step);
        L::store(target + o, sum);
      }
      if (o < high && high - low > L::count) {
        o = high - L::count;
        typename L::V sum = {};
        for (const Tap& tap : taps) sum += L::all(*tap.w) * L::template load_last<Step>(tap.x + o * Step);
        L::store(target + o, sum);
        return high;
      }
    }
    return o;
  }
};

}  // namespace capibara::cpu
