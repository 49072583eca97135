// Random programs divided among the devices of meshes give what they compute whole: each device by itself on the
// reference backend, and all as lanes of one compiled program.
//
// CAPIBARA_RANDOM_PROGRAMS sets how many are tried (500; with CAPIBARA_SHARE=N one in N of them), CAPIBARA_RANDOM_FIRST
// the first seed.
#include "backends/cpu/random_programs.h"

#include <capibara/config.h>
#include <capibara/partition.h>

#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/backend.h"
#include "backends/cpu/execution/compiler.h"

namespace capibara::random_programs {
namespace {

uint64_t number_in(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

const Mesh& some_mesh(Dice& dice) {
  static const std::vector<Mesh> meshes{
      {{"a"}, {8}}, {{"a", "b"}, {4, 2}}, {{"a", "b", "c"}, {2, 2, 2}}, {{"a", "b"}, {3, 2}}};
  return dice.pick(meshes);
}

// A specification that divides: for each axis of the mesh some dimension, or none.
std::optional<NamedSharding> some_sharding(Dice& dice, const Mesh& mesh, const ArrayType& type) {
  if (dice.chance(20)) return std::nullopt;
  NamedSharding sharding{"cpu", {}, mesh, {}, ""};
  for (int64_t i = 0; i < mesh.size(); ++i) sharding.devices.push_back(static_cast<int>(i));
  sharding.spec.dims.resize(type.shape.size());
  for (const std::string& axis : mesh.axis_names) {
    if (type.shape.empty()) break;
    const auto dim = static_cast<std::size_t>(dice.below(type.rank()));
    sharding.spec.dims[dim].push_back(axis);
    if (type.shape[dim] == 0 || type.shape[dim] % sharding.parts(dim) != 0) sharding.spec.dims[dim].pop_back();
  }
  return sharding;
}

Arrays run_on(const std::string& name, const Program& program, std::span<const Array> inputs) {
  return backend(name).compile(program)->execute(inputs, std::vector<bool>(inputs.size(), false));
}

// The shardings of one program follow from its seed.
sharding::PartitionedProgram divided(const Program& program, uint64_t seed) {
  Dice dice(seed + 12345);
  const Mesh& mesh = some_mesh(dice);
  sharding::MaybeShardings in, out;
  for (const ArrayType& type : program.input_types()) in.push_back(some_sharding(dice, mesh, type));
  for (const ArrayType& type : program.output_types())
    out.push_back(dice.chance(60) ? std::nullopt : some_sharding(dice, mesh, type));
  if (in.empty() && out.empty()) return {};
  bool any = false;
  for (const auto* list : {&in, &out}) {
    for (const auto& sharding : *list) any = any || sharding;
  }
  return any ? sharding::partition(program, in, out) : sharding::PartitionedProgram{};
}

Config with_eight_devices() {
  Config settings = config();
  settings.num_cpu_devices = 8;
  return settings;
}

// Sums of parts are rounded in another order; exact results stay exact, but for the sign of a zero that is summed.
std::vector<double> loosened(std::vector<double> tolerances) {
  for (double& tolerance : tolerances) tolerance = std::max(4 * tolerance, 1e-300);
  return tolerances;
}

void try_partitions(const char* trusted, const char* tried, uint64_t default_count) {
  setenv("CAPIBARA_CACHE", "off", 0);
  const ConfigScope devices(with_eight_devices());
  const uint64_t share = std::max<uint64_t>(1, number_in("CAPIBARA_SHARE", 1));
  const uint64_t first = number_in("CAPIBARA_RANDOM_FIRST", 1);
  const uint64_t count = number_in("CAPIBARA_RANDOM_PROGRAMS", default_count);
  int failed = 0, with_collectives = 0;
  for (uint64_t seed = first; seed < first + count && failed < 5; seed += count == 1 ? 1 : share) {
    RandomProgram random = make_random_program(seed);
    random.tolerances = loosened(random.tolerances);
    auto run_parts = [&](const Program& program, std::span<const Array> inputs) {
      const sharding::PartitionedProgram parts = divided(program, seed);
      if (!parts.local.defined()) return run_on(trusted, program, inputs);
      with_collectives += parts.collectives.empty() ? 0 : 1;
      return run_on(tried, parts.whole(), inputs);
    };
    auto run_whole = [&](const Program& program, std::span<const Array> inputs) {
      return run_on(trusted, program, inputs);
    };
    if (difference(random, run_whole, run_parts).empty()) continue;
    ++failed;
    const RandomProgram small = shrink(random, run_whole, run_parts);
    std::string parts;
    try {
      parts = divided(small.program, seed).local.to_string();
    } catch (const std::exception& error) {
      parts = error.what();
    }
    ADD_FAILURE() << difference(small, run_whole, run_parts) << "\n" << describe(small) << "\n" << parts;
  }
  if (count / share >= 50) {
    EXPECT_GT(with_collectives, 10);
  }
}

TEST(RandomPartitions, AgreeWithTheWholeDeviceByDeviceSlow) { try_partitions("reference", "reference", 500); }

TEST(RandomPartitions, AgreeWithTheWholeAsLanesSlow) {
  if (!cpu::has_compiler()) GTEST_SKIP() << "no code generator";
  try_partitions("reference", "cpu", 200);
}

}  // namespace
}  // namespace capibara::random_programs
