// How a convolution is computed: its window, its phases and the layout of its operands.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backends/cpu/kernels/convolution/convolution_window.h"
#include "backends/cpu/kernels/gemm/product.h"
#include "backends/cpu/kernels/planes/layout.h"

namespace capibara::cpu {

inline constexpr std::size_t max_convolution_dims = 16;  // spatial dimensions

// One spatial dimension: of window, output positions (`places`), input, output and kernel.
struct ConvolutionDimension {
  int64_t size, places, extent, step, stride, dilation, padding, lhs_dilation, out_step, kernel_step;
};

struct ConvolutionPlan {
  ProductTypes types;
  int64_t lhs_size, rhs_size, out_size;
  int64_t groups, group_features, in_features, batch;
  bool batch_groups;
  int64_t lhs_images, lhs_features, lhs_batch_stride, lhs_feature_stride;
  std::vector<ConvolutionDimension> dims;
  Window window;
  std::vector<int64_t> elements;       // [window element][dimension]
  bool along_window;                   // the last dimension of the window is the innermost
  Axis places, features;               // of one group in the output
  Axis kernel_features, kernel_inner;  // of one group in the kernel
  int64_t out_feature_stride, kernel_feature_stride;
  int64_t out_batch_stride, kernel_in_stride;
  struct Phase;
  std::vector<Phase> phases;  // empty: the input is not dilated
  // Size of the results of all phases, each contiguous, which are interleaved into the output; 0: phases write into it.
  int64_t woven_size = 0;
  // The input as padded planes, from which panels are packed; null: the input itself is packed.
  std::shared_ptr<const PlaneLayout> layout;
  bool by_images = false;        // the window is an image: its elements are contiguous in a plane, rather than places
  std::vector<int64_t> offsets;  // of each k in the planes, for the first place
  std::vector<int64_t> taps;     // of each place in a plane, for the first element of an image
  // Rows of places that are computed straight from planes at once; `layout` then serves only these. 0: packs panels.
  int64_t band = 0;
  std::vector<int32_t> direct_offsets;  // of each k, which is (feature, element) here
  Axis direct_inner;                    // the same k in the kernel

  void set_space(const std::vector<ConvolutionDimension>& space);
  void set_phases();
  void set_layout();

  int64_t inner() const { return kernel_inner.extent(); }
  int64_t window_size() const { return inner() / in_features; }
  int64_t element_of(int64_t p) const { return along_window ? p % window_size() : p / in_features; }
  int64_t feature_of(int64_t p) const { return along_window ? p / window_size() : p % in_features; }
  // True if runs of the inner dimension fill whole groups of k.
  bool fills(int64_t together) const;

  // Rows of the input are contiguous, and there are at most two spatial dimensions.
  bool is_planar() const { return !dims.empty() && dims.size() <= 2 && window.regular && dims.back().step == 1; }
  const ConvolutionDimension* rows() const { return dims.size() == 2 ? &dims[0] : nullptr; }
  int64_t row_step() const { return rows() ? rows()->step : 0; }
  // One input feature for each group, few output features.
  bool is_depthwise() const;
  // The gradient of such a kernel: few output positions, a window that is an image, one output feature for each group.
  bool sums_images() const;
  // The gradient of a kernel: few output positions, a window that is an image, many images by many features.
  bool pairs_features() const;
  // Few output and many input features, and each input element meets every window element.
  bool spreads() const;

 private:
  bool meets_neighbours() const;
  bool set_direct(const PlaneDimension& rows, const PlaneDimension& columns, std::span<ConvolutionPlan* const> parts);
  void set_direct_offsets(const PlaneLayout& planes, int64_t y, int64_t x);
};

struct ConvolutionPlan::Phase {
  ConvolutionPlan plan;
  int64_t kernel_offset, out_offset;
};

// A spatial dimension over a plane; and the same with window and output positions exchanged.
inline PlaneDimension over_plane(const ConvolutionDimension* d) {
  return d ? PlaneDimension{d->size, d->places, d->extent, d->stride, d->dilation, d->padding} : PlaneDimension();
}
inline PlaneDimension image_over_plane(const ConvolutionDimension* d) {
  return d ? PlaneDimension{d->places, d->size, d->extent, d->dilation, d->stride, d->padding} : PlaneDimension();
}

}  // namespace capibara::cpu
