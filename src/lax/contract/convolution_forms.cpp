// Convolutions that are built from the general one: plain, transposed, patches, local.
#include <algorithm>

#include "lax/contract/contract.h"
#include "lax/contract/convolution_dimensions.h"
#include "lax/reduce/monoid.h"
#include "program/ir/window_shape.h"

namespace capibara::jax::lax {

namespace {

Array move_axes(const Array& x, const Ints& from, const Ints& to) {
  Ints rest = remaining_dims(x.ndim(), from), permutation(static_cast<std::size_t>(x.ndim()), -1);
  for (std::size_t i = 0; i < from.size(); ++i) permutation[static_cast<std::size_t>(to[i])] = from[i];
  std::size_t next = 0;
  for (int64_t& d : permutation) {
    if (d < 0) d = rest[next++];
  }
  return transpose(x, permutation);
}

}  // namespace

Array conv(const Array& lhs, const Array& rhs, const Ints& window_strides, const std::string& padding) {
  return conv_general_dilated(lhs, rhs, {.window_strides = window_strides, .padding_mode = padding});
}

Array conv_with_general_padding(const Array& lhs, const Array& rhs, const ConvOptions& options) {
  return conv_general_dilated(lhs, rhs, options);
}

Array conv_transpose(const Array& lhs, Array const& rhs, const ConvTransposeOptions& options) {
  int64_t rank = lhs.ndim();
  if (rank != rhs.ndim() || rank < 2) {
    throw TypeError(concat("conv_transpose: lhs and rhs must have the same number of dimensions, at least 2, got ",
                           to_string(lhs.type()), " and ", to_string(rhs.type())));
  }
  ConvDimensionNumbers numbers;
  if (options.dimension_numbers) {
    numbers = *options.dimension_numbers;
  } else {
    static const char* const defaults[][2] = {{"NC", "IO"}, {"NHC", "HIO"}, {"NHWC", "HWIO"}, {"NHWDC", "HWDIO"}};
    if (rank > 5) throw ValueError("conv_transpose: no default dimension_numbers for more than 3 space dimensions");
    const auto& specs = defaults[rank - 2];
    numbers = conv_dimension_numbers(specs[0], specs[1], specs[0]);
  }
  auto space = static_cast<std::size_t>(rank - 2);
  Ints rhs_dilation = options.rhs_dilation.empty() ? Ints(space, 1) : options.rhs_dilation;
  Ints strides = options.strides.empty() ? Ints(space, 1) : options.strides;
  if (rhs_dilation.size() != space || strides.size() != space) {
    throw ValueError(concat("conv_transpose: strides and rhs_dilation need one entry per space dimension, ", space,
                            ", got ", strides.size(), " and ", rhs_dilation.size()));
  }
  Padding padding;
  Shape window = taken_sizes(rhs.shape(), numbers.rhs_spec, 2);
  if (options.padding && options.use_consistent_padding) {
    for (std::size_t d = 0; d < std::min(space, options.padding->size()); ++d) {
      const int64_t k = dilated(window[d], rhs_dilation[d]);
      padding.emplace_back(k - 1 - (*options.padding)[d].first, k - 1 - (*options.padding)[d].second);
    }
  } else if (options.padding) {
    padding = *options.padding;
  } else {
    for (std::size_t d = 0; d < space; ++d) {
      int64_t k = dilated(window[d], rhs_dilation[d]), s = strides[d], total, before;
      if (options.padding_mode == "SAME") {
        total = k + s - 2;
        before = s > k - 1 ? k - 1 : (total + 1) / 2;
      } else if (options.padding_mode == "VALID") {
        total = k + s - 2 + std::max<int64_t>(k - s, 0);
        before = k - 1;
      } else {
        throw ValueError(concat("conv_transpose: padding must be 'SAME', 'VALID' or pairs of numbers, got '",
                                options.padding_mode, "'"));
      }
      padding.emplace_back(before, total - before);
    }
  }
  Array kernel = rhs;
  if (options.transpose_kernel) {
    for (std::size_t d = 2; d < numbers.rhs_spec.size(); ++d) kernel = rev(kernel, {numbers.rhs_spec[d]});
    Ints swapped = counting(0, static_cast<std::size_t>(rank));
    std::swap(swapped[static_cast<std::size_t>(numbers.rhs_spec[0])],
              swapped[static_cast<std::size_t>(numbers.rhs_spec[1])]);
    kernel = transpose(kernel, swapped);
  }
  return conv_general_dilated(lhs, kernel,
                              {.window_strides = Ints(space, 1),
                               .padding = padding,
                               .lhs_dilation = strides,
                               .rhs_dilation = rhs_dilation,
                               .dimension_numbers = numbers,
                               .precision = options.precision,
                               .preferred_element_type = options.preferred_element_type});
}

Array conv_general_dilated_patches(const Array& lhs, const Ints& filter_shape, const ConvOptions& options) {
  if (lhs.ndim() != static_cast<int64_t>(filter_shape.size()) + 2) {
    throw TypeError(concat("conv_general_dilated_patches: filter_shape needs one entry per space dimension of ",
                           to_string(lhs.type()), ", got ", filter_shape.size()));
  }
  ConvDimensionNumbers numbers = numbers_or_default(options.dimension_numbers, lhs.ndim());
  int64_t window = element_count(filter_shape), channels = lhs.shape(numbers.lhs_spec[1]);
  // A kernel that copies each element of the window into a separate feature.
  Array row = add(broadcasted_iota(DType::int32, {window, window}, 0), exact_scalar(DType::int32, 0));
  Array eye = convert_element_type(eq(row, broadcasted_iota(DType::int32, {window, window}, 1)), lhs.dtype());
  Array kernel = broadcast_in_dim(eye, {channels, window, window}, {1, 2});
  Shape shape = {channels * window, 1};
  shape.insert(shape.end(), filter_shape.begin(), filter_shape.end());
  kernel = move_axes(reshape(kernel, shape), {0, 1}, {numbers.rhs_spec[0], numbers.rhs_spec[1]});
  ConvOptions plain = options;
  plain.dimension_numbers = numbers;
  plain.feature_group_count = channels;
  if (!options.precision.empty() && options.precision.find(',') == std::string::npos)
    plain.precision = options.precision + ",default";
  return conv_general_dilated(lhs, kernel, plain);
}

Array conv_general_dilated_local(const Array& lhs, const Array& rhs, const Ints& filter_shape,
                                 const ConvOptions& options) {
  Array patches = conv_general_dilated_patches(lhs, filter_shape, options);
  ConvDimensionNumbers numbers = numbers_or_default(options.dimension_numbers, lhs.ndim());
  Ints lhs_batch(numbers.out_spec.begin() + 2, numbers.out_spec.end()),
      rhs_batch(numbers.rhs_spec.begin() + 2, numbers.rhs_spec.end());
  Ints order = argsort(lhs_batch);
  DotDimensionNumbers dims{
      {numbers.out_spec[1]}, {numbers.rhs_spec[1]}, taken(lhs_batch, order), taken(rhs_batch, order)};
  Array out = dot_general(patches, rhs, dims, {.precision = options.precision});
  return move_axes(out, {out.ndim() - 2, out.ndim() - 1}, {numbers.out_spec[0], numbers.out_spec[1]});
}

}  // namespace capibara::jax::lax
