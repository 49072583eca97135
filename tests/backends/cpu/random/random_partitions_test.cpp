// Random programs, and their derivatives, partitioned over meshes give the results of the unpartitioned program: one
// device at a time on the reference backend, and as lanes of one compiled program. Some values have constraints.
//
// CAPIBARA_RANDOM_PROGRAMS sets how many are tried (500; with CAPIBARA_SHARE=N one in N of them), CAPIBARA_RANDOM_FIRST
// the first seed.
#include "backends/cpu/random/random_programs.h"

#include <capibara/config.h>
#include <capibara/partition.h>

#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/backend.h"
#include "backends/cpu/execution/compiler.h"
#include "program/trace/stage.h"

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

// A sharding that divides evenly: each axis of the mesh goes to some dimension, or none.
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

// The same program with sharding constraints on some of its equations' outputs.
Program constrained(const Program& program, Dice& dice, const Mesh& mesh) {
  const std::vector<ArrayType> types = program.input_types();
  auto body = [&](std::span<const Array> in) {
    std::vector<Array> values(static_cast<std::size_t>(program.var_count()));
    auto value_of = [&](Var var) -> Array& { return values[static_cast<std::size_t>(var.id)]; };
    auto read = [&](Atom atom) { return atom.is_literal() ? program.literal(atom) : value_of(atom.var()); };
    for (std::size_t i = 0; i < in.size(); ++i) value_of(program.invars()[i]) = in[i];
    for (std::size_t i = 0; i < program.constvars().size(); ++i)
      value_of(program.constvars()[i]) = program.constants()[i];
    for (const Equation& equation : program.equations()) {
      Arrays operands;
      for (const Atom input : equation.inputs) operands.push_back(read(input));
      Arrays results = capibara::bind(equation.primitive, operands, equation.attrs);
      for (std::size_t i = 0; i < results.size(); ++i) {
        std::optional<NamedSharding> sharding;
        if (dice.chance(10)) sharding = some_sharding(dice, mesh, results[i].type());
        if (equation.outputs[i].dropped()) continue;
        value_of(equation.outputs[i]) =
            sharding ? jax::lax::with_sharding_constraint(results[i], *sharding) : results[i];
      }
    }
    Arrays outputs;
    for (const Atom output : program.outputs()) outputs.push_back(read(output));
    return outputs;
  };
  return stage(body, types, program.name()).program;
}

// The seed determines the shardings of a program.
sharding::PartitionedProgram divided(const Program& given, uint64_t seed, Kind kind) {
  Dice dice(seed + 12345);
  const Mesh& mesh = some_mesh(dice);
  const Program program = kind != Kind::any && dice.chance(40) ? constrained(given, dice, mesh) : given;
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
  settings.enable_x64 = true;
  return settings;
}

// Partial sums round in another order; exact results stay exact, except for the sign of a zero sum.
std::vector<double> loosened(std::vector<double> tolerances) {
  for (double& tolerance : tolerances) tolerance = std::max(4 * tolerance, 1e-300);
  return tolerances;
}

void try_partitions(Kind kind, const char* trusted, const char* tried, uint64_t default_count) {
  setenv("CAPIBARA_CACHE", "off", 0);
  const ConfigScope devices(with_eight_devices());
  const uint64_t share = std::max<uint64_t>(1, number_in("CAPIBARA_SHARE", 1));
  const uint64_t first = number_in("CAPIBARA_RANDOM_FIRST", 1);
  const uint64_t count = number_in("CAPIBARA_RANDOM_PROGRAMS", default_count);
  int failed = 0, with_collectives = 0;
  for (uint64_t seed = first; seed < first + count && failed < 5; seed += count == 1 ? 1 : share) {
    auto run_whole = [&](const Program& program, std::span<const Array> inputs) {
      return run_on(trusted, program, inputs);
    };
    RandomProgram random = make_random_program(seed, kind);
    if (kind == Kind::smooth) random = derivative(random, run_whole);
    if (!random.program.defined()) continue;
    random.tolerances = loosened(random.tolerances);
    auto run_parts = [&](const Program& program, std::span<const Array> inputs) {
      const sharding::PartitionedProgram parts = divided(program, seed, kind);
      if (!parts.local.defined()) return run_on(trusted, program, inputs);
      with_collectives += parts.collectives.empty() ? 0 : 1;
      return run_on(tried, parts.whole(), inputs);
    };
    if (difference(random, run_whole, run_parts).empty()) continue;
    ++failed;
    const RandomProgram small = shrink(random, run_whole, run_parts);
    std::string parts;
    try {
      parts = divided(small.program, seed, kind).local.to_string();
    } catch (const std::exception& error) {
      parts = error.what();
    }
    ADD_FAILURE() << difference(small, run_whole, run_parts) << "\n" << describe(small) << "\n" << parts;
  }
  if (count / share >= 50) {
    EXPECT_GT(with_collectives, 10);
  }
}

void try_as_lanes(Kind kind, uint64_t default_count) {
  if (!cpu::has_compiler()) GTEST_SKIP() << "no code generator";
  try_partitions(kind, "reference", "cpu", default_count);
}

TEST(RandomPartitions, AgreeWithTheWholeDeviceByDeviceSlow) {
  try_partitions(Kind::any, "reference", "reference", 500);
}
TEST(RandomPartitions, AgreeWithTheWholeAsLanesSlow) { try_as_lanes(Kind::any, 200); }

TEST(RandomPartitions, OfDivisibleSizesAgreeDeviceByDeviceSlow) {
  try_partitions(Kind::for_meshes, "reference", "reference", 500);
}
TEST(RandomPartitions, OfDivisibleSizesAgreeAsLanesSlow) { try_as_lanes(Kind::for_meshes, 200); }

TEST(RandomPartitions, OfDerivativesAgreeDeviceByDeviceSlow) {
  try_partitions(Kind::smooth, "reference", "reference", 500);
}
TEST(RandomPartitions, OfDerivativesAgreeAsLanesSlow) { try_as_lanes(Kind::smooth, 200); }

}  // namespace
}  // namespace capibara::random_programs
