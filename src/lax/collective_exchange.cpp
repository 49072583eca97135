// Collectives that move values among the lanes of a named axis.
#include <algorithm>

#include "lax/collective.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

bool over_our_axis(const BatchArgs& args) {
  lax::AxisNames names = axis_names(args.attrs, "axis_name");
  return !args.axis.name.empty() && std::find(names.begin(), names.end(), args.axis.name) != names.end();
}

BatchResult pass_on(const BatchArgs& args, std::initializer_list<const char*> dimensions) {
  int64_t dim = args.dims[0];
  Attrs attrs = args.attrs;
  for (const char* name : dimensions) attrs = attrs.with(name, shifted(args.attrs.integer(name), dim));
  return {capibara::bind(args.primitive, args.inputs, attrs), {dim}};
}

// Merges dimension `at` with the one behind it.
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
  refuse_groups(args);
  int64_t at = args.attrs.integer("all_gather_dimension");
  Array gathered = batch_at(args.inputs[0], args.dims[0], args.axis.size, at);
  if (args.attrs.boolean("tiled")) gathered = merged(gathered, at);
  return {{gathered}, {not_mapped}};
}

BatchResult batch_reduce_scatter(const BatchArgs& args) {
  if (!over_our_axis(args)) return pass_on(args, {"scatter_dimension"});
  refuse_groups(args);
  int64_t at = args.attrs.integer("scatter_dimension"), size = args.axis.size;
  Array x = batch_at(args.inputs[0], args.dims[0], size);
  Array sum = lax::reduce_sum(x, {.axes = {0}});
  if (args.attrs.boolean("tiled")) sum = divided(sum, at, size);
  return {{sum}, {at}};
}

BatchResult batch_all_to_all(const BatchArgs& args) {
  if (!over_our_axis(args)) return pass_on(args, {"split_axis", "concat_axis"});
  refuse_groups(args);
  int64_t split = args.attrs.integer("split_axis"), concat_at = args.attrs.integer("concat_axis"),
          size = args.axis.size;
  Array x = batch_at(args.inputs[0], args.dims[0], size);
  if (args.attrs.boolean("tiled")) {
    x = divided(x, split + 1, size);     // [lane, ..., part, rest, ...]
    x = move_axis(x, split + 1, 0);      // [part, lane, ...]: the part becomes the new lane
    x = move_axis(x, 1, concat_at + 1);  // the old lane stands before the dimension it joins
    return {{merged(x, concat_at + 1)}, {0}};
  }
  x = move_axis(x, split + 1, 0);
  return {{move_axis(x, 1, concat_at + 1)}, {0}};
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
  int64_t size = args.axis.size;
  Array x = batch_at(args.inputs[0], args.dims[0], size);
  Ints source(static_cast<std::size_t>(size), -1);
  for (auto [from, to] : permutation_pairs(args.attrs)) source[static_cast<std::size_t>(to)] = from;
  Arrays lanes;
  // Lanes that receive nothing are zero. Runs of neighbours move as one slice.
  for (std::size_t i = 0; i < source.size();) {
    std::size_t end = i + 1;
    while (end < source.size() && (source[i] < 0 ? source[end] < 0 : source[end] == source[end - 1] + 1)) ++end;
    int64_t count = static_cast<int64_t>(end - i);
    Shape shape = x.shape();
    shape[0] = count;
    lanes.push_back(source[i] < 0 ? lax::zeros(x.type().with_shape(shape))
                                  : lax::slice_in_dim(x, source[i], source[i] + count));
    i = end;
  }
  return {{lanes.size() == 1 ? lanes[0] : lax::concatenate(lanes, 0)}, {0}};
}

PrimitiveRecord movement_record(std::string name, std::string doc, TypeRule type, BatchRule batch,
                                TransposeRule transpose) {
  PrimitiveRecord record;
  record.name = std::move(name);
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

}  // namespace

Family exchange_records() {
  Family family;
  family.push_back(
      movement_record("all_gather", "All lanes' values along a named axis, on every lane.", all_gather_type,
                      batch_all_gather, [](const TransposeArgs& args) -> Arrays {
                        return {lax::psum_scatter(args.cotangents[0], axis_names(args.attrs, "axis_name")[0],
                                                  {.scatter_dimension = args.attrs.integer("all_gather_dimension"),
                                                   .tiled = args.attrs.boolean("tiled"),
                                                   .axis_index_groups = {}})};
                      }));
  family.push_back(movement_record("reduce_scatter", "The sum over a named axis, each lane keeping its part.",
                                   reduce_scatter_type, batch_reduce_scatter, [](const TransposeArgs& args) -> Arrays {
                                     return {lax::all_gather(args.cotangents[0], axis_names(args.attrs, "axis_name")[0],
                                                             {.axis = args.attrs.integer("scatter_dimension"),
                                                              .tiled = args.attrs.boolean("tiled"),
                                                              .axis_index_groups = {}})};
                                   }));
  family.push_back(
      movement_record("all_to_all", "Exchanges parts of one dimension among the lanes.", exchange_type,
                      batch_all_to_all, [](const TransposeArgs& args) -> Arrays {
                        return {lax::all_to_all(args.cotangents[0], axis_names(args.attrs, "axis_name")[0],
                                                args.attrs.integer("concat_axis"), args.attrs.integer("split_axis"),
                                                {.tiled = args.attrs.boolean("tiled"), .axis_index_groups = {}})};
                      }));
  family.push_back(movement_record(
      "ppermute", "Sends each lane's value to another lane; lanes that receive nothing get zeros.",
      [](std::span<const ArrayType> types, const Attrs& attrs) {
        require_count("ppermute", types, 1);
        return TypeResult(Types{types[0]}, uses(axis_names(attrs, "axis_name")));
      },
      batch_ppermute,
      [](const TransposeArgs& args) -> Arrays {
        std::vector<std::pair<int64_t, int64_t>> inverse;
        for (auto [from, to] : permutation_pairs(args.attrs)) inverse.emplace_back(to, from);
        return {lax::ppermute(args.cotangents[0], axis_names(args.attrs, "axis_name")[0], inverse)};
      }));
  return family;
}

}  // namespace capibara

namespace capibara::jax::lax {

Array all_gather(const Array& x, const std::string& axis_name, const AllGatherOptions& options) {
  int64_t rank = x.ndim() + (options.tiled ? 0 : 1);
  int64_t axis = options.axis < 0 ? options.axis + rank : options.axis;
  if (axis < 0 || axis >= rank) {
    throw ValueError(
        concat("all_gather: axis ", options.axis, " is out of range for ", to_string(x.type()), " (argument 'axis')"));
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
    throw ValueError(
        concat("all_to_all requires the size of the mapped axis to equal (or, tiled, to divide) dimension ", split_axis,
               " of ", to_string(x.type()), ", got axis size ", lanes));
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

Array pswapaxes(const Array& x, const std::string& axis_name, int64_t axis) {
  return all_to_all(x, axis_name, axis, axis);
}

Array pbroadcast(const Array& x, const std::string& axis_name, int64_t source) {
  if (const int64_t size = axis_size(axis_name); source < 0 || source >= size) {
    throw ValueError(concat("pbroadcast: the source must be an index of the axis '", axis_name, "' of size ", size,
                            ", got ", source));
  }
  Array axis_index_axis_name = axis_index(axis_name);
  Array chosen = eq(axis_index_axis_name, convert_element_type(Array(source), DType::int32));
  Array broadcasted = broadcast_in_dim(chosen, x.shape(), {});
  return psum(select(broadcasted, x, zeros_like(x)), {axis_name});
}

}  // namespace capibara::jax::lax
