// shard_map as the program that each of several devices runs, as texts for compilers of several devices hold it.
#pragma once

#include <capibara/placement.h>
#include <capibara/program.h>

#include <functional>

namespace capibara {

// The program with each shard_map over several devices that is `chosen` marked by the attribute `per_device`: lowering
// keeps it. In its program types are plain, collectives are in the forms of StableHLO, and the attribute `devices` says
// who takes part in each: groups of positions in the mesh; of ppermute, pairs. axis_index has `place` = {stride, size}.
//
//   c = all_gather[axis_name=('y',) all_gather_dimension=0 tiled=False] b                            b:f32[2] y:2 of
//   x:2,y:2
// becomes
//   d = reshape[1,2] b;  c = all_gather[all_gather_dimension=0 devices=[[0,1],[2,3]] tiled=True] d
Program with_device_programs(const Program& program, const std::function<bool(const NamedSharding&)>& chosen);

bool is_per_device(const Attrs& attrs);  // of a shard_map

}  // namespace capibara
