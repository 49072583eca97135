// Primitives of types that say along which mesh axes values vary: pvary, psum_invariant, all_gather_invariant.
#include "lax/collective.h"

#include "lax/factors.h"
#include "program/varying.h"
#include "trace/mesh_trace.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

Sharding varying_over(const ArrayType& type, const AxisList& axes) {
  const Mesh* mesh = axes.empty() ? nullptr : checked_mesh(axes[0]);
  if (!mesh && !type.sharding.single_device()) mesh = &type.sharding.mesh();
  return Sharding::varying_over(mesh ? *mesh : Mesh{axes, std::vector<int64_t>(axes.size(), 1), {}}, axes);
}

TypeResult pvary_type(std::span<const ArrayType> types, const Attrs& attrs) {
  const lax::AxisNames axes = axis_names(attrs, "axes");
  Types varied(types.begin(), types.end());
  for (ArrayType& type : varied) type.sharding = joined_varying(type.sharding, varying_over(type, axes));
  return TypeResult(std::move(varied));
}

TypeResult sum_type(std::span<const ArrayType> types, const Attrs& attrs) {
  const lax::AxisNames axes = axis_names(attrs, "axes");
  Types summed(types.begin(), types.end());
  for (ArrayType& type : summed) type.sharding = without_varying(type.sharding, axes);
  return TypeResult(std::move(summed), uses(axes));
}

Arrays transpose_pvary(const TransposeArgs& args) {
  static const Primitive sum = primitive("psum_invariant");
  return {bind1(sum, {lax::varied_over(args.cotangents[0], axis_names(args.attrs, "axes"))}, args.attrs)};
}

// A lane that has the value has it in both types.
Arrays transpose_sum(const TransposeArgs& args) {
  static const Primitive pvary = primitive("pvary");
  return {bind1(pvary, {args.cotangents[0]}, args.attrs)};
}

BatchResult batch_pvary(const BatchArgs& args) {
  lax::AxisNames axes = axis_names(args.attrs, "axes");
  std::erase(axes, args.axis.name);
  if (axes.empty()) return {{args.inputs[0]}, {args.dims[0]}};
  return {capibara::bind(args.primitive, args.inputs, args.attrs.with("axes", lax::name_list(axes))), {args.dims[0]}};
}

TypeResult invariant_gather_type(std::span<const ArrayType> types, const Attrs& attrs) {
  static const Primitive gather = primitive("all_gather");
  TypeResult result = gather->type(types, attrs);
  result.types[0].sharding = without_varying(types[0].sharding, axis_names(attrs, "axis_name"));
  return result;
}

// Each device keeps the part of the cotangent that came from it.
Arrays transpose_gather(const TransposeArgs& args) {
  const lax::AxisNames names = axis_names(args.attrs, "axis_name");
  const Array cotangent = lax::varied_over(args.cotangents[0], names);
  Array index = scalar_of(DType::int32, 0);
  for (const std::string& name : names) {
    const Array before = index * scalar_of(DType::int32, static_cast<double>(lax::axis_size(name)));
    index = before + lax::axis_index(name);
  }
  const int64_t dim = args.attrs.integer("all_gather_dimension");
  if (!args.attrs.boolean("tiled")) return {lax::dynamic_index_in_dim(cotangent, index, dim, false)};
  const int64_t size = args.types[0].shape[static_cast<std::size_t>(dim)];
  return {lax::dynamic_slice_in_dim(cotangent, index * scalar_of(DType::int32, static_cast<double>(size)), size, dim)};
}

PrimitiveRecord linear_record(const char* name, const char* doc, TypeRule type, TransposeRule transpose,
                              BatchRule batch) {
  PrimitiveRecord record;
  record.name = name;
  record.factors = pairwise_factors;
  record.doc = doc;
  record.type = std::move(type);
  record.jvp = linear_jvp();
  record.transpose = std::move(transpose);
  record.batch = std::move(batch);
  return record;
}

}  // namespace

Family varying_records() {
  PrimitiveRecord pvary = linear_record("pvary", "The identity, into a type that varies along mesh axes.", pvary_type,
                                        transpose_pvary, batch_pvary);
  pvary.lower = [](std::span<const Array> inputs, const Attrs&) { return Arrays(inputs.begin(), inputs.end()); };
  PrimitiveRecord sum =
      linear_record("psum_invariant", "The sum over mesh axes, in a type that does not vary along them.", sum_type,
                    transpose_sum, [](const BatchArgs& args) { return batch_collective(args, lax::reduce_sum, true); });
  PrimitiveRecord gather =
      linear_record("all_gather_invariant", "All values along mesh axes, in a type that does not vary along them.",
                    invariant_gather_type, transpose_gather, [](const BatchArgs& args) {
                      static const Primitive gather = primitive("all_gather");
                      BatchArgs own{args.primitive, args.axis, args.inputs, args.dims, args.attrs};
                      return gather->batch(own);
                    });
  gather.factors = all_gather_factors;
  return {pvary, sum, gather};
}

}  // namespace capibara

namespace capibara::jax::lax {

Array pvary(const Array& x, const AxisNames& axes) {
  for (const std::string& axis : axes) axis_size(axis);
  return varied_over(x, axes);
}

Array all_gather_invariant(const Array& x, const AxisNames& names, const AllGatherOptions& options) {
  int64_t rank = x.ndim() + (options.tiled ? 0 : 1);
  int64_t axis = options.axis < 0 ? options.axis + rank : options.axis;
  return bind1(primitive("all_gather_invariant"), {varied_over(x, names)},
               {{"all_gather_dimension", axis},
                {"axis_name", name_list(names)},
                {"axis_size", group_size(names, {})},
                {"tiled", options.tiled}});
}

}  // namespace capibara::jax::lax
