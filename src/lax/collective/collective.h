// Declarations shared by the primitives and functions of named axes.
#pragma once

#include "lax/families.h"
#include "lax/rules.h"

namespace capibara {

Family exchange_records();  // all_gather, reduce_scatter, all_to_all, ppermute, pbroadcast
Family varying_records();   // pvary, psum_invariant, all_gather_invariant
PrimitiveRecord shard_map_record();

jax::lax::AxisNames axis_names(const Attrs& attrs, const char* key);
Effects uses(const jax::lax::AxisNames& names);

// Reductions over a mapped axis, as batch rules.
using Reduction = Array (*)(const Array&, const jax::lax::ReduceOptions&);
BatchResult batch_collective(const BatchArgs& args, Reduction reduce, bool scale_by_size);
// The sum over dimension 0 in the tree of processes/reduce.h: the same bits for any spread of lanes over processes.
Array tree_sum(const Array& lanes);
// The lanes at a dimension, reduced; as a tree for a sum with the attribute `tree`.
Array reduced_lanes(const Attrs& attrs, const Array& x, int64_t dim, Reduction reduce);

// Lanes of the mapped axis in the order of axis_index_groups.
class LaneGroups {
 public:
  LaneGroups(const BatchArgs& args);

  bool whole() const { return groups_.empty(); }  // one group of all lanes
  bool uneven() const;                            // groups of different sizes, which cannot be split
  const std::vector<Ints>& groups() const { return groups_; }
  int64_t count() const { return whole() ? 1 : static_cast<int64_t>(groups_.size()); }
  int64_t size() const { return whole() ? lanes_ : static_cast<int64_t>(groups_[0].size()); }
  Array split(const Array& x) const;       // [lanes, ...] -> [groups, members, ...]
  Array join(const Array& x) const;        // back to lanes
  Array join_lanes(const Array& x) const;  // of lanes in the order of the groups

 private:
  std::vector<Ints> groups_;
  int64_t lanes_;
};

// Lane i of the result is lane source[i] of x, or zero where that is negative; lanes are dimension 0.
Array picked_lanes(const Array& x, const Ints& source);

namespace jax::lax {

Attr name_list(const AxisNames& names);
Attr name_or_list(const AxisNames& names);  // a single name stays a string
Attr groups_attr(const AxisGroups& groups);
int64_t group_size(const AxisNames& names, const AxisGroups& groups);
AxisGroups index_groups(const Attrs& attrs);
// x as an operand of a collective: under types that track varying axes, cast to vary over all these axes.
Array varied_over(const Array& x, const AxisNames& names);
// A value cast to vary at least as x does: zeros_like(x) may be the start of a loop that adds x.
Array varied_as(const Array& x, const Array& value);

}  // namespace jax::lax

}  // namespace capibara
