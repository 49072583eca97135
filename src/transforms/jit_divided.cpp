// Partitions a jitted program for the placements of its inputs, and compiles it.
#include "transforms/jit_divided.h"

#include <capibara/config.h>
#include <capibara/partition.h>

#include <algorithm>

#include "core/array/body.h"
#include "core/processes/job.h"
#include "core/sharding/placed_memory.h"
#include "core/sharding/process_grid.h"
#include "lax/sharding/user_partition.h"
#include "program/ir/handles.h"
#include "program/ir/memo.h"
#include "program/ir/nested.h"
#include "program/ir/views.h"

namespace capibara::detail {

namespace {

bool has_shard_map(const Program& program) {
  return std::any_of(program.equations().begin(), program.equations().end(), [](const Equation& equation) {
    return maps_devices(equation.primitive) || any_program(equation.attrs, has_shard_map);
  });
}

std::shared_ptr<Executable> divided(const Program& program, const sharding::MaybeShardings& inputs) {
  if (has_shard_map(program)) return nullptr;  // shard_map specifies what devices do
  try {
    return default_backend().compile(sharding::partition(program, inputs).whole());
  } catch (const NotImplementedError&) {
    return nullptr;
  }
}

// True if the program contains a custom_partitioning equation.
bool is_divided_by_author(const Program& program) {
  if (!custom_partitions_exist()) return false;
  static Memo<bool> memo;
  return memo.get({program, {}, {}, 0, {}, 0, {}}, [&] { return has_custom_partition(program); });
}

bool constrains_devices(const Program& program) {
  return std::any_of(program.equations().begin(), program.equations().end(), [](const Equation& equation) {
    if (equation.primitive == prim::sharding_constraint())
      return equation.attrs.opaque<PlacementAttr>("sharding")->placement->devices.size() > 1;
    return any_program(equation.attrs, constrains_devices);
  });
}

}  // namespace

std::shared_ptr<Executable> divided_executable(const Program& program, std::span<const Array> inputs) {
  const bool custom = is_divided_by_author(program);
  if (!custom && processes::exchanging().count == 1) return nullptr;
  sharding::MaybeShardings placements;
  std::string text;
  bool spans = false;
  for (const Array& input : inputs) {
    placements.emplace_back();
    const std::shared_ptr<const NamedSharding> own = host_placement(input);
    if (own && !own->mesh.axis_names.empty()) placements.back() = *own;
    spans = spans || (placements.back() && (custom || !is_addressable(*own)));
    text += concat(own ? to_string(*own) : std::string(), ";");
    for (const int device : own ? own->devices : std::vector<int>()) text += concat(device, " ");
  }
  if (!spans && !(custom && constrains_devices(program))) return nullptr;
  static Memo<std::shared_ptr<Executable>> memo;
  return memo.get({program, {}, {}, 0, text, config().key(), {}}, [&] { return divided(program, placements); });
}

}  // namespace capibara::detail
