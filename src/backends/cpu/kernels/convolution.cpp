// conv_general_dilated: a product of matrices whose one operand is gathered from the input while it is packed.
//
// Rows of that operand are places of the window (batch, space), its inner dimension is (element of the window, feature).
// The other operand is the kernel. The result's features are the columns where they lie next to each other, else the rows.
#include <algorithm>
#include <memory>

#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/product.h"
#include "backends/reference/kernels.h"
#include "primitives/window_shape.h"

namespace capibara::cpu {

namespace {

template <class T>
void add_product(T& sum, const T& x, const T& y) {
  if constexpr (Parts<T>::count == 2) {
    sum += T(x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real());
  } else {
    sum += x * y;
  }
}

struct ConvolutionPlan {
  ProductTypes types;
  int64_t lhs_size, rhs_size, out_size;
  int64_t groups, group_features, in_features, batch;
  bool batch_groups;
  int64_t lhs_batch_stride, lhs_feature_stride;
  Ints out_space;                          // places of the window by dimension
  std::vector<std::vector<int64_t>> taps;  // by dimension, [place * window + element]: offset into the input, or -1 outside
  Ints window;
  std::vector<int64_t> elements;           // [window element][dimension]
  Axis places, features;                   // of one group in the output
  Axis kernel_features, kernel_inner;      // of one group in the kernel
  int64_t out_feature_stride, kernel_feature_stride;

  int64_t window_size() const { return kernel_inner.extent() / std::max<int64_t>(in_features, 1); }

  // Offsets into the input of one window element at one place; -1 in the padding.
  int64_t tap(const int64_t* place, int64_t element) const {
    int64_t offset = 0;
    for (std::size_t d = 0; d < window.size(); ++d) {
      int64_t part = taps[d][static_cast<std::size_t>(place[d] * window[d] + elements[static_cast<std::size_t>(element) * window.size() + d])];
      if (part < 0) return -1;
      offset += part;
    }
    return offset;
  }

  // Packs places [first, first + count) as rows.
  template <class T>
  void pack(const T* input, int64_t first, int64_t count, int64_t k0, int64_t k, int64_t width, Real<T>* out) const {
    with_width(width, [&]<int Width>() {
      for (int64_t i = 0; i < count; i += Width) {
        pack_panel<Width, T>(input, first + i, std::min<int64_t>(Width, count - i), k0, k, out + i * k * Parts<T>::count);
      }
    });
  }

  template <int Width, class T>
  void pack_panel(const T* input, int64_t first, int64_t count, int64_t k0, int64_t k, Real<T>* out) const {
    static const T zero(0);
    constexpr std::size_t most_dims = 16;
    const std::size_t space = window.size();
    int64_t place[Width][most_dims], image[Width];
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = first + i;
      for (std::size_t d = space; d-- > 0; rest /= out_space[d]) place[i][d] = rest % out_space[d];
      image[i] = rest * lhs_batch_stride;
    }
    for (int64_t p = k0; p < k0 + k;) {
      const int64_t element = p / in_features, feature = p % in_features, run = std::min(in_features - feature, k0 + k - p);
      const T* from[Width];
      int64_t step[Width];
      bool neighbours = count == Width;
      for (int64_t i = 0; i < Width; ++i) {
        const int64_t offset = i < count ? tap(place[i], element) : -1;
        from[i] = offset < 0 ? &zero : input + image[i] + offset + feature * lhs_feature_stride;
        step[i] = offset < 0 ? 0 : lhs_feature_stride;
        neighbours = neighbours && offset >= 0 && from[i] == from[0] + i;
      }
      if (neighbours) {
        for (int64_t f = 0; f < run; ++f, out += Width * Parts<T>::count) {
          const T* source = from[0] + f * lhs_feature_stride;
          for (int64_t i = 0; i < Width; ++i) put_packed<T>(out, i, Width, source[i]);
        }
      } else {
        for (int64_t f = 0; f < run; ++f, out += Width * Parts<T>::count) {
          for (int64_t i = 0; i < Width; ++i) put_packed<T>(out, i, Width, from[i][f * step[i]]);
        }
      }
      p += run;
    }
  }

  template <class T>
  void run_group(int64_t g, const T* lhs, const T* rhs, T* out) const {
    const T* input = lhs + (batch_groups ? g * batch * lhs_batch_stride : g * in_features * lhs_feature_stride);
    const T* kernel = rhs + g * group_features * kernel_feature_stride;
    T* target = out + g * group_features * out_feature_stride;
    auto pack_places = [&](int64_t first, int64_t count, int64_t k0, int64_t k, int64_t width, Real<T>* block) {
      pack<T>(input, first, count, k0, k, width, block);
    };
    auto pack_kernel = [&](int64_t first, int64_t count, int64_t k0, int64_t k, int64_t width, Real<T>* block) {
      pack_matrix<T>(kernel, kernel_features, kernel_inner, first, count, k0, k, width, block);
    };
    if (out_feature_stride == 1) multiply_packed<T>(kernel_inner.extent(), pack_places, pack_kernel, target, places, features);
    else multiply_packed<T>(kernel_inner.extent(), pack_kernel, pack_places, target, features, places);
  }

  // One feature in, one out for each group: no product of matrices is left. Straight sums over the window, along the
  // features where they lie next to each other, else along the last dimension of space.
  template <class T>
  void run_depthwise(const T* lhs, const T* rhs, T* out) const {
    const int64_t size = window_size();
    const bool along_features = window.empty() || (lhs_feature_stride == 1 && kernel_feature_stride == 1 && out_feature_stride == 1);
    const int64_t row = along_features ? 1 : out_space.back(), rows = places.extent() / row, features = along_features ? 1 : groups;
    const double cost = static_cast<double>(size * (along_features ? groups : row)) * 0.5 * Parts<T>::count;
    parallel_for_cost(rows * features, cost, [&](int64_t begin, int64_t end) {
      std::vector<int64_t> place(window.size());
      for (int64_t task = begin; task < end; ++task) {
        const int64_t g = task % features, r = task / features * row;
        int64_t rest = r;
        for (std::size_t d = window.size(); d-- > 0; rest /= out_space[d]) place[d] = rest % out_space[d];
        const T* input = lhs + rest * lhs_batch_stride + g * lhs_feature_stride;
        const T* kernel = rhs + g * kernel_feature_stride;
        if (along_features) sum_features(input, kernel, place.data(), out + places.at(r));
        else sum_row(input, kernel, place.data(), out + g * out_feature_stride, r);
      }
      return 0;
    });
  }

  template <class T>
  void sum_features(const T* input, const T* kernel, const int64_t* place, T* target) const {
    for (int64_t g = 0; g < groups; ++g) target[g * out_feature_stride] = T(0);
    for (int64_t e = 0; e < window_size(); ++e) {
      const int64_t offset = tap(place, e);
      if (offset < 0) continue;
      const T *x = input + offset, *w = kernel + kernel_inner.at(e);
      if (window.empty()) {
        for (int64_t g = 0; g < groups; ++g) add_product(target[g * out_feature_stride], x[g * lhs_feature_stride], w[g * kernel_feature_stride]);
      } else {
        for (int64_t g = 0; g < groups; ++g) add_product(target[g], x[g], w[g]);
      }
    }
  }

  // All places of the last dimension, from `first` on; place.back() is 0.
  template <class T>
  void sum_row(const T* input, const T* kernel, int64_t* place, T* out, int64_t first) const {
    const int64_t count = out_space.back(), last = window.back();
    for (int64_t o = 0; o < count; ++o) out[places.at(first + o)] = T(0);
    for (int64_t e = 0; e < window_size(); ++e) {
      int64_t outer = 0;
      for (std::size_t d = 0; d + 1 < window.size() && outer >= 0; ++d) {
        int64_t part = taps[d][static_cast<std::size_t>(place[d] * window[d] + elements[static_cast<std::size_t>(e) * window.size() + d])];
        outer = part < 0 ? -1 : outer + part;
      }
      if (outer < 0) continue;
      const T weight = kernel[kernel_inner.at(e)], *x = input + outer;
      const int64_t* table = taps.back().data() + elements[static_cast<std::size_t>(e + 1) * window.size() - 1];
      for (int64_t o = 0; o < count; ++o) {
        if (table[o * last] >= 0) add_product(out[places.at(first + o)], x[table[o * last]], weight);
      }
    }
  }

  template <class T>
  void run(std::byte* const* buffers) const {
    Scratch<T> lhs_hold, rhs_hold;
    const T* lhs = product_operand<T>(types.lhs, types.lhs_rounded, buffers[0], lhs_size, lhs_hold);
    const T* rhs = product_operand<T>(types.rhs, types.rhs_rounded, buffers[1], rhs_size, rhs_hold);
    ProductResult<T> result(types.out, buffers[2], out_size);
    T* out = result.values();
    if (kernel_inner.extent() == 0) {
      std::fill_n(out, out_size, T(0));
    } else if (groups > 1 && in_features == 1 && group_features == 1 && !batch_groups) {
      run_depthwise<T>(lhs, rhs, out);
    } else {
      // A few groups share out their own parts; many are shared out whole.
      const double cost = multiply_cost<T>(static_cast<double>(places.extent() * group_features) * static_cast<double>(kernel_inner.extent()));
      auto run_groups = [&](int64_t begin, int64_t end) {
        for (int64_t g = begin; g < end; ++g) run_group<T>(g, lhs, rhs, out);
        return 0;
      };
      if (groups < 8) run_groups(0, groups);
      else parallel_for_cost(groups, 1000 + 2 * cost, run_groups);
    }
    result.finish();
  }
};

Axis axis_of(const Ints& shape, const Ints& strides, std::initializer_list<Ints> dims) {
  Ints sizes, steps;
  for (const Ints& part : dims) {
    for (int64_t d : part) {
      sizes.push_back(shape[static_cast<std::size_t>(d)]);
      steps.push_back(strides[static_cast<std::size_t>(d)]);
    }
  }
  return Axis(sizes, steps);
}

HostKernel make_convolution(const KernelRequest& request) {
  const Attrs& attrs = request.attrs;
  const auto& numbers = attrs.get<ConvDimensionNumbers>("dimension_numbers");
  const Ints &strides = attrs.ints("window_strides"), &lhs_dilation = attrs.ints("lhs_dilation"), &rhs_dilation = attrs.ints("rhs_dilation");
  auto padding = padding_of(attrs["padding"]);
  const ArrayType &lhs = request.inputs[0], &rhs = request.inputs[1], &out = request.outputs[0];
  const std::size_t space = strides.size();
  if (space > 16) return {};
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
  for (std::size_t d = 0; d < space; ++d) {
    int64_t in = at(lhs.shape, numbers.lhs_spec[d + 2]), step = at(lhs_strides, numbers.lhs_spec[d + 2]);
    int64_t size = at(rhs.shape, numbers.rhs_spec[d + 2]), results = at(out.shape, numbers.out_spec[d + 2]);
    plan->window.push_back(size);
    plan->out_space.push_back(results);
    std::vector<int64_t> table;
    for (int64_t o = 0; o < results; ++o) {
      for (int64_t e = 0; e < size; ++e) {
        int64_t position = o * strides[d] + e * rhs_dilation[d] - padding[d].first;
        bool inside = position >= 0 && position % lhs_dilation[d] == 0 && position / lhs_dilation[d] < in;
        table.push_back(inside ? position / lhs_dilation[d] * step : -1);
      }
    }
    plan->taps.push_back(std::move(table));
  }
  if (element_count(plan->window) != 0) {
    Ints element(space, 0);
    do plan->elements.insert(plan->elements.end(), element.begin(), element.end());
    while (reference::next_index(element, plan->window));
  }
  Ints out_space_dims(numbers.out_spec.begin() + 2, numbers.out_spec.end()), rhs_space_dims(numbers.rhs_spec.begin() + 2, numbers.rhs_spec.end());
  plan->places = axis_of(out.shape, out_strides, {{numbers.out_spec[0]}, out_space_dims});
  plan->features = Axis::regular(plan->group_features, plan->out_feature_stride);
  plan->kernel_features = Axis::regular(plan->group_features, plan->kernel_feature_stride);
  plan->kernel_inner = axis_of(rhs.shape, rhs_strides, {rhs_space_dims, {numbers.rhs_spec[1]}});
  HostKernel kernel;
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
