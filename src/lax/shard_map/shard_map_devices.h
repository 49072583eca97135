// shard_map as the program of each of several devices, for the texts passed to compilers of several devices.
#pragma once

#include <capibara/placement.h>
#include <capibara/program.h>

#include <functional>

namespace capibara {

// The program with each `chosen` shard_map over several devices marked by the attribute `per_device`: lowering
// keeps it. In its program types are plain, collectives are in StableHLO's forms, and the attribute `devices` lists the
// participants of each: groups of positions in the mesh; of ppermute, pairs. axis_index has `place` = {stride, size}.
//
//   c = all_gather[axis_name=('y',) all_gather_dimension=0 tiled=False] b
//   with b:f32[2], over axis y of the mesh x:2,y:2,
// becomes
//   d = reshape[1,2] b;  c = all_gather[all_gather_dimension=0 devices=[[0,1],[2,3]] tiled=True] d
Program with_device_programs(const Program& program, const std::function<bool(const NamedSharding&)>& chosen);

bool is_per_device(const Attrs& attrs);  // of a shard_map

}  // namespace capibara
