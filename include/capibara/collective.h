// Collectives: operations among the members of a named axis, of vmap or of a mesh.
#pragma once

#include <capibara/attributes.h>

#include <string>
#include <utility>
#include <vector>

namespace capibara::jax::lax {

using AxisNames = std::vector<std::string>;
using AxisGroups = std::vector<Ints>;
// The sum over named axes.
Array psum(const Array& x, const AxisNames& axes, const AxisGroups& axis_index_groups = {});
// The mean over named axes.
Array pmean(const Array& x, const AxisNames& axes, const AxisGroups& axis_index_groups = {});
// The maximum over named axes.
Array pmax(const Array& x, const AxisNames& axes, const AxisGroups& axis_index_groups = {});
// The minimum over named axes.
Array pmin(const Array& x, const AxisNames& axes, const AxisGroups& axis_index_groups = {});
struct AllGatherOptions {
  int64_t axis = 0;
  bool tiled = false;
  AxisGroups axis_index_groups;
};
// The values of all members of a named axis, stacked or concatenated.
Array all_gather(const Array& x, const std::string& axis_name, const AllGatherOptions& options = {});
Array all_gather(const Array& x, const AxisNames& axis_names, const AllGatherOptions& options = {});
struct PsumScatterOptions {
  int64_t scatter_dimension = 0;
  bool tiled = false;
  AxisGroups axis_index_groups;
};
// The sum over a named axis, of which each member keeps its part.
Array psum_scatter(const Array& x, const std::string& axis_name, const PsumScatterOptions& options = {});
Array psum_scatter(const Array& x, const AxisNames& axis_names, const PsumScatterOptions& options = {});
struct AllToAllOptions {
  bool tiled = false;
  AxisGroups axis_index_groups;
};
// Exchanges parts of one dimension among the members of a named axis.
Array all_to_all(const Array& x, const std::string& axis_name, int64_t split_axis, int64_t concat_axis,
                 const AllToAllOptions& options = {});
Array all_to_all(const Array& x, const AxisNames& axis_names, int64_t split_axis, int64_t concat_axis,
                 const AllToAllOptions& options = {});
// Sends each member's value to another member; those that receive nothing get zeros.
Array ppermute(const Array& x, const std::string& axis_name, const std::vector<std::pair<int64_t, int64_t>>& perm);
Array ppermute(const Array& x, const AxisNames& axis_names, const std::vector<std::pair<int64_t, int64_t>>& perm);
// Each member's value becomes that of the member that perm names for it.
Array pshuffle(const Array& x, const std::string& axis_name, const Ints& perm);
// Swaps a named axis with a positional one.
Array pswapaxes(const Array& x, const std::string& axis_name, int64_t axis);
// One member's value on every member of a named axis.
Array pbroadcast(const Array& x, const std::string& axis_name, int64_t source);
// The same value, as one that may differ between devices along mesh axes.
Array pvary(const Array& x, const AxisNames& axes);
// The values of all members of mesh axes, in a type that says that they are the same on each of them.
Array all_gather_invariant(const Array& x, const AxisNames& axis_names, const AllGatherOptions& options = {});
// The index of this member along named axes.
Array axis_index(const std::string& axis_name);
// The number of members of named axes.
int64_t axis_size(const std::string& axis_name);

}  // namespace capibara::jax::lax
