// Packs the input of a convolution into panels, whose rows are places of the window.
#pragma once

#include <algorithm>

#include "backends/cpu/kernels/convolution/convolution_plane_pack.h"

namespace capibara::cpu {

// The places of one panel.
struct ConvolutionLanes {
  int64_t count;
  int64_t place[max_panel_width][max_convolution_dims], image[max_panel_width];

  void find(const ConvolutionPlan& plan, int64_t first, int64_t some) {
    const Ints& places = plan.window.places;
    count = some;
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = first + i;
      for (std::size_t d = places.size(); d-- > 0; rest /= places[d]) place[i][d] = rest % places[d];
      image[i] = rest * plan.lhs_batch_stride;
    }
  }
};

// K: the kind of matmul, S: elements of the input.
template <class K, class S>
struct ConvolutionPack {
  using P = typename K::Packed;
  const ConvolutionPlan& plan;
  const S* input;   // of one group
  const S* planes;  // the same as the plan's layout says; null where it has none

  // Packs places [first, first + count) as panels of `width` rows.
  void operator()(int64_t first, int64_t count, int64_t k0, int64_t k, int64_t width, P* out) const {
    const int64_t padded = (k + K::together - 1) / K::together * K::together;
    for (int64_t i = 0; i < count; i += width) {
      const int64_t used = std::min(width, count - i);
      P* panel = out + i * padded;
      if constexpr (std::is_floating_point_v<S> && std::is_same_v<S, P>) {
        if (planes) {
          ConvolutionPlanePack<K>{plan, planes}(first + i, used, k0, k, width, panel);
          continue;
        }
      }
      ConvolutionLanes lanes;
      lanes.find(plan, first + i, used);
      if (plan.along_window)
        along_window(lanes, k0, k, width, panel);
      else
        along_features(lanes, k0, k, width, panel);
    }
  }

 private:
  void along_features(const ConvolutionLanes& lanes, int64_t k0, int64_t k, int64_t width,
                      typename K::Packed* out) const {
    for (int64_t p = k0; p < k0 + k;) {
      const int64_t element = p / plan.in_features, feature = p % plan.in_features,
                    run = std::min(plan.in_features - feature, k0 + k - p);
      const S* from[max_panel_width] = {};
      for (int64_t i = 0; i < lanes.count; ++i) {
        const int64_t offset = plan.window.tap(
            lanes.place[i], plan.elements.data() + static_cast<std::size_t>(element) * plan.window.size.size());
        from[i] = offset < 0 ? nullptr : input + lanes.image[i] + offset + feature * plan.lhs_feature_stride;
      }
      pack_rows<K, S>(from, lanes.count, plan.lhs_feature_stride, run, width, out);
      out += run * width;
      p += run;
    }
  }

  // Runs along the last dimension of the window, with zeros where they leave the input.
  void along_window(const ConvolutionLanes& lanes, int64_t k0, int64_t k, int64_t width,
                    typename K::Packed* out) const {
    const std::size_t space = plan.window.size.size();
    const int64_t length = plan.window.size.back(), step = plan.window.step.back() * plan.window.dilation.back(),
                  all = plan.inner() / plan.in_features;
    constexpr int64_t max_run = max_inner_bytes;
    Scratch<S> hold(max_panel_width * std::min({length, k, max_run}), "rows of a convolution");
    for (int64_t p = k0; p < k0 + k;) {
      const int64_t feature = p / all, element = p % all, begin = element % length;
      const int64_t run = std::min({length - begin, k0 + k - p, max_run});
      const int64_t* outer = plan.elements.data() + static_cast<std::size_t>(element) * space;
      const S* from[max_panel_width] = {};
      for (int64_t i = 0; i < lanes.count; ++i) {
        const int64_t offset = plan.window.outer_tap(lanes.place[i], outer);
        if (offset < 0) continue;
        const int64_t start = lanes.place[i][space - 1] * plan.window.stride.back() - plan.window.padding.back();
        const int64_t dilation = plan.window.dilation.back(), extent = plan.window.extent.back();
        const int64_t low =
            std::clamp<int64_t>(start >= 0 ? 0 : (-start + dilation - 1) / dilation, begin, begin + run);
        const int64_t high =
            std::clamp<int64_t>(start >= extent ? 0 : (extent - start + dilation - 1) / dilation, low, begin + run);
        const S* row =
            input + lanes.image[i] + feature * plan.lhs_feature_stride + offset + start * plan.window.step.back();
        if (step == 1 && low == begin && high == begin + run) {
          from[i] = row + begin;
          continue;
        }
        S* own = hold.data() + i * run;
        for (int64_t q = begin; q < low; ++q) own[q - begin] = S();
        if (step == 1)
          std::copy(row + low, row + high, own + (low - begin));
        else
          for (int64_t q = low; q < high; ++q) own[q - begin] = row[q * step];
        for (int64_t q = high; q < begin + run; ++q) own[q - begin] = S();
        from[i] = own;
      }
      for (int64_t i = 0; i < width; ++i) {
        if (!from[i]) from[i] = absent_row<S>();
      }
      pack_transposed<K, S>(from, run, width, out);
      out += run * width;
      p += run;
    }
  }
};

}  // namespace capibara::cpu
