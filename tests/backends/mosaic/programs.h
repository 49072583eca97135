// Programs with TPU kernels, run on the host: each kernel by the interpreter, the equations between them as they are.
#pragma once

#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "backends/pjrt/mosaic/kernels.h"
#include "interpreter.h"
#include "io/files/base64.h"
#include "program/ir/build.h"
#include "program/ir/handles.h"
#include "program/trace/stage.h"

namespace capibara::mosaic {

inline std::vector<std::string> kernel_texts(const Program& program) {
  std::vector<std::string> texts;
  for (const Equation& equation : program.equations()) {
    if (equation.primitive != prim::custom_call()) continue;
    const std::string attributes = equation.attrs.text("attributes"), key = "body\\22: \\22";
    const std::size_t begin = attributes.find(key) + key.size();
    texts.push_back(from_base64(attributes.substr(begin, attributes.find("\\22", begin) - begin)).value_or(""));
  }
  return texts;
}

inline std::vector<double> numbers(const Array& x) {
  if (x.dtype() != DType::int32) return x.astype(DType::float32).to_vector<double>();
  const std::vector<int32_t> all = x.to_vector<int32_t>();
  return {all.begin(), all.end()};
}

inline Tensor tensor_of(const ArrayType& type) { return {name_of(element_of(type.dtype).value()), type.shape, {}}; }

inline Array array_from(const Tensor& tensor, const ArrayType& type) {
  std::vector<float> data(tensor.data.begin(), tensor.data.end());
  return Array::from_host(DType::float32, type.shape, data.data()).astype(type.dtype);
}

inline Arrays run(const Program& program, const Arrays& inputs) {
  std::vector<std::string> texts = kernel_texts(program);
  std::size_t next = 0;
  std::map<int32_t, Array> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) values[program.invars()[i].id] = inputs[i];
  for (std::size_t i = 0; i < program.constants().size(); ++i)
    values[program.constvars()[i].id] = program.constants()[i];
  const auto value = [&](Atom atom) { return atom.is_literal() ? program.literal(atom) : values.at(atom.var().id); };
  for (const Equation& equation : program.equations()) {
    Arrays operands, results;
    for (const Atom input : equation.inputs) operands.push_back(value(input));
    if (equation.primitive == prim::custom_call()) {
      std::vector<Tensor> given, wanted;
      for (const Array& operand : operands) {
        given.push_back(tensor_of(operand.type()));
        given.back().data = numbers(operand);
      }
      for (const Var output : equation.outputs) wanted.push_back(tensor_of(program.type(output)));
      const std::vector<Tensor> got = run_kernel(texts[next], given, wanted, static_cast<uint32_t>(next));
      ++next;
      for (std::size_t i = 0; i < got.size(); ++i)
        results.push_back(array_from(got[i], program.type(equation.outputs[i])));
    } else {
      results = capibara::bind(equation.primitive, operands, equation.attrs);
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!equation.outputs[i].dropped()) values[equation.outputs[i].id] = results[i];
    }
  }
  Arrays outputs;
  for (const Atom output : program.outputs()) outputs.push_back(value(output));
  return outputs;
}

inline Program with_kernels(const FlatFunction& function, const Arrays& arguments) {
  Types types;
  for (const Array& argument : arguments) types.push_back(argument.type());
  return call_kernels(stage(function, types, "f").program, false);
}

inline Array drawn(uint32_t seed, Shape shape, DType dtype = DType::float32) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> data(static_cast<std::size_t>(element_count(shape)));
  for (float& number : data) number = normal(random);
  return Array::from_host(DType::float32, std::move(shape), data.data()).astype(dtype);
}

inline ArrayType typed(DType dtype, Shape shape) {
  return drawn(1, {1}).astype(dtype).type().with_shape(std::move(shape));
}

inline void expect_close(const Array& got, const std::vector<double>& want, double tolerance, const std::string& what) {
  const std::vector<double> own = numbers(got);
  ASSERT_EQ(own.size(), want.size()) << what;
  double scale = 1;
  for (const double number : want) scale = std::isfinite(number) ? std::max(scale, std::abs(number)) : scale;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i] == want[i]) continue;
    ASSERT_NEAR(own[i], want[i], tolerance * scale) << what << ", element " << i;
  }
}

inline double tolerance_of(DType dtype) { return dtype == DType::bfloat16 ? 2e-2 : 2e-5; }

// The program of one equation, with its kernels.
inline Program bound(const char* name, const Arrays& arguments, const Attrs& attrs) {
  return with_kernels(
      [&](std::span<const Array> in) { return capibara::bind(primitive(name), Arrays(in.begin(), in.end()), attrs); },
      arguments);
}

}  // namespace capibara::mosaic
