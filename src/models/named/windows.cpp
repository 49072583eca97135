// Convolutions and pooling over one or two dimensions, and the conversions of their arguments.
#include "models/named/builder.h"

#include <capibara/lax.h>
#include <capibara/numpy.h>

#include <limits>

namespace capibara::models {

namespace lax = jax::lax;

namespace {

using Pairs = lax::Padding;

// (1, 2) or ((1, 1), (2, 2)) or 1: padding before and after each dimension.
Pairs padding_pairs(const Value& value, std::size_t dimensions) {
  Pairs pairs;
  if (value.is_number()) return Pairs(dimensions, {value.integer(), value.integer()});
  const List& list = value.list();
  if (dimensions == 1) return {{list.at(0).integer(), list.at(1).integer()}};
  for (const Value& entry : list) {
    if (entry.is_list())
      pairs.emplace_back(entry.list().at(0).integer(), entry.list().at(1).integer());
    else
      pairs.emplace_back(entry.integer(), entry.integer());
  }
  return pairs;
}

Ints repeated(const Value& value, std::size_t dimensions) {
  std::vector<int64_t> list = value.integers();
  if (list.size() == 1) list.resize(dimensions, list[0]);
  if (list.size() != dimensions) {
    throw ValueError(concat("a number or ", dimensions, " numbers are needed, got ", value.to_string()));
  }
  return Ints(list);
}

Compute convolution(std::size_t dimensions) {
  return [dimensions](const Operands& c) -> Value {
    lax::ConvOptions options;
    options.window_strides = repeated(c["stride"], dimensions);
    options.padding = padding_pairs(c["padding"], dimensions);
    options.rhs_dilation = repeated(c["dilation"], dimensions);
    if (c["groups"].given()) options.feature_group_count = c["groups"].integer();
    Array input = c.array("input"), weight = c.array("weight");
    Array result = lax::conv_general_dilated(input, weight, options);
    if (!c["bias"].given()) return result;
    Array bias = c.array("bias");
    Shape shape(dimensions + 2, 1);
    shape[1] = bias.size();
    return result + bias.reshape(shape);
  };
}

struct Window {
  Ints size;
  lax::WindowOptions options;
};

Window window_of(const Operands& c, int64_t rank, std::size_t dimensions) {
  Window window;
  Ints size = repeated(c["kernel_size"], dimensions), stride = repeated(c["stride"], dimensions);
  Ints dilation = repeated(c["dilation"], dimensions);
  Pairs padding = padding_pairs(c["padding"], dimensions);
  std::size_t batch = static_cast<std::size_t>(rank) - dimensions;
  Ints ones(batch, 1);
  auto extended = [&](const Ints& list) {
    Ints all = ones;
    all.insert(all.end(), list.begin(), list.end());
    return all;
  };
  window.size = extended(size);
  window.options.strides = extended(stride);
  window.options.window_dilation = extended(dilation);
  Pairs pairs(batch, {0, 0});
  pairs.insert(pairs.end(), padding.begin(), padding.end());
  window.options.padding = pairs;
  return window;
}

Compute max_pool(std::size_t dimensions) {
  return [dimensions](const Operands& c) -> Value {
    Array input = c.array("input");
    Window window = window_of(c, input.ndim(), dimensions);
    return lax::reduce_window_max(input, window.size, window.options);
  };
}

Value average_pool(const Operands& c) {
  Array input = c.array("input");
  Window window = window_of(c, input.ndim(), 2);
  return lax::reduce_window_sum(input, window.size, window.options) / Array(element_count(window.size));
}

// "same" keeps the size of a dimension for odd windows.
int64_t same_padding(int64_t kernel) {
  if (kernel % 2 == 0) throw ValueError(concat("padding 'SAME' needs an odd kernel_size, got ", kernel));
  return kernel / 2;
}

bool is_word(const Value& value, const std::string& word) {
  if (!value.is_text()) return false;
  std::string text = value.text().substr(value.text().rfind('.') + 1);
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text == word;
}

Value padding_1d(const Operands& c) {
  const Value& padding = c["input"];
  if (is_word(padding, "VALID")) return List{0, 0};
  if (is_word(padding, "SAME")) {
    int64_t half = same_padding(c["kernel_size"].integers()[0]);
    return List{half, half};
  }
  if (padding.is_number()) return List{padding, padding};
  if (padding.list().size() == 2 && !padding.list()[0].is_list()) return padding;
  throw ValueError(concat("padding is a number, a pair of numbers, 'SAME' or 'VALID', got ", padding.to_string()));
}

Value padding_2d(const Operands& c) {
  const Value& padding = c["input"];
  if (is_word(padding, "VALID")) return List{0, 0};
  if (is_word(padding, "SAME")) {
    std::vector<int64_t> kernel = c["kernel_size"].integers();
    kernel.resize(2, kernel[0]);
    return List{same_padding(kernel[0]), same_padding(kernel[1])};
  }
  if (padding.is_number()) return List{padding, padding};
  if (padding.list().size() == 2) return padding;
  throw ValueError(concat("padding is a number, two numbers, two pairs, 'SAME' or 'VALID', got ", padding.to_string()));
}

// ---- composites -----------------------------------------------------------------------------------------------------

// The composite's keys are those that users set; the primitive inside takes them in one canonical form.
Model pool(const Arguments& a, const std::string& primitive, int dimensions) {
  Builder b(a);
  Term kernel = b.constant("kernel_size", a["kernel_size"]);
  Term stride = b.constant("stride", a["stride"]), padding = b.constant("padding", a["padding"]);
  Term steps = b.add("StrideConverter", {}, {{"input", stride}, {"kernel_size", kernel}});
  std::string converter = concat("PaddingConverter", dimensions, "D");
  Term pads = b.add(converter, {}, {{"input", padding}, {"kernel_size", kernel}});
  Term dilation = b.constant("dilation", a["dilation"]);
  b.output("output", b.add(primitive, {},
                           {{"input", b.input("input")},
                            {"kernel_size", kernel},
                            {"stride", steps},
                            {"padding", pads},
                            {"dilation", dilation}}));
  return b.finish();
}

Model convolution_layer(const Arguments& a, int dimensions) {
  Builder b(a);
  Term weight = b.weight("weight");
  Term sizes = operate("Shape", weight);
  Value inner = Value(Slice{-dimensions, std::nullopt, std::nullopt});
  Term kernel = dimensions == 1 ? index(sizes, -1) : index(sizes, inner);
  std::string converter = concat("PaddingConverter", dimensions, "D");
  Term pads = b.add(converter, {}, {{"input", b.constant("padding", a["padding"])}, {"kernel_size", kernel}});
  std::vector<std::pair<std::string, Term>> inputs = {{"input", b.input("input")},
                                                      {"weight", weight},
                                                      {"stride", b.constant("stride", a["stride"])},
                                                      {"padding", pads},
                                                      {"dilation", b.constant("dilation", a["dilation"])}};
  if (dimensions == 2) inputs.emplace_back("groups", b.constant("groups", a["groups"]));
  bool bias = a.flag("use_bias");
  if (bias) inputs.emplace_back("bias", b.weight("bias"));
  b.output("output", b.add(concat("PrimitiveConvolution", dimensions, "D"), {{"use_bias", bias}}, inputs));
  ShapeTemplate shape("O, C");
  if (a.given("out_channels")) shape.dims[0] = {.size = a["out_channels"].integer()};
  for (int i = 0; i < dimensions; ++i) {
    TemplateDim dim{.name = concat("K", i)};
    if (a.given("kernel_size")) {
      std::vector<int64_t> kernels = a["kernel_size"].integers();
      dim = {.size = kernels[kernels.size() == 1 ? 0 : static_cast<std::size_t>(i)]};
    }
    shape.dims.push_back(dim);
  }
  b.shapes({{"weight", shape}});
  return b.finish();
}

std::string conv1d_keys(const Arguments& a) {
  return concat("input[N, C, L], weight[O, C, K]*, stride=1, padding=(0, 0), dilation=1",
                a.flag("use_bias") ? ", bias[O]*" : "", " -> output[N, O, M]");
}
std::string conv2d_keys(const Arguments& a) {
  return concat("input[N, C, H, W], weight[O, I, K, L]*, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1",
                a.flag("use_bias") ? ", bias[O]*" : "", " -> output[N, O, P, Q]");
}

const char* pool_parameters = "kernel_size, stride=None, padding=(0, 0), dilation=1, input";

}  // namespace

Records window_records() {
  const char* pool_keys_1d = "input[V..., L], kernel_size, stride, padding=(0, 0), dilation=1 -> output[V..., M]";
  const char* pool_keys_2d = "input[V..., H, W], kernel_size, stride, padding=(0, 0), dilation=1 -> output[V..., P, Q]";
  const char* primitive_pool = "input, kernel_size, stride, padding=(0, 0), dilation=1";
  return {
      {"PrimitiveConvolution1D",
       "use_bias=True, input, weight, stride=1, padding=(0, 0), dilation=1, bias",
       "",
       "A convolution over [batch, channels, length].",
       convolution(1),
       {},
       nullptr,
       conv1d_keys},
      {"PrimitiveConvolution2D",
       "use_bias=True, input, weight, stride=1, padding=(0, 0), dilation=1, groups=1, bias",
       "",
       "A convolution over [batch, channels, height, width].",
       convolution(2),
       {},
       nullptr,
       conv2d_keys},
      {"PrimitiveMaxPool1D", primitive_pool, pool_keys_1d, "The maximum of each window.", max_pool(1)},
      {"PrimitiveMaxPool2D", primitive_pool, pool_keys_2d, "The maximum of each window.", max_pool(2)},
      {"PrimitiveAvgPool2D", primitive_pool, pool_keys_2d, "The mean of each window.", average_pool},
      {"PaddingConverter1D", "kernel_size, input", "input, kernel_size -> output", "Padding as a pair.", padding_1d},
      {"PaddingConverter2D", "kernel_size, input", "input, kernel_size -> output", "Padding for two dimensions.",
       padding_2d},
      {"StrideConverter", "kernel_size, input", "input, kernel_size -> output",
       "The stride, by default the kernel's size.",
       [](const Operands& c) { return c["input"].is_none() ? c["kernel_size"] : c["input"]; }},
      {"TupleConverter", "input", "input -> output", "A number as a pair.",
       [](const Operands& c) {
         return c.at(0).is_number() ? Value(List{c.at(0), c.at(0)}) : c.at(0);
       }},
      {"MaxPool1D",
       pool_parameters,
       "",
       "The maximum of windows over the last dimension.",
       {},
       {},
       [](const Arguments& a) { return pool(a, "PrimitiveMaxPool1D", 1); }},
      {"MaxPool2D",
       pool_parameters,
       "",
       "The maximum of windows over the last two dimensions.",
       {},
       {},
       [](const Arguments& a) { return pool(a, "PrimitiveMaxPool2D", 2); }},
      {"AvgPool2D",
       pool_parameters,
       "",
       "The mean of windows over the last two dimensions.",
       {},
       {},
       [](const Arguments& a) { return pool(a, "PrimitiveAvgPool2D", 2); }},
      {"Convolution1D",
       "kernel_size=None, out_channels=None, stride=1, padding=0, dilation=1, use_bias=True, input, weight, bias",
       "",
       "A convolution layer over [batch, channels, length].",
       {},
       {},
       [](const Arguments& a) { return convolution_layer(a, 1); }},
      {"Convolution2D",
       "kernel_size=None, out_channels=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, use_bias=True, "
       "input, "
       "weight, bias",
       "",
       "A convolution layer over [batch, channels, height, width].",
       {},
       {},
       [](const Arguments& a) { return convolution_layer(a, 2); }},
  };
}

}  // namespace capibara::models
