// Collectives over named axes: check the axis, then bind.
#include <capibara/lax.h>
#include <capibara/primitive.h>

#include "trace/trace.h"

namespace capibara::jax::lax {

namespace {

Attr name_list(const AxisNames& names) { return Attr(Attr::List(names.begin(), names.end())); }

Attr groups_attr(const AxisGroups& groups) {
  if (groups.empty()) return Attr();
  return Attr(Attr::List(groups.begin(), groups.end()));
}

int64_t group_size(const std::string& axis_name, const AxisGroups& groups) {
  return groups.empty() ? axis_size(axis_name) : static_cast<int64_t>(groups[0].size());
}

Array reduce_over(const char* name, const Array& x, const AxisNames& axes, const AxisGroups& groups) {
  for (const std::string& axis : axes) axis_size(axis);
  return bind1(primitive(name), {x}, {{"axes", name_list(axes)}, {"axis_index_groups", groups_attr(groups)}});
}

}  // namespace

int64_t axis_size(const std::string& axis_name) {
  if (std::optional<int64_t> size = current_trace()->axis_size(axis_name)) return *size;
  throw NameError(concat("unbound axis name: ", axis_name,
                         ". Hint: name the axis with vmap(f, {.axis_name = \"", axis_name, "\"})"));
}

Array psum(const Array& x, const AxisNames& axes, const AxisGroups& groups) {
  // The sum of a constant is known: no lane differs.
  if (!x.is_tracer() && groups.empty()) {
    int64_t lanes = 1;
    for (const std::string& axis : axes) lanes *= axis_size(axis);
    return mul(x, convert_element_type(Array(lanes), x.dtype()));
  }
  return reduce_over("psum", x, axes, groups);
}

Array pmean(const Array& x, const AxisNames& axes, const AxisGroups& groups) {
  int64_t lanes = 1;
  for (const std::string& axis : axes) lanes *= group_size(axis, groups);
  return psum(x, axes, groups) / Array(lanes);
}

Array pmax(const Array& x, const AxisNames& axes, const AxisGroups& groups) { return reduce_over("pmax", x, axes, groups); }
Array pmin(const Array& x, const AxisNames& axes, const AxisGroups& groups) { return reduce_over("pmin", x, axes, groups); }

Array all_gather(const Array& x, const std::string& axis_name, const AllGatherOptions& options) {
  int64_t rank = x.ndim() + (options.tiled ? 0 : 1);
  int64_t axis = options.axis < 0 ? options.axis + rank : options.axis;
  if (axis < 0 || axis >= rank) {
    throw ValueError(concat("all_gather: axis ", options.axis, " is out of range for ", to_string(x.type()), " (argument 'axis')"));
  }
  return bind1(primitive("all_gather"), {x},
               {{"all_gather_dimension", axis},
                {"axis_index_groups", groups_attr(options.axis_index_groups)},
                {"axis_name", name_list({axis_name})},
                {"axis_size", group_size(axis_name, options.axis_index_groups)},
                {"tiled", options.tiled}});
}

Array psum_scatter(const Array& x, const std::string& axis_name, const PsumScatterOptions& options) {
  return bind1(primitive("reduce_scatter"), {x},
               {{"scatter_dimension", options.scatter_dimension},
                {"axis_index_groups", groups_attr(options.axis_index_groups)},
                {"axis_name", name_list({axis_name})},
                {"axis_size", group_size(axis_name, options.axis_index_groups)},
                {"tiled", options.tiled}});
}

Array all_to_all(const Array& x, const std::string& axis_name, int64_t split_axis, int64_t concat_axis,
                 const AllToAllOptions& options) {
  if (split_axis < 0) split_axis += x.ndim();
  if (split_axis < 0 || split_axis >= x.ndim()) {
    throw ValueError(concat("all_to_all: axis is out of range for ", to_string(x.type()), " (argument 'split_axis')"));
  }
  const int64_t lanes = group_size(axis_name, options.axis_index_groups), parts = x.shape(split_axis);
  if (options.tiled ? parts % lanes != 0 : parts != lanes) {
    throw ValueError(concat("all_to_all requires the size of the mapped axis to equal (or, tiled, to divide) dimension ",
                            split_axis, " of ", to_string(x.type()), ", got axis size ", lanes));
  }
  return bind1(primitive("all_to_all"), {x},
               {{"split_axis", split_axis},
                {"concat_axis", concat_axis < 0 ? concat_axis + x.ndim() : concat_axis},
                {"axis_index_groups", groups_attr(options.axis_index_groups)},
                {"axis_name", name_list({axis_name})},
                {"axis_size", lanes},
                {"tiled", options.tiled}});
}

Array ppermute(const Array& x, const std::string& axis_name, const std::vector<std::pair<int64_t, int64_t>>& perm) {
  int64_t size = axis_size(axis_name);
  std::vector<bool> sends(static_cast<std::size_t>(size)), receives(static_cast<std::size_t>(size));
  Attr::List pairs;
  for (auto [from, to] : perm) {
    bool valid = from >= 0 && from < size && to >= 0 && to < size;
    if (!valid || sends[static_cast<std::size_t>(from)] || receives[static_cast<std::size_t>(to)]) {
      throw ValueError(concat("ppermute sources and destinations must be unique and within the axis of size ", size,
                              ", got (", from, ", ", to, ")"));
    }
    sends[static_cast<std::size_t>(from)] = receives[static_cast<std::size_t>(to)] = true;
    pairs.emplace_back(Ints{from, to});
  }
  return bind1(primitive("ppermute"), {x}, {{"axis_name", name_list({axis_name})}, {"perm", Attr(std::move(pairs))}});
}

Array pshuffle(const Array& x, const std::string& axis_name, const Ints& perm) {
  if (static_cast<int64_t>(perm.size()) != axis_size(axis_name)) {
    throw ValueError(concat("pshuffle: `perm` must have the axis size ", axis_size(axis_name), ", got ", perm.size()));
  }
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (std::size_t to = 0; to < perm.size(); ++to) pairs.emplace_back(perm[to], static_cast<int64_t>(to));
  return ppermute(x, axis_name, pairs);
}

Array pswapaxes(const Array& x, const std::string& axis_name, int64_t axis) { return all_to_all(x, axis_name, axis, axis); }

Array pbroadcast(const Array& x, const std::string& axis_name, int64_t source) {
  if (const int64_t size = axis_size(axis_name); source < 0 || source >= size) {
    throw ValueError(concat("pbroadcast: the source must be an index of the axis '", axis_name, "' of size ", size, ", got ", source));
  }
  Array axis_index_axis_name = axis_index(axis_name);
  Array chosen = eq(axis_index_axis_name, convert_element_type(Array(source), DType::int32));
  Array broadcasted = broadcast_in_dim(chosen, x.shape(), {});
  return psum(select(broadcasted, x, zeros_like(x)), {axis_name});
}

Array axis_index(const std::string& axis_name) {
  axis_size(axis_name);
  return capibara::bind(primitive("axis_index"), {}, {{"axis_name", name_list({axis_name})}})[0];
}

}  // namespace capibara::jax::lax
