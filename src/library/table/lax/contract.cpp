// Table rows for jax.lax: dot products, convolutions and Fourier transforms.
#include <capibara/lax.h>

#include "library/table/families.h"
#include "library/table/lax/arguments.h"

namespace capibara::library {

namespace lax = jax::lax;

namespace {

lax::DotOptions dot_options(const Arguments& a) {
  return {.precision = precision_text(a, "precision"),
          .preferred_element_type = a.optional_dtype("preferred_element_type")};
}

Value dot(const Arguments& a) {
  a.require_absent("out_sharding");
  const Array lhs = a.array("lhs"), rhs = a.array("rhs");
  if (!a.given("dimension_numbers")) return lax::dot(lhs, rhs, dot_options(a));
  return lax::dot_general(lhs, rhs, dot_dimension_numbers("dot", a["dimension_numbers"]), dot_options(a));
}

void require_no_group_offset(const Arguments& a) {
  a.require_absent("out_sharding");
  if (a.given("group_offset"))
    throw NotImplementedError(concat("lax.", a.function(), ": group_offset is not supported"));
}

lax::RaggedDimensions ragged_dimensions(const Arguments& a) {
  const Sequence* numbers = a["ragged_dot_dimension_numbers"].sequence();
  if (!numbers || numbers->items.size() != 3) {
    throw TypeError(
        concat("lax.ragged_dot_general: argument 'ragged_dot_dimension_numbers' must be "
               "(dot_dimension_numbers, lhs_ragged_dimensions, rhs_group_dimensions), got ",
               a["ragged_dot_dimension_numbers"].type_name()));
  }
  auto dimensions = [&](std::size_t i) {
    Ints result;
    const Sequence* items = numbers->items[i].sequence();
    for (std::size_t j = 0; items && j < items->items.size(); ++j) {
      const int64_t* dimension = items->items[j].get_if<int64_t>();
      if (!dimension) throw TypeError("lax.ragged_dot_general: ragged and group dimensions must be integers");
      result.push_back(*dimension);
    }
    return result;
  };
  return {dot_dimension_numbers("ragged_dot_general", numbers->items[0]), dimensions(1), dimensions(2)};
}

// ---- convolutions ------------------------------------------------------------------------------------------------

lax::ConvOptions conv_options(const Arguments& a, int64_t lhs_rank, int64_t rhs_rank) {
  const PaddingArgument padding = padding_argument(a, "padding");
  lax::ConvOptions options;
  options.window_strides = integer_sequence(a, "window_strides");
  options.padding_mode = padding.mode;
  options.padding = padding.pairs;
  options.lhs_dilation = optional_integer_sequence(a, "lhs_dilation");
  options.rhs_dilation = optional_integer_sequence(a, "rhs_dilation");
  options.precision = precision_text(a, "precision");
  options.dimension_numbers = conv_dimension_numbers(a, "dimension_numbers", lhs_rank, rhs_rank);
  return options;
}

Value conv_general_dilated(const Arguments& a) {
  a.require_absent("out_sharding");
  const Array lhs = a.array("lhs"), rhs = a.array("rhs");
  lax::ConvOptions options = conv_options(a, lhs.ndim(), rhs.ndim());
  options.feature_group_count = a.integer("feature_group_count");
  options.batch_group_count = a.integer("batch_group_count");
  options.preferred_element_type = a.optional_dtype("preferred_element_type");
  return lax::conv_general_dilated(lhs, rhs, options);
}

Value conv(const Arguments& a) {
  lax::ConvOptions options;
  options.window_strides = integer_sequence(a, "window_strides");
  const PaddingArgument padding = padding_argument(a, "padding");
  options.padding_mode = padding.mode;
  options.padding = padding.pairs;
  options.precision = precision_text(a, "precision");
  options.preferred_element_type = a.optional_dtype("preferred_element_type");
  return lax::conv_general_dilated(a.array("lhs"), a.array("rhs"), options);
}

Value conv_with_general_padding(const Arguments& a) {
  lax::ConvOptions options;
  options.window_strides = integer_sequence(a, "window_strides");
  const PaddingArgument padding = padding_argument(a, "padding");
  options.padding_mode = padding.mode;
  options.padding = padding.pairs;
  options.lhs_dilation = optional_integer_sequence(a, "lhs_dilation");
  options.rhs_dilation = optional_integer_sequence(a, "rhs_dilation");
  options.precision = precision_text(a, "precision");
  options.preferred_element_type = a.optional_dtype("preferred_element_type");
  return lax::conv_with_general_padding(a.array("lhs"), a.array("rhs"), options);
}

Value conv_transpose(const Arguments& a) {
  const Array lhs = a.array("lhs"), rhs = a.array("rhs");
  const PaddingArgument padding = padding_argument(a, "padding");
  lax::ConvTransposeOptions options;
  options.strides = integer_sequence(a, "strides");
  options.padding_mode = padding.mode;
  options.padding = padding.pairs;
  options.rhs_dilation = optional_integer_sequence(a, "rhs_dilation");
  if (a.given("dimension_numbers")) {
    options.dimension_numbers = conv_dimension_numbers(a, "dimension_numbers", lhs.ndim(), rhs.ndim());
  }
  options.transpose_kernel = a.flag("transpose_kernel");
  options.precision = precision_text(a, "precision");
  options.preferred_element_type = a.optional_dtype("preferred_element_type");
  options.use_consistent_padding = a.flag("use_consistent_padding");
  return lax::conv_transpose(lhs, rhs, options);
}

Value conv_general_dilated_patches(const Arguments& a) {
  const Array lhs = a.array("lhs");
  const Ints filter_shape = integer_sequence(a, "filter_shape");
  lax::ConvOptions options = conv_options(a, lhs.ndim(), static_cast<int64_t>(filter_shape.size()) + 2);
  options.preferred_element_type = a.optional_dtype("preferred_element_type");
  return lax::conv_general_dilated_patches(lhs, filter_shape, options);
}

Value conv_general_dilated_local(const Arguments& a) {
  const Array lhs = a.array("lhs");
  const Ints filter_shape = integer_sequence(a, "filter_shape");
  const lax::ConvOptions options = conv_options(a, lhs.ndim(), static_cast<int64_t>(filter_shape.size()) + 2);
  return lax::conv_general_dilated_local(lhs, a.array("rhs"), filter_shape, options);
}

// ---- shapes of convolutions --------------------------------------------------------------------------------------

Shape taken(const Shape& shape, const Ints& order) {
  Shape result;
  for (int64_t dim : order) result.push_back(shape.at(static_cast<std::size_t>(dim)));
  return result;
}

Shape put_back(const Shape& shape, const Ints& order) {
  Shape result(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) result.at(static_cast<std::size_t>(order[i])) = shape[i];
  return result;
}

void require_spaces(const Arguments& a, std::size_t expected, std::size_t got) {
  if (expected == got) return;
  throw TypeError(
      concat("lax.", a.function(), ": wrong number of paddings or strides: expected ", expected, ", got ", got));
}

// Shapes are [batch, features, space...] and [out features, in features, space...].
Shape convolved_shape(const Arguments& a, const Shape& lhs, const Shape& rhs, const Ints& strides,
                      int64_t batch_group_count, const char* padding_name) {
  const PaddingArgument given = padding_argument(a, padding_name);
  const Shape lhs_space(lhs.begin() + 2, lhs.end()), rhs_space(rhs.begin() + 2, rhs.end());
  const lax::Padding padding =
      given.pairs ? *given.pairs : lax::padtype_to_pads(lhs_space, rhs_space, strides, given.mode);
  require_spaces(a, lhs_space.size(), padding.size());
  require_spaces(a, lhs_space.size(), strides.size());
  Shape out{lhs[0] / batch_group_count, rhs[0]};
  for (std::size_t d = 0; d < lhs_space.size(); ++d) {
    const int64_t padded = lhs_space[d] + padding[d].first + padding[d].second;
    if (padded < 0) throw ValueError(concat("lax.", a.function(), ": negative padding is larger than dimension ", d));
    out.push_back(padded < rhs_space[d] ? 0 : (padded - rhs_space[d]) / strides[d] + 1);
  }
  return out;
}

ConvDimensionNumbers permutations(const Arguments& a) {
  const Sequence* specs = a["dimension_numbers"].sequence();
  const std::string* first = specs && specs->items.size() == 3 ? specs->items[0].get_if<std::string>() : nullptr;
  if (!first) {
    throw TypeError(concat("lax.", a.function(), ": argument 'dimension_numbers' must be a triple of strings, got ",
                           a["dimension_numbers"].type_name()));
  }
  const auto rank = static_cast<int64_t>(first->size());
  return conv_dimension_numbers(a, "dimension_numbers", rank, rank);
}

Value conv_general_shape_tuple(const Arguments& a) {
  const ConvDimensionNumbers numbers = permutations(a);
  const Shape out = convolved_shape(a, taken(integer_sequence(a, "lhs_shape"), numbers.lhs_spec),
                                    taken(integer_sequence(a, "rhs_shape"), numbers.rhs_spec),
                                    integer_sequence(a, "window_strides"), 1, "padding");
  return Value::tuple_of(put_back(out, numbers.out_spec));
}

Value tuple_of_specs(const ConvDimensionNumbers& numbers) {
  return Value::named_tuple(
      "ConvDimensionNumbers", {"lhs_spec", "rhs_spec", "out_spec"},
      {Value::tuple_of(numbers.lhs_spec), Value::tuple_of(numbers.rhs_spec), Value::tuple_of(numbers.out_spec)});
}

Value fft(const Arguments& a) {
  static const std::pair<std::string_view, lax::FftType> types[] = {{"fft", lax::FftType::fft},
                                                                    {"ifft", lax::FftType::ifft},
                                                                    {"rfft", lax::FftType::rfft},
                                                                    {"irfft", lax::FftType::irfft}};
  const Value& value = a["fft_type"];
  const std::string* text = value.get_if<std::string>();
  if (!text)
    throw TypeError(concat("lax.fft: argument 'fft_type' must be the name of a transform, got ", value.type_name()));
  std::string plain;
  for (char c : *text) plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  for (const auto& [name, type] : types) {
    if (plain == name) return lax::fft(a.array("x"), type, integer_sequence(a, "fft_lengths"));
  }
  throw ValueError(concat("lax.fft: unknown transform '", *text, "', expected fft, ifft, rfft or irfft"));
}

const Function lax_contract_functions[] = {
    {"dot",
     "lhs, rhs, *, dimension_numbers: DotDimensionNumbers = None, precision=None, preferred_element_type=None, "
     "out_sharding=None",
     dot, "The dot product of vectors or matrices, or a general one with dimension numbers."},
    {"dot_general",
     "lhs, rhs, dimension_numbers: DotDimensionNumbers, precision=None, preferred_element_type=None, *, "
     "out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return lax::dot_general(a.array("lhs"), a.array("rhs"),
                               dot_dimension_numbers("dot_general", a["dimension_numbers"]), dot_options(a));
     },
     "Contracts some dimensions of two arrays and batches over others."},
    {"batch_matmul", "lhs, rhs, precision=None",
     [](const Arguments& a) -> Value {
       return lax::batch_matmul(a.array("lhs"), a.array("rhs"), {.precision = precision_text(a, "precision")});
     },
     "The matrix product over the last two dimensions; leading ones are batches."},
    {"ragged_dot",
     "lhs, rhs, group_sizes, precision=None, preferred_element_type=None, group_offset=None, out_sharding=None",
     [](const Arguments& a) -> Value {
       require_no_group_offset(a);
       return lax::ragged_dot(a.array("lhs"), a.array("rhs"), a.array("group_sizes"), dot_options(a));
     },
     "A matrix product in which each group of rows of lhs has its own matrix of rhs."},
    {"ragged_dot_general",
     "lhs, rhs, group_sizes, ragged_dot_dimension_numbers, precision=None, preferred_element_type=None, "
     "group_offset=None, out_sharding=None",
     [](const Arguments& a) -> Value {
       require_no_group_offset(a);
       return lax::ragged_dot_general(a.array("lhs"), a.array("rhs"), a.array("group_sizes"), ragged_dimensions(a),
                                      dot_options(a));
     },
     "A general dot product whose lhs is split into groups along one dimension."},
    {"conv_general_dilated",
     "lhs, rhs, window_strides, padding, lhs_dilation=None, rhs_dilation=None, dimension_numbers=None, "
     "feature_group_count=1, batch_group_count=1, precision=None, preferred_element_type=None, out_sharding=None",
     conv_general_dilated, "A convolution with strides, padding, dilation and groups."},
    {"conv", "lhs, rhs, window_strides, padding, precision=None, preferred_element_type=None", conv,
     "A convolution with strides and padding."},
    {"conv_with_general_padding",
     "lhs, rhs, window_strides, padding, lhs_dilation: Sequence[int] | None, rhs_dilation: Sequence[int] | None, "
     "precision=None, preferred_element_type=None",
     conv_with_general_padding, "A convolution with strides, padding and dilation."},
    {"conv_transpose",
     "lhs, rhs, strides, padding, rhs_dilation=None, dimension_numbers=None, transpose_kernel=False, precision=None, "
     "preferred_element_type=None, use_consistent_padding=False",
     conv_transpose, "A transposed convolution."},
    {"conv_general_dilated_patches",
     "lhs, filter_shape, window_strides, padding, lhs_dilation=None, rhs_dilation=None, dimension_numbers=None, "
     "precision=None, preferred_element_type=None",
     conv_general_dilated_patches, "The patches that a convolution reads, as features."},
    {"conv_general_dilated_local",
     "lhs, rhs, window_strides, padding, filter_shape, lhs_dilation=None, rhs_dilation=None, dimension_numbers=None, "
     "precision=None",
     conv_general_dilated_local, "A convolution with a separate kernel at every position."},
    {"conv_dimension_numbers", "lhs_shape, rhs_shape, dimension_numbers -> ConvDimensionNumbers",
     [](const Arguments& a) -> Value {
       const auto lhs_rank = static_cast<int64_t>(integer_sequence(a, "lhs_shape").size());
       const auto rhs_rank = static_cast<int64_t>(integer_sequence(a, "rhs_shape").size());
       return tuple_of_specs(conv_dimension_numbers(a, "dimension_numbers", lhs_rank, rhs_rank));
     },
     "The positions of batch, feature and spatial dimensions in strings like NCHW."},
    {"conv_general_permutations", "dimension_numbers -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]",
     [](const Arguments& a) -> Value {
       const ConvDimensionNumbers numbers = permutations(a);
       return Value::tuple_of(Values{Value::tuple_of(numbers.lhs_spec), Value::tuple_of(numbers.rhs_spec),
                                     Value::tuple_of(numbers.out_spec)});
     },
     "The positions of batch, feature and spatial dimensions in the operands and the result."},
    {"conv_shape_tuple", "lhs_shape, rhs_shape, strides, pads, batch_group_count=1 -> tuple[int, ...]",
     [](const Arguments& a) -> Value {
       return Value::tuple_of(convolved_shape(a, integer_sequence(a, "lhs_shape"), integer_sequence(a, "rhs_shape"),
                                              integer_sequence(a, "strides"), a.integer("batch_group_count"), "pads"));
     },
     "The shape of a convolution's result."},
    {"conv_general_shape_tuple", "lhs_shape, rhs_shape, window_strides, padding, dimension_numbers -> tuple[int, ...]",
     conv_general_shape_tuple, "The shape of a convolution's result in another layout."},
    {"fft", "x, fft_type, fft_lengths", fft, "The discrete Fourier transform over the last axes."},
};

}  // namespace

Family lax_contract() { return lax_contract_functions; }

}  // namespace capibara::library
