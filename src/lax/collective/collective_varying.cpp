// Primitives of types that record the mesh axes along which values vary (V), have a sum still to be taken (U), or have
// cotangents that will be summed (R). Each line is the transpose of its neighbour:
//
//   pvary                        -> V    psum_invariant            V ->
//   preduced                     -> R    unreduced_psum            U ->
//   reduced_vary_cast          R -> V    vary_unreduced_cast       V -> U
//   all_gather_reduced         V -> R    unreduced_reduce_scatter  U -> V
#include "lax/collective/collective.h"

#include <capibara/pcast.h>

#include <algorithm>

#include "core/sharding/explicit.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/partial_sums.h"
#include "program/ir/handles.h"
#include "program/ir/manual_axes.h"
#include "program/ir/varying.h"
#include "program/trace/mesh_trace.h"

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
  for (const ArrayType& type : varied) refuse_sums_over("pvary", type, axes);
  for (ArrayType& type : varied) type.sharding = joined_varying(type.sharding, varying_over(type, axes));
  return TypeResult(std::move(varied));
}

TypeResult sum_type(std::span<const ArrayType> types, const Attrs& attrs) {
  const lax::AxisNames axes = axis_names(attrs, "axes");
  Types summed(types.begin(), types.end());
  for (const ArrayType& type : summed) refuse_sums_over("psum_invariant", type, axes);
  for (ArrayType& type : summed) type.sharding = without_varying(type.sharding, axes);
  return TypeResult(std::move(summed), uses(axes));
}

Arrays transpose_pvary(const TransposeArgs& args) {
  static const Primitive sum = primitive("psum_invariant");
  return {bind1(sum, {lax::varied_over(args.cotangents[0], axis_names(args.attrs, "axes"))}, args.attrs)};
}

// The identity on each lane: only the type changes.
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
  record.traits.mesh_axes = MeshAxes::exchanged;
  record.factors = pairwise_factors;
  record.doc = doc;
  record.type = std::move(type);
  record.jvp = linear_jvp();
  record.transpose = std::move(transpose);
  record.batch = std::move(batch);
  return record;
}

// ---- sums that are still to be taken, or announced ------------------------------------------------------------------

enum class State { varying, unreduced, reduced, invarying };

const char* name_of(State state) {
  static const char* const names[] = {"varying", "unreduced", "reduced", "invarying"};
  return names[static_cast<std::size_t>(state)];
}

State state_of(const ManualAxes& own, const std::string& axis) {
  if (lists_axis(own.varying, axis)) return State::varying;
  if (lists_axis(own.unreduced, axis)) return State::unreduced;
  return lists_axis(own.reduced, axis) ? State::reduced : State::invarying;
}

const AxisList& axes_in(const ManualAxes& own, State state) {
  return state == State::varying ? own.varying : state == State::unreduced ? own.unreduced : own.reduced;
}

AxisList& axes_in(ManualAxes& own, State state) {
  return const_cast<AxisList&>(axes_in(static_cast<const ManualAxes&>(own), state));
}

std::string named(const AxisList& axes) {
  std::string text;
  for (const std::string& axis : axes) text += concat(text.empty() ? "'" : ", '", axis, "'");
  return concat("(", text, axes.size() == 1 ? ",)" : ")");
}

// A change from one state to another, in jax's words.
struct Step {
  State from, to;
  const char* function;  // as users call it
  const char* arrow;     // Varying -> Reduced
  bool is_cast;
};

constexpr Step gather_step{State::varying, State::reduced, "all_gather_reduced", "Varying -> Reduced", false};
constexpr Step scatter_step{State::unreduced, State::varying, "unreduced_psum_scatter", "Unreduced -> Varying", false};
constexpr Step sum_step{State::unreduced, State::invarying, "unreduced_psum", "Unreduced -> Invariant", false};
constexpr Step announce_step{State::invarying, State::reduced, "preduced", "Invariant->Reduced", true};
constexpr Step leave_step{State::varying, State::unreduced, "vary_unreduced_cast", "Varying->Unreduced", true};
constexpr Step enter_step{State::reduced, State::varying, "reduced_vary_cast", "Reduced->Varying", true};

[[noreturn]] void refuse_step(const Step& step, const AxisList& axes, const AxisList& held) {
  const std::string begin = concat(step.function, " is a ", step.arrow, " collective. This means that the ");
  const std::string type = concat("jax.typeof(x).mat.", name_of(step.from));
  if (step.is_cast) {
    throw ValueError(concat(begin, "axis names mentioned in `axes` passed to `", step.function,
                            "` must be present in `", type, "`. Got axes=", named(axes), " and ", type, "=",
                            axis_set_text(held)));
  }
  throw ValueError(concat(begin, step.to == State::invarying ? "axes=" : "axis_name=", named(axes), " passed to `",
                          step.function, "` must be present in ", type, "=", axis_set_text(held)));
}

void check_step(const Step& step, const ArrayType& type, const AxisList& axes) {
  const ManualAxes own = manual_axes_of(type);
  if (step.to == State::unreduced) refuse_sums_over(step.function, type, axes);
  if (step.from != State::invarying) {
    const AxisList& held = axes_in(own, step.from);
    if (held.empty()) {
      throw ValueError(
          concat(step.function, " only accepts inputs that are ", name_of(step.from), ". Got ", short_string(type)));
    }
    if (std::none_of(axes.begin(), axes.end(), [&](const std::string& axis) { return lists_axis(held, axis); }))
      refuse_step(step, axes, held);
  }
  for (const std::string& axis : axes) {
    const State state = state_of(own, axis);
    if (state == step.from) continue;
    throw ValueError(concat(step.function, " input cannot be ", name_of(state),
                            " across the axis_name provided. Got x=", short_string(type),
                            " and axis_name=", named(axes)));
  }
}

// The type after a step along axes of a mesh that shard_map binds with checked types.
Sharding stepped(const Step& step, const ArrayType& type, std::size_t rank, const AxisList& axes) {
  check_step(step, type, axes);
  ManualAxes own = manual_axes_of(type);
  const Mesh* mesh = checked_mesh(axes[0]);
  const bool is_traced = mesh != nullptr;  // else the program is verified outside of its map
  const Mesh unknown{axes, std::vector<int64_t>(axes.size(), 1), {}};
  if (!mesh) mesh = type.sharding.single_device() ? &unknown : &type.sharding.mesh();
  if (step.from != State::invarying)
    std::erase_if(axes_in(own, step.from), [&](const std::string& axis) { return lists_axis(axes, axis); });
  if (step.to != State::invarying) {
    AxisList& held = axes_in(own, step.to);
    held.insert(held.end(), axes.begin(), axes.end());
  }
  if (is_traced && own.has_sums() && !are_mesh_axes(mesh->axis_names)) {
    throw NotImplementedError(concat(step.function, ": sums over axes are in types where shard_map maps over all axes ",
                                     named(mesh->axis_names), " of the mesh, as in jax\nHint: leave out axis_names"));
  }
  return manual_sharding(*mesh, rank, std::move(own));
}

TypeRule cast_type(const Step& step) {
  return [step](std::span<const ArrayType> types, const Attrs& attrs) {
    require_count(step.function, types, 1);
    ArrayType type = types[0];
    const lax::AxisNames axes = axis_names(attrs, "axes");
    type.sharding = stepped(step, type, type.shape.size(), axes);
    return TypeResult(Types{type}, step.to == State::invarying ? uses(axes) : Effects());
  };
}

// The shapes of a collective's type rule with another sharding.
TypeRule moved_type(const char* collective, const Step& step) {
  return [collective, step](std::span<const ArrayType> types, const Attrs& attrs) {
    TypeResult result = primitive(collective)->type(types, attrs);
    ArrayType& type = result.types[0];
    type.sharding = stepped(step, types[0], type.shape.size(), axis_names(attrs, "axis_name"));
    return result;
  };
}

TransposeRule transposed_to(const Primitive& (*other)()) {
  return [other](const TransposeArgs& args) { return Arrays{bind1(other(), {args.cotangents[0]}, args.attrs)}; };
}

Attrs gather_attrs(const Attrs& attrs, const char* from, const char* to) {
  return {{to, attrs[from]},
          {"axis_name", attrs["axis_name"]},
          {"axis_size", attrs["axis_size"]},
          {"tiled", attrs["tiled"]}};
}

PrimitiveRecord cast_record(const char* name, const char* doc, const Step& step, const Primitive& (*transpose)()) {
  PrimitiveRecord record = linear_record(name, doc, cast_type(step), transposed_to(transpose), batch_pvary);
  record.traits.mesh_axes = MeshAxes::cast;
  record.lower = [](std::span<const Array> inputs, const Attrs&) { return Arrays(inputs.begin(), inputs.end()); };
  return record;
}

Family sum_records() {
  PrimitiveRecord sum = linear_record("unreduced_psum", "The sum over mesh axes that was still to be taken.",
                                      cast_type(sum_step), transposed_to(prim::preduced), [](const BatchArgs& args) {
                                        return batch_collective(args, lax::reduce_sum, true);
                                      });
  PrimitiveRecord gather = linear_record(
      "all_gather_reduced", "All values along mesh axes, whose cotangents will be summed over them.",
      moved_type("all_gather", gather_step),
      [](const TransposeArgs& args) {
        const Attrs attrs = gather_attrs(args.attrs, "all_gather_dimension", "scatter_dimension");
        return Arrays{bind1(prim::unreduced_reduce_scatter(), {args.cotangents[0]}, attrs)};
      },
      [](const BatchArgs& args) { return prim::all_gather()->batch(args); });
  gather.factors = all_gather_factors;
  PrimitiveRecord scatter = linear_record(
      "unreduced_reduce_scatter", "The sum over mesh axes that was still to be taken, each device keeping its part.",
      moved_type("reduce_scatter", scatter_step),
      [](const TransposeArgs& args) {
        const Attrs attrs = gather_attrs(args.attrs, "scatter_dimension", "all_gather_dimension");
        return Arrays{bind1(prim::all_gather_reduced(), {args.cotangents[0]}, attrs)};
      },
      [](const BatchArgs& args) { return prim::reduce_scatter()->batch(args); });
  scatter.factors = reduce_scatter_factors;
  return {
      sum,
      gather,
      scatter,
      cast_record("preduced", "The identity, into a type whose cotangents will be summed over mesh axes.",
                  announce_step, prim::unreduced_psum),
      cast_record("vary_unreduced_cast_p", "The identity, into a type whose sum over mesh axes is still to be taken.",
                  leave_step, prim::reduced_vary_cast),
      cast_record("reduced_vary_cast_p",
                  "The identity, from a type whose cotangents will be summed into one that "
                  "varies.",
                  enter_step, prim::vary_unreduced_cast)};
}

}  // namespace

Family varying_records() {
  PrimitiveRecord pvary = linear_record("pvary", "The identity, into a type that varies along mesh axes.", pvary_type,
                                        transpose_pvary, batch_pvary);
  pvary.traits.mesh_axes = MeshAxes::cast;
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
  Family records{pvary, sum, gather};
  for (PrimitiveRecord& record : sum_records()) records.push_back(std::move(record));
  return records;
}

}  // namespace capibara

namespace capibara::jax::lax {

Array pvary(const Array& x, const AxisNames& axes) {
  for (const std::string& axis : axes) axis_size(axis);
  return varied_over(x, axes);
}

namespace {

// The state of a value along these axes, which must be the same along each of them.
State state_along(const char* operation, const Array& x, const AxisNames& axes) {
  const ManualAxes own = manual_axes_of(x.type());
  const State first = state_of(own, axes[0]);
  for (const std::string& axis : axes) {
    const State other = state_of(own, axis);
    if (other == first) continue;
    throw ValueError(concat(operation,
                            " can only accept axis_name which corresponds to one of varying, unreduced, "
                            "reduced or invarying state of the input. Got input type: ",
                            to_string(x.type()), ", axes: ", named(axes), " and input state: {'", name_of(first),
                            "', '", name_of(other), "'}"));
  }
  return first;
}

AxisNames in_mesh_order(const AxisNames& axes) {
  const Mesh* mesh = checked_mesh(axes[0]);
  if (!mesh) return axes;
  AxisNames ordered;
  for (const std::string& axis : mesh->axis_names) {
    if (lists_axis(axes, axis)) ordered.push_back(axis);
  }
  return ordered.size() == axes.size() ? ordered : axes;
}

}  // namespace

bool is_unreduced(const char* operation, const Array& x, const AxisNames& axes) {
  if (axes.empty() || !manual_axes_of(x.type()).has_sums()) return false;
  return state_along(operation, x, axes) == State::unreduced;
}

Array pcast(const Array& x, const AxisNames& axes, const std::string& to) {
  if (axes.empty()) return x;
  if (to != "varying" && to != "reduced" && to != "unreduced") {
    throw ValueError(concat(
        "Got unexpected `to` value. Allowed `to` values are: {'unreduced', 'varying', 'reduced'}, got '", to, "'"));
  }
  for (const std::string& axis : axes) axis_size(axis);
  const State from = state_along("jax.lax.pcast", x, axes);
  const Primitive* cast = nullptr;
  if (from == State::invarying && to == "varying") cast = &prim::pvary();
  if (from == State::invarying && to == "reduced") cast = &prim::preduced();
  if (from == State::varying && to == "unreduced") cast = &prim::vary_unreduced_cast();
  if (from == State::reduced && to == "varying") cast = &prim::reduced_vary_cast();
  if (!cast) throw ValueError(concat("Unsupported pcast from=", name_of(from), ", to='", to, "'"));
  if (!checked_mesh(axes[0])) return x;  // types do not record it
  return bind1(*cast, {x}, {{"axes", name_list(in_mesh_order(axes))}});
}

Array all_gather_reduced(const Array& x, const AxisNames& names, const AllGatherOptions& options) {
  const int64_t rank = x.ndim() + (options.tiled ? 0 : 1);
  return bind1(prim::all_gather_reduced(), {x},
               {{"all_gather_dimension", options.axis < 0 ? options.axis + rank : options.axis},
                {"axis_name", name_list(names)},
                {"axis_size", group_size(names, {})},
                {"tiled", options.tiled}});
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
