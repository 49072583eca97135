// The rows of the table: elementwise operations, shapes, slices, contractions and regions.
#include "compiler/stablehlo/operations.h"

#include <algorithm>
#include <cstdio>
#include <unordered_map>

#include <capibara/error.h>

#include "program/ir/window_shape.h"

namespace capibara::stablehlo {

namespace {

using Texts = std::vector<AttributeText>;

// ---- comparisons -------------------------------------------------------------------------------------------------

std::string comparison_type(DType dtype) {
  if (is_inexact(dtype)) return "FLOAT";
  return is_signed(dtype) ? "SIGNED" : "UNSIGNED";
}

// Types other than floats have only one order.
std::string total_type(DType dtype) { return is_floating(dtype) ? "TOTALORDER" : comparison_type(dtype); }

Texts comparison_texts(const char* direction, const std::string& type) {
  return {{"comparison_direction", std::string("#stablehlo<comparison_direction ") + direction + ">"},
          {"compare_type", "#stablehlo<comparison_type " + type + ">"}};
}

bool is_comparison(const Operation& operation, const char* direction, bool total) {
  return word_attribute(operation, "comparison_direction") == direction &&
         (word_attribute(operation, "compare_type") == "TOTALORDER") == total;
}

#define CAPIBARA_COMPARISON(name, direction)                                                                     \
  OperationRow {                                                                                                 \
    .operation = "stablehlo.compare", .primitive = name,                                                         \
    .write = [](const WriteArgs& a) { return comparison_texts(direction, comparison_type(a.inputs[0].dtype)); }, \
    .is_operation = [](const Operation& o) { return is_comparison(o, direction, false); }                        \
  }
#define CAPIBARA_TOTAL_COMPARISON(name, direction)                                                          \
  OperationRow {                                                                                            \
    .operation = "stablehlo.compare", .primitive = name,                                                    \
    .write = [](const WriteArgs& a) { return comparison_texts(direction, total_type(a.inputs[0].dtype)); }, \
    .is_operation = [](const Operation& o) { return is_comparison(o, direction, true); }                    \
  }

std::vector<OperationRow> elementwise_rows() {
  std::vector<OperationRow> rows;
  rows.push_back(
      {.operation = "stablehlo.optimization_barrier", .primitive = "optimization_barrier", .form = Form::elementwise});
  // Aliases.
  rows.push_back({.operation = "chlo.tan", .primitive = "tan", .read_only = true});
  rows.push_back({.operation = "chlo._asin_acos_kernel", .primitive = "asin", .read_only = true});
  rows.push_back({.operation = "chlo.conj",
                  .primitive = "conj",
                  .read =
                      [](const ReadArgs& a) {
                        return Attrs{{"input_dtype", a.inputs[0].dtype}};
                      },
                  .read_only = true});
  for (OperationRow& row : std::vector<OperationRow>{
           CAPIBARA_COMPARISON("eq", "EQ"), CAPIBARA_COMPARISON("ne", "NE"), CAPIBARA_COMPARISON("ge", "GE"),
           CAPIBARA_COMPARISON("gt", "GT"), CAPIBARA_COMPARISON("le", "LE"), CAPIBARA_COMPARISON("lt", "LT"),
           CAPIBARA_TOTAL_COMPARISON("eq_to", "EQ"), CAPIBARA_TOTAL_COMPARISON("le_to", "LE"),
           CAPIBARA_TOTAL_COMPARISON("lt_to", "LT")}) {
    rows.push_back(row);
  }
  rows.push_back(
      {.operation = "stablehlo.select", .primitive = "select_n", .form = Form::functional, .order = {0, 2, 1}});
  rows.push_back({.operation = "stablehlo.round_nearest_afz",
                  .primitive = "round",
                  .form = Form::elementwise,
                  .read =
                      [](const ReadArgs&) {
                        return Attrs{{"rounding_method", 0}};
                      },
                  .is_equation = [](const Attrs& attrs) { return attrs.integer("rounding_method") == 0; }});
  rows.push_back({.operation = "stablehlo.round_nearest_even",
                  .primitive = "round",
                  .form = Form::elementwise,
                  .read =
                      [](const ReadArgs&) {
                        return Attrs{{"rounding_method", 1}};
                      },
                  .is_equation = [](const Attrs& attrs) { return attrs.integer("rounding_method") == 1; }});
  rows.push_back({.operation = "stablehlo.convert",
                  .primitive = "convert_element_type",
                  .form = Form::functional,
                  .read = [](const ReadArgs& a) {
                    return Attrs{{"new_dtype", a.outputs[0].dtype}, {"weak_type", false}};
                  }});
  rows.push_back({.operation = "stablehlo.bitcast_convert",
                  .primitive = "bitcast_convert_type",
                  .form = Form::functional,
                  .read = [](const ReadArgs& a) {
                    return Attrs{{"new_dtype", a.outputs[0].dtype}};
                  }});
  rows.push_back({.operation = "stablehlo.reduce_precision",
                  .primitive = "reduce_precision",
                  .write = [](const WriteArgs& a) -> Texts {
                    return {{"exponent_bits", std::to_string(a.attrs.integer("exponent_bits")) + " : i32"},
                            {"mantissa_bits", std::to_string(a.attrs.integer("mantissa_bits")) + " : i32"}};
                  },
                  .read =
                      [](const ReadArgs& a) {
                        return Attrs{{"exponent_bits", integer_attribute(a.operation, "exponent_bits")},
                                     {"mantissa_bits", integer_attribute(a.operation, "mantissa_bits")}};
                      }});
  // All others map to the operation in the record, with the same operands and no attributes.
  for (const Primitive& primitive : catalog()) {
    const std::string& operation = primitive->stablehlo;
    const bool written = std::any_of(rows.begin(), rows.end(), [&](const OperationRow& row) {
      return !row.read_only && row.primitive == primitive.name();
    });
    if (primitive->traits.elementwise == Elementwise::no || operation.empty() || written) continue;
    const bool chlo = operation.starts_with("chlo.");  // its custom assembly formats differ
    rows.push_back(
        {.operation = operation, .primitive = primitive.name(), .form = chlo ? Form::generic : Form::elementwise});
  }
  return rows;
}

// ---- shapes ------------------------------------------------------------------------------------------------------

// A single list of integers whose name differs between the two sides.
#define CAPIBARA_INTEGERS_ROW(operation_name, primitive_name, text, attribute) \
  OperationRow {                                                               \
    .operation = operation_name, .primitive = primitive_name,                  \
    .write = [](const WriteArgs& a) -> Texts {                                 \
      return {{text, array_text(a.attrs.ints(attribute))}};                    \
    },                                                                         \
    .read = [](const ReadArgs& a) {                                            \
      return Attrs{{attribute, integers_attribute(a.operation, text)}};        \
    }                                                                          \
  }

std::vector<OperationRow> shape_rows() {
  std::vector<OperationRow> rows;
  rows.push_back({.operation = "stablehlo.broadcast_in_dim",
                  .primitive = "broadcast_in_dim",
                  .write = [](const WriteArgs& a) -> Texts {
                    return {{"broadcast_dimensions", array_text(a.attrs.ints("broadcast_dimensions"))}};
                  },
                  .read =
                      [](const ReadArgs& a) {
                        return Attrs{{"shape", a.outputs[0].shape},
                                     {"broadcast_dimensions", integers_attribute(a.operation, "broadcast_dimensions")},
                                     {"sharding", Attr()}};
                      }});
  rows.push_back({.operation = "stablehlo.reshape",
                  .primitive = "reshape",
                  .form = Form::functional,
                  .read = [](const ReadArgs& a) {
                    return Attrs{{"new_sizes", a.outputs[0].shape}, {"dimensions", Attr()}, {"sharding", Attr()}};
                  }});
  rows.push_back(CAPIBARA_INTEGERS_ROW("stablehlo.transpose", "transpose", "permutation", "permutation"));
  rows.push_back(CAPIBARA_INTEGERS_ROW("stablehlo.reverse", "rev", "dimensions", "dimensions"));
  rows.push_back(CAPIBARA_INTEGERS_ROW("stablehlo.dynamic_slice", "dynamic_slice", "slice_sizes", "slice_sizes"));
  rows.push_back(
      {.operation = "stablehlo.dynamic_update_slice", .primitive = "dynamic_update_slice", .form = Form::functional});
  rows.push_back({.operation = "stablehlo.concatenate",
                  .primitive = "concatenate",
                  .write = [](const WriteArgs& a) -> Texts {
                    return {{"dimension", integer_text(a.attrs.integer("dimension"))}};
                  },
                  .read =
                      [](const ReadArgs& a) {
                        return Attrs{{"dimension", integer_attribute(a.operation, "dimension")}};
                      }});
  rows.push_back({.operation = "stablehlo.iota",
                  .primitive = "iota",
                  .write = [](const WriteArgs& a) -> Texts {
                    return {{"iota_dimension", integer_text(a.attrs.integer("dimension"))}};
                  },
                  .read =
                      [](const ReadArgs& a) {
                        return Attrs{{"dtype", a.outputs[0].dtype},
                                     {"shape", a.outputs[0].shape},
                                     {"dimension", integer_attribute(a.operation, "iota_dimension")},
                                     {"sharding", Attr()}};
                      }});
  rows.push_back({.operation = "stablehlo.pad",
                  .primitive = "pad",
                  .write = [](const WriteArgs& a) -> Texts {
                    Ints parts[3];
                    for (const Attr& entry : a.attrs.list("padding_config")) {
                      const Ints& dim = *entry.get_if<Ints>();
                      for (std::size_t k = 0; k < 3; ++k) parts[k].push_back(dim[k]);
                    }
                    return {{"edge_padding_high", array_text(parts[1])},
                            {"edge_padding_low", array_text(parts[0])},
                            {"interior_padding", array_text(parts[2])}};
                  },
                  .read =
                      [](const ReadArgs& a) {
                        const Ints low = integers_attribute(a.operation, "edge_padding_low");
                        const Ints high = integers_attribute(a.operation, "edge_padding_high");
                        const Ints interior = integers_attribute(a.operation, "interior_padding");
                        if (high.size() != low.size() || interior.size() != low.size()) {
                          fail(a.operation, "expected paddings of equal length");
                        }
                        Attr::List config;
                        for (std::size_t i = 0; i < low.size(); ++i)
                          config.push_back(Ints{low[i], high[i], interior[i]});
                        return Attrs{{"padding_config", std::move(config)}};
                      }});
  rows.push_back({.operation = "stablehlo.slice",
                  .primitive = "slice",
                  .write = [](const WriteArgs& a) -> Texts {
                    const Ints* strides = a.attrs["strides"].get_if<Ints>();
                    const Ints ones(a.inputs[0].shape.size(), 1);
                    return {{"limit_indices", array_text(a.attrs.ints("limit_indices"))},
                            {"start_indices", array_text(a.attrs.ints("start_indices"))},
                            {"strides", array_text(strides ? *strides : ones)}};
                  },
                  .read =
                      [](const ReadArgs& a) {
                        const Ints strides = integers_attribute(a.operation, "strides");
                        const bool dense =
                            std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s == 1; });
                        return Attrs{{"start_indices", integers_attribute(a.operation, "start_indices")},
                                     {"limit_indices", integers_attribute(a.operation, "limit_indices")},
                                     {"strides", dense ? Attr() : Attr(strides)}};
                      }});
  rows.push_back({.operation = "chlo.top_k",
                  .primitive = "top_k",
                  .write = [](const WriteArgs& a) -> Texts {
                    return {{"k", integer_text(a.attrs.integer("k"))}};
                  },
                  .read =
                      [](const ReadArgs& a) {
                        return Attrs{{"k", integer_attribute(a.operation, "k")}, {"axis", a.inputs[0].rank() - 1}};
                      }});
  return rows;
}

// ---- gather and scatter ------------------------------------------------------------------------------------------

// Empty lists are omitted, as in MLIR's output.
std::string structure_text(const char* kind, const std::vector<std::pair<const char*, Ints>>& lists,
                           int64_t index_dim) {
  std::string out;
  for (const auto& [name, values] : lists) {
    if (!values.empty()) out += std::string(name) + " = " + list_text(values) + ", ";
  }
  return std::string("#stablehlo.") + kind + "<" + out + "index_vector_dim = " + std::to_string(index_dim) + ">";
}

std::vector<OperationRow> index_rows() {
  std::vector<OperationRow> rows;
  // The reader has already moved the index vectors into the last dimension.
  rows.push_back(
      {.operation = "stablehlo.gather",
       .primitive = "gather",
       .write = [](const WriteArgs& a) -> Texts {
         const auto& d = a.attrs.get<GatherDimensionNumbers>("dimension_numbers");
         return {{"dimension_numbers", structure_text("gather",
                                                      {{"offset_dims", d.offset_dims},
                                                       {"collapsed_slice_dims", d.collapsed_slice_dims},
                                                       {"operand_batching_dims", d.operand_batching_dims},
                                                       {"start_indices_batching_dims", d.start_indices_batching_dims},
                                                       {"start_index_map", d.start_index_map}},
                                                      a.inputs[1].rank() - 1)},
                 {"indices_are_sorted", a.attrs.boolean("indices_are_sorted") ? "true" : "false"},
                 {"slice_sizes", array_text(a.attrs.ints("slice_sizes"))}};
       },
       .read =
           [](const ReadArgs& a) {
             const Attribute numbers = a.operation.attributes.find("dimension_numbers");
             return Attrs{
                 {"dimension_numbers", GatherDimensionNumbers{field_integers(numbers, "offset_dims"),
                                                              field_integers(numbers, "collapsed_slice_dims"),
                                                              field_integers(numbers, "start_index_map"),
                                                              field_integers(numbers, "operand_batching_dims"),
                                                              field_integers(numbers, "start_indices_batching_dims")}},
                 {"slice_sizes", integers_attribute(a.operation, "slice_sizes")},
                 {"unique_indices", false},
                 {"indices_are_sorted", flag_attribute(a.operation, "indices_are_sorted")},
                 {"mode", "clip"},
                 {"fill_value", Attr()}};
           }});
  rows.push_back({.operation = "stablehlo.scatter",
                  .primitive = "scatter",
                  .regions = {"update_jaxpr"},
                  .write = [](const WriteArgs& a) -> Texts {
                    const auto& d = a.attrs.get<ScatterDimensionNumbers>("dimension_numbers");
                    const ArrayType& indices = a.inputs[a.inputs.size() / 2];
                    return {{"indices_are_sorted", a.attrs.boolean("indices_are_sorted") ? "true" : "false"},
                            {"scatter_dimension_numbers",
                             structure_text("scatter",
                                            {{"update_window_dims", d.update_window_dims},
                                             {"inserted_window_dims", d.inserted_window_dims},
                                             {"input_batching_dims", d.operand_batching_dims},
                                             {"scatter_indices_batching_dims", d.scatter_indices_batching_dims},
                                             {"scatter_dims_to_operand_dims", d.scatter_dims_to_operand_dims}},
                                            indices.rank() - 1)},
                            {"unique_indices", a.attrs.boolean("unique_indices") ? "true" : "false"}};
                  },
                  .read =
                      [](const ReadArgs& a) {
                        const Attribute numbers = a.operation.attributes.find("scatter_dimension_numbers");
                        return Attrs{
                            {"dimension_numbers",
                             ScatterDimensionNumbers{field_integers(numbers, "update_window_dims"),
                                                     field_integers(numbers, "inserted_window_dims"),
                                                     field_integers(numbers, "scatter_dims_to_operand_dims"),
                                                     field_integers(numbers, "input_batching_dims"),
                                                     field_integers(numbers, "scatter_indices_batching_dims")}},
                            {"indices_are_sorted", flag_attribute(a.operation, "indices_are_sorted")},
                            {"unique_indices", flag_attribute(a.operation, "unique_indices")},
                            {"mode", "fill_or_drop"},
                            {"update_consts", Attr::List{}}};
                      }});
  return rows;
}

// ---- contractions and transforms ---------------------------------------------------------------------------------

// No precision means the default precision for both operands.
Texts with_precision(Texts texts, const Attrs& attrs) {
  const auto* list = attrs["precision"].get_if<std::shared_ptr<const Attr::List>>();
  if (!list) return texts;
  std::string words;
  for (const Attr& entry : **list) {
    std::string word = *entry.get_if<std::string>();
    std::transform(word.begin(), word.end(), word.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
    words += (words.empty() ? "" : ", ") + ("#stablehlo<precision " + word + ">");
  }
  texts.push_back({"precision_config", "[" + words + "]"});
  return texts;
}

Attr precision_of(const Operation& operation) {
  const Attribute attribute = operation.attributes.find("precision_config");
  const auto* list = attribute.as<Array>();
  if (!list) return Attr();
  Attr::List words;
  bool plain = true;
  for (const Attribute& element : list->elements) {
    const auto* word = element.as<DialectAttribute>();
    if (!word) fail(operation, "expected precisions as attribute 'precision_config'");
    std::string lower = word->value;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) { return static_cast<char>(c - 'A' + 'a'); });
    plain = plain && lower == "default";
    words.push_back(lower);
  }
  return plain ? Attr() : Attr(std::move(words));
}

std::string convolution_numbers_text(const ConvDimensionNumbers& numbers) {
  auto side = [](const Ints& spec, char first, char second) {
    std::vector<std::string> names(spec.size());
    for (std::size_t i = 0; i < spec.size(); ++i) {
      std::string& name = names[static_cast<std::size_t>(spec[i])];
      name = i == 0 ? std::string(1, first) : i == 1 ? std::string(1, second) : std::to_string(i - 2);
    }
    std::string out = "[";
    for (const std::string& name : names) out += (out.size() == 1 ? "" : ", ") + name;
    return out + "]";
  };
  return "#stablehlo.conv<" + side(numbers.lhs_spec, 'b', 'f') + "x" + side(numbers.rhs_spec, 'o', 'i') + "->" +
         side(numbers.out_spec, 'b', 'f') + ">";
}

ConvDimensionNumbers convolution_numbers(const Operation& operation) {
  const Attribute numbers = operation.attributes.find("dimension_numbers");
  auto spec = [&](const std::string& side, const char* first, const char* second) {
    Ints out = {field_integer(numbers, side + first, -1), field_integer(numbers, side + second, -1)};
    const Ints space = field_integers(numbers, side + "_spatial_dimensions");
    out.insert(out.end(), space.begin(), space.end());
    return out;
  };
  return {spec("input", "_batch_dimension", "_feature_dimension"),
          spec("kernel", "_output_feature_dimension", "_input_feature_dimension"),
          spec("output", "_batch_dimension", "_feature_dimension")};
}

const char* const fft_kinds[] = {"FFT", "IFFT", "RFFT", "IRFFT"};

std::vector<OperationRow> contraction_rows() {
  std::vector<OperationRow> rows;
  rows.push_back(
      {.operation = "stablehlo.dot_general",
       .primitive = "dot_general",
       .write = [](const WriteArgs& a) -> Texts {
         const auto& d = a.attrs.get<DotDimensionNumbers>("dimension_numbers");
         std::string out;
         const std::pair<const char*, const Ints&> lists[] = {{"lhs_batching_dimensions", d.lhs_batch},
                                                              {"rhs_batching_dimensions", d.rhs_batch},
                                                              {"lhs_contracting_dimensions", d.lhs_contracting},
                                                              {"rhs_contracting_dimensions", d.rhs_contracting}};
         for (const auto& [name, values] : lists) {
           if (!values.empty()) out += concat(out.empty() ? "" : ", ", name, " = ", list_text(values));
         }
         return with_precision({{"dot_dimension_numbers", "#stablehlo.dot<" + out + ">"}}, a.attrs);
       },
       .read =
           [](const ReadArgs& a) {
             const Attribute numbers = a.operation.attributes.find("dot_dimension_numbers");
             return Attrs{
                 {"dimension_numbers", DotDimensionNumbers{field_integers(numbers, "lhs_contracting_dimensions"),
                                                           field_integers(numbers, "rhs_contracting_dimensions"),
                                                           field_integers(numbers, "lhs_batching_dimensions"),
                                                           field_integers(numbers, "rhs_batching_dimensions")}},
                 {"precision", precision_of(a.operation)},
                 {"preferred_element_type", a.outputs[0].dtype},
                 {"out_sharding", Attr()}};
           }});
  rows.push_back(
      {.operation = "stablehlo.convolution",
       .primitive = "conv_general_dilated",
       .write = [](const WriteArgs& a) -> Texts {
         return with_precision(
             {{"batch_group_count", integer_text(a.attrs.integer("batch_group_count"))},
              {"dimension_numbers", convolution_numbers_text(a.attrs.get<ConvDimensionNumbers>("dimension_numbers"))},
              {"feature_group_count", integer_text(a.attrs.integer("feature_group_count"))},
              {"lhs_dilation", array_text(a.attrs.ints("lhs_dilation"))},
              {"padding", pairs_text(padding_of(a.attrs["padding"]))},
              {"rhs_dilation", array_text(a.attrs.ints("rhs_dilation"))},
              {"window_strides", array_text(a.attrs.ints("window_strides"))}},
             a.attrs);
       },
       .read =
           [](const ReadArgs& a) {
             const ConvDimensionNumbers numbers = convolution_numbers(a.operation);
             const std::size_t space = numbers.lhs_spec.size() - 2;
             const Ints ones(space, 1);
             return Attrs{{"window_strides", integers_attribute(a.operation, "window_strides", ones)},
                          {"padding", padding_attr(pairs_attribute(a.operation, "padding", space))},
                          {"lhs_dilation", integers_attribute(a.operation, "lhs_dilation", ones)},
                          {"rhs_dilation", integers_attribute(a.operation, "rhs_dilation", ones)},
                          {"dimension_numbers", numbers},
                          {"feature_group_count", integer_attribute(a.operation, "feature_group_count")},
                          {"batch_group_count", integer_attribute(a.operation, "batch_group_count")},
                          {"precision", precision_of(a.operation)},
                          {"preferred_element_type", a.outputs[0].dtype},
                          {"out_sharding", Attr()}};
           }});
  rows.push_back({.operation = "stablehlo.fft",
                  .primitive = "fft",
                  .write = [](const WriteArgs& a) -> Texts {
                    return {{"fft_length", array_text(a.attrs.ints("fft_lengths"))},
                            {"fft_type", concat("#stablehlo<fft_type ", fft_kinds[a.attrs.integer("fft_type")], ">")}};
                  },
                  .read =
                      [](const ReadArgs& a) {
                        const std::string kind = word_attribute(a.operation, "fft_type");
                        for (int64_t i = 0; i < 4; ++i) {
                          if (kind != fft_kinds[i]) continue;
                          return Attrs{{"fft_type", i}, {"fft_lengths", integers_attribute(a.operation, "fft_length")}};
                        }
                        fail(a.operation,
                             concat("expected FFT, IFFT, RFFT or IRFFT as attribute 'fft_type', got ", kind));
                      }});
  return rows;
}

// ---- regions -----------------------------------------------------------------------------------------------------

Texts window_texts(const Window& window, bool dilations) {
  Texts texts = {{"padding", pairs_text(window.padding)},
                 {"window_dimensions", array_text(window.dimensions)},
                 {"window_strides", array_text(window.strides)}};
  if (dilations) {
    texts.push_back({"base_dilations", array_text(window.base_dilation)});
    texts.push_back({"window_dilations", array_text(window.window_dilation)});
  }
  return texts;
}

Window window_of(const Operation& operation, std::size_t rank) {
  const Ints ones(rank, 1);
  Window window;
  window.dimensions = integers_attribute(operation, "window_dimensions", ones);
  window.strides = integers_attribute(operation, "window_strides", ones);
  window.padding = pairs_attribute(operation, "padding", rank);
  window.base_dilation = integers_attribute(operation, "base_dilations", ones);
  window.window_dilation = integers_attribute(operation, "window_dilations", ones);
  return window;
}

std::vector<OperationRow> region_rows() {
  std::vector<OperationRow> rows;
  rows.push_back({.operation = "stablehlo.reduce",
                  .primitive = "reduce",
                  .regions = {"jaxpr"},
                  .write = [](const WriteArgs& a) -> Texts {
                    return {{"dimensions", array_text(a.attrs.ints("dimensions"))}};
                  },
                  .read =
                      [](const ReadArgs& a) {
                        return Attrs{{"dimensions", integers_attribute(a.operation, "dimensions")}};
                      }});
  rows.push_back({.operation = "stablehlo.reduce_window",
                  .primitive = "reduce_window",
                  .regions = {"jaxpr"},
                  .write = [](const WriteArgs& a) -> Texts { return window_texts(Window::of(a.attrs), true); },
                  .read =
                      [](const ReadArgs& a) {
                        return window_of(a.operation, a.inputs[0].shape.size()).attrs().with("consts", Ints{});
                      }});
  rows.push_back({.operation = "stablehlo.select_and_scatter",
                  .primitive = "select_and_scatter",
                  .regions = {"select_jaxpr", "scatter_jaxpr"},
                  .write = [](const WriteArgs& a) -> Texts { return window_texts(Window::of(a.attrs), false); },
                  .read =
                      [](const ReadArgs& a) {
                        return window_of(a.operation, a.inputs[0].shape.size())
                            .attrs_without_dilation()
                            .with("select_consts", Ints{})
                            .with("scatter_consts", Ints{});
                      }});
  rows.push_back({.operation = "stablehlo.map",
                  .primitive = "map",
                  .regions = {"jaxpr"},
                  .write = [](const WriteArgs& a) -> Texts {
                    Ints dimensions;
                    for (int64_t i = 0; i < a.inputs[0].rank(); ++i) dimensions.push_back(i);
                    return {{"dimensions", array_text(dimensions)}};
                  },
                  .read =
                      [](const ReadArgs& a) {
                        return Attrs{{"dimensions", integers_attribute(a.operation, "dimensions", {})}};
                      }});
  rows.push_back({.operation = "stablehlo.sort",
                  .primitive = "sort_general",
                  .regions = {"comparator"},
                  .write = [](const WriteArgs& a) -> Texts {
                    return {{"dimension", integer_text(a.attrs.integer("dimension"))},
                            {"is_stable", a.attrs.boolean("is_stable") ? "true" : "false"}};
                  },
                  .read =
                      [](const ReadArgs& a) {
                        int64_t dimension = integer_attribute(a.operation, "dimension", -1);
                        if (dimension < 0) dimension += a.inputs[0].rank();
                        return Attrs{{"dimension", dimension}, {"is_stable", flag_attribute(a.operation, "is_stable")}};
                      }});
  return rows;
}

// ---- linear algebra and random bits ------------------------------------------------------------------------------

Texts normalisation_texts(const WriteArgs& a) {
  char epsilon[40];
  std::snprintf(epsilon, sizeof epsilon, "%.9e", a.attrs.real("epsilon"));  // MLIR requires a decimal point
  return {{"epsilon", std::string(epsilon) + " : f32"},
          {"feature_index", integer_text(a.attrs.integer("feature_index"))}};
}

Attrs normalisation_attrs(const ReadArgs& a) {
  const Attribute epsilon = a.operation.attributes.find("epsilon");
  const auto* value = epsilon.as<Float>();
  if (!value) fail(a.operation, "expected a number as attribute 'epsilon'");
  return {{"epsilon", value->value}, {"feature_index", integer_attribute(a.operation, "feature_index")}};
}

std::vector<OperationRow> remaining_rows() {
  std::vector<OperationRow> rows;
  rows.push_back({.operation = "stablehlo.batch_norm_training",
                  .primitive = "batch_norm_training",
                  .write = normalisation_texts,
                  .read = normalisation_attrs});
  rows.push_back({.operation = "stablehlo.batch_norm_inference",
                  .primitive = "batch_norm_inference",
                  .write = normalisation_texts,
                  .read = normalisation_attrs});
  rows.push_back({.operation = "stablehlo.batch_norm_grad",
                  .primitive = "batch_norm_grad",
                  .write = normalisation_texts,
                  .read = normalisation_attrs});
  rows.push_back(
      {.operation = "stablehlo.rng_bit_generator",
       .primitive = "rng_bit_generator",
       .write = [](const WriteArgs& a) -> Texts {
         const std::string& algorithm = a.attrs.text("algorithm");  // RNG_DEFAULT
         return {{"rng_algorithm", "#stablehlo<rng_algorithm " + algorithm.substr(algorithm.find('_') + 1) + ">"}};
       },
       .read =
           [](const ReadArgs& a) {
             if (a.outputs.size() != 2) fail(a.operation, "expected two results, the state and the bits");
             return Attrs{{"algorithm", "RNG_" + word_attribute(a.operation, "rng_algorithm", "DEFAULT")},
                          {"dtype", a.outputs[1].dtype},
                          {"out_sharding", Attr()},
                          {"shape", a.outputs[1].shape}};
           }});
  // The reader computes an upper factor as the adjoint of a lower one.
  rows.push_back({.operation = "stablehlo.cholesky", .primitive = "cholesky", .write = [](const WriteArgs&) -> Texts {
                    return {{"lower", "true"}};
                  }});
  rows.push_back({.operation = "stablehlo.triangular_solve",
                  .primitive = "triangular_solve",
                  .write = [](const WriteArgs& a) -> Texts {
                    const char* transpose = !a.attrs.boolean("transpose_a")  ? "NO_TRANSPOSE"
                                            : a.attrs.boolean("conjugate_a") ? "ADJOINT"
                                                                             : "TRANSPOSE";
                    return {{"left_side", a.attrs.boolean("left_side") ? "true" : "false"},
                            {"lower", a.attrs.boolean("lower") ? "true" : "false"},
                            {"transpose_a", concat("#stablehlo<transpose ", transpose, ">")},
                            {"unit_diagonal", a.attrs.boolean("unit_diagonal") ? "true" : "false"}};
                  },
                  .read =
                      [](const ReadArgs& a) {
                        const std::string transpose = word_attribute(a.operation, "transpose_a", "NO_TRANSPOSE");
                        return Attrs{{"left_side", flag_attribute(a.operation, "left_side")},
                                     {"lower", flag_attribute(a.operation, "lower")},
                                     {"transpose_a", transpose != "NO_TRANSPOSE"},
                                     {"conjugate_a", transpose == "ADJOINT"},
                                     {"unit_diagonal", flag_attribute(a.operation, "unit_diagonal")}};
                      }});
  return rows;
}

struct Table {
  std::vector<OperationRow> rows;
  std::unordered_multimap<const PrimitiveRecord*, const OperationRow*> by_primitive;
  std::unordered_multimap<std::string_view, const OperationRow*> by_operation;

  Table() {
    for (auto part : {elementwise_rows, shape_rows, index_rows, contraction_rows, region_rows, remaining_rows}) {
      for (OperationRow& row : part()) rows.push_back(std::move(row));
    }
    for (const OperationRow& row : rows) {
      if (!row.read_only) by_primitive.emplace(&primitive(row.primitive).record(), &row);
      by_operation.emplace(row.operation, &row);
    }
  }
};

const Table& table() {
  static const Table instance;
  return instance;
}

}  // namespace

const std::vector<OperationRow>& operation_rows() { return table().rows; }

const OperationRow* find_row(const Primitive& primitive, const Attrs& attrs) {
  auto [first, last] = table().by_primitive.equal_range(&primitive.record());
  for (auto it = first; it != last; ++it) {
    if (!it->second->is_equation || it->second->is_equation(attrs)) return it->second;
  }
  return nullptr;
}

const OperationRow* find_row(const Operation& operation) {
  auto [first, last] = table().by_operation.equal_range(operation.name);
  for (auto it = first; it != last; ++it) {
    if (!it->second->is_operation || it->second->is_operation(operation)) return it->second;
  }
  return nullptr;
}

}  // namespace capibara::stablehlo
