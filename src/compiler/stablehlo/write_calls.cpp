// Primitives without a StableHLO operation, as calls of foreign functions: LAPACK's through jaxlib, expectations.
#include "compiler/stablehlo/write_calls.h"
#include "program/ir/handles.h"

#include <cstdio>

#include <capibara/error.h>

namespace capibara::stablehlo {

std::string layouts_text(const Attr& layouts) {
  std::string out;
  for (const Attr& entry : **layouts.get_if<std::shared_ptr<const Attr::List>>()) {
    const Ints& order = *entry.get_if<Ints>();
    out += concat(out.empty() ? "" : ", ", "dense<", order.empty() ? "" : list_text(order), "> : tensor<", order.size(),
                  "xindex>");
  }
  return "[" + out + "]";
}

namespace {

// A failure is NaN in the values; StableHLO's own checks are custom calls with side effects.
std::optional<CallText> expectation_call(const Primitive& primitive, const WriteArgs& args) {
  if (!(primitive == expect_primitive())) return std::nullopt;
  CallText call;
  call.target = "check.expect_" + args.attrs.text("kind");
  call.attributes = "has_side_effect = true";
  if (args.attrs.text("kind") == "close") {
    call.attributes += concat(", max_ulp_difference = ", args.attrs.integer("max_ulp"),
                              " : i64, min_ulp_difference = ", args.attrs.integer("min_ulp"), " : i64");
  } else if (args.attrs.text("kind") == "almost_eq") {
    char number[40];
    std::snprintf(number, sizeof number, "%.9e", args.attrs.real("tolerance"));  // MLIR requires a decimal point
    call.attributes += concat(", tolerance = ", number, " : f64");
  }
  return call;
}

// Row-major layouts for every operand or result: our handlers support no other order, and without them a compiler
// chooses its own next to a transpose or a convolution.
std::string row_major_text(std::span<const ArrayType> types) {
  Attr::List layouts;
  for (const ArrayType& type : types) {
    Ints order;
    for (int64_t axis = type.rank(); axis-- > 0;) order.push_back(axis);
    layouts.emplace_back(std::move(order));
  }
  return layouts_text(layouts);
}

// A call through the typed FFI, as jax writes those of LAPACK's routines.
std::optional<CallText> foreign_call(const Primitive& primitive, const WriteArgs& args) {
  if (primitive != prim::custom_call()) return std::nullopt;
  CallText call;
  call.target = args.attrs.text("call_target_name");
  if (args.attrs.has("has_side_effect") && args.attrs.boolean("has_side_effect"))
    call.attributes = "has_side_effect = true, ";
  if (const Attr* opaque = args.attrs.find("attributes")) {  // as it was read
    const bool effect = args.attrs.boolean("has_side_effect");
    const std::string& own = *opaque->get_if<std::string>();
    call.attributes = concat(effect ? "has_side_effect = true" : "", effect && !own.empty() ? ", " : "", own);
    return call;
  }
  const Attr* settings = args.attrs.find("mhlo_backend_config");
  const bool ours = settings && call.target.starts_with("capibara_");  // needs no attributes of jax
  if (ours) {
    call.attributes += "api_version = 4 : i32, backend_config = " + *settings->get_if<std::string>();
  } else {
    call.attributes += "backend_config = \"\"";
    if (settings) call.attributes += ", mhlo.backend_config = " + *settings->get_if<std::string>();
  }
  if (!ours && args.attrs.has("num_batch_dims")) {
    call.attributes +=
        concat(", mhlo.frontend_attributes = {num_batch_dims = \"", args.attrs.integer("num_batch_dims"), "\"}");
  }
  const auto stated = [&](const char* name) { return args.attrs.has(name) && !args.attrs.list(name).empty(); };
  const auto add_layouts = [&](const char* name, std::span<const ArrayType> types) {
    if (stated(name))
      call.attributes += concat(", ", name, " = ", layouts_text(args.attrs[name]));
    else if (ours)
      call.attributes += concat(", ", name, " = ", row_major_text(types));
  };
  add_layouts("operand_layouts", args.inputs);
  if (args.attrs.has("output_operand_aliases")) {
    std::string aliases;
    for (const Attr& entry : args.attrs.list("output_operand_aliases")) {
      const Ints& alias = *entry.get_if<Ints>();
      aliases += concat(aliases.empty() ? "" : ", ", "#stablehlo.output_operand_alias<output_tuple_indices = ",
                        args.outputs.size() == 1 ? "[]" : list_text({alias[0]}), ", operand_index = ", alias[1],
                        ", operand_tuple_indices = []>");
    }
    call.attributes += ", output_operand_aliases = [" + aliases + "]";
  }
  add_layouts("result_layouts", args.outputs);
  return call;
}

}  // namespace

std::optional<CallText> find_call(const Primitive& primitive, const WriteArgs& args) {
  if (std::optional<CallText> call = expectation_call(primitive, args)) return call;
  return foreign_call(primitive, args);
}

}  // namespace capibara::stablehlo
