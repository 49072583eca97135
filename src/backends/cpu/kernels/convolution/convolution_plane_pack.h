// Packs panels of a convolution from its input in padded planes: no element of the window is outside.
#pragma once

#include <algorithm>

#include "backends/cpu/kernels/convolution/convolution_plan.h"
#include "backends/cpu/kernels/gemm/gemm_pack.h"

namespace capibara::cpu {

template <class K>
struct ConvolutionPlanePack {
  using S = typename K::Packed;
  const ConvolutionPlan& plan;
  const S* planes;  // of one group

  // One panel of `width` rows, of which places [first, first + used) are there.
  void operator()(int64_t first, int64_t used, int64_t k0, int64_t k, int64_t width, S* out) const {
    if (plan.by_images)
      by_elements(first, used, k0, k, width, out);
    else
      by_places(first, used, k0, k, width, out);
  }

 private:
  int64_t image_step() const { return plan.lhs_features * plan.layout->elements(); }

  // Places along a row are neighbours: one copy for each row that the panel touches.
  void by_places(int64_t first, int64_t used, int64_t k0, int64_t k, int64_t width, S* out) const {
    const int64_t columns = plan.window.places.back(), rows = plan.dims.size() == 2 ? plan.window.places[0] : 1;
    PlaneRun<S> runs[max_panel_width];
    int64_t run_count = 0;
    for (int64_t lane = 0; lane < used;) {
      const int64_t place = first + lane, row = place / columns, column = place % columns;
      const int64_t count = std::min(used - lane, columns - column);
      const S* from = planes + row / rows * image_step() + row % rows * plan.layout->pitch() + column;
      runs[run_count++] = {from, lane, count};
      lane += count;
    }
    plane_code<S>().panel({runs, run_count, plan.offsets.data() + k0, k, width, used}, out);
  }

  // Elements of the window along a row are neighbours.
  void by_elements(int64_t first, int64_t used, int64_t k0, int64_t k, int64_t width, S* out) const {
    const int64_t all = plan.window_size(), length = plan.window.size.back();
    const auto places = static_cast<int64_t>(plan.taps.size());
    const S *starts[max_panel_width], *from[max_panel_width];
    for (int64_t i = 0; i < used; ++i) {
      starts[i] =
          planes + (first + i) / places * image_step() + plan.taps[static_cast<std::size_t>((first + i) % places)];
    }
    for (int64_t i = used; i < width; ++i) from[i] = absent_row<S>();
    for (int64_t p = k0; p < k0 + k;) {
      const int64_t element = p % all, begin = element % length,
                    run = std::min({length - begin, k0 + k - p, max_inner_bytes / static_cast<int64_t>(sizeof(S))});
      const int64_t offset = p / all * plan.layout->elements() + element / length * plan.layout->pitch() + begin;
      for (int64_t i = 0; i < used; ++i) from[i] = starts[i] + offset;
      pack_transposed<K, S>(from, run, width, out);
      out += run * width;
      p += run;
    }
  }
};

}  // namespace capibara::cpu
