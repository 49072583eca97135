// The collective family: reductions across the lanes of a named axis. Under vmap collectives become plain
// operations.
#include "lax/collective/collective.h"

#include <capibara/ragged.h>

#include <algorithm>

#include "core/array/format.h"
#include "lax/collective/process_exchange.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/partial_sums.h"
#include "program/ir/manual_axes.h"
#include "program/ir/varying.h"
#include "program/trace/mesh_trace.h"
#include "program/trace/trace.h"

namespace capibara {

namespace lax = jax::lax;

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

Array picked_lanes(const Array& x, const Ints& source) {
  Arrays lanes;
  // Consecutive lanes are moved as one slice.
  for (std::size_t i = 0; i < source.size();) {
    std::size_t end = i + 1;
    while (end < source.size() && (source[i] < 0 ? source[end] < 0 : source[end] == source[end - 1] + 1)) ++end;
    const auto count = static_cast<int64_t>(end - i);
    Shape shape = x.shape();
    shape[0] = count;
    lanes.push_back(source[i] < 0 ? lax::zeros(x.type().with_shape(shape))
                                  : lax::slice_in_dim(x, source[i], source[i] + count));
    i = end;
  }
  return lanes.size() == 1 ? lanes[0] : lax::concatenate(lanes, 0);
}

Array tree_sum(const Array& lanes) {
  const DType own = lanes.dtype();
  if (is_bool(own) || lanes.shape(0) == 0) return lax::reduce_sum(lanes, {.axes = {0}});
  const bool narrow = is_floating(own) && bits(own) < 32;  // rounded once
  Array level = narrow ? lax::convert_element_type(lanes, DType::float32) : lanes;
  while (level.shape(0) > 1) {
    const int64_t count = level.shape(0), even = count - count % 2;
    const Array left = lax::slice_in_dim(level, 0, even, 2), right = lax::slice_in_dim(level, 1, even, 2);
    const Array pairs = lax::add(left, right);
    level = even == count ? pairs : lax::concatenate({pairs, lax::slice_in_dim(level, even, count)}, 0);
  }
  const Array sum = lax::squeeze(level, {0});
  return narrow ? lax::convert_element_type(sum, own) : sum;
}

Array reduced_lanes(const Attrs& attrs, const Array& x, int64_t dim, Reduction reduce) {
  return attrs.has("tree") ? tree_sum(move_axis(x, dim, 0)) : reduce(x, {.axes = {dim}});
}

LaneGroups::LaneGroups(const BatchArgs& args) : lanes_(args.axis.size) {
  if (args.attrs.has("axis_index_groups")) groups_ = lax::index_groups(args.attrs);
}

bool LaneGroups::uneven() const {
  return std::any_of(groups_.begin(), groups_.end(), [&](const Ints& group) { return std::ssize(group) != size(); });
}

Array LaneGroups::split(const Array& x) const {
  Ints order;
  for (const Ints& group : groups_) order.insert(order.end(), group.begin(), group.end());
  const Array ordered = whole() ? x : picked_lanes(x, order);
  Shape shape = x.shape();
  shape[0] = size();
  shape.insert(shape.begin(), count());
  return lax::reshape(ordered, shape);
}

Array LaneGroups::join(const Array& x) const {
  Shape shape = x.shape();
  shape.erase(shape.begin());
  shape[0] = lanes_;
  return join_lanes(lax::reshape(x, shape));
}

Array LaneGroups::join_lanes(const Array& lanes) const {
  if (whole()) return lanes;
  Ints position(static_cast<std::size_t>(lanes_));
  int64_t next = 0;
  for (const Ints& group : groups_) {
    for (int64_t lane : group) position[static_cast<std::size_t>(lane)] = next++;
  }
  return picked_lanes(lanes, position);
}

namespace {

Array reduced_in_uneven_groups(const Array& x, const LaneGroups& groups, const Attrs& attrs, Reduction reduce) {
  Arrays results;
  for (const Ints& group : groups.groups()) {
    const Array reduced = reduced_lanes(attrs, picked_lanes(x, group), 0, reduce);
    results.push_back(lax::broadcast(reduced, {std::ssize(group)}));
  }
  return groups.join_lanes(lax::concatenate(results, 0));
}

// Each lane gets the result of its group.
Array reduced_in_groups(const Array& x, const LaneGroups& groups, const Attrs& attrs, Reduction reduce) {
  if (groups.uneven()) return reduced_in_uneven_groups(x, groups, attrs, reduce);
  const Array split = groups.split(x);
  const Array reduced = reduced_lanes(attrs, split, 1, reduce);
  Ints kept{0};
  for (int64_t dim = 2; dim < split.ndim(); ++dim) kept.push_back(dim);
  return groups.join(lax::broadcast_in_dim(reduced, split.shape(), kept));
}

BatchResult batch_grouped(const BatchArgs& args, const LaneGroups& groups, Reduction reduce) {
  BatchResult result;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    const Array lanes = batch_at(args.inputs[i], args.dims[i], args.axis);
    result.outputs.push_back(reduced_in_groups(lanes, groups, args.attrs, reduce));
    result.dims.push_back(0);
  }
  return result;
}

}  // namespace

BatchResult batch_collective(const BatchArgs& args, Reduction reduce, bool scale_by_size) {
  lax::AxisNames names = axis_names(args.attrs, "axes");
  bool ours = std::find(names.begin(), names.end(), args.axis.name) != names.end() && !args.axis.name.empty();
  if (!ours) return {capibara::bind(args.primitive, args.inputs, args.attrs), {args.dims.begin(), args.dims.end()}};
  const LaneGroups groups(args);
  if (!groups.whole()) return batch_grouped(args, groups, reduce);
  Arrays reduced;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    Array x = args.inputs[i];
    if (args.mapped(i)) {
      x = reduced_lanes(args.attrs, x, args.dims[i], reduce);
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

namespace {

PrimitiveRecord reduction_record(std::string name, std::string doc, Reduction reduce, bool is_sum) {
  PrimitiveRecord record;
  record.name = std::move(name);
  record.traits.mesh_axes = MeshAxes::exchanged;
  record.factors = pairwise_factors;
  record.stablehlo = "stablehlo.all_reduce";
  record.doc = std::move(doc);
  record.type = [is_sum](std::span<const ArrayType> types, const Attrs& attrs) {
    const lax::AxisNames names = axis_names(attrs, "axes");
    Types reduced(types.begin(), types.end());
    for (ArrayType& type : reduced) {
      if (!is_sum) type.sharding = without_varying(type.sharding, names);
    }
    return TypeResult(std::move(reduced), uses(names));
  };
  record.batch = [reduce, is_sum](const BatchArgs& args) { return batch_collective(args, reduce, is_sum); };
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

PrimitiveRecord axis_index_record() {
  PrimitiveRecord index;
  index.name = "axis_index";
  index.traits.mesh_axes = MeshAxes::named;
  index.factors = whole_factors;
  index.stablehlo = "stablehlo.partition_id";
  index.doc = "The position of this lane along a named axis.";
  index.differentiable = false;
  index.type = [](std::span<const ArrayType>, const Attrs& attrs) {
    const lax::AxisNames names = axis_names(attrs, "axis_name");
    ArrayType type{{}, DType::int32, false, false, {}};
    if (const Mesh* mesh = checked_mesh(names[0])) type.sharding = Sharding::varying_over(*mesh, names);
    return TypeResult(Types{type}, uses(names));
  };
  index.batch = [](const BatchArgs& args) { return BatchResult{{lax::iota(DType::int32, args.axis.size)}, {0}}; };
  return index;
}

}  // namespace

Family collective_family() {
  Family family;
  family.push_back(reduction_record("psum", "The sum over a named axis.", lax::reduce_sum, true));
  family.push_back(reduction_record("pmax", "The maximum over a named axis.", lax::reduce_max, false));
  family.push_back(reduction_record("pmin", "The minimum over a named axis.", lax::reduce_min, false));
  for (PrimitiveRecord& record : exchange_records()) family.push_back(std::move(record));
  family.push_back(axis_index_record());
  for (PrimitiveRecord& record : varying_records()) family.push_back(std::move(record));
  family.push_back(shard_map_record());
  for (PrimitiveRecord& record : process_records()) family.push_back(std::move(record));
  return family;
}

}  // namespace capibara

namespace capibara::jax::lax {

Attr name_list(const AxisNames& names) { return Attr(Attr::List(names.begin(), names.end())); }
Attr name_or_list(const AxisNames& names) { return names.size() == 1 ? Attr(names[0]) : name_list(names); }

Attr groups_attr(const AxisGroups& groups) {
  if (groups.empty()) return Attr();
  return Attr(Attr::List(groups.begin(), groups.end()));
}

AxisGroups index_groups(const Attrs& attrs) {
  AxisGroups groups;
  if (attrs["axis_index_groups"].is_none()) return groups;
  for (const Attr& entry : attrs.list("axis_index_groups")) groups.push_back(*entry.get_if<Ints>());
  return groups;
}

// As in jax, groups are for devices only.
static void refuse_groups_of_vmap(const AxisNames& names, const AxisGroups& groups) {
  if (groups.empty() || are_mesh_axes(names)) return;
  throw NotImplementedError(
      concat("axis_index_groups are not supported under vmap, got axis '", names[0], "'; use axes of shard_map"));
}

int64_t group_size(const AxisNames& names, const AxisGroups& groups) {
  refuse_groups_of_vmap(names, groups);
  int64_t size = 1;
  for (const std::string& name : names) size *= axis_size(name);
  for (const Ints& group : groups) {
    if (group.size() != groups[0].size())
      throw ValueError(concat("axis_index_groups of one size are needed, got groups of ", groups[0].size(), " and ",
                              group.size(), "; only psum, pmax and pmin take groups of several sizes"));
  }
  return groups.empty() ? size : static_cast<int64_t>(groups[0].size());
}

Array varied_over(const Array& x, const AxisNames& names) {
  AxisNames missing;
  for (const std::string& name : names) {
    if (checked_mesh(name) && !varies_over(x.type(), name)) missing.push_back(name);
  }
  return missing.empty() ? x : bind1(primitive("pvary"), {x}, {{"axes", name_list(missing)}});
}

Array varied_as(const Array& x, const Array& value) {
  const AxisNames& names = x.type().sharding.varying();
  return names.empty() ? value : varied_over(value, names);
}

namespace {

void check_groups(const char* name, const AxisNames& axes, const AxisGroups& groups) {
  if (groups.empty()) return;
  refuse_groups_of_vmap(axes, groups);
  std::vector<int64_t> members;
  for (const Ints& group : groups) members.insert(members.end(), group.begin(), group.end());
  std::sort(members.begin(), members.end());
  const int64_t size = group_size(axes, {});
  bool is_partition = static_cast<int64_t>(members.size()) == size;
  for (std::size_t i = 0; is_partition && i < members.size(); ++i) is_partition = members[i] == static_cast<int64_t>(i);
  if (!is_partition)
    throw ValueError(
        concat(name, ": axis_index_groups must cover all indices of an axis of size ", size, " exactly once"));
}

bool is_checked(const AxisNames& axes) {
  return std::any_of(axes.begin(), axes.end(), [](const std::string& axis) { return checked_mesh(axis) != nullptr; });
}

int64_t size_of_axis(const char* operation, const std::string& axis_name) {
  if (std::optional<int64_t> size = current_trace()->axis_size(axis_name)) return *size;
  throw NameError(concat("Found an unbound axis name: ", axis_name, ". To fix this, please call ", operation,
                         " under `jax.shard_map`, or under a vmap whose axis_name is '", axis_name, "'."));
}

Array reduce_over(const char* name, const Array& x, const AxisNames& axes, const AxisGroups& groups) {
  for (const std::string& axis : axes) size_of_axis(name, axis);
  check_groups(name, axes, groups);
  if (!groups.empty() && is_checked(axes)) {
    throw NotImplementedError(concat(
        name,
        ": axis_index_groups are not supported by shard_map with check_vma=True, as in jax; pass check_vma=False"));
  }
  return bind1(primitive(name), {varied_over(x, axes)},
               {{"axes", name_list(axes)}, {"axis_index_groups", groups_attr(groups)}});
}

}  // namespace

int64_t axis_size(const std::string& axis_name) { return size_of_axis("axis_size", axis_name); }

Array psum(const Array& x, const AxisNames& axes, const AxisGroups& groups) {
  // The sum of a constant is known: it is the same on all lanes.
  if (!x.is_tracer() && groups.empty() && !(is_checked(axes) && x.ndim() > 0)) {
    int64_t lanes = 1;
    for (const std::string& axis : axes) lanes *= size_of_axis("psum", axis);
    return mul(x, convert_element_type(Array(lanes), x.dtype()));
  }
  if (groups.empty() && is_checked(axes)) {
    if (is_unreduced("jax.lax.psum", x, axes)) return bind1(prim::unreduced_psum(), {x}, {{"axes", name_list(axes)}});
    return bind1(primitive("psum_invariant"), {varied_over(x, axes)}, {{"axes", name_list(axes)}});
  }
  return reduce_over("psum", x, axes, groups);
}

Array pmean(const Array& x, const AxisNames& axes, const AxisGroups& groups) {
  return psum(x, axes, groups) / Array(group_size(axes, groups));
}

Array pmax(const Array& x, const AxisNames& axes, const AxisGroups& groups) {
  return reduce_over("pmax", x, axes, groups);
}
Array pmin(const Array& x, const AxisNames& axes, const AxisGroups& groups) {
  return reduce_over("pmin", x, axes, groups);
}

// Every member gathers all operands, and takes from each the rows addressed to it, shifted to their destination.
Array ragged_all_to_all(const Array& operand, const Array& output, const RaggedSlices& slices, const AxisNames& axes,
                        const AxisGroups& groups) {
  const std::pair<const char*, const Array*> given[] = {{"input_offsets", &slices.input_offsets},
                                                        {"send_sizes", &slices.send_sizes},
                                                        {"output_offsets", &slices.output_offsets},
                                                        {"recv_sizes", &slices.recv_sizes}};
  for (const auto& [name, numbers] : given) {
    if (!is_integer(numbers->dtype())) throw ValueError(concat("ragged_all_to_all ", name, " must be integer type."));
    if (numbers->ndim() != 1 || numbers->shape(0) < 1)
      throw ValueError(concat("ragged_all_to_all ", name,
                              " must be rank 1 with positive dimension size, but got shape ",
                              shape_tuple(numbers->shape())));
  }
  for (const std::string& axis : axes) size_of_axis("ragged_all_to_all", axis);
  const int64_t members = group_size(axes, groups), count = slices.send_sizes.shape(0);
  if (count % members != 0 || operand.ndim() < 1 || operand.ndim() != output.ndim())
    throw ValueError(concat("ragged_all_to_all: ", count, " slices of ", to_string(operand.type()), " for ", members,
                            " members into ", to_string(output.type()),
                            ": the members must divide the slices, and both arrays have the same rank, at least 1"));
  auto from_senders = [&](const Array& numbers) {
    const Array own = convert_element_type(numbers, DType::int32);
    return all_to_all(own, axes, 0, 0, {.tiled = true, .axis_index_groups = groups});
  };
  const Array begins = from_senders(slices.input_offsets), sizes = from_senders(slices.send_sizes);
  const Array places = from_senders(slices.output_offsets);
  const Array all = all_gather(convert_element_type(operand, output.dtype()), axes,
                               {.axis = 0, .tiled = false, .axis_index_groups = groups});
  const int64_t rows = output.shape(0);
  std::vector<PadDim> around(static_cast<std::size_t>(operand.ndim()));
  around[0] = {rows, rows, 0};
  const Array row = varied_over(broadcasted_iota(DType::int32, output.shape(), 0), axes);
  Array result = varied_over(output, axes);
  for (int64_t i = 0; i < count; ++i) {
    const Array part = index_in_dim(all, i / (count / members), 0, false), zero = scalar_of(output.dtype(), 0);
    auto number = [&](const Array& numbers) { return index_in_dim(numbers, i, 0, false); };
    const Array begin = number(begins), place = number(places), size = number(sizes);
    const Array shifted = begin - place + scalar_of(DType::int32, static_cast<double>(rows));
    const Array moved = dynamic_slice_in_dim(pad(part, zero, around), shifted, rows);
    const Array after = row >= place, before = row < place + size;
    result = select(bitwise_and(after, before), moved, result);
  }
  return result;
}

Array axis_index(const std::string& axis_name) {
  size_of_axis("axis_index", axis_name);
  return capibara::bind(primitive("axis_index"), {}, {{"axis_name", axis_name}})[0];
}

}  // namespace capibara::jax::lax
