// conv_general_dilated: a matmul one of whose operands is collected from the input while it is packed.
//
// Rows of that operand are output positions (`places`: batch, space), its inner dimension is (window element, feature),
// or (feature, element) where the window is long: weight gradients, whose window is an image. The other operand is the
// kernel. The result's features are the columns where they are contiguous, else the rows.
//
// A dilated input (the gradient of a strided convolution) is mostly zeros: output positions are split into phases, each
// of which meets its own part of the window and is a convolution without holes.
//
// Where the processor has suitable tiles, floats with channels first are not packed at all: convolution_direct.cpp
// reads padded planes, and convolution_pairs.cpp computes kernel gradients.
#include <algorithm>
#include <memory>
#include <vector>

#include "backends/cpu/kernels/convolution/convolution_direct.h"
#include "backends/cpu/kernels/convolution/convolution_pairs.h"
#include "backends/cpu/kernels/convolution/convolution_plan.h"
#include "backends/cpu/kernels/convolution/depthwise.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/gemm/gemm_pack.h"
#include "backends/cpu/kernels/planes/code.h"
#include "backends/cpu/kernels/scratch.h"
#include "backends/reference/kernels.h"
#include "program/ir/window_shape.h"

// Packs panels of a convolution from its input in padded planes: every window element is in bounds.

namespace capibara::cpu {

template <class K>
struct ConvolutionPlanePack {
  using S = typename K::Packed;
  const ConvolutionPlan& plan;
  const S* planes;  // of one group

  // One panel of `width` rows; only positions [first, first + used) exist.
  void operator()(int64_t first, int64_t used, int64_t k0, int64_t k, int64_t width, S* out) const {
    if (plan.by_images)
      by_elements(first, used, k0, k, width, out);
    else
      by_places(first, used, k0, k, width, out);
  }

 private:
  int64_t image_step() const { return plan.lhs_features * plan.layout->elements(); }

  // Positions along a row are contiguous: one copy for each row that the panel touches.
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

  // Window elements along a row are contiguous.
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

// Packs the input of a convolution into panels, whose rows are output positions.

// The output positions of one panel.
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

// K: the kind of matmul, S: the element type of the input.
template <class K, class S>
struct ConvolutionPack {
  using P = typename K::Packed;
  const ConvolutionPlan& plan;
  const S* input;   // of one group
  const S* planes;  // the same as padded planes; null if the plan has no layout

  // Packs output positions [first, first + count) as panels of `width` rows.
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

  // Runs along the last dimension of the window, with zeros outside the input.
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

// Convolutions with few output features: the input is multiplied once with the whole kernel, and the product of each
// window element is added to the output positions that meet it.
//
// A matmul with a row for each output feature would pack more than it multiplies; here rows are (output feature, window
// element), and columns are the unpacked input. Zeros of a dilated input, as in the gradient of a stride, are never
// met.

template <class K>
class SpreadConvolution {
 public:
  using T = typename K::Packed;

  SpreadConvolution(const ConvolutionPlan& plan, const T* lhs, const T* rhs, T* out)
      : plan_(plan),
        lhs_(lhs),
        rhs_(rhs),
        out_(out),
        row_(plan.rows() ? *plan.rows() : single),
        column_(plan.dims.back()),
        kernel_rows_(kernel_sizes(), kernel_steps()),
        kernel_inner_(Axis::regular(plan.in_features, plan.kernel_in_stride)) {
    for (int64_t e = 0; e < column_.size; ++e) {
      const int64_t first = column_.padding - e * column_.dilation, step = column_.lhs_dilation;
      const int64_t phase = ((first % step) + step) % step;
      shifts_.push_back({phase, (first - phase) / step});
      margin_ = std::max(margin_, -shifts_.back().by);
    }
    const int64_t length = (column_.places + column_.lhs_dilation - 1) / column_.lhs_dilation;
    pitch_ = margin_ + std::max(length, column_.extent + shifts_[0].by) + 1;
  }

  void run() const {
    const int64_t bands = (row_.places + band - 1) / band, spread = kernel_rows_.extent();
    Scratch<T> kernel;
    multiply(lhs_, nullptr, nullptr, chunk_columns(), &kernel);
    const double cost =
        multiply_cost<K>(static_cast<double>(spread * plan_.in_features) * static_cast<double>(band * column_.places) /
                         static_cast<double>(row_.lhs_dilation * column_.lhs_dilation));
    parallel_for_cost(plan_.batch * bands, cost, [&](int64_t begin, int64_t end) {
      Scratch<T> sums(plan_.group_features * band * column_.lhs_dilation * pitch_, "sums of a convolution");
      Scratch<T> parts(spread * chunk_columns(), "parts of a convolution");
      for (int64_t task = begin; task < end; ++task)
        run_band(task / bands, task % bands * band, kernel.data(), sums.data(), parts.data());
      return 0;
    });
  }

 private:
  static constexpr int64_t band = 64, chunk = 4;  // output rows, and input rows that are multiplied at once
  static constexpr ConvolutionDimension single{1, 1, 1, 0, 1, 1, 0, 1, 0, 0};

  // Where a window element puts the first column of the input: a phase of the output columns, and the index within
  // it.
  struct Shift {
    int64_t phase, by;
  };

  Ints kernel_sizes() const { return {plan_.group_features, row_.size, column_.size}; }
  Ints kernel_steps() const { return {plan_.kernel_feature_stride, row_.kernel_step, column_.kernel_step}; }
  int64_t chunk_columns() const { return std::min(chunk, row_.extent) * column_.extent; }

  void run_band(int64_t image, int64_t first, const T* kernel, T* sums, T* parts) const {
    const int64_t count = std::min(band, row_.places - first), step = row_.lhs_dilation;
    const int64_t row_size = column_.lhs_dilation * pitch_;
    std::fill_n(sums, plan_.group_features * count * row_size, T(0));
    // Output row p meets the input row (p - padding + e * dilation) / step.
    auto down = [step](int64_t x) { return x >= 0 ? x / step : -((-x + step - 1) / step); };
    const int64_t from = std::max<int64_t>(0, down(first - row_.padding + step - 1));
    const int64_t to =
        std::min(row_.extent, down(first + count - 1 - row_.padding + (row_.size - 1) * row_.dilation) + 1);
    for (int64_t y = from; y < to; y += chunk) {
      const int64_t rows = std::min(chunk, to - y), columns = rows * column_.extent;
      const T* input = lhs_ + image * plan_.lhs_batch_stride + y * column_.extent;
      multiply(input, kernel, parts, columns);
      const T* part = parts;
      for (int64_t f = 0; f < plan_.group_features; ++f) {
        for (int64_t e = 0; e < row_.size; ++e) {
          for (const Shift& shift : shifts_) {
            for (int64_t r = 0; r < rows; ++r, part += column_.extent) {
              const int64_t place = (y + r) * step + row_.padding - e * row_.dilation - first;
              if (place < 0 || place >= count) continue;
              T* __restrict sum = sums + (f * count + place) * row_size + shift.phase * pitch_ + margin_ + shift.by;
              for (int64_t x = 0; x < column_.extent; ++x) sum[x] += part[x];
            }
          }
        }
      }
    }
    write(image, first, count, sums);
  }

  // to[kernel element][input column]; or, if `packed` is passed, packs the kernel for it.
  void multiply(const T* input, const T* kernel, T* to, int64_t count, Scratch<T>* packed = nullptr) const {
    const Axis rows = Axis::regular(kernel_rows_.extent(), count), columns = Axis::regular(count, 1);
    const Axis features = Axis::regular(plan_.in_features, plan_.lhs_feature_stride);
    auto pack_kernel = [&](int64_t first, int64_t some, int64_t k0, int64_t k, int64_t width, T* block) {
      pack_matrix<K, T>(rhs_, kernel_rows_, kernel_inner_, first, some, k0, k, width, block);
    };
    auto pack_input = [&](int64_t first, int64_t some, int64_t k0, int64_t k, int64_t width, T* block) {
      pack_matrix<K, T>(input, columns, features, first, some, k0, k, width, block);
    };
    Product<K> product{plan_.in_features, pack_kernel, pack_input, to, rows, columns};
    if (packed) {
      *packed = Scratch<T>(product.packed_left_size(), "kernel of a convolution");
      product.pack_left(packed->data());
    } else {
      product.packed_left = kernel;
      product.run();
    }
  }

  void write(int64_t image, int64_t first, int64_t count, const T* sums) const {
    const PlaneCode<T>& code = plane_code<T>();
    const int64_t phases = column_.lhs_dilation;
    for (int64_t i = 0; i < plan_.group_features * count; ++i) {
      const T* sum = sums + i * phases * pitch_ + margin_;
      T* to = out_ + image * plan_.out_batch_stride + i / count * plan_.out_feature_stride +
              (first + i % count) * row_.out_step;
      if (phases == 2) {
        code.join(sum, sum + pitch_, to, column_.places);
        continue;
      }
      for (int64_t p = 0; p < phases; ++p)
        code.put(sum + p * pitch_, to + p, phases, (column_.places - p + phases - 1) / phases);
    }
  }

  const ConvolutionPlan& plan_;
  const T *lhs_, *rhs_;
  T* out_;
  const ConvolutionDimension row_, column_;
  const Axis kernel_rows_, kernel_inner_;
  std::vector<Shift> shifts_;
  int64_t margin_ = 0, pitch_ = 0;
};

namespace {

// Combines the results of all phases into the output: columns of the phases alternate in a row.
template <class T>
void weave(const ConvolutionPlan& plan, const T* parts, T* out) {
  const PlaneCode<T>& code = plane_code<T>();
  const ConvolutionDimension &columns = plan.dims.back(), *rows = plan.rows();
  const int64_t height = rows ? rows->places : 1, row_phases = rows ? rows->lhs_dilation : 1;
  const int64_t phases = columns.lhs_dilation, features = plan.groups * plan.group_features;
  const double cost = static_cast<double>(height * columns.places) * 0.4;
  parallel_for_cost(plan.batch * features, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* target = out + i / features * plan.out_batch_stride + i % features * plan.out_feature_stride;
      for (int64_t y = 0; y < height; ++y, target += rows ? rows->out_step : 0) {
        auto row = [&](int64_t x) {
          const auto& [own, kernel_offset, offset] = plan.phases[static_cast<std::size_t>(y % row_phases * phases + x)];
          return parts + offset + i * own.out_feature_stride + y / row_phases * own.window.places.back();
        };
        if (phases == 2) {
          code.join(row(0), row(1), target, columns.places);
          continue;
        }
        for (int64_t x = 0; x < phases; ++x)
          code.put(row(x), target + x, phases, (columns.places - x + phases - 1) / phases);
      }
    }
    return 0;
  });
}

// Calls run(plan, lhs, rhs, out) for each phase; a phase that meets no window element is zero.
template <class S, class Sum, class F>
void each_phase(const ConvolutionPlan& plan, const S* lhs, const S* rhs, Sum* out, F&& run) {
  if (plan.phases.empty()) return run(plan, lhs, rhs, out);
  Scratch<Sum> parts;
  if (plan.woven_size != 0) parts = Scratch<Sum>(plan.woven_size, "phases of a convolution");
  Sum* results = plan.woven_size != 0 ? parts.data() : out;
  for (const ConvolutionPlan::Phase& phase : plan.phases) {
    if (phase.plan.inner() != 0) {
      run(phase.plan, lhs, rhs + phase.kernel_offset, results + phase.out_offset);
      continue;
    }
    for (int64_t p = 0; p < phase.plan.places.extent(); ++p) {
      Sum* target = results + phase.out_offset + phase.plan.places.at(p);
      for (int64_t f = 0; f < plan.groups * plan.group_features; ++f)
        target[f * phase.plan.out_feature_stride] = Sum(0);
    }
  }
  if constexpr (std::is_floating_point_v<Sum>) {
    if (plan.woven_size != 0) weave<Sum>(plan, parts.data(), out);
  }
}

// ---- by matmuls ----------------------------------------------------------------------------------------------------

template <class K, class S>
void run_group(const ConvolutionPlan& plan, int64_t g, const S* lhs, const S* planes, const S* rhs,
               typename K::Sum* out) {
  using P = typename K::Packed;
  const int64_t image = plan.batch_groups ? g * plan.batch : 0, feature = plan.batch_groups ? 0 : g * plan.in_features;
  const S* input = lhs + image * plan.lhs_batch_stride + feature * plan.lhs_feature_stride;
  if (planes) planes += (image * plan.lhs_features + feature) * plan.layout->elements();
  const S* kernel = rhs + g * plan.group_features * plan.kernel_feature_stride;
  typename K::Sum* target = out + g * plan.group_features * plan.out_feature_stride;
  const ConvolutionPack<K, S> pack_places{plan, input, planes};
  auto pack_kernel = [&](int64_t first, int64_t count, int64_t k0, int64_t k, int64_t width, P* block) {
    pack_matrix<K, S>(kernel, plan.kernel_features, plan.kernel_inner, first, count, k0, k, width, block);
  };
  if (plan.out_feature_stride == 1)
    Product<K>{plan.inner(), pack_places, pack_kernel, target, plan.places, plan.features}.run();
  else
    Product<K>{plan.inner(), pack_kernel, pack_places, target, plan.features, plan.places}.run();
}

// Lays out the whole input as padded planes.
template <class T>
void lay_input(const ConvolutionPlan& plan, const T* lhs, T* planes) {
  const PlaneCode<T>& code = plane_code<T>();
  const int64_t elements = plan.layout->elements();
  parallel_for_cost(
      plan.lhs_images * plan.lhs_features, static_cast<double>(elements) * 0.3, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T* image =
              lhs + i / plan.lhs_features * plan.lhs_batch_stride + i % plan.lhs_features * plan.lhs_feature_stride;
          plan.layout->lay(code, image, plan.row_step(), 0, plan.layout->max_rows(), T(0), planes + i * elements);
        }
        return 0;
      });
}

template <class K, class S>
void run_groups(const ConvolutionPlan& plan, const S* lhs, const S* rhs, typename K::Sum* out) {
  Scratch<S> hold;
  if constexpr (std::is_floating_point_v<S> && std::is_same_v<S, typename K::Packed>) {
    if (plan.pairs_features()) return convolve_pairs<K>(plan, lhs, rhs, out);
    if (plan.band != 0) return convolve_from_planes<K>(plan, lhs, rhs, out);
    if (plan.layout) {
      hold = Scratch<S>(plan.lhs_images * plan.lhs_features * plan.layout->elements(), "planes of a convolution");
      lay_input<S>(plan, lhs, hold.data());
    }
  }
  each_phase(plan, lhs, rhs, out,
             [&hold](const ConvolutionPlan& part, const S* x, const S* kernel, typename K::Sum* to) {
               // A few groups are each split among the threads; many groups are distributed whole.
               const double cost = multiply_cost<K>(static_cast<double>(part.places.extent() * part.group_features) *
                                                    static_cast<double>(part.inner()));
               auto run = [&](int64_t begin, int64_t end) {
                 for (int64_t g = begin; g < end; ++g) run_group<K, S>(part, g, x, hold.data(), kernel, to);
                 return 0;
               };
               if (part.groups < 8)
                 run(0, part.groups);
               else
                 parallel_for_cost(part.groups, 1000 + 2 * cost, run);
             });
}

// ---- without matmuls ------------------------------------------------------------------------------------------------

template <class T>
void run_depthwise(const ConvolutionPlan& plan, const T* lhs, const T* rhs, T* out) {
  if constexpr (std::is_floating_point_v<T>) {
    if (plan.is_planar()) {
      const ConvolutionDimension &columns = plan.dims.back(), *rows = plan.rows();
      return DepthwisePlanes<T>{over_plane(rows),
                                over_plane(&columns),
                                plan.groups,
                                plan.group_features,
                                plan.batch,
                                plan.lhs_batch_stride,
                                plan.lhs_feature_stride,
                                plan.row_step(),
                                plan.kernel_inner,
                                plan.kernel_feature_stride,
                                plan.out_batch_stride,
                                plan.out_feature_stride,
                                rows ? rows->out_step : 0,
                                columns.out_step,
                                lhs,
                                rhs,
                                out}
          .run();
    }
  }
  Depthwise<T>{plan.window,
               plan.elements,
               plan.places,
               plan.groups,
               plan.batch,
               plan.lhs_batch_stride,
               plan.lhs_feature_stride,
               plan.kernel_inner,
               plan.kernel_feature_stride,
               plan.out_feature_stride,
               lhs,
               rhs,
               out}
      .run();
}

template <class T>
void run_depthwise_gradient(const ConvolutionPlan& plan, const T* lhs, const T* rhs, T* out) {
  if constexpr (std::is_floating_point_v<T>) {
    const ConvolutionDimension* rows = plan.rows();
    DepthwiseGradient<T>{image_over_plane(rows),
                         image_over_plane(&plan.dims.back()),
                         plan.groups,
                         plan.batch,
                         plan.in_features,
                         plan.lhs_batch_stride,
                         plan.lhs_feature_stride,
                         plan.row_step(),
                         plan.kernel_feature_stride,
                         plan.kernel_in_stride,
                         rows ? rows->kernel_step : 0,
                         plan.places,
                         plan.out_feature_stride,
                         lhs,
                         rhs,
                         out}
        .run();
  }
}

// Complex numbers, one by one: such convolutions are rare.
template <class T>
void run_complex(const ConvolutionPlan& plan, const T* lhs, const T* rhs, T* out) {
  const std::size_t space = plan.window.size.size();
  const int64_t all = plan.groups * plan.group_features;
  parallel_for_cost(plan.places.extent() * all, static_cast<double>(plan.inner()) * 4, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t f = t % all, g = f / plan.group_features;
      ConvolutionLanes lanes;
      lanes.find(plan, t / all, 1);
      const T* input =
          lhs + lanes.image[0] +
          (plan.batch_groups ? g * plan.batch * plan.lhs_batch_stride : g * plan.in_features * plan.lhs_feature_stride);
      Real<T> re = 0, im = 0;
      for (int64_t p = 0; p < plan.inner(); ++p) {
        const int64_t element = plan.element_of(p), feature = plan.feature_of(p);
        const int64_t offset =
            plan.window.tap(lanes.place[0], plan.elements.data() + static_cast<std::size_t>(element) * space);
        if (offset < 0) continue;
        const T x = input[offset + feature * plan.lhs_feature_stride],
                y = rhs[f * plan.kernel_feature_stride + plan.kernel_inner.at(p)];
        re += x.real() * y.real() - x.imag() * y.imag();
        im += x.real() * y.imag() + x.imag() * y.real();
      }
      out[f * plan.out_feature_stride + plan.places.at(t / all)] = T(re, im);
    }
    return 0;
  });
}

template <class T>
void run_convolution(const ConvolutionPlan& plan, std::byte* const* buffers) {
  Scratch<T> lhs_hold, rhs_hold;
  const T* lhs = product_operand<T>(plan.types.lhs, plan.types.lhs_rounded, buffers[0], plan.lhs_size, lhs_hold);
  const T* rhs = product_operand<T>(plan.types.rhs, plan.types.rhs_rounded, buffers[1], plan.rhs_size, rhs_hold);
  ProductResult<T> result(plan.types.out, buffers[2], plan.out_size);
  T* out = result.values();
  if (plan.inner() == 0) {
    std::fill_n(out, plan.out_size, T(0));
  } else if constexpr (Parts<T>::count == 2) {
    run_complex<T>(plan, lhs, rhs, out);
  } else if (plan.is_depthwise()) {
    each_phase(plan, lhs, rhs, out, run_depthwise<T>);
  } else if (plan.sums_images()) {
    run_depthwise_gradient<T>(plan, lhs, rhs, out);
  } else if (plan.spreads()) {
    if constexpr (std::is_floating_point_v<T>) SpreadConvolution<typename KindOf<T>::type>(plan, lhs, rhs, out).run();
  } else {
    run_groups<typename KindOf<T>::type, T>(plan, lhs, rhs, out);
  }
  result.convert_all();
}

HostKernel make_convolution(const KernelRequest& request) {
  const Attrs& attrs = request.attrs;
  const auto& numbers = attrs.get<ConvDimensionNumbers>("dimension_numbers");
  const Ints &strides = attrs.ints("window_strides"), &lhs_dilation = attrs.ints("lhs_dilation"),
             &rhs_dilation = attrs.ints("rhs_dilation");
  auto padding = padding_of(attrs["padding"]);
  const ArrayType &lhs = request.inputs[0], &rhs = request.inputs[1], &out = request.outputs[0];
  const std::size_t space = strides.size();
  if (space > max_convolution_dims) return {};
  auto plan = std::make_shared<ConvolutionPlan>();
  int64_t feature_groups = attrs.integer("feature_group_count"), batch_groups = attrs.integer("batch_group_count");
  plan->types = product_types(request);
  plan->lhs_size = lhs.size();
  plan->rhs_size = rhs.size();
  plan->out_size = out.size();
  plan->groups = std::max(feature_groups, batch_groups);
  plan->batch_groups = batch_groups > 1;
  auto at = [](const Ints& list, int64_t i) { return list[static_cast<std::size_t>(i)]; };
  Ints lhs_strides = reference::row_major_strides(lhs.shape), rhs_strides = reference::row_major_strides(rhs.shape);
  Ints out_strides = reference::row_major_strides(out.shape);
  plan->in_features = at(rhs.shape, numbers.rhs_spec[1]);
  plan->group_features = at(rhs.shape, numbers.rhs_spec[0]) / plan->groups;
  plan->batch = at(out.shape, numbers.out_spec[0]);
  plan->lhs_images = at(lhs.shape, numbers.lhs_spec[0]);
  plan->lhs_features = at(lhs.shape, numbers.lhs_spec[1]);
  plan->lhs_batch_stride = at(lhs_strides, numbers.lhs_spec[0]);
  plan->lhs_feature_stride = at(lhs_strides, numbers.lhs_spec[1]);
  plan->out_feature_stride = at(out_strides, numbers.out_spec[1]);
  plan->kernel_feature_stride = at(rhs_strides, numbers.rhs_spec[0]);
  plan->out_batch_stride = at(out_strides, numbers.out_spec[0]);
  plan->kernel_in_stride = at(rhs_strides, numbers.rhs_spec[1]);
  plan->features = Axis::regular(plan->group_features, plan->out_feature_stride);
  plan->kernel_features = Axis::regular(plan->group_features, plan->kernel_feature_stride);
  std::vector<ConvolutionDimension> dims;
  for (std::size_t d = 0; d < space; ++d) {
    const int64_t i = numbers.lhs_spec[d + 2], k = numbers.rhs_spec[d + 2], o = numbers.out_spec[d + 2];
    dims.push_back({at(rhs.shape, k), at(out.shape, o), at(lhs.shape, i), at(lhs_strides, i), strides[d],
                    rhs_dilation[d], padding[d].first, lhs_dilation[d], at(out_strides, o), at(rhs_strides, k)});
  }
  plan->set_space(dims);
  HostKernel kernel;
  if (plan->out_size != 0 && !is_complex(plan->types.out) && !plan->spreads()) plan->set_phases();
  const bool by_matmul = plan->inner() != 0 && !plan->is_depthwise() && !plan->sums_images() && !plan->spreads();
  if (by_matmul && !plan->pairs_features()) plan->set_layout();
  // Narrow types are converted before all others.
  if (by_matmul) {
    const bool narrow = visit_narrow_product(plan->types, [&]<class K, class S>(K, Type<S>) {
      if (!plan->fills(K::together)) return;
      kernel = [plan](std::byte* const* buffers) {
        if (plan->out_size == 0) return;
        ProductResult<typename K::Sum> result(plan->types.out, buffers[2], plan->out_size);
        run_groups<K, S>(*plan, reinterpret_cast<const S*>(buffers[0]), reinterpret_cast<const S*>(buffers[1]),
                         result.values());
        result.convert_all();
      };
    });
    if (narrow && kernel) return kernel;
  }
  visit_product_type(plan->types, [&]<class T>(Type<T>) {
    kernel = [plan](std::byte* const* buffers) {
      if (plan->out_size != 0) run_convolution<T>(*plan, buffers);
    };
  });
  return kernel;
}

}  // namespace

KernelMakers convolution_makers() { return {{"conv_general_dilated", make_convolution}}; }

}  // namespace capibara::cpu
