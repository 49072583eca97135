// vmap's axes: broadcasts a tree prefix over the leaves, and finds the size they agree on.
#include <capibara/transforms.h>

#include "core/array/format.h"
#include "program/derive/derive.h"
#include "program/trace/trace.h"

#include <algorithm>

namespace capibara {

namespace jax {

std::string Axes::to_string() const {
  if (!is_list_) return axis_ ? std::to_string(*axis_) : "None";
  std::string text = "(";
  for (const Axes& entry : entries_) text += concat(text.size() > 1 ? ", " : "", entry.to_string());
  return text + (entries_.size() == 1 ? ",)" : ")");
}

}  // namespace jax

namespace detail {

namespace {

using LeafAxes = std::vector<std::optional<int64_t>>;

void spread(const char* option, const jax::Axes& axes, const TreeDef& tree, KeyPath& path, LeafAxes& leaves) {
  if (!axes.is_list()) {
    leaves.insert(leaves.end(), tree.num_leaves(), axes.axis());
    return;
  }
  if (tree.num_leaves() == 0 && axes.entries().empty()) return;
  if (axes.entries().size() != tree.children().size()) {
    throw ValueError(concat("vmap ", option, " specification must be a tree prefix of the corresponding value: at ",
                            option, keystr(path), " it is ", axes.to_string(), " for a value of structure ",
                            tree.to_string()));
  }
  for (std::size_t i = 0; i < axes.entries().size(); ++i) {
    path.push_back(tree.key(i));
    spread(option, axes.entries()[i], tree.children()[i], path, leaves);
    path.pop_back();
  }
}

LeafAxes spread(const char* option, const jax::Axes& axes, const TreeDef& tree) {
  LeafAxes leaves;
  KeyPath path;
  spread(option, axes, tree, path, leaves);
  return leaves;
}

// Lists sizes by the number of axes that have them, most frequent first.
[[noreturn]] void throw_inconsistent(const TreeDef& in, std::span<const Array> leaves, const LeafAxes& axes,
                                     const std::vector<int64_t>& dims, std::optional<int64_t> axis_size) {
  struct Group {
    int64_t size;
    int count;
    std::size_t first;
  };
  std::vector<Group> groups;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (dims[i] == not_mapped) continue;
    int64_t size = leaves[i].shape(dims[i]);
    auto it = std::find_if(groups.begin(), groups.end(), [&](const Group& group) { return group.size == size; });
    if (it == groups.end())
      groups.push_back({size, 1, i});
    else
      ++it->count;
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.count > b.count; });
  std::vector<KeyPath> paths = in.paths();
  std::string text = "vmap got inconsistent sizes for array axes to be mapped:";
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    std::string where = concat("axis ", *axes[group.first], " of args", keystr(paths[group.first]), " of type ",
                               to_string(leaves[group.first].type()));
    if (group.count == 1)
      text += concat("\n  * one axis had size ", group.size, ": ", where);
    else
      text += concat("\n  * ", g == 0 ? "most" : "some", " axes (", group.count, " of them) had size ", group.size,
                     ", e.g. ", where);
    if (g + 1 < groups.size()) text += ";";
  }
  if (axis_size) text += concat("\n  * axis_size was given as ", *axis_size);
  throw ValueError(text);
}

MappedAxis mapped_axis(const jax::VmapOptions& options, int64_t size) {
  MappedAxis axis{options.axis_name, size};
  if (!options.spmd_axis_name.empty()) axis.split = Sharding(Mesh{}, PartitionSpec{{options.spmd_axis_name}, {}, {}});
  return axis;
}

}  // namespace

Arrays vmap_leaves(const FlatFunction& function, const TreeDef& in, std::span<const Array> leaves,
                   const jax::VmapOptions& options, const TreeDef& out) {
  if (options.in_axes.is_list() && options.in_axes.entries().size() != in.children().size()) {
    throw ValueError(
        concat("vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments "
               "passed to the function, but got len(in_axes)=",
               options.in_axes.entries().size(), ", len(args)=", in.children().size()));
  }
  LeafAxes axes = spread("in_axes", options.in_axes, in);
  if (leaves.empty() && !options.axis_size) {
    throw ValueError(
        "vmap wrapped function must be passed at least one argument containing an array or axis_size must be "
        "specified");
  }
  std::vector<int64_t> dims;
  std::optional<int64_t> size = options.axis_size;
  bool consistent = true;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    dims.push_back(not_mapped);
    if (!axes[i]) continue;
    int64_t rank = leaves[i].ndim(), axis = *axes[i];
    if (axis < -rank || axis >= rank) {
      throw ValueError(concat("vmap was requested to map its argument along axis ", axis,
                              ", which implies that its rank should be "
                              "at least ",
                              axis >= 0 ? axis + 1 : -axis, ", but is only ", rank, " (its shape is ",
                              shape_tuple(leaves[i].shape()), "); it is args", keystr(in.paths()[i])));
    }
    dims.back() = axis < 0 ? axis + rank : axis;
    int64_t found = leaves[i].shape(dims.back());
    consistent &= !size || *size == found;
    if (!size) size = found;
  }
  if (!consistent) throw_inconsistent(in, leaves, axes, dims, options.axis_size);
  if (!size) throw ValueError("vmap must have at least one non-None value in in_axes or axis_size must be specified");

  std::vector<int64_t> out_dims;
  return vmap_flat(
      [&](std::span<const Array> inputs) {
        Arrays outputs = function(inputs);
        LeafAxes wanted = spread("out_axes", options.out_axes, out);
        std::vector<KeyPath> paths;
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          if (!outputs[i].defined())
            throw TypeError(concat("vmap: the function returned an empty array handle at output ", i));
          out_dims.push_back(not_mapped);
          if (!wanted[i]) continue;
          int64_t rank = outputs[i].ndim() + 1;
          if (*wanted[i] < -rank || *wanted[i] >= rank) {
            throw ValueError(concat("vmap: out_axes ", *wanted[i], " is out of bounds for array of dimension ", rank,
                                    " (output", keystr(out.paths()[i]), ")"));
          }
          out_dims.back() = *wanted[i] < 0 ? *wanted[i] + rank : *wanted[i];
        }
        return outputs;
      },
      leaves, dims, out_dims, mapped_axis(options, *size));
}

}  // namespace detail
}  // namespace capibara
