// Formulas: a call of a shared function gives the same bits as its expansion.
#include <gtest/gtest.h>

#include "backends/cpu/elements/element.h"
#include "backends/cpu/generated_code.h"
#include "program/ir/handles.h"

namespace capibara::cpu {
namespace {

constexpr int64_t count = 1003;  // with a remainder for every number of lanes

using Apply = std::function<Element(const Primitive&, const std::vector<Element>&)>;

// Runs `write` over numbers, with every function expanded or every function called.
template <class T>
std::vector<T> results(DType dtype, bool shared, const std::function<Value(Builder&, const Apply&, Value)>& write) {
  Module module = module_with(1);
  Builder builder(module.functions[0]);
  const int32_t from = builder.parameter(count * static_cast<int64_t>(sizeof(T)), false);
  const int32_t to = builder.parameter(count * static_cast<int64_t>(sizeof(T)), true);
  builder.loop(count, {.lanes = true}, {}, [&](Value i, std::span<const Value>) {
    const Apply apply = [&](const Primitive& primitive, const std::vector<Element>& inputs) {
      const std::vector<DType> types(inputs.size(), dtype);
      return shared ? apply_shared(builder, primitive, {}, types, dtype, inputs)
                    : apply_elementwise(builder, primitive, {}, types, dtype, inputs);
    };
    const Value x = builder.load(scalar_of<T>(), {from, 0, {{i, 1}}});
    builder.store(write(builder, apply, x), {to, 0, {{i, 1}}});
    return std::vector<Value>();
  });
  EXPECT_EQ(module.functions[0].formulas.empty(), !shared);
  std::vector<T> in(count), out(count);
  for (int64_t k = 0; k < count; ++k)
    in[static_cast<std::size_t>(k)] = static_cast<T>(0.013 * static_cast<double>(k) - 4.1);
  in[5] = std::numeric_limits<T>::quiet_NaN();
  in[6] = std::numeric_limits<T>::infinity();
  in[7] = static_cast<T>(1e30);  // a sine of it needs the rare branch
  run(module, {in.data(), out.data()});
  return out;
}

template <class T>
void expect_equal(DType dtype, const char* label, const std::function<Value(Builder&, const Apply&, Value)>& write) {
  const std::vector<T> called = results<T>(dtype, true, write), written = results<T>(dtype, false, write);
  for (std::size_t i = 0; i < called.size(); ++i) {
    ASSERT_TRUE(same(called[i], written[i]))
        << label << " of element " << i << ": " << called[i] << ", written out " << written[i];
  }
}

template <class T>
void expect_equal_everywhere(DType dtype) {
  for (const char* name : {"sin", "cos", "tan", "exp", "exp2", "expm1", "log", "log1p", "tanh", "logistic", "erf",
                           "atan", "sinh", "lgamma"}) {
    const Primitive function = primitive(name);
    expect_equal<T>(dtype, name, [&](Builder&, const Apply& apply, Value x) {
      Element value(x);
      for (int k = 0; k < 3; ++k) value = apply(function, {value});
      return value.parts[0];
    });
    // Sums are fused with a product that may end a function, and functions begin with sums of products.
    expect_equal<T>(dtype, name, [&](Builder& b, const Apply& apply, Value x) {
      auto f = [&](Value value) { return apply(function, {Element(value)}).parts[0]; };
      const Value product = b.compute(Op::mul, x, b.constant(scalar_of<T>(), 0.3));
      const Value sum = b.compute(Op::add, f(x), product), rest = b.compute(Op::sub, sum, f(product));
      return b.compute(Op::sub, f(rest), b.compute(Op::add, x, f(b.compute(Op::sub, f(sum), x))));
    });
  }
  for (const char* name : {"pow", "atan2"}) {
    expect_equal<T>(dtype, name, [&](Builder& b, const Apply& apply, Value x) {
      const Element base(b.compute(Op::abs, x)), exponent(b.constant(scalar_of<T>(), 1.7));
      return apply(primitive(name), {apply(primitive(name), {base, exponent}), Element(x)}).parts[0];
    });
  }
}

TEST(Formulas, OfFloat32HaveTheBitsOfWrittenCode) {
  NEEDS_COMPILER();
  expect_equal_everywhere<float>(DType::float32);
}

TEST(Formulas, OfFloat64HaveTheBitsOfWrittenCode) {
  NEEDS_COMPILER();
  expect_equal_everywhere<double>(DType::float64);
}

TEST(Formulas, AreCompiledOnceForAllThatCallThem) {
  NEEDS_COMPILER();
  Module module = module_with(1);
  Builder builder(module.functions[0]);
  const int32_t buffer = builder.parameter(4 * count, true);
  builder.loop(count, {.lanes = true}, {}, [&](Value i, std::span<const Value>) {
    Element value(builder.load(Scalar::f32, {buffer, 0, {{i, 1}}}));
    const DType types[] = {DType::float32};
    for (int k = 0; k < 100; ++k) value = apply_shared(builder, prim::sin(), {}, types, DType::float32, {&value, 1});
    builder.store(value.parts[0], {buffer, 0, {{i, 1}}});
    return std::vector<Value>();
  });
  ASSERT_EQ(module.functions[0].formulas.size(), 1u);
  // The function, and the formula in versions for vectors and for the remainder.
  const std::string ir = compiler().ir(module, compiler().host());
  int definitions = 0;
  for (std::size_t at = ir.find("\ndefine"); at != std::string::npos; at = ir.find("\ndefine", at + 1)) ++definitions;
  EXPECT_LE(definitions, 3);
}

}  // namespace
}  // namespace capibara::cpu
