// The custom calls of a text, for tests: targets, layouts, and XLA's description of an attention's arrays for
// cuDNN.
#pragma once

#include <capibara/attributes.h>

#include <gtest/gtest.h>

#include <map>

#include "backends/pjrt/json_leaves.h"
#include "compiler/stablehlo/syntax/parser.h"

namespace capibara::pjrt {

using Calls = std::vector<stablehlo::Operation>;

inline Calls calls_of(const std::string& text) {
  Calls calls;
  for (const stablehlo::Function& function : stablehlo::parse_module(text).functions) {
    for (const stablehlo::Operation& operation : function.body.operations) {
      if (operation.name == "stablehlo.custom_call") calls.push_back(operation);
    }
  }
  return calls;
}

inline std::string text_attribute(const stablehlo::Operation& call, const char* name) {
  const auto* text = call.attributes.find(name).as<stablehlo::String>();
  return text ? text->value : "";
}

inline std::string target_of(const stablehlo::Operation& call) { return text_attribute(call, "call_target_name"); }

inline std::vector<Ints> layouts_of(const stablehlo::Operation& call, const char* name) {
  std::vector<Ints> lists;
  if (const auto* array = call.attributes.find(name).as<stablehlo::Array>()) {
    for (const stablehlo::Attribute& layout : array->elements) lists.push_back(stablehlo::integers_of(layout).value());
  }
  return lists;
}

inline std::map<std::string, std::string> config_of(const stablehlo::Operation& call) {
  return Leaves(text_attribute(call, "backend_config")).found;
}

// ---- XLA's descriptions for cuDNN ---------------------------------------------------------------------------------

// An array as described to cuDNN: sizes and strides in the order batch, heads, and two more.
struct Tensor {
  Ints sizes, strides;
  friend bool operator==(const Tensor&, const Tensor&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
    for (std::size_t i = 0; i < tensor.sizes.size(); ++i)
      out << (i ? " " : "") << tensor.sizes[i] << "/" << tensor.strides[i];
    return out;
  }
};

inline Tensor plain_tensor(const stablehlo::Type& type, const Ints& layout) {
  Tensor tensor{type.dims(), Ints(type.dims().size())};
  int64_t stride = 1;
  for (const int64_t dimension : layout) {
    tensor.strides[static_cast<std::size_t>(dimension)] = stride;
    stride *= tensor.sizes[static_cast<std::size_t>(dimension)];
  }
  return tensor;
}

// By a dot's dimension numbers: batch dimensions, then the contracting one before or after the other one.
inline Tensor tensor_of_product(const stablehlo::Operation& call, std::size_t operand, const std::string& product,
                                bool contracted_last) {
  const Tensor plain = plain_tensor(call.operands[operand].type, layouts_of(call, "operand_layouts").at(operand));
  const std::map<std::string, std::string> config = config_of(call);
  const std::string path = "cudnn_fmha_backend_config." + product + "_dot_dimension_numbers.";
  const std::string side = operand == 0 && product == "bmm1" ? "lhs_" : "rhs_";
  const auto number = [&](const std::string& name) { return std::stoll(config.at(path + side + name)); };
  Ints order = {number("batch_dimensions.0"), number("batch_dimensions.1")};
  const int64_t contracted = number("contracting_dimensions.0"), other = 6 - order[0] - order[1] - contracted;
  order.push_back(contracted_last ? other : contracted);
  order.push_back(contracted_last ? contracted : other);
  Tensor tensor;
  for (const int64_t dimension : order) {
    tensor.sizes.push_back(plain.sizes.at(static_cast<std::size_t>(dimension)));
    tensor.strides.push_back(plain.strides.at(static_cast<std::size_t>(dimension)));
  }
  return tensor;
}

inline std::vector<Tensor> tensors_of(const stablehlo::Operation& call) {
  std::vector<Tensor> tensors;
  if (!target_of(call).ends_with("Backward")) {
    tensors = {tensor_of_product(call, 0, "bmm1", true), tensor_of_product(call, 1, "bmm1", true),
               tensor_of_product(call, 2, "bmm2", false)};
  } else {
    tensors = {
        tensor_of_product(call, 0, "bmm1_grad_gemm1", false), tensor_of_product(call, 1, "bmm1_grad_gemm2", false),
        tensor_of_product(call, 2, "bmm2_grad_gemm2", true), tensor_of_product(call, 4, "bmm2_grad_gemm1", false)};
  }
  for (std::size_t i = 3; i < call.operands.size(); ++i) {
    const Ints layout = layouts_of(call, "operand_layouts").at(i);
    Tensor tensor = plain_tensor(call.operands[i].type, layout);
    const bool is_output = target_of(call).ends_with("Backward") && i + 1 == call.operands.size();
    if (is_output) {  // described like the cotangent, so it must have the same layout
      EXPECT_EQ(tensor.strides, plain_tensor(call.operands[4].type, layouts_of(call, "operand_layouts")[4]).strides);
      continue;
    }
    if (!(target_of(call).ends_with("Backward") && i == 4)) tensors.push_back(tensor);
  }
  const std::vector<Ints> layouts = layouts_of(call, "result_layouts");
  for (std::size_t i = 0; i < call.results.size(); ++i)
    tensors.push_back(plain_tensor(call.results[i].type, layouts.at(i)));
  return tensors;
}

}  // namespace capibara::pjrt
