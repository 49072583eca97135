// Compiling: a primitive's results do not change when its program is compiled to machine code.
#include "properties/property.h"

#include "backends/backend.h"
#include "backends/cpu/execution/compiler.h"
#include "lax/families.h"
#include "program/trace/stage.h"

#include <cstdio>
#include <cstdlib>
#include <set>

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

// Generated code rounds like the reference, except where it fuses products with sums and adds in lanes.
double units_allowed(const Call& call) {
  if (rounds_once(call)) return 1;
  if (is_fused(call.primitive)) return 64;
  static const std::string_view sums[] = {"reduce_sum", "dot_general", "cumsum", "reduce_prod", "cumprod"};
  for (std::string_view name : sums) {
    if (call.primitive.name().find(name) != std::string::npos) return 64;
  }
  // Series of up to thousands of terms: tests/backends/series_test.cpp holds both to this distance from the truth.
  static const std::string_view series[] = {
      "igamma", "igammac", "igamma_grad_a", "random_gamma_grad", "random_gamma", "regularized_incomplete_beta"};
  for (std::string_view name : series) {
    if (call.primitive.is(name)) return 512;
  }
  return 16;
}

// For matrices and transforms, which results a NaN or an infinity reaches, and where sums overflow, depends on
// blocking.
bool depends_on_order(const Primitive& primitive) {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    for (const Family& family : {linalg_family(), fft_family()}) {
      for (const PrimitiveRecord& record : family) all.insert(record.name);
    }
    return all;
  }();
  return names.count(primitive.name()) > 0;
}

// Thousands of programs take minutes to compile, so a run takes one of six shares of the calls:
// CAPIBARA_PROPERTY_SHARE, which ./run test changes with each commit (0 without git). All shares together cover all
// calls; CAPIBARA_EVERY_CALL takes them at once.
constexpr std::size_t shares = 6;

std::size_t share_of_run() {
  const char* given = std::getenv("CAPIBARA_PROPERTY_SHARE");
  return given ? std::strtoull(given, nullptr, 10) % shares : 0;
}

class Compiling : public Property {
 public:
  static void SetUpTestSuite() {
    if (std::getenv("CAPIBARA_EVERY_CALL")) {
      std::printf("compiled: every call\n");
    } else {
      std::printf("compiled: share %zu of 0 to %zu of the calls of each primitive, and every call of a fused kernel\n",
                  share_of_run(), shares - 1);
    }
  }
};

std::string compiled_difference(const Call& call, Points points) {
  if (points != Points::plain && depends_on_order(call.primitive)) return not_applicable;
  Program program = stage(call.function(), call.sample.inputs, "f").program;
  Arrays inputs = prepared(call, Values(seed_of(call)).operands(call.sample, points));
  Arrays eager = call.function()(inputs);
  return difference(backend("cpu").compile(program)->execute(inputs, {}), eager, units_allowed(call));
}

TEST_P(Compiling, KeepsValues) {
  if (!can_compile()) GTEST_SKIP() << "this build has no code generator";
  const bool every_call = std::getenv("CAPIBARA_EVERY_CALL") != nullptr || is_fused(primitive(GetParam()));
  const std::size_t share = share_of_run();
  std::vector<Points> all_points = {Points::plain};
  if (const Points hard = hard_points(primitive(GetParam())); hard != Points::plain) all_points.push_back(hard);
  for (Points points : all_points) {
    const std::string property = points == Points::plain ? "compiled = eager" : "compiled = eager at hard points";
    std::vector<Call> chosen, others;
    for (const Call& call : calls_of(primitive(GetParam()))) {
      const std::size_t number = chosen.size() + others.size();
      (every_call || number % shares == share ? chosen : others).push_back(call);
    }
    const auto check = [&](const Call& call) { return compiled_difference(call, points); };
    const int before = checked;
    for_each_call(property, chosen, check);
    // With few calls, a primitive's share may have none that can be checked: then takes the next call that can.
    for (std::size_t i = 0; i < others.size() && checked == before && !HasFailure(); ++i) {
      for_each_call(property, std::span(&others[(share + i) % others.size()], 1), check);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Catalog, Compiling, testing::ValuesIn(primitive_names()), test_name);

}  // namespace
}  // namespace capibara::properties
