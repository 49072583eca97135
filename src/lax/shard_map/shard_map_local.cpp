// The local program of a shard_map without varying types: each collective over one axis of lanes, and exchanges
// where an axis crosses processes.
#include "lax/shard_map/shard_map_local.h"

#include <algorithm>

#include "core/sharding/mesh_attr.h"
#include "lax/collective/collective.h"
#include "lax/collective/early_exchanges.h"
#include "lax/collective/process_exchange.h"
#include "lax/elementwise/elementwise.h"
#include "program/ir/copy.h"
#include "program/ir/handles.h"
#include "program/ir/manual_axes.h"
#include "program/ir/memo.h"
#include "program/ir/nested.h"
#include "program/ir/plain_types.h"

#include <capibara/config.h>

namespace capibara {

namespace lax = jax::lax;

namespace {

Array index_scalar(int64_t value) { return scalar_of(DType::int32, static_cast<double>(value)); }

class LocalFormTrace final : public Trace {
 public:
  LocalFormTrace(std::shared_ptr<Trace> outer, const LaneAxes& axes) : axes_(axes) { parent = std::move(outer); }
  const char* kind() const override { return "shard_map"; }

  Arrays bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) override {
    TraceScope scope(parent);
    if (is_cast(primitive)) return Arrays(inputs.begin(), inputs.end());
    if (primitive == prim::psum_invariant() || primitive == prim::unreduced_psum())
      return reduced(prim::psum(), inputs, attrs.with("axis_index_groups", Attr()));
    if (primitive == prim::psum() || primitive == prim::pmax() || primitive == prim::pmin())
      return reduced(primitive, inputs, attrs);
    if (primitive == prim::all_gather_invariant() || primitive == prim::all_gather_reduced())
      return exchanged(prim::all_gather(), inputs, attrs.with("axis_index_groups", Attr()));
    if (primitive == prim::unreduced_reduce_scatter())
      return exchanged(prim::reduce_scatter(), inputs, attrs.with("axis_index_groups", Attr()));
    if (primitive == prim::all_gather() || primitive == prim::reduce_scatter() || primitive == prim::all_to_all() ||
        primitive == prim::ppermute() || primitive == prim::pbroadcast())
      return exchanged(primitive, inputs, attrs);
    if (primitive == prim::axis_index()) return {lane(axis_names(attrs, "axis_name"))};
    if (!holds_programs(attrs)) return parent->bind(primitive, inputs, of_one_device(primitive, attrs));
    Attrs own = rewrite_programs(attrs, [this](const Program& program) { return local_form(program, axes_); });
    if (primitive == prim::shard_map()) own = own.with("check_vma", false);
    return parent->bind(primitive, inputs, own);
  }

  static Program local_form(const Program& program, const LaneAxes& axes) {
    Types types = program.input_types();
    for (ArrayType& type : types) type.sharding = {};
    const bool crosses = axes.any_crosses(axes.manual);
    const Program whole = crosses ? inline_jit_calls(program) : program;  // exchanges are reordered within one program
    const Program local = stage(
                              [&](std::span<const Array> inputs) {
                                auto trace = std::make_shared<LocalFormTrace>(current_trace(), axes);
                                TraceEnd end(trace);
                                TraceScope scope(trace);
                                return evaluate_program(whole, inputs);
                              },
                              types, program.name())
                              .program;
    return crosses ? with_early_exchanges(local) : local;
  }

 private:
  // Every device calls the host with its own part, whatever vmap_method a callback has.
  static Attrs of_one_device(const Primitive& primitive, const Attrs& attrs) {
    static const Primitive pure = capibara::primitive("pure_callback"), io = capibara::primitive("io_callback");
    if (primitive == pure) return attrs.with("vmap_method", std::string("sequential"));
    return primitive == io ? attrs.with("per_device", true) : attrs;
  }

  // Sums, maxima and minima: one axis at a time if an axis crosses processes.
  Arrays reduced(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
    const lax::AxisNames names = axis_names(attrs, "axes");
    const Attrs own = primitive == prim::psum() ? attrs.with("tree", true) : attrs;
    const bool grouped = !attrs["axis_index_groups"].is_none();  // over several axes they index the product of the axes
    if (!axes_.any_crosses(names) && !(grouped && names.size() > 1)) return parent->bind(primitive, inputs, own);
    Arrays results;
    for (const Array& x : inputs) {
      results.push_back(!grouped ? reduced_by_axis(primitive, x, names, own)
                                 : reduced_in_group(primitive, x, names, attrs));
    }
    return results;
  }

  // In the order in which lanes are batched: the last axis of the map first.
  Array reduced_by_axis(const Primitive& primitive, Array x, const lax::AxisNames& names, const Attrs& attrs) const {
    for (auto axis = axes_.manual.rbegin(); axis != axes_.manual.rend(); ++axis) {
      if (std::find(names.begin(), names.end(), *axis) == names.end()) continue;
      if (axes_.crosses(*axis))
        x = process_reduce(local_lanes(x, *axis), primitive.name(), axes_.grid.axis(*axis));
      else
        x = parent->bind(primitive, std::span(&x, 1), attrs.with("axes", lax::name_list({*axis})))[0];
    }
    lax::AxisNames rest;  // of enclosing maps
    for (const std::string& name : names) {
      if (std::find(axes_.manual.begin(), axes_.manual.end(), name) == axes_.manual.end()) rest.push_back(name);
    }
    if (rest.empty()) return x;
    return parent->bind(primitive, std::span(&x, 1), attrs.with("axes", lax::name_list(rest)))[0];
  }

  Array reduced_in_group(const Primitive& primitive, const Array& x, const lax::AxisNames& names,
                         const Attrs& attrs) const {
    const Array members = group_of(primitive, x, names, attrs).values;
    if (primitive == prim::psum()) return tree_sum(members);
    return primitive == prim::pmax() ? lax::reduce_max(members, {.axes = {0}})
                                     : lax::reduce_min(members, {.axes = {0}});
  }

  // The values of this process's lanes along an axis, on every lane: [lanes, ...].
  Array local_lanes(const Array& x, const std::string& axis) const {
    return bind1(prim::all_gather(), {x},
                 {{"all_gather_dimension", int64_t{0}},
                  {"axis_index_groups", Attr()},
                  {"axis_name", lax::name_list({axis})},
                  {"axis_size", axes_.lanes(axis)},
                  {"tiled", false}});
  }

  // [first axis, second axis, ...] x the dimensions of x, with all devices as one leading dimension.
  Array gathered_in_front(const Primitive& primitive, const Array& x, const lax::AxisNames& names) const {
    Array all = x;
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
      all = local_lanes(all, *name);
      if (axes_.crosses(*name)) all = process_all_gather(all, primitive.name(), axes_.grid.axis(*name));
    }
    Shape shape = x.shape();
    shape.insert(shape.begin(), axes_.size(names));
    return lax::reshape(all, shape);
  }

  // The lane's index among all devices of the axes.
  Array lane(const lax::AxisNames& names) const {
    Array index;
    for (const std::string& name : names) {
      Array own = bind1(prim::axis_index(), {}, {{"axis_name", name}});
      if (axes_.crosses(name)) own = lax::add(own, index_scalar(axes_.grid.axis(name).first));
      index = index.defined() ? lax::add(lax::mul(index, index_scalar(axes_.mesh.axis_size(name))), own) : own;
    }
    return index;
  }

  struct Group {
    Array values;  // [members, ...]
    Array place;   // of this lane among them
    int64_t size = 0;
  };

  Group group_of(const Primitive& primitive, const Array& x, const lax::AxisNames& names, const Attrs& attrs) const {
    const Array all = gathered_in_front(primitive, x, names), own = lane(names);
    const lax::AxisGroups groups = attrs.has("axis_index_groups") ? lax::index_groups(attrs) : lax::AxisGroups{};
    if (groups.empty()) return {all, own, all.shape(0)};
    std::vector<int32_t> group(static_cast<std::size_t>(all.shape(0))), place(group.size());
    Arrays members;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      members.push_back(picked_lanes(all, groups[g]));
      for (std::size_t i = 0; i < groups[g].size(); ++i) {
        group[static_cast<std::size_t>(groups[g][i])] = static_cast<int32_t>(g);
        place[static_cast<std::size_t>(groups[g][i])] = static_cast<int32_t>(i);
      }
    }
    const Array own_group = entry_of(group, own), own_place = entry_of(place, own);
    return {lax::dynamic_index_in_dim(lax::stack(members), own_group, 0, false), own_place,
            static_cast<int64_t>(groups[0].size())};
  }

  static Array entry_of(const std::vector<int32_t>& table, const Array& index) {
    const Array entries = Array::from_host(DType::int32, {static_cast<int64_t>(table.size())}, table.data());
    return lax::dynamic_index_in_dim(entries, index, 0, false);
  }

  // Exchanges over several axes, or between processes: every lane takes its part of the gathered values.
  Arrays exchanged(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
    const lax::AxisNames names = axis_names(attrs, "axis_name");
    if (names.size() == 1 && !axes_.crosses(names[0]))
      return parent->bind(primitive, inputs, primitive == prim::reduce_scatter() ? attrs.with("tree", true) : attrs);
    const bool grouped = attrs.has("axis_index_groups") && !attrs["axis_index_groups"].is_none();
    if (primitive == prim::ppermute() && names.size() == 1 && axes_.lanes(names[0]) == 1)
      return {permuted_whole(inputs[0], names[0], attrs)};
    if (primitive == prim::reduce_scatter() && !grouped) {
      const Array sum =
          reduced_by_axis(prim::psum(), inputs[0], names, Attrs{{"axis_index_groups", Attr()}, {"tree", true}});
      return {own_part(sum, {sum, lane(names), axes_.size(names)}, attrs.integer("scatter_dimension"),
                       attrs.boolean("tiled"))};
    }
    const Group group = group_of(primitive, inputs[0], names, attrs);
    if (primitive == prim::ppermute()) return {permuted(group, attrs)};
    if (primitive == prim::pbroadcast()) return {lax::index_in_dim(group.values, attrs.integer("source"), 0, false)};
    const bool tiled = attrs.boolean("tiled");
    if (primitive == prim::all_gather()) return {stacked(group.values, attrs.integer("all_gather_dimension"), tiled)};
    if (primitive == prim::reduce_scatter()) {
      return {own_part(tree_sum(group.values), group, attrs.integer("scatter_dimension"), tiled)};
    }
    return {stacked(own_part(group.values, group, attrs.integer("split_axis") + 1, tiled), attrs.integer("concat_axis"),
                    tiled)};
  }

  // [members, ...] with the members moved to a dimension, or merged with it.
  static Array stacked(const Array& members, int64_t dim, bool tiled) {
    const Array moved = move_axis(members, 0, dim);
    if (!tiled) return moved;
    Shape joined = moved.shape();
    joined[static_cast<std::size_t>(dim)] *= joined[static_cast<std::size_t>(dim) + 1];
    joined.erase(joined.begin() + dim + 1);
    return lax::reshape(moved, joined);
  }

  static Array own_part(const Array& x, const Group& group, int64_t dim, bool tiled) {
    if (!tiled) return lax::dynamic_index_in_dim(x, group.place, dim, false);
    const int64_t size = x.shape(dim) / group.size;
    return lax::dynamic_slice_in_dim(x, lax::mul(group.place, index_scalar(size)), size, dim);
  }

  static Array permuted(const Group& group, const Attrs& attrs) {
    Ints source(static_cast<std::size_t>(group.size), -1);
    for (const Attr& entry : attrs.list("perm"))
      source[static_cast<std::size_t>((*entry.get_if<Ints>())[1])] = (*entry.get_if<Ints>())[0];
    return lax::dynamic_index_in_dim(picked_lanes(group.values, source), group.place, 0, false);
  }

  // Between processes of one lane each: only the processes in the permutation send and receive.
  Array permuted_whole(const Array& x, const std::string& axis, const Attrs& attrs) const {
    const ProcessAxis& own = axes_.grid.axis(axis);
    int64_t source = -1, target = -1;
    for (const Attr& entry : attrs.list("perm")) {
      const Ints& pair = *entry.get_if<Ints>();
      if (pair[1] == own.first) source = pair[0];
      if (pair[0] == own.first) target = pair[1];
    }
    return process_permute(x, prim::ppermute().name(), own, source, target);
  }

  LaneAxes axes_;
};

// Maps inside a map over Explicit axes: lanes have plain types, and so must the results of inner maps.
Program with_auto_maps(const Program& program) {
  Program::Body body = program.body();
  for (Equation& equation : body.equations) {
    equation.attrs = rewrite_programs(equation.attrs, with_auto_maps);
    if (!(equation.primitive == prim::shard_map())) continue;
    const auto mesh = equation.attrs.opaque<MeshAttr>("mesh");
    NamedSharding devices = mesh->devices;
    std::replace(devices.mesh.axis_types.begin(), devices.mesh.axis_types.end(), AxisType::Explicit, AxisType::Auto);
    const std::shared_ptr<const Opaque> plain = std::make_shared<const MeshAttr>(std::move(devices), mesh->abstract);
    equation.attrs = equation.attrs.with("mesh", plain);
  }
  return Program(std::move(body));
}

}  // namespace

Program local_form(const Program& program, const LaneAxes& axes) {
  static Memo<Program> memo;
  return memo.get({program, {}, {}, 0, axes.text(), config().key()},
                  [&] { return LocalFormTrace::local_form(with_auto_maps(with_plain_types(program)), axes); });
}

}  // namespace capibara
