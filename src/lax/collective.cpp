// The collective family: operations across the lanes of a named axis. Under vmap they turn into plain operations.
#include "lax/families.h"
#include "lax/rules.h"

#include <algorithm>
#include <numeric>

namespace capibara {

namespace lax = jax::lax;

namespace {

lax::AxisNames axis_names(const Attrs& attrs, const char* key) {
  const Attr& attr = attrs[key];
  if (const auto* text = attr.get_if<std::string>()) return {*text};
  lax::AxisNames names;
  for (const Attr& entry : attrs.list(key)) names.push_back(*entry.get_if<std::string>());
  return names;
}

Effects uses(const lax::AxisNames& names) {
  Effects effects;
  for (const std::string& name : names) effects.add_axis(name);
  return effects;
}

void refuse_groups(const BatchArgs& args) {
  if (!args.attrs["axis_index_groups"].is_none()) {
    throw NotImplementedError(concat(args.primitive.name(), ": axis_index_groups are not supported under vmap"));
  }
}

// ---- reductions: psum, pmax, pmin -------------------------------------------------------------------------------

using Reduction = Array (*)(const Array&, const lax::ReduceOptions&);

BatchResult batch_reduction(const BatchArgs& args, Reduction reduce, bool scale_by_size) {
  lax::AxisNames names = axis_names(args.attrs, "axes");
  bool ours = std::find(names.begin(), names.end(), args.axis.name) != names.end() && !args.axis.name.empty();
  if (!ours) return {capibara::bind(args.primitive, args.inputs, args.attrs), {args.dims.begin(), args.dims.end()}};
  refuse_groups(args);
  Arrays reduced;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    Array x = args.inputs[i];
    if (args.mapped(i)) {
      x = reduce(x, {.axes = {args.dims[i]}});
    } else if (scale_by_size) {
      x = lax::mul(x, scalar_like(x, static_cast<double>(args.axis.size)));
    }
    reduced.push_back(x);
  }
  std::erase(names, args.axis.name);
  if (!names.empty()) {
    Attr::List rest(names.begin(), names.end());
    reduced = capibara::bind(args.primitive, reduced, args.attrs.with("axes", Attr(std::move(rest))));
  }
  return {reduced, std::vector<int64_t>(reduced.size(), not_mapped)};
}

PrimitiveRecord reduction_record(std::string name, std::string doc, Reduction reduce, bool is_sum) {
  PrimitiveRecord record;
  record.name = std::move(name);
  record.doc = std::move(doc);
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) {
    return TypeResult(Types(types.begin(), types.end()), uses(axis_names(attrs, "axes")));
  };
  record.batch = [reduce, is_sum](const BatchArgs& args) { return batch_reduction(args, reduce, is_sum); };
  record.traits.nan_checked = is_sum;
  if (is_sum) {
    record.jvp = linear_jvp();
    record.transpose = [](const TransposeArgs& args) {
      Arrays given;
      for (const Array& cotangent : args.cotangents) {
        if (cotangent.defined()) given.push_back(cotangent);
      }
      Arrays summed = capibara::bind(args.primitive, given, args.attrs), results;
      std::size_t next = 0;
      for (const Array& cotangent : args.cotangents) results.push_back(cotangent.defined() ? summed[next++] : Array());
      return results;
    };
  }
  return record;
}

// ---- data movement ----------------------------------------------------------------------------------------------

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
  int64_t split = args.attrs.integer("split_axis"), concat_at = args.attrs.integer("concat_axis"), size = args.axis.size;
  Array x = batch_at(args.inputs[0], args.dims[0], size);
  if (args.attrs.boolean("tiled")) {
    x = divided(x, split + 1, size);       // [lane, ..., part, rest, ...]
    x = move_axis(x, split + 1, 0);        // [part, lane, ...]: the part becomes the new lane
    x = move_axis(x, 1, concat_at + 1);    // the old lane stands before the dimension it joins
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

PrimitiveRecord movement_record(std::string name, std::string doc, TypeRule type, BatchRule batch, TransposeRule transpose) {
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

TypeResult gather_type(std::span<const ArrayType> types, const Attrs& attrs) {
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

TypeResult scatter_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("psum_scatter", types, 1);
  ArrayType type = types[0];
  int64_t at = checked_axis("psum_scatter", attrs.integer("scatter_dimension"), type, "scatter_dimension");
  int64_t size = attrs.integer("axis_size");
  if (dim(type, at) % size || (!attrs.boolean("tiled") && dim(type, at) != size)) {
    throw ValueError(concat("psum_scatter: dimension ", at, " of ", to_string(type), " must be ",
                            attrs.boolean("tiled") ? "a multiple of" : "equal to", " the axis size ", size));
  }
  if (attrs.boolean("tiled")) dim(type, at) /= size;
  else type.shape.erase(type.shape.begin() + at);
  return TypeResult(Types{type}, uses(axis_names(attrs, "axis_name")));
}

TypeResult exchange_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("all_to_all", types, 1);
  ArrayType type = types[0];
  int64_t split = checked_axis("all_to_all", attrs.integer("split_axis"), type, "split_axis");
  int64_t size = attrs.integer("axis_size"), concat_at = attrs.integer("concat_axis");
  if (dim(type, split) % size || (!attrs.boolean("tiled") && dim(type, split) != size)) {
    throw ValueError(concat("all_to_all requires the size of the mapped axis to equal (or, tiled, to divide) dimension ",
                            split, " of ", to_string(type), ", got axis size ", size));
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

Family collective_family() {
  Family family;
  family.push_back(reduction_record("psum", "The sum over a named axis.", lax::reduce_sum, true));
  family.push_back(reduction_record("pmax", "The maximum over a named axis.", lax::reduce_max, false));
  family.push_back(reduction_record("pmin", "The minimum over a named axis.", lax::reduce_min, false));

  family.push_back(movement_record(
      "all_gather", "All lanes' values along a named axis, on every lane.", gather_type, batch_all_gather,
      [](const TransposeArgs& args) -> Arrays {
        return {lax::psum_scatter(args.cotangents[0], axis_names(args.attrs, "axis_name")[0],
                                  {.scatter_dimension = args.attrs.integer("all_gather_dimension"),
                                   .tiled = args.attrs.boolean("tiled"),
                                   .axis_index_groups = {}})};
      }));
  family.push_back(movement_record(
      "reduce_scatter", "The sum over a named axis, each lane keeping its part.", scatter_type, batch_reduce_scatter,
      [](const TransposeArgs& args) -> Arrays {
        return {lax::all_gather(args.cotangents[0], axis_names(args.attrs, "axis_name")[0],
                                {.axis = args.attrs.integer("scatter_dimension"),
                                 .tiled = args.attrs.boolean("tiled"),
                                 .axis_index_groups = {}})};
      }));
  family.push_back(movement_record(
      "all_to_all", "Exchanges parts of one dimension among the lanes.", exchange_type, batch_all_to_all,
      [](const TransposeArgs& args) -> Arrays {
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

  PrimitiveRecord index;
  index.name = "axis_index";
  index.doc = "The position of this lane along a named axis.";
  index.differentiable = false;
  index.type = [](std::span<const ArrayType>, const Attrs& attrs) {
    return TypeResult(Types{ArrayType{{}, DType::int32, false, false, {}}}, uses(axis_names(attrs, "axis_name")));
  };
  index.batch = [](const BatchArgs& args) { return BatchResult{{lax::iota(DType::int32, args.axis.size)}, {0}}; };
  family.push_back(std::move(index));
  return family;
}

}  // namespace capibara
