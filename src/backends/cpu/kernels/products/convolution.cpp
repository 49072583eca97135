// conv_general_dilated: a matmul one of whose operands is gathered from the input while it is packed.
//
// Rows of that operand are places of the window (batch, space), its inner dimension is (element of the window,
// feature), or (feature, element) where the window is long: weight gradients, whose window is an image. The other
// operand is the kernel. The result's features are the columns where they are contiguous, else the rows.
//
// A dilated input (the gradient of a strided convolution) is mostly zeros: places fall into phases, each of which meets
// its own part of the window and is a convolution without holes.
#include <algorithm>
#include <memory>
#include <numeric>

#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/products/depthwise.h"
#include "backends/cpu/kernels/products/gemm_pack.h"
#include "backends/cpu/kernels/products/product.h"
#include "backends/reference/kernels.h"
#include "program/window_shape.h"

namespace capibara::cpu {

namespace {

constexpr std::size_t max_dims = 16;  // of space

// One dimension of space: of window, places, input, output and kernel.
struct Dimension {
  int64_t size, places, extent, step, stride, dilation, padding, lhs_dilation, out_step, kernel_step;
};

struct ConvolutionPlan {
  ProductTypes types;
  int64_t lhs_size, rhs_size, out_size;
  int64_t groups, group_features, in_features, batch;
  bool batch_groups;
  int64_t lhs_batch_stride, lhs_feature_stride;
  Window window;
  std::vector<int64_t> elements;       // [window element][dimension]
  bool along_window;                   // the last dimension of the window is the innermost
  Axis places, features;               // of one group in the output
  Axis kernel_features, kernel_inner;  // of one group in the kernel
  int64_t out_feature_stride, kernel_feature_stride;
  int64_t out_batch_stride, kernel_in_stride;
  struct Phase;
  std::vector<Phase> phases;  // empty: the input is not dilated

  void set_space(const std::vector<Dimension>& dims);
  void set_phases(const std::vector<Dimension>& dims);

  int64_t inner() const { return kernel_inner.extent(); }

  // Packs places [first, first + count) as panels of `width` rows.
  template <class K, class S>
  void pack(const S* input, int64_t first, int64_t count, int64_t k0, int64_t k, int64_t width, typename K::Packed* out) const {
    const int64_t padded = (k + K::together - 1) / K::together * K::together;
    for (int64_t i = 0; i < count; i += width) {
      Lanes lanes;
      lanes.count = std::min(width, count - i);
      find_places(first + i, lanes);
      if (along_window) pack_along_window<K, S>(input, lanes, k0, k, width, out + i * padded);
      else pack_along_features<K, S>(input, lanes, k0, k, width, out + i * padded);
    }
  }

  // The places of one panel.
  struct Lanes {
    int64_t count;
    int64_t place[max_panel_width][max_dims], image[max_panel_width];
  };

  void find_places(int64_t first, Lanes& lanes) const {
    const std::size_t space = window.size.size();
    for (int64_t i = 0; i < lanes.count; ++i) {
      int64_t rest = first + i;
      for (std::size_t d = space; d-- > 0; rest /= window.places[d]) lanes.place[i][d] = rest % window.places[d];
      lanes.image[i] = rest * lhs_batch_stride;
    }
  }

  template <class K, class S>
  void pack_along_features(const S* input, const Lanes& lanes, int64_t k0, int64_t k, int64_t width, typename K::Packed* out) const {
    for (int64_t p = k0; p < k0 + k;) {
      const int64_t element = p / in_features, feature = p % in_features, run = std::min(in_features - feature, k0 + k - p);
      const S* from[max_panel_width] = {};
      for (int64_t i = 0; i < lanes.count; ++i) {
        const int64_t offset = window.tap(lanes.place[i], elements.data() + static_cast<std::size_t>(element) * window.size.size());
        from[i] = offset < 0 ? nullptr : input + lanes.image[i] + offset + feature * lhs_feature_stride;
      }
      pack_rows<K, S>(from, lanes.count, lhs_feature_stride, run, width, out);
      out += run * width;
      p += run;
    }
  }

  // Runs along the last dimension of the window, with zeros where they leave the input.
  template <class K, class S>
  void pack_along_window(const S* input, const Lanes& lanes, int64_t k0, int64_t k, int64_t width, typename K::Packed* out) const {
    const std::size_t space = window.size.size();
    const int64_t length = window.size.back(), step = window.step.back() * window.dilation.back(), all = inner() / in_features;
    constexpr int64_t max_run = max_inner_bytes;
    Scratch<S> hold(max_panel_width * std::min({length, k, max_run}), "rows of a convolution");
    for (int64_t p = k0; p < k0 + k;) {
      const int64_t feature = p / all, element = p % all, begin = element % length;
      const int64_t run = std::min({length - begin, k0 + k - p, max_run});
      const int64_t* outer = elements.data() + static_cast<std::size_t>(element) * space;
      const S* from[max_panel_width] = {};
      for (int64_t i = 0; i < lanes.count; ++i) {
        const int64_t offset = window.outer_tap(lanes.place[i], outer);
        if (offset < 0) continue;
        const int64_t start = lanes.place[i][space - 1] * window.stride.back() - window.padding.back();
        const int64_t dilation = window.dilation.back(), extent = window.extent.back();
        const int64_t low = std::clamp<int64_t>(start >= 0 ? 0 : (-start + dilation - 1) / dilation, begin, begin + run);
        const int64_t high = std::clamp<int64_t>(start >= extent ? 0 : (extent - start + dilation - 1) / dilation, low, begin + run);
        const S* row = input + lanes.image[i] + feature * lhs_feature_stride + offset + start * window.step.back();
        if (step == 1 && low == begin && high == begin + run) {
          from[i] = row + begin;
          continue;
        }
        S* own = hold.data() + i * run;
        for (int64_t q = begin; q < low; ++q) own[q - begin] = S();
        if (step == 1) std::copy(row + low, row + high, own + (low - begin));
        else for (int64_t q = low; q < high; ++q) own[q - begin] = row[q * step];
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

  template <class K, class S>
  void run_group(int64_t g, const S* lhs, const S* rhs, typename K::Sum* out) const {
    using P = typename K::Packed;
    const S* input = lhs + (batch_groups ? g * batch * lhs_batch_stride : g * in_features * lhs_feature_stride);
    const S* kernel = rhs + g * group_features * kernel_feature_stride;
    typename K::Sum* target = out + g * group_features * out_feature_stride;
    auto pack_places = [&](int64_t first, int64_t count, int64_t k0, int64_t k, int64_t width, P* block) {
      pack<K, S>(input, first, count, k0, k, width, block);
    };
    auto pack_kernel = [&](int64_t first, int64_t count, int64_t k0, int64_t k, int64_t width, P* block) {
      pack_matrix<K, S>(kernel, kernel_features, kernel_inner, first, count, k0, k, width, block);
    };
    if (out_feature_stride == 1) Product<K>{inner(), pack_places, pack_kernel, target, places, features}.run();
    else Product<K>{inner(), pack_kernel, pack_places, target, features, places}.run();
  }

  // Complex numbers one by one: convolutions of them are rare.
  template <class T>
  void run_complex(const T* lhs, const T* rhs, T* out) const {
    const std::size_t space = window.size.size();
    const double cost = static_cast<double>(inner()) * 4;
    parallel_for_cost(places.extent() * groups * group_features, cost, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t f = t % (groups * group_features), g = f / group_features;
        Lanes lanes;
        lanes.count = 1;
        find_places(t / (groups * group_features), lanes);
        const T* input = lhs + lanes.image[0] + (batch_groups ? g * batch * lhs_batch_stride : g * in_features * lhs_feature_stride);
        Real<T> re = 0, im = 0;
        for (int64_t p = 0; p < inner(); ++p) {
          const int64_t element = along_window ? p % (inner() / in_features) : p / in_features;
          const int64_t feature = along_window ? p / (inner() / in_features) : p % in_features;
          const int64_t offset = window.tap(lanes.place[0], elements.data() + static_cast<std::size_t>(element) * space);
          if (offset < 0) continue;
          const T x = input[offset + feature * lhs_feature_stride], y = rhs[f * kernel_feature_stride + kernel_inner.at(p)];
          re += x.real() * y.real() - x.imag() * y.imag();
          im += x.real() * y.imag() + x.imag() * y.real();
        }
        out[f * out_feature_stride + places.at(t / (groups * group_features))] = T(re, im);
      }
      return 0;
    });
  }

  template <class K, class S>
  void run_groups(const S* lhs, const S* rhs, typename K::Sum* out) const;

  template <class K, class S>
  void run_whole(const S* lhs, const S* rhs, typename K::Sum* out) const {
    // A few groups share out their own parts; many are shared out whole.
    const double cost = multiply_cost<K>(static_cast<double>(places.extent() * group_features) * static_cast<double>(inner()));
    auto run = [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) run_group<K, S>(g, lhs, rhs, out);
      return 0;
    };
    if (groups < 8) run(0, groups);
    else parallel_for_cost(groups, 1000 + 2 * cost, run);
  }

  template <class T>
  void run(std::byte* const* buffers) const {
    Scratch<T> lhs_hold, rhs_hold;
    const T* lhs = product_operand<T>(types.lhs, types.lhs_rounded, buffers[0], lhs_size, lhs_hold);
    const T* rhs = product_operand<T>(types.rhs, types.rhs_rounded, buffers[1], rhs_size, rhs_hold);
    ProductResult<T> result(types.out, buffers[2], out_size);
    T* out = result.values();
    if (inner() == 0) {
      std::fill_n(out, out_size, T(0));
    } else if constexpr (Parts<T>::count == 2) {
      run_complex<T>(lhs, rhs, out);
    } else if (groups > 1 && in_features == 1 && group_features == 1 && !batch_groups) {
      Depthwise<T>{window, elements, places, groups, batch, lhs_batch_stride, lhs_feature_stride, kernel_inner, kernel_feature_stride, out_feature_stride, lhs, rhs, out}.run();
    } else {
      run_groups<typename KindOf<T>::type, T>(lhs, rhs, out);
    }
    result.convert_all();
  }

  // Whether runs of the inner dimension fill whole groups of k.
  bool fills(int64_t together) const;
};

struct ConvolutionPlan::Phase {
  ConvolutionPlan plan;
  int64_t kernel_offset, out_offset;
};

bool ConvolutionPlan::fills(int64_t together) const {
  for (const Phase& phase : phases) {
    if (phase.plan.inner() != 0 && !phase.plan.fills(together)) return false;
  }
  return (along_window ? window.size.back() : in_features) % together == 0;
}

template <class K, class S>
void ConvolutionPlan::run_groups(const S* lhs, const S* rhs, typename K::Sum* out) const {
  if (phases.empty()) return run_whole<K, S>(lhs, rhs, out);
  for (const Phase& phase : phases) {
    if (phase.plan.inner() != 0) {
      phase.plan.run_whole<K, S>(lhs, rhs + phase.kernel_offset, out + phase.out_offset);
      continue;
    }
    for (int64_t p = 0; p < phase.plan.places.extent(); ++p) {
      typename K::Sum* target = out + phase.out_offset + phase.plan.places.at(p);
      for (int64_t f = 0; f < groups * group_features; ++f) target[f * out_feature_stride] = typename K::Sum(0);
    }
  }
}

void ConvolutionPlan::set_space(const std::vector<Dimension>& dims) {
  window = {};
  elements.clear();
  Ints place_sizes{batch}, place_steps{out_batch_stride}, inner_sizes, inner_steps;
  for (const Dimension& d : dims) {
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

void ConvolutionPlan::set_phases(const std::vector<Dimension>& dims) {
  Ints counts;
  for (const Dimension& d : dims) {
    if (d.lhs_dilation > 1 && d.stride != 1) return;
    counts.push_back(d.lhs_dilation);
  }
  if (element_count(counts) == 1 || element_count(counts) > 64) return;
  Ints residue(dims.size(), 0);
  do {
    std::vector<Dimension> own = dims;
    int64_t kernel_offset = 0, out_offset = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      Dimension& d = own[i];
      if (d.lhs_dilation == 1) continue;
      const int64_t factor = d.lhs_dilation, common = std::gcd(factor, d.dilation), element_step = factor / common, r = residue[i];
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
    plan.set_space(own);
    if (plan.places.extent() != 0) phases.push_back({std::move(plan), kernel_offset, out_offset});
  } while (reference::next_index(residue, counts));
}

HostKernel make_convolution(const KernelRequest& request) {
  const Attrs& attrs = request.attrs;
  const auto& numbers = attrs.get<ConvDimensionNumbers>("dimension_numbers");
  const Ints &strides = attrs.ints("window_strides"), &lhs_dilation = attrs.ints("lhs_dilation"), &rhs_dilation = attrs.ints("rhs_dilation");
  auto padding = padding_of(attrs["padding"]);
  const ArrayType &lhs = request.inputs[0], &rhs = request.inputs[1], &out = request.outputs[0];
  const std::size_t space = strides.size();
  if (space > max_dims) return {};
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
  plan->lhs_batch_stride = at(lhs_strides, numbers.lhs_spec[0]);
  plan->lhs_feature_stride = at(lhs_strides, numbers.lhs_spec[1]);
  plan->out_feature_stride = at(out_strides, numbers.out_spec[1]);
  plan->kernel_feature_stride = at(rhs_strides, numbers.rhs_spec[0]);
  plan->out_batch_stride = at(out_strides, numbers.out_spec[0]);
  plan->kernel_in_stride = at(rhs_strides, numbers.rhs_spec[1]);
  plan->features = Axis::regular(plan->group_features, plan->out_feature_stride);
  plan->kernel_features = Axis::regular(plan->group_features, plan->kernel_feature_stride);
  std::vector<Dimension> dims;
  for (std::size_t d = 0; d < space; ++d) {
    const int64_t i = numbers.lhs_spec[d + 2], k = numbers.rhs_spec[d + 2], o = numbers.out_spec[d + 2];
    dims.push_back({at(rhs.shape, k), at(out.shape, o), at(lhs.shape, i), at(lhs_strides, i), strides[d], rhs_dilation[d], padding[d].first,
                    lhs_dilation[d], at(out_strides, o), at(rhs_strides, k)});
  }
  plan->set_space(dims);
  HostKernel kernel;
  const bool depthwise = plan->groups > 1 && plan->in_features == 1 && plan->group_features == 1 && !plan->batch_groups;
  if (!depthwise && plan->out_size != 0 && !is_complex(plan->types.out)) plan->set_phases(dims);
  if (!depthwise && plan->inner() != 0) {
    const bool narrow = visit_narrow_product(plan->types, [&]<class K, class S>(K, Type<S>) {
      if (!plan->fills(K::together)) return;
      kernel = [plan](std::byte* const* buffers) {
        if (plan->out_size == 0) return;
        ProductResult<typename K::Sum> result(plan->types.out, buffers[2], plan->out_size);
        plan->run_groups<K, S>(reinterpret_cast<const S*>(buffers[0]), reinterpret_cast<const S*>(buffers[1]), result.values());
        result.convert_all();
      };
    });
    if (narrow && kernel) return kernel;
  }
  visit_product_type(plan->types, [&]<class T>(Type<T>) {
    kernel = [plan](std::byte* const* buffers) {
      if (plan->out_size != 0) plan->run<T>(buffers);
    };
  });
  return kernel;
}

}  // namespace

KernelMakers convolution_makers() { return {{"conv_general_dilated", make_convolution}}; }

}  // namespace capibara::cpu
