// Partition: a program over whole arrays as the program of one device of a mesh, with the necessary collectives.
#pragma once

#include <capibara/placement.h>
#include <capibara/program.h>

#include <optional>
#include <string>
#include <vector>

namespace capibara::sharding {

// A collective that partitioning inserted.
struct InsertedCollective {
  std::string operation;  // psum, psum_scatter, all_gather, all_to_all, ppermute, pmax, pmin
  AxisList axes;          // of the mesh
  ArrayType operand;      // per device
  double bytes = 0;       // received by each device, per execution
  int64_t times = 1;      // iterations of the enclosing loops; while loops count once
  std::string source;     // the line of the equation that requires it
  std::string cause;      // "operand 1 of dot_general is P('x', None), needed as P()"
};

struct PartitionedProgram {
  NamedSharding devices;  // the mesh; its specification is empty
  Program local;          // the program of one device
  std::vector<PartitionSpec> in_specs, out_specs;
  std::vector<InsertedCollective> collectives;

  // The program over whole arrays: one shard_map of `local`.
  Program whole() const;
  double bytes() const;      // received by each device in total
  std::string text() const;  // the collectives as a table
};

using MaybeShardings = std::vector<std::optional<NamedSharding>>;

// The shardings of unannotated results, as propagation derives them. `inputs` and `outputs` have an entry for each
// input and output, or are empty; constraints inside the program count as well. Absent if nothing names
// a mesh.
std::optional<std::vector<NamedSharding>> output_shardings(const Program& program, const MaybeShardings& inputs,
                                                           const MaybeShardings& outputs = {});
// The program of each device. Raises NotImplementedError for programs with effects or with maps over another mesh, and
// ValueError if nothing names a mesh.
PartitionedProgram partition(const Program& program, const MaybeShardings& inputs, const MaybeShardings& outputs = {});

}  // namespace capibara::sharding
