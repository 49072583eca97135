// Partition: a program over whole arrays as the program of one device of a mesh, with the collectives that it needs.
#pragma once

#include <capibara/placement.h>
#include <capibara/program.h>

#include <optional>
#include <string>
#include <vector>

namespace capibara::sharding {

// One exchange between devices that a partition inserted.
struct InsertedCollective {
  std::string operation;  // psum, psum_scatter, all_gather, all_to_all, ppermute, pmax, pmin
  AxisList axes;          // of the mesh
  ArrayType operand;      // on one device
  double bytes = 0;       // that each device receives, each time
  int64_t times = 1;      // iterations of the loops around it; those of while count once
  std::string source;     // the line of the equation that needs it
  std::string cause;      // "operand 1 of dot_general is P('x', None), needed as P()"
};

struct PartitionedProgram {
  NamedSharding devices;  // the mesh; its specification is empty
  Program local;          // what one device runs
  std::vector<PartitionSpec> in_specs, out_specs;
  std::vector<InsertedCollective> collectives;

  // The program over whole arrays: one shard_map of `local`.
  Program whole() const;
  double bytes() const;      // that each device receives in all
  std::string text() const;  // the collectives as a table
};

using MaybeShardings = std::vector<std::optional<NamedSharding>>;

// The layouts of results that nothing is said of, as the specifications that propagation gives them. `inputs` and
// `outputs` have an entry for each input and output, or none; constraints inside of the program count as well. Nothing
// where neither says on which mesh.
std::optional<std::vector<NamedSharding>> output_shardings(const Program& program, const MaybeShardings& inputs,
                                                           const MaybeShardings& outputs = {});
// The program of each device. Raises NotImplementedError for programs with effects or with maps over another mesh, and
// ValueError where nothing names a mesh.
PartitionedProgram partition(const Program& program, const MaybeShardings& inputs, const MaybeShardings& outputs = {});

}  // namespace capibara::sharding
