// User-defined operations inside programs, and branch results that are operands.
#include <capibara/capibara.h>

#include "compiler/optimise/passes.h"
#include "program/trace/stage.h"

#include <gtest/gtest.h>

#include <cmath>

namespace capibara {
namespace {

namespace lax = jax::lax;

const ArrayType vector_type{{3}, DType::float32, false, false, {}};

Program traced(const FlatFunction& function, const Types& types) { return stage(function, types, "f").program; }

// x -> sin(x) * x, evaluated by code that counts its calls.
Primitive user_operation(int& evaluations) {
  PrimitiveRecord record;
  record.name = "mine";
  record.type = [](std::span<const ArrayType> types, const Attrs&) { return TypeResult(Types{types[0]}); };
  record.lower = [](std::span<const Array> in, const Attrs&) { return Arrays{lax::mul(lax::sin(in[0]), in[0])}; };
  record.evaluate = [&evaluations](std::span<const Array> in, const Attrs&) {
    ++evaluations;
    return Arrays{lax::mul(lax::sin(in[0]), in[0])};
  };
  return make_primitive(std::move(record));
}

TEST(Expand, ReplacesAnOperationByItsLoweringInLoopsAndBranches) {
  int evaluations = 0;
  const Primitive mine = user_operation(evaluations);
  const auto call = [&](const Array& x) { return bind1(mine, {x}); };
  const Program program = traced(
      [&](std::span<const Array> in) {
        const Array looped = lax::fori_loop(
            0, 5, [&](Array, Array x) { return call(x); }, in[0]);
        return Arrays{lax::cond(
            lax::gt(looped[0], looped[1]), call, [](Array x) { return x; }, looped)};
      },
      {vector_type});
  EXPECT_NE(program.to_string().find("= mine"), std::string::npos);
  const std::string text = passes::expanded(program).to_string();
  EXPECT_EQ(text.find("= mine"), std::string::npos) << text;
  EXPECT_NE(text.find("= sin"), std::string::npos) << text;
  EXPECT_EQ(evaluations, 0);
}

TEST(Expand, LeavesAProgramWithoutOperationsOfUsersAlone) {
  const Program program = traced([](std::span<const Array> in) { return Arrays{lax::sin(in[0])}; }, {vector_type});
  EXPECT_EQ(passes::expanded(program).identity(), program.identity());
}

TEST(Expand, ServesBothBackendsWithoutACallOfTheEvaluation) {
  for (const char* platform : {"cpu", "reference"}) {
    Config settings = config();
    settings.platform = platform;
    const ConfigScope scope(settings);
    int evaluations = 0;
    const Primitive mine = user_operation(evaluations);
    auto loop = jax::jit([&](Array x) {
      return lax::fori_loop(
          0, 3, [&](Array, Array y) { return bind1(mine, {y}); }, x);
    });
    const float got = loop(array<float>({2.0f}, Shape{})).item<float>();
    double want = 2;
    for (int i = 0; i < 3; ++i) want = std::sin(want) * want;
    EXPECT_NEAR(got, want, 1e-6) << platform;
    EXPECT_EQ(evaluations, 0) << platform;
  }
}

TEST(Simplify, AResultThatIsTheSameOperandInEveryBranchIsThatOperand) {
  const Program program = traced(
      [](std::span<const Array> in) {
        const Array positive = lax::gt(in[0][0], in[1][0]);
        return lax::cond(
            positive,
            [](Array a, Array b) {
              return Arrays{b, lax::sin(a), a};
            },
            [](Array a, Array b) {
              return Arrays{b, a, b};
            },
            in[0], in[1]);
      },
      {vector_type, vector_type});
  const Program simple = passes::dce(passes::simplify(program));
  EXPECT_EQ(simple.outputs()[0], Atom(simple.invars()[1]));
  EXPECT_EQ(simple.equations().back().outputs.size(), 2u) << simple.to_string();
}

}  // namespace
}  // namespace capibara
