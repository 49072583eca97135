// Puts TPU kernels in place of fused operations.
#include "backends/pjrt/mosaic/kernels.h"

#include <capibara/config.h>

#include <cstdlib>
#include <string_view>
#include <unordered_map>

#include "compiler/optimise/passes.h"
#include "compiler/optimise/rewrite.h"
#include "lax/rules.h"
#include "program/ir/handles.h"
#include "program/ir/nested.h"

namespace capibara::mosaic {

namespace {

using Table = std::unordered_map<const PrimitiveRecord*, LowerRule>;

const Table& table() {
  static const Table all = [] {
    Table made;
    for (const std::vector<Entry>& entries :
         {norm_kernels(), attention_kernels(), grouped_matmul_kernels(), quantization_kernels(),
          selective_scan_kernels(), ssd_kernels(), gelu_dropout_kernels()}) {
      for (const Entry& entry : entries) made.emplace(&primitive(entry.primitive).record(), entry.rule);
    }
    return made;
  }();
  return all;
}

LowerRule rule_of(const Program&, const Equation& equation) {
  const auto found = table().find(&equation.primitive.record());
  return found == table().end() ? LowerRule() : found->second;
}

Program with_calls(const Program& program) {
  return passes::compose(
      program, [](const Program&, const Equation&) { return true; }, rule_of);
}

std::string row_major_layouts(std::size_t count, const std::function<int64_t(std::size_t)>& rank) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    std::string order;
    for (int64_t axis = rank(i); axis-- > 0;) order += concat(order.empty() ? "" : ", ", axis);
    text += concat(i ? ", " : "", "dense<[", order, "]> : tensor<", rank(i), "xindex>");
  }
  return "[" + text + "]";
}

}  // namespace

bool are_kernels_enabled() {
  const char* value = std::getenv("CAPIBARA_TPU_KERNELS");
  return !value || std::string_view(value) != "0";
}

bool keeps_all_bits() {
  const std::string& precision = config().default_matmul_precision;
  return precision == "highest" || precision == "float32";
}

ArrayType array_type(DType dtype, Shape shape) {
  return scalar_of(dtype, 0).type().strong().with_shape(std::move(shape));
}

Arrays call(Kernel& kernel, const Arrays& operands) {
  kernel.finish();
  for (const Array& operand : operands) kernel.cost.bytes += operand.size() * storage_size(operand.dtype());
  for (const ArrayType& type : kernel.results()) kernel.cost.bytes += type.size() * storage_size(type.dtype);
  const std::vector<ArrayType> types = kernel.results();
  Attr::List results;
  for (const ArrayType& type : types) results.emplace_back(type);
  const std::string attributes = concat(
      kernel.call_attributes(),
      ", operand_layouts = ", row_major_layouts(operands.size(), [&](std::size_t i) { return operands[i].ndim(); }),
      ", result_layouts = ", row_major_layouts(types.size(), [&](std::size_t i) { return types[i].rank(); }));
  return capibara::bind(prim::custom_call(), operands,
                        Attrs{{"call_target_name", "tpu_custom_call"},
                              {"result_types", std::move(results)},
                              {"has_side_effect", false},
                              {"attributes", attributes}});
}

std::vector<std::string> kernel_names(const Program& program) {
  std::vector<std::string> names;
  const std::function<void(const Program&)> visit = [&](const Program& one) {
    for (const Equation& equation : one.equations()) {
      for_each_program(equation.attrs, visit);
      if (equation.primitive != prim::custom_call() || equation.attrs.text("call_target_name") != "tpu_custom_call")
        continue;
      const std::string attributes = equation.attrs.text("attributes"), key = "kernel_name = \"";
      const std::size_t begin = attributes.find(key);
      if (begin == std::string::npos) continue;
      const std::size_t from = begin + key.size();
      names.push_back(attributes.substr(from, attributes.find('"', from) - from));
    }
  };
  visit(program);
  return names;
}

Program call_kernels(const Program& program, bool several_devices) {
  if (!several_devices) return with_calls(program);
  return passes::NestedPass([](const Program& one, passes::NestedPass& nested) {
    Copy copy(one);
    bool changed = false;
    for (const Equation& equation : one.equations()) {
      const bool own = equation.primitive == prim::shard_map();
      Attrs attrs = own ? rewrite_programs(equation.attrs, with_calls) : nested(equation.attrs);
      changed |= !same_object(attrs, equation.attrs);
      copy.emit(equation, copy(equation.inputs), std::move(attrs));
    }
    return changed ? copy.finish() : one;
  })(program);
}

}  // namespace capibara::mosaic
