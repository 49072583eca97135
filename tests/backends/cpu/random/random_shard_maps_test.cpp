// Random shard_maps: compiled lanes agree with one device at a time on the reference backend, with their StableHLO
// text read back, and with the function of the whole array where it is defined.
//
// CAPIBARA_RANDOM_PROGRAMS sets how many are tried (500; with CAPIBARA_SHARE=N one in N of them), CAPIBARA_RANDOM_FIRST
// the first seed.
#include "backends/cpu/random/random_shard_maps.h"

#include <capibara/config.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "backends/backend.h"
#include "backends/cpu/execution/compiler.h"

namespace capibara::random_shard_maps {
namespace {

uint64_t number_in(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

Arrays run(const char* name, const Program& program, const Arrays& inputs) {
  return backend(name).compile(program)->execute(inputs, std::vector<bool>(inputs.size(), false));
}

// Empty, or the first position where two lists of arrays differ by more than rounding.
std::string difference(const Arrays& got, const Arrays& want) {
  if (got.size() != want.size()) return concat(got.size(), " results, not ", want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i].shape() != want[i].shape()) return concat("result ", i, " has another shape");
    const std::vector<float> a = got[i].to_vector<float>(), b = want[i].to_vector<float>();
    for (std::size_t k = 0; k < a.size(); ++k) {
      const double bound = 2e-3 * std::max(1.0f, std::abs(b[k]));
      if (!(std::abs(a[k] - b[k]) <= bound)) return concat("result ", i, "[", k, "]: ", a[k], ", not ", b[k]);
    }
  }
  return "";
}

Config with_eight_devices() {
  Config settings = config();
  settings.num_cpu_devices = 8;
  return settings;
}

TEST(RandomShardMaps, HoldEveryOperation) {
  const ConfigScope devices(with_eight_devices());
  std::string all;
  for (uint64_t seed = 1; seed <= 100; ++seed) all += make_random_map(seed).text + "; ";
  for (const std::string& name : operation_names()) EXPECT_NE(all.find(name + "("), std::string::npos) << name;
}

TEST(RandomShardMaps, LanesAgreeWithDevicesAloneSlow) {
  if (!cpu::has_compiler()) GTEST_SKIP() << "no code generator";
  setenv("CAPIBARA_CACHE", "off", 0);
  const ConfigScope devices(with_eight_devices());
  const uint64_t share = std::max<uint64_t>(1, number_in("CAPIBARA_SHARE", 1));
  const uint64_t first = number_in("CAPIBARA_RANDOM_FIRST", 1), count = number_in("CAPIBARA_RANDOM_PROGRAMS", 500);
  int failed = 0, wholes = 0;
  for (uint64_t seed = first; seed < first + count && failed < 10; seed += count == 1 ? 1 : share) {
    const RandomMap map = make_random_map(seed);
    std::string text;
    try {
      const Arrays alone = run("reference", map.program, map.inputs);
      text = difference(run("cpu", map.program, map.inputs), alone);
      if (text.empty()) {
        text = difference(run("cpu", from_stablehlo(to_stablehlo(map.program)), map.inputs), alone);
        if (!text.empty()) text = "read from its text: " + text;
      }
      if (text.empty() && map.whole.defined()) {
        ++wholes;
        text = difference(alone, run("reference", map.whole, map.inputs));
        if (!text.empty()) text = "the function of the whole: " + text;
      }
    } catch (const std::exception& error) {
      text = error.what();
    }
    if (text.empty()) continue;
    ++failed;
    ADD_FAILURE() << "seed " << seed << ": " << text << "\n" << map.text << "\n" << map.program;
  }
  if (count / share >= 50) {
    EXPECT_GT(wholes, 3);
  }
}

}  // namespace
}  // namespace capibara::random_shard_maps
