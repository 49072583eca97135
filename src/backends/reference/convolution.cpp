// Reference kernel of the general convolution, features innermost.
#include <algorithm>

#include "backends/reference/products.h"
#include "backends/reference/regions.h"
#include "lax/math/denormals.h"
#include "program/ir/window_shape.h"

namespace capibara::reference {

namespace {

// The order [batch, space..., feature] of a spec [batch, feature, space...].
Ints features_last(const Ints& spec) {
  Ints order = {spec[0]};
  order.insert(order.end(), spec.begin() + 2, spec.end());
  order.push_back(spec[1]);
  return order;
}

Arrays convolve(const KernelArgs& args) {
  const math::FlushDenormals flush;
  const Attrs& attrs = args.attrs;
  const auto& numbers = attrs.get<ConvDimensionNumbers>("dimension_numbers");
  const Ints &strides = attrs.ints("window_strides"), &lhs_dilation = attrs.ints("lhs_dilation"),
             &rhs_dilation = attrs.ints("rhs_dilation");
  auto padding = padding_of(attrs["padding"]);
  int64_t feature_groups = attrs.integer("feature_group_count"), batch_groups = attrs.integer("batch_group_count");
  const ArrayType& out_type = args.output_types[0];
  // lhs [batch, space..., features], rhs [space..., in features, out features], out [batch, space..., features].
  Array lhs = permute(args.inputs[0], features_last(numbers.lhs_spec));
  Ints kernel_order(numbers.rhs_spec.begin() + 2, numbers.rhs_spec.end());
  kernel_order.insert(kernel_order.end(), {numbers.rhs_spec[1], numbers.rhs_spec[0]});
  Array rhs = permute(args.inputs[1], kernel_order);
  Ints out_order = features_last(numbers.out_spec);
  Shape out_shape;
  for (int64_t d : out_order) out_shape.push_back(out_type.shape[static_cast<std::size_t>(d)]);
  Output out = allocate(out_type.with_shape(out_shape));
  if (out_type.size() == 0) return {allocate(out_type).array};

  std::size_t space = strides.size();
  Shape in_space(lhs.shape().begin() + 1, lhs.shape().end() - 1), window(rhs.shape().begin(), rhs.shape().end() - 2);
  Shape out_space(out_shape.begin() + 1, out_shape.end() - 1);
  int64_t in_size = element_count(in_space), out_size = element_count(out_space), window_size = element_count(window);
  int64_t features = lhs.shape(-1), in_features = rhs.shape(-2), out_features = rhs.shape(-1);
  int64_t groups = std::max(feature_groups, batch_groups), group_features = out_features / groups;
  int64_t batch = out_shape[0];
  Ints in_strides = row_major_strides(in_space);

  visit_product(lhs.dtype(), rhs.dtype(), out_type.dtype, window_size * in_features, [&]<class A>(Type<A>) {
    auto x = read_all<A>(lhs.dtype(), lhs.raw_data(), lhs.size());
    auto w = read_all<A>(rhs.dtype(), rhs.raw_data(), rhs.size());
    Elements<A> sums(out_type.size());
    // The input position under each element of the window, for one position of the window. Padding and the holes of a
    // dilated input are zeros that enter the sum: with infinite weights they give NaN.
    constexpr int64_t in_padding = -1;
    std::vector<std::pair<int64_t, int64_t>> taps;
    Ints place(space, 0);
    for (int64_t position = 0; position < out_size; ++position) {
      taps.clear();
      Ints element(space, 0);
      for (int64_t k = 0; k < window_size; ++k) {
        int64_t from = 0;
        bool inside = true;
        for (std::size_t d = 0; d < space && inside; ++d) {
          int64_t at = place[d] * strides[d] + element[d] * rhs_dilation[d] - padding[d].first;
          inside = at >= 0 && at % lhs_dilation[d] == 0 && at / lhs_dilation[d] < in_space[d];
          if (inside) from += at / lhs_dilation[d] * in_strides[d];
        }
        taps.emplace_back(k, inside ? from : in_padding);
        next_index(element, window);
      }
      for (int64_t n = 0; n < batch; ++n) {
        A* target = sums.data() + (n * out_size + position) * out_features;
        for (int64_t g = 0; g < groups; ++g) {
          int64_t row = batch_groups > 1 ? g * batch + n : n, first = feature_groups > 1 ? g * in_features : 0;
          for (const auto& [k, from] : taps) {
            const A* input = from == in_padding ? nullptr : x.data() + (row * in_size + from) * features + first;
            const A* kernel = w.data() + k * in_features * out_features + g * group_features;
            for (int64_t i = 0; i < in_features; ++i) {
              add_scaled(input ? input[i] : A{}, kernel + i * out_features, target + g * group_features,
                         group_features);
            }
          }
        }
      }
      next_index(place, out_space);
    }
    store_all<A>(out_type.dtype, out.data, sums);
  });
  Ints back(out_order.size());
  for (std::size_t d = 0; d < out_order.size(); ++d)
    back[static_cast<std::size_t>(out_order[d])] = static_cast<int64_t>(d);
  return {permute(out.array, back)};
}

}  // namespace

KernelList convolution_kernels() { return {{"conv_general_dilated", convolve}}; }

}  // namespace capibara::reference
