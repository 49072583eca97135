// Optimised programs compute the same bits: every sample of the catalog, and every transform program.
#include "backends/reference/kernels.h"
#include "compiler/optimise/pipeline.h"
#include "lax/reduce/monoid.h"
#include "program/ir/dce.h"
#include "program/trace/stage.h"
#include "properties/exceptions.h"
#include "transforms/bodies.h"

namespace capibara {
namespace {

using properties::Call;
using properties::Points;

// Empty if two arrays hold the same bits, where all NaN are equal.
std::string bit_difference(const Array& got, const Array& want) {
  std::string text = properties::difference(got, want, 0);
  if (!text.empty() || properties::same_bytes(got, want) || !is_inexact(got.dtype())) return text;
  DType element = real_dtype(got.dtype());
  std::size_t size = static_cast<std::size_t>(storage_size(element));
  std::size_t count = static_cast<std::size_t>(got.size()) * (is_complex(got.dtype()) ? 2 : 1);
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte *a = got.raw_data() + i * size, *b = want.raw_data() + i * size;
    double value = 0;
    convert_elements(element, a, DType::float64, &value, 1);
    if (!std::isnan(value) && std::memcmp(a, b, size) != 0)
      return concat("element ", i, " differs in the sign of zero");
  }
  return "";
}

// Compares lists of arrays; weak types are ignored.
std::string bit_difference(const Arrays& got, const Arrays& want) {
  if (got.size() != want.size()) return concat("got ", got.size(), " outputs, want ", want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    std::string text = bit_difference(got[i], want[i]);
    if (!text.empty()) return concat("output ", i, ": ", text);
  }
  return "";
}

// Optimises a program and compares its results; empty if they are equal.
std::string check(const Program& program, const Arrays& inputs) {
  Program optimised = optimise(program);
  verify(optimised);
  if (optimised.input_types().size() != program.input_types().size()) return "the inputs have changed";
  Program again = optimise(optimised);
  if (!(again == optimised)) return concat("optimised twice:\n", again.to_string(), "\nonce:\n", optimised.to_string());
  // Dead equations may be impossible to run.
  Program wanted =
      dce_program(program, std::vector<bool>(program.outputs().size(), true), std::vector<bool>(inputs.size(), true))
          .program;
  std::string text = bit_difference(reference::interpret(optimised, inputs), reference::interpret(wanted, inputs));
  return text.empty() ? text
                      : concat(text, "\nprogram:\n", program.to_string(), "\noptimised:\n", optimised.to_string());
}

// Host callbacks cannot be composed.
bool keeps_nothing(const Program&, const Equation& equation) { return equation.primitive.is("pure_callback"); }

std::vector<std::string> sampled_primitives() {
  std::vector<std::string> names;
  for (const Primitive& primitive : catalog()) {
    if (primitive->samples && !primitive.is("rng_uniform")) names.push_back(primitive.name());
  }
  return names;
}

template <class Check>
void for_each_sample(const std::string& name, const Check& check) {
  Primitive primitive = capibara::primitive(name);
  for (DType dtype : properties::dtypes_of(primitive.record())) {
    std::size_t number = 0;
    for (Sample& sample : primitive->samples(dtype)) {
      Call call{primitive, dtype, number++, std::move(sample)};
      ConfigScope scope = properties::config_for(call);
      std::string text;
      try {
        text = check(call);
      } catch (const Error& error) {
        text = error.what();
        // The only operation whose own rule rejects composing for this dtype.
        if (text.find("LAPACK has no routine for") != std::string::npos) text.clear();
      }
      EXPECT_EQ(text, "") << properties::describe(call);
    }
  }
}

class OptimisedSamples : public testing::TestWithParam<std::string> {};

TEST_P(OptimisedSamples, KeepTheirBits) {
  for_each_sample(GetParam(), [](const Call& call) {
    Program program = stage(call.function(), call.sample.inputs, "f").program;
    std::string text;
    for (Points points : {Points::plain, properties::hard_points(call.primitive)}) {
      Arrays inputs =
          properties::prepared(call, properties::Values(properties::seed_of(call)).operands(call.sample, points));
      text += check(program, inputs);
    }
    return text;
  });
}

TEST_P(OptimisedSamples, FoldToTheirValue) {
  for_each_sample(GetParam(), [](const Call& call) {
    Arrays inputs = properties::prepared(call, properties::Values(properties::seed_of(call)).operands(call.sample));
    Program program = stage([&](std::span<const Array>) { return call.function()(inputs); }, {}, "f").program;
    return check(program, {});
  });
}

TEST_P(OptimisedSamples, ComposeToTheirValue) {
  for_each_sample(GetParam(), [](const Call& call) -> std::string {
    if (properties::exception_for("lowered = eager", call)) return "";
    Program program = stage(call.function(), call.sample.inputs, "f").program;
    Program composed = optimise(program, {.keep = keeps_nothing});
    verify(composed);
    Arrays inputs = properties::prepared(call, properties::Values(properties::seed_of(call)).operands(call.sample));
    std::string text =
        properties::difference(reference::interpret(composed, inputs), reference::interpret(program, inputs), 64);
    return text.empty() ? text : concat(text, "\n", composed.to_string());
  });
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Catalog, OptimisedSamples, testing::ValuesIn(sampled_primitives()), test_name);

class OptimisedPrograms : public testing::TestWithParam<std::string> {};

TEST_P(OptimisedPrograms, KeepTheirBits) {
  transform_programs::for_each_stack(GetParam(), [](const transform_programs::Case& one) {
    Types types;
    for (const Array& input : one.inputs) types.push_back(input.type());
    Program program =
        stage([&](std::span<const Array> in) { return one.function(Arrays(in.begin(), in.end())); }, types, "f")
            .program;
    EXPECT_EQ(check(program, one.inputs), "");
  });
}

TEST_P(OptimisedPrograms, ComposeToTheirValue) {
  transform_programs::for_each_stack(GetParam(), [](const transform_programs::Case& one) {
    Types types;
    for (const Array& input : one.inputs) types.push_back(input.type());
    Program program =
        stage([&](std::span<const Array> in) { return one.function(Arrays(in.begin(), in.end())); }, types, "f")
            .program;
    Program composed = optimise(program, {.keep = keeps_nothing});
    verify(composed);
    EXPECT_EQ(properties::difference(reference::interpret(composed, one.inputs),
                                     reference::interpret(optimise(program), one.inputs), 64),
              "");
  });
}

INSTANTIATE_TEST_SUITE_P(Bodies, OptimisedPrograms, testing::ValuesIn(transform_programs::body_names()),
                         [](const auto& info) { return info.param; });

// Failures found by mutants of matched programs, reduced.

TEST(OptimisedMatches, LeaveAWindowThatFitsNowhere) {
  const Types types = {ArrayType{{0, 3}, DType::float32, false, false, {}},
                       ArrayType{{1}, DType::int32, false, false, {}},
                       ArrayType{{3}, DType::float32, false, false, {}}};
  const Program program = stage(
                              [](std::span<const Array> x) {
                                return Arrays{jax::lax::scatter_add(x[0], x[1], x[2], {{0}, {0}, {0}, {}, {}})};
                              },
                              types, "f")
                              .program;
  Arrays inputs;
  for (const ArrayType& type : types) inputs.push_back(jax::lax::zeros(type));
  EXPECT_EQ(check(program, inputs), "");
}

TEST(OptimisedMatches, SumsThatStartFromANegativeZeroKeepItsSign) {
  const Array zeros = jax::lax::neg(jax::lax::zeros(ArrayType{{4}, DType::float32, false, false, {}}));
  const FlatFunction sum = [&](std::span<const Array> x) {
    return capibara::bind(primitive("reduce"), Arrays{x[0], jax::lax::full({}, Array(-0.0f))},
                          {{"jaxpr", monoid_region(Monoid::add, DType::float32)}, {"dimensions", Ints{0}}});
  };
  const Types types = {zeros.type()};
  EXPECT_EQ(check(stage(sum, types, "f").program, {zeros}), "");
}

}  // namespace
}  // namespace capibara
