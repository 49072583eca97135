// Compiling: what a primitive computes does not change when its program is compiled to machine code.
#include "properties/exceptions.h"

#include "backends/backend.h"
#include "backends/cpu/execution/compiler.h"
#include "trace/stage.h"

#include <cstdlib>

namespace capibara::properties {
namespace {

bool can_compile() {
  try {
    cpu::compiler();
    return true;
  } catch (const RuntimeError&) {
    return false;
  }
}

// Generated code rounds as the reference does but where it fuses products with sums and adds in lanes.
double units_allowed(const Call& call) {
  if (rounds_once(call)) return 1;
  if (is_fused(call.primitive)) return 64;
  static const std::string_view sums[] = {"reduce_sum", "dot_general", "cumsum", "reduce_prod", "cumprod"};
  for (std::string_view name : sums) {
    if (call.primitive.name().find(name) != std::string::npos) return 64;
  }
  return 16;
}

class Compiling : public Property {};

TEST_P(Compiling, KeepsValues) {
  if (!can_compile()) GTEST_SKIP() << "this build has no code generator";
  // Thousands of programs take minutes to compile: a sixth of the calls, the same in each run, unless all are asked for.
  const bool every_call = std::getenv("CAPIBARA_EVERY_CALL") != nullptr;
  for (Points points : {Points::plain, hard_points(primitive(GetParam()))}) {
    for_each_call(points == Points::plain ? "compiled = eager" : "compiled = eager at hard points", GetParam(), [&](const Call& call) -> std::string {
      if (!every_call && seed_of(call) % 6 != 0) return not_applicable;
      // Which results a NaN or an infinity reaches depends on how a transform is divided and a matrix eliminated.
      const bool by_order = call.primitive.is("fft") || call.primitive.is("cholesky") || call.primitive.is("lu") ||
                            call.primitive.is("triangular_solve");
      if (points != Points::plain && by_order) return not_applicable;
      Program program = stage(call.function(), call.sample.inputs, "f").program;
      Arrays inputs = Values(seed_of(call)).operands(call.sample, points);
      Arrays eager = call.function()(inputs);
      return difference(backend("cpu").compile(program)->execute(inputs, {}), eager, units_allowed(call));
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Catalog, Compiling, testing::ValuesIn(primitive_names()), test_name);

}  // namespace
}  // namespace capibara::properties
