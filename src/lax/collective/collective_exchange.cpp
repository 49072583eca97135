// Collectives that move values among the lanes of a named axis.
#include <algorithm>

#include "lax/collective/collective.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/partial_sums.h"
#include "program/ir/manual_axes.h"
#include "program/trace/mesh_trace.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

bool over_our_axis(const BatchArgs& args) {
  lax::AxisNames names = axis_names(args.attrs, "axis_name");
  return !args.axis.name.empty() && std::find(names.begin(), names.end(), args.axis.name) != names.end();
}

// Batches over another axis. Where a dimension is added or removed, the lanes precede all dimensions that may move.
BatchResult pass_on(const BatchArgs& args, std::initializer_list<const char*> dimensions) {
  const int64_t dim = args.attrs.boolean("tiled") ? args.dims[0] : 0;
  const Array x = move_axis(args.inputs[0], args.dims[0], dim);
  Attrs attrs = args.attrs;
  for (const char* name : dimensions) attrs = attrs.with(name, shifted(args.attrs.integer(name), dim));
  return {capibara::bind(args.primitive, std::span(&x, 1), attrs), {dim}};
}

// Merges dimension `at` with the next one.
Array merged(const Array& x, int64_t at) {
  Shape shape = x.shape();
  shape[static_cast<std::size_t>(at)] *= shape[static_cast<std::size_t>(at) + 1];
  shape.erase(shape.begin() + at + 1);
  return lax::reshape(x, shape);
}

// Splits dimension `at` into (parts, rest).
Array divided(const Array& x, int64_t at, int64_t parts) {
  Shape shape = x.shape();
  shape[static_cast<std::size_t>(at)] /= parts;
  shape.insert(shape.begin() + at, parts);
  return lax::reshape(x, shape);
}

BatchResult batch_all_gather(const BatchArgs& args) {
  if (!over_our_axis(args)) return pass_on(args, {"all_gather_dimension"});
  const LaneGroups groups(args);
  int64_t at = args.attrs.integer("all_gather_dimension");
  if (groups.whole()) {
    Array gathered = batch_at(args.inputs[0], args.dims[0], args.axis, at);
    if (args.attrs.boolean("tiled")) gathered = merged(gathered, at);
    return {{gathered}, {not_mapped}};
  }
  // [groups, members, ...] for every member of the group.
  Array split = groups.split(batch_at(args.inputs[0], args.dims[0], args.axis));
  Shape shape = split.shape();
  shape.insert(shape.begin() + 1, groups.size());
  Ints kept{0};
  for (int64_t i = 2; i <= split.ndim(); ++i) kept.push_back(i);
  Array gathered = move_axis(groups.join(lax::broadcast_in_dim(split, shape, kept)), 1, at + 1);
  if (args.attrs.boolean("tiled")) gathered = merged(gathered, at + 1);
  return {{gathered}, {0}};
}

BatchResult batch_reduce_scatter(const BatchArgs& args) {
  if (!over_our_axis(args)) return pass_on(args, {"scatter_dimension"});
  const LaneGroups groups(args);
  int64_t at = args.attrs.integer("scatter_dimension");
  if (groups.whole()) {
    Array sum = reduced_lanes(args.attrs, batch_at(args.inputs[0], args.dims[0], args.axis), 0, lax::reduce_sum);
    if (args.attrs.boolean("tiled")) sum = divided(sum, at, args.axis.size);
    return {{sum}, {at}};
  }
  Array x = groups.split(batch_at(args.inputs[0], args.dims[0], args.axis));
  Array sum = reduced_lanes(args.attrs, x, 1, lax::reduce_sum);  // [groups, ...]
  if (args.attrs.boolean("tiled")) sum = divided(sum, at + 1, groups.size());
  return {{groups.join(move_axis(sum, at + 1, 1))}, {0}};
}

BatchResult batch_all_to_all(const BatchArgs& args) {
  if (!over_our_axis(args)) return pass_on(args, {"split_axis", "concat_axis"});
  const LaneGroups groups(args);
  int64_t split = args.attrs.integer("split_axis") + 2, concat_at = args.attrs.integer("concat_axis") + 2;
  Array x = groups.split(batch_at(args.inputs[0], args.dims[0], args.axis));  // [group, lane, ...]
  if (args.attrs.boolean("tiled")) {
    x = divided(x, split, groups.size());  // [group, lane, ..., part, rest, ...]
    x = move_axis(x, split, 1);            // [group, part, lane, ...]: the part becomes the new lane
    x = move_axis(x, 2, concat_at);        // the old lane precedes the dimension that it is merged with
    return {{groups.join(merged(x, concat_at))}, {0}};
  }
  x = move_axis(x, split, 1);
  return {{groups.join(move_axis(x, 2, concat_at))}, {0}};
}

std::vector<std::pair<int64_t, int64_t>> permutation_pairs(const Attrs& attrs) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (const Attr& entry : attrs.list("perm")) {
    const Ints& pair = *entry.get_if<Ints>();
    pairs.emplace_back(pair[0], pair[1]);
  }
  return pairs;
}

BatchResult batch_ppermute(const BatchArgs& args) {
  if (!over_our_axis(args)) return {capibara::bind(args.primitive, args.inputs, args.attrs), {args.dims[0]}};
  Ints source(static_cast<std::size_t>(args.axis.size), -1);
  for (auto [from, to] : permutation_pairs(args.attrs)) source[static_cast<std::size_t>(to)] = from;
  return {{picked_lanes(batch_at(args.inputs[0], args.dims[0], args.axis), source)}, {0}};
}

BatchResult batch_pbroadcast(const BatchArgs& args) {
  if (!over_our_axis(args)) return {capibara::bind(args.primitive, args.inputs, args.attrs), {args.dims[0]}};
  if (!args.mapped(0)) return {{args.inputs[0]}, {not_mapped}};
  return {{lax::index_in_dim(args.inputs[0], args.attrs.integer("source"), args.dims[0], false)}, {not_mapped}};
}

PrimitiveRecord movement_record(std::string name, std::string operation, std::string doc, TypeRule type,
                                FactorRule factors, BatchRule batch, TransposeRule transpose) {
  PrimitiveRecord record{.name = std::move(name)};
  record.traits.mesh_axes = MeshAxes::exchanged;
  record.stablehlo = std::move(operation);
  record.factors = std::move(factors);
  record.doc = std::move(doc);
  record.type = std::move(type);
  record.jvp = linear_jvp();
  record.batch = std::move(batch);
  record.transpose = std::move(transpose);
  return record;
}

int64_t& dim(ArrayType& type, int64_t at) { return type.shape[static_cast<std::size_t>(at)]; }

TypeResult all_gather_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("all_gather", types, 1);
  ArrayType type = types[0];
  int64_t at = attrs.integer("all_gather_dimension"), size = attrs.integer("axis_size");
  if (attrs.boolean("tiled")) {
    dim(type, checked_axis("all_gather", at, type)) *= size;
  } else {
    type.shape.insert(type.shape.begin() + at, size);
  }
  return TypeResult(Types{type}, uses(axis_names(attrs, "axis_name")));
}

TypeResult reduce_scatter_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("psum_scatter", types, 1);
  ArrayType type = types[0];
  int64_t at = checked_axis("psum_scatter", attrs.integer("scatter_dimension"), type, "scatter_dimension");
  int64_t size = attrs.integer("axis_size");
  if (dim(type, at) % size || (!attrs.boolean("tiled") && dim(type, at) != size)) {
    throw ValueError(concat("psum_scatter: dimension ", at, " of ", to_string(type), " must be ",
                            attrs.boolean("tiled") ? "a multiple of" : "equal to", " the axis size ", size));
  }
  if (attrs.boolean("tiled"))
    dim(type, at) /= size;
  else
    type.shape.erase(type.shape.begin() + at);
  return TypeResult(Types{type}, uses(axis_names(attrs, "axis_name")));
}

TypeResult exchange_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("all_to_all", types, 1);
  ArrayType type = types[0];
  int64_t split = checked_axis("all_to_all", attrs.integer("split_axis"), type, "split_axis");
  int64_t size = attrs.integer("axis_size"), concat_at = attrs.integer("concat_axis");
  if (dim(type, split) % size || (!attrs.boolean("tiled") && dim(type, split) != size)) {
    throw ValueError(
        concat("all_to_all requires the size of the mapped axis to equal (or, tiled, to divide) dimension ", split,
               " of ", to_string(type), ", got axis size ", size));
  }
  if (attrs.boolean("tiled")) {
    dim(type, split) /= size;
    dim(type, checked_axis("all_to_all", concat_at, type, "concat_axis")) *= size;
  } else {
    type.shape.erase(type.shape.begin() + split);
    type.shape.insert(type.shape.begin() + concat_at, size);
  }
  return TypeResult(Types{type}, uses(axis_names(attrs, "axis_name")));
}

Array varying_cotangent(const TransposeArgs& args) {
  return lax::varied_over(args.cotangents[0], axis_names(args.attrs, "axis_name"));
}

Arrays transpose_all_gather(const TransposeArgs& args) {
  static const Primitive scatter = primitive("reduce_scatter");
  return {bind1(scatter, {varying_cotangent(args)},
                {{"scatter_dimension", args.attrs["all_gather_dimension"]},
                 {"axis_index_groups", args.attrs["axis_index_groups"]},
                 {"axis_name", args.attrs["axis_name"]},
                 {"axis_size", args.attrs["axis_size"]},
                 {"tiled", args.attrs["tiled"]}})};
}

Arrays transpose_reduce_scatter(const TransposeArgs& args) {
  static const Primitive gather = primitive("all_gather");
  return {bind1(gather, {varying_cotangent(args)},
                {{"all_gather_dimension", args.attrs["scatter_dimension"]},
                 {"axis_index_groups", args.attrs["axis_index_groups"]},
                 {"axis_name", args.attrs["axis_name"]},
                 {"axis_size", args.attrs["axis_size"]},
                 {"tiled", args.attrs["tiled"]}})};
}

Arrays transpose_all_to_all(const TransposeArgs& args) {
  return {
      bind1(args.primitive, {varying_cotangent(args)},
            args.attrs.with("split_axis", args.attrs["concat_axis"]).with("concat_axis", args.attrs["split_axis"]))};
}

Arrays transpose_ppermute(const TransposeArgs& args) {
  Attr::List inverse;
  for (auto [from, to] : permutation_pairs(args.attrs)) inverse.emplace_back(Ints{to, from});
  return {bind1(args.primitive, {varying_cotangent(args)}, args.attrs.with("perm", Attr(std::move(inverse))))};
}

// The source gets the sum over all lanes, the others zero.
Arrays transpose_pbroadcast(const TransposeArgs& args) {
  const std::string axis = axis_names(args.attrs, "axis_name")[0];
  const Array cotangent = varying_cotangent(args);
  const Array sum = lax::psum(cotangent, {axis});
  const Array index = lax::axis_index(axis);
  const Array is_source = lax::eq(index, scalar_like(index, static_cast<double>(args.attrs.integer("source"))));
  const Array chosen = lax::broadcast_in_dim(is_source, cotangent.shape(), {});
  return {lax::select(chosen, lax::varied_over(sum, {axis}), lax::zeros_like(cotangent))};
}

TypeResult same_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("collective", types, 1);
  return TypeResult(Types{types[0]}, uses(axis_names(attrs, "axis_name")));
}

}  // namespace

Family exchange_records() {
  return {movement_record("all_gather", "stablehlo.all_gather", "All lanes' values along a named axis, on every lane.",
                          all_gather_type, all_gather_factors, batch_all_gather, transpose_all_gather),
          movement_record("reduce_scatter", "stablehlo.reduce_scatter",
                          "The sum over a named axis, each lane keeping its part.", reduce_scatter_type,
                          reduce_scatter_factors, batch_reduce_scatter, transpose_reduce_scatter),
          movement_record("all_to_all", "stablehlo.all_to_all", "Exchanges parts of one dimension among the lanes.",
                          exchange_type, all_to_all_factors, batch_all_to_all, transpose_all_to_all),
          movement_record("ppermute", "stablehlo.collective_permute",
                          "Sends each lane's value to another lane; lanes that receive nothing get zeros.", same_type,
                          elementwise_factors, batch_ppermute, transpose_ppermute),
          movement_record("pbroadcast", "", "One lane's value on every lane of a named axis.", same_type,
                          elementwise_factors, batch_pbroadcast, transpose_pbroadcast)};
}

}  // namespace capibara

namespace capibara::jax::lax {

namespace {

// Over axes of vmaps: the last name varies fastest.
Array gathered_one_by_one(const Array& x, const AxisNames& names, int64_t axis, const AllGatherOptions& options) {
  if (!options.axis_index_groups.empty())
    throw NotImplementedError("all_gather: axis_index_groups are for one axis, got several names");
  Array stacked = x;
  for (auto name = names.rbegin(); name != names.rend(); ++name) stacked = all_gather(stacked, *name);
  Shape shape = x.shape();
  shape.insert(shape.begin(), group_size(names, {}));
  stacked = move_axis(reshape(stacked, shape), 0, axis);
  if (!options.tiled) return stacked;
  return merged(stacked, axis);
}

void require_mesh_axes(const char* name, const AxisNames& names) {
  if (names.size() > 1 && !are_mesh_axes(names)) {
    throw NotImplementedError(concat(name, ": several axis names are supported for axes of a mesh, not of vmap; got ",
                                     names.size(), " names"));
  }
}

}  // namespace

Array all_gather(const Array& x, const AxisNames& names, const AllGatherOptions& options) {
  int64_t rank = x.ndim() + (options.tiled ? 0 : 1);
  int64_t axis = options.axis < 0 ? options.axis + rank : options.axis;
  if (axis < 0 || axis >= rank) {
    throw ValueError(
        concat("all_gather: axis ", options.axis, " is out of range for ", to_string(x.type()), " (argument 'axis')"));
  }
  if (names.size() > 1 && !are_mesh_axes(names)) return gathered_one_by_one(x, names, axis, options);
  return bind1(primitive("all_gather"), {varied_over(x, names)},
               {{"all_gather_dimension", axis},
                {"axis_index_groups", groups_attr(options.axis_index_groups)},
                {"axis_name", name_list(names)},
                {"axis_size", group_size(names, options.axis_index_groups)},
                {"tiled", options.tiled}});
}

Array all_gather(const Array& x, const std::string& axis_name, const AllGatherOptions& options) {
  return all_gather(x, AxisNames{axis_name}, options);
}

Array psum_scatter(const Array& x, const AxisNames& names, const PsumScatterOptions& options) {
  if (names.size() > 1 && !are_mesh_axes(names) && options.tiled) {
    Array part = x;
    for (const std::string& name : names) part = psum_scatter(part, name, options);
    return part;
  }
  require_mesh_axes("psum_scatter", names);
  if (is_unreduced("jax.lax.psum_scatter", x, names)) {
    if (!options.axis_index_groups.empty())
      throw NotImplementedError("psum_scatter: axis_index_groups are not for values whose sum is still to be taken");
    return bind1(prim::unreduced_reduce_scatter(), {x},
                 {{"axis_name", name_list(names)},
                  {"axis_size", group_size(names, {})},
                  {"scatter_dimension", options.scatter_dimension},
                  {"tiled", options.tiled}});
  }
  return bind1(primitive("reduce_scatter"), {varied_over(x, names)},
               {{"scatter_dimension", options.scatter_dimension},
                {"axis_index_groups", groups_attr(options.axis_index_groups)},
                {"axis_name", name_list(names)},
                {"axis_size", group_size(names, options.axis_index_groups)},
                {"tiled", options.tiled}});
}

Array psum_scatter(const Array& x, const std::string& axis_name, const PsumScatterOptions& options) {
  return psum_scatter(x, AxisNames{axis_name}, options);
}

Array all_to_all(const Array& x, const AxisNames& names, int64_t split_axis, int64_t concat_axis,
                 const AllToAllOptions& options) {
  if (split_axis < 0) split_axis += x.ndim();
  if (split_axis < 0 || split_axis >= x.ndim()) {
    throw ValueError(concat("all_to_all: axis is out of range for ", to_string(x.type()), " (argument 'split_axis')"));
  }
  const int64_t lanes = group_size(names, options.axis_index_groups), parts = x.shape(split_axis);
  if (options.tiled ? parts % lanes != 0 : parts != lanes) {
    throw ValueError(
        concat("all_to_all requires the size of the mapped axis to equal (or, tiled, to divide) dimension ", split_axis,
               " of ", to_string(x.type()), ", got axis size ", lanes));
  }
  return bind1(primitive("all_to_all"), {varied_over(x, names)},
               {{"split_axis", split_axis},
                {"concat_axis", concat_axis < 0 ? concat_axis + x.ndim() : concat_axis},
                {"axis_index_groups", groups_attr(options.axis_index_groups)},
                {"axis_name", name_or_list(names)},
                {"axis_size", lanes},
                {"tiled", options.tiled}});
}

Array all_to_all(const Array& x, const std::string& axis_name, int64_t split_axis, int64_t concat_axis,
                 const AllToAllOptions& options) {
  return all_to_all(x, AxisNames{axis_name}, split_axis, concat_axis, options);
}

Array ppermute(const Array& x, const AxisNames& names, const std::vector<std::pair<int64_t, int64_t>>& perm) {
  require_mesh_axes("ppermute", names);
  const int64_t size = group_size(names, {});
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
  return bind1(primitive("ppermute"), {varied_over(x, names)},
               {{"axis_name", name_list(names)}, {"perm", Attr(std::move(pairs))}});
}

Array ppermute(const Array& x, const std::string& axis_name, const std::vector<std::pair<int64_t, int64_t>>& perm) {
  return ppermute(x, AxisNames{axis_name}, perm);
}

Array pshuffle(const Array& x, const std::string& axis_name, const Ints& perm) {
  if (static_cast<int64_t>(perm.size()) != axis_size(axis_name)) {
    throw ValueError(concat("pshuffle: `perm` must have the axis size ", axis_size(axis_name), ", got ", perm.size()));
  }
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (std::size_t to = 0; to < perm.size(); ++to) pairs.emplace_back(perm[to], static_cast<int64_t>(to));
  return ppermute(x, axis_name, pairs);
}

Array pswapaxes(const Array& x, const std::string& axis_name, int64_t axis) {
  return all_to_all(x, axis_name, axis, axis);
}

Array pbroadcast(const Array& x, const std::string& axis_name, int64_t source) {
  if (const int64_t size = axis_size(axis_name); source < 0 || source >= size) {
    throw ValueError(concat("pbroadcast: the source must be an index of the axis '", axis_name, "' of size ", size,
                            ", got ", source));
  }
  return bind1(primitive("pbroadcast"), {varied_over(x, {axis_name})}, {{"axis_name", axis_name}, {"source", source}});
}

}  // namespace capibara::jax::lax
