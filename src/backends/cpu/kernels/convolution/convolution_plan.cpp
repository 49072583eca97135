// Prepares convolutions: windows as tables, dilated inputs in phases, and layouts of the input as padded planes.
#include "backends/cpu/kernels/convolution/convolution_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "backends/cpu/kernels/gemm/tile_heights.h"
#include "backends/reference/kernels.h"

namespace capibara::cpu {

bool ConvolutionPlan::fills(int64_t together) const {
  for (const Phase& phase : phases) {
    if (phase.plan.inner() != 0 && !phase.plan.fills(together)) return false;
  }
  return (along_window ? window.size.back() : in_features) % together == 0;
}

bool ConvolutionPlan::is_depthwise() const {
  if (groups == 1 || in_features != 1 || batch_groups) return false;
  return group_features == 1 || (group_features <= 4 && is_planar() && is_floating(types.out));
}

bool ConvolutionPlan::sums_images() const {
  if (!batch_groups || group_features != 1 || !is_planar() || dims.back().kernel_step != 1) return false;
  int64_t kernel = 1, image = 1;
  for (const ConvolutionDimension& d : dims) {
    kernel *= d.places;
    image *= d.size;
  }
  return is_floating(types.out) && kernel <= 256 && image >= 16;
}

bool ConvolutionPlan::pairs_features() const {
  constexpr int64_t min_features = 8, max_taps = 64, min_pairs = 64, min_columns = 7, max_columns = 1024,
                    min_image = 32;
  if (groups != 1 || !is_planar() || dims.back().kernel_step != 1 || !is_floating(types.out)) return false;
  const bool wide = types.out == DType::float64;
  const int64_t lanes = wide ? plane_code<double>().lanes : plane_code<float>().lanes;
  const int* heights = wide ? plane_code<double>().tiles.heights : plane_code<float>().tiles.heights;
  if (heights[0] == 0 || batch < min_features || group_features < min_features) return false;
  const int64_t taps = dims.back().places * (rows() ? rows()->places : 1), columns = dims.back().size;
  if (taps > max_taps || taps * batch < min_pairs || columns < min_columns || columns > max_columns) return false;
  // Products including padding, which are computed in vain.
  const int64_t left = TileHeights(batch, heights).rows(), right = (group_features + lanes - 1) / lanes * lanes;
  return window_size() >= min_image && window_size() >= taps && 4 * batch * group_features >= 3 * left * right;
}

bool ConvolutionPlan::spreads() const {
  constexpr int64_t max_out = 4, min_rows = 12, min_in = 16, max_in = 2048;
  if (groups != 1 || dims.empty() || dims.size() > 2 || !is_floating(types.out) || group_features > max_out)
    return false;
  if (in_features < min_in || in_features > max_in || group_features * window_size() < min_rows) return false;
  const ConvolutionDimension& last = dims.back();
  const bool contiguous = last.step == 1 && last.out_step == 1 && (dims.size() == 1 || dims[0].step == last.extent);
  return contiguous &&
         std::all_of(dims.begin(), dims.end(), [](const ConvolutionDimension& d) { return d.stride == 1; });
}

void ConvolutionPlan::set_space(const std::vector<ConvolutionDimension>& space) {
  dims = space;
  window = {};
  elements.clear();
  Ints place_sizes{batch}, place_steps{out_batch_stride}, inner_sizes, inner_steps;
  for (const ConvolutionDimension& d : dims) {
    window.size.push_back(d.size);
    window.places.push_back(d.places);
    window.extent.push_back(d.extent);
    window.step.push_back(d.step);
    window.stride.push_back(d.stride);
    window.dilation.push_back(d.dilation);
    window.padding.push_back(d.padding);
    window.regular = window.regular && d.lhs_dilation == 1;
    std::vector<int64_t> table;
    for (int64_t o = 0; o < d.places; ++o) {
      for (int64_t e = 0; e < d.size; ++e) {
        const int64_t position = o * d.stride + e * d.dilation - d.padding;
        const bool inside = position >= 0 && position % d.lhs_dilation == 0 && position / d.lhs_dilation < d.extent;
        table.push_back(inside ? position / d.lhs_dilation * d.step : -1);
      }
    }
    window.taps.push_back(std::move(table));
    place_sizes.push_back(d.places);
    place_steps.push_back(d.out_step);
    inner_sizes.push_back(d.size);
    inner_steps.push_back(d.kernel_step);
  }
  if (element_count(window.size) != 0) {
    Ints element(dims.size(), 0);
    do elements.insert(elements.end(), element.begin(), element.end());
    while (reference::next_index(element, window.size));
  }
  along_window = !dims.empty() && window.regular && window.size.back() > in_features;
  inner_sizes.insert(along_window ? inner_sizes.begin() : inner_sizes.end(), in_features);
  inner_steps.insert(along_window ? inner_steps.begin() : inner_steps.end(), kernel_in_stride);
  places = Axis(place_sizes, place_steps);
  kernel_inner = Axis(inner_sizes, inner_steps);
}

void ConvolutionPlan::set_phases() {
  Ints counts;
  for (const ConvolutionDimension& d : dims) {
    if (d.lhs_dilation > 1 && d.stride != 1) return;
    counts.push_back(d.lhs_dilation);
  }
  if (element_count(counts) == 1 || element_count(counts) > 64) return;
  const auto divides = [](const ConvolutionDimension& d) { return d.places >= d.lhs_dilation; };
  const bool weaves = is_floating(types.out) && dims.size() <= 2 && dims.back().out_step == 1 &&
                      std::all_of(dims.begin(), dims.end(), divides);
  Ints residue(dims.size(), 0);
  do {
    std::vector<ConvolutionDimension> own = dims;
    int64_t kernel_offset = 0, out_offset = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      ConvolutionDimension& d = own[i];
      if (d.lhs_dilation == 1) continue;
      const int64_t factor = d.lhs_dilation, common = std::gcd(factor, d.dilation), element_step = factor / common,
                    r = residue[i];
      int64_t first = 0;
      while (first < element_step && (r + first * d.dilation - d.padding) % factor != 0) ++first;
      const bool some = first < element_step && first < d.size;
      out_offset += r * d.out_step;
      d.places = std::max<int64_t>(0, (d.places - r + factor - 1) / factor);
      d.out_step *= factor;
      d.lhs_dilation = 1;
      d.padding = some ? -((r + first * d.dilation - d.padding) / factor) : 0;
      d.dilation /= common;
      if (some) kernel_offset += first * d.kernel_step;
      d.size = some ? (d.size - first + element_step - 1) / element_step : 0;
      d.kernel_step *= element_step;
    }
    ConvolutionPlan plan = *this;
    plan.phases.clear();
    if (weaves) {
      const int64_t columns = own.back().places, size = own.size() == 2 ? own[0].places * columns : columns;
      own[0].out_step = columns;
      own.back().out_step = 1;
      plan.out_feature_stride = size;
      plan.out_batch_stride = groups * group_features * size;
      plan.features = Axis::regular(group_features, size);
      out_offset = woven_size;
      woven_size += batch * plan.out_batch_stride;
    }
    plan.set_space(own);
    if (plan.places.extent() != 0) phases.push_back({std::move(plan), kernel_offset, out_offset});
  } while (reference::next_index(residue, counts));
}

// True if neighbouring output positions are neighbouring columns of a matmul.
bool ConvolutionPlan::meets_neighbours() const {
  return is_planar() && out_feature_stride != 1 && dims.back().places >= std::max<int64_t>(8, dims.back().size);
}

void ConvolutionPlan::set_direct_offsets(const PlaneLayout& planes, int64_t y, int64_t x) {
  const PlaneDimension own_rows = over_plane(rows()), own_columns = over_plane(&dims.back());
  Ints sizes{in_features}, steps{kernel_in_stride};
  for (const ConvolutionDimension& d : dims) {
    sizes.push_back(d.size);
    steps.push_back(d.kernel_step);
  }
  direct_inner = Axis(sizes, steps);
  for (int64_t feature = 0; feature < in_features; ++feature) {
    for (int64_t r = 0; r < own_rows.size; ++r) {
      for (int64_t c = 0; c < own_columns.size; ++c) {
        direct_offsets.push_back(static_cast<int32_t>(
            feature * planes.elements() + planes.tap(y + r * own_rows.dilation, x + c * own_columns.dilation)));
      }
    }
  }
}

// Decides whether to compute straight from planes, and how many output rows at once: as many as keep the planes in the
// L2 cache while few vector lanes are wasted.
bool ConvolutionPlan::set_direct(const PlaneDimension& rows, const PlaneDimension& columns,
                                 std::span<ConvolutionPlan* const> parts) {
  constexpr int64_t preferred_bytes = 256 * 1024, max_bytes = 1024 * 1024, min_features = 4;
  const bool wide = types.out == DType::float64;
  const int64_t lanes = wide ? plane_code<double>().lanes : plane_code<float>().lanes, size = wide ? 8 : 4;
  const int height = wide ? plane_code<double>().tiles.heights[0] : plane_code<float>().tiles.heights[0];
  if (height == 0 || group_features < min_features || (!phases.empty() && woven_size == 0)) return false;
  double products = 0;  // per output position and input feature
  for (const ConvolutionPlan* part : parts) {
    const ConvolutionDimension& last = part->dims.back();
    if (last.out_step != 1 || (part->rows() && part->rows()->out_step != last.places)) return false;
    // The lanes of a vector span two rows at most.
    if (last.places < lanes - 1 && last.places != columns.length(columns.places)) return false;
    products += static_cast<double>(group_features * part->window_size());
  }
  const int64_t row_bytes = in_features * columns.length(columns.places) * rows.stride * columns.stride * size;
  const int64_t more = (rows.reach() + rows.stride - 1) / rows.stride - 1;  // rows of planes beyond those of the band
  if ((1 + more) * row_bytes > max_bytes) return false;
  const int64_t tasks = std::max(8, 4 * thread_count());
  const int64_t limit = std::min({rows.places, std::max<int64_t>(1, preferred_bytes / row_bytes - more),
                                  std::max<int64_t>(2, groups * batch * rows.places / tasks)});
  double best = 0;
  for (int64_t some = 1; some <= limit; ++some) {
    double vectors = 0;
    const int64_t last = rows.places % some;
    for (int64_t own : {some, last}) {
      const int64_t full = (own * columns.places + lanes - 1) / lanes;
      // A single vector at the end takes a little more than half the time of two.
      vectors +=
          (static_cast<double>(full) + (full % 2) * 0.15) * static_cast<double>(own == some ? rows.places / some : 1);
    }
    const double laid = static_cast<double>((rows.places + some - 1) / some * (some + more) * rows.stride) *
                        static_cast<double>(columns.length(columns.places) * columns.stride) /
                        static_cast<double>(lanes);
    const double cost = vectors * products / 2 + laid * 6;
    if (band != 0 && cost >= best) continue;
    best = cost;
    band = some;
  }
  const double used = static_cast<double>(rows.places * columns.places) * products / 2 / static_cast<double>(lanes);
  if (used < 0.7 * best) {
    band = 0;
    return false;
  }
  auto planes = std::make_shared<const PlaneLayout>(rows, columns, band, lanes);
  if (in_features * planes->elements() > std::numeric_limits<int32_t>::max()) {
    band = 0;
    return false;
  }
  for (ConvolutionPlan* part : parts) {
    const int64_t own_rows = part->rows() ? part->rows()->padding : 0;
    part->set_direct_offsets(*planes, rows.padding - own_rows, columns.padding - part->dims.back().padding);
  }
  layout = planes;
  return true;
}

// Phases share one layout, with the padding of the phase that begins first.
void ConvolutionPlan::set_layout() {
  constexpr int64_t max_elements = int64_t{1} << 26, max_lanes = 16;
  if (!is_floating(types.out) || out_size == 0 || inner() == 0) return;
  std::vector<ConvolutionPlan*> parts;
  for (Phase& phase : phases) {
    if (phase.plan.inner() != 0) parts.push_back(&phase.plan);
  }
  if (phases.empty()) parts.push_back(this);
  if (parts.empty()) return;
  const auto is_point = [](const ConvolutionDimension& d) { return d.size == 1 && d.stride == 1 && d.padding == 0; };
  const bool points = phases.empty() && std::all_of(dims.begin(), dims.end(), is_point);
  PlaneDimension common[2];  // rows and columns
  if (std::all_of(parts.begin(), parts.end(), [](const ConvolutionPlan* part) { return part->meets_neighbours(); })) {
    auto of = [](const ConvolutionPlan* part, int i) { return over_plane(i == 0 ? part->rows() : &part->dims.back()); };
    for (int i : {0, 1}) {
      common[i] = of(parts[0], i);
      for (const ConvolutionPlan* part : parts) {
        common[i].padding = std::max(common[i].padding, of(part, i).padding);
        common[i].places = std::max(common[i].places, of(part, i).places);
      }
      if (parts.size() == 1) continue;
      common[i].size = common[i].dilation = 1;
      for (const ConvolutionPlan* part : parts) {
        common[i].size = std::max(common[i].size, of(part, i).reach() + common[i].padding - of(part, i).padding);
      }
    }
    if (set_direct(common[0], common[1], parts) || points) return;
    auto shared = std::make_shared<const PlaneLayout>(common[0], common[1], common[0].places, max_lanes);
    if (shared->elements() * lhs_images * lhs_features > max_elements) return;
    for (ConvolutionPlan* part : parts) {
      const PlaneDimension own_rows = of(part, 0), own_columns = of(part, 1);
      const int64_t y = common[0].padding - own_rows.padding, x = common[1].padding - own_columns.padding;
      for (int64_t p = 0; p < part->inner(); ++p) {
        const int64_t element = part->element_of(p), r = element / own_columns.size, c = element % own_columns.size;
        part->offsets.push_back(part->feature_of(p) * shared->elements() +
                                shared->tap(y + r * own_rows.dilation, x + c * own_columns.dilation));
      }
      part->layout = shared;
    }
    layout = shared;
  } else if (phases.empty() && is_planar() && along_window && !points) {
    const PlaneDimension image_rows = image_over_plane(rows()), image_columns = image_over_plane(&dims.back());
    // Rows without padding and holes are read in place.
    const PlaneDimension columns = over_plane(&dims.back());
    const int64_t end = (columns.places - 1) * columns.stride + columns.reach() - columns.padding;
    if (columns.dilation == 1 && columns.padding <= 0 && end <= columns.extent) return;
    auto own = std::make_shared<const PlaneLayout>(image_rows, image_columns, image_rows.places, max_lanes);
    if (own->elements() * lhs_images * lhs_features > max_elements) return;
    layout = own;
    taps = own->taps();
    by_images = true;
  }
}

}  // namespace capibara::cpu
