// The local program of a shard_map in the forms of StableHLO, with the devices of each collective by number.
#include "lax/shard_map/shard_map_devices.h"

#include <algorithm>

#include <capibara/config.h>

#include "core/sharding/device_groups.h"
#include "lax/collective/collective.h"
#include "lax/elementwise/elementwise.h"
#include "lax/shard_map/shard_map.h"
#include "program/ir/copy.h"
#include "program/ir/handles.h"
#include "program/ir/manual_axes.h"
#include "program/ir/memo.h"
#include "program/ir/nested.h"
#include "program/ir/plain_types.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

// The axes over which a program is manual: those of its shard_map and of the enclosing maps.
struct DeviceScope {
  NamedSharding devices;
  AxisList bound;

  const Mesh& mesh() const { return devices.mesh; }
  bool binds(const std::string& axis) const { return std::find(bound.begin(), bound.end(), axis) != bound.end(); }
  AxisList unbound() const {
    AxisList rest;
    for (const std::string& axis : mesh().axis_names) {
      if (!binds(axis)) rest.push_back(axis);
    }
    return rest;
  }
  std::string text() const {
    std::string text;
    for (std::size_t i = 0; i < mesh().axis_names.size(); ++i)
      text += concat(mesh().axis_names[i], ":", mesh().axis_sizes[i], " ");
    for (const std::string& axis : bound) text += concat(axis, " ");
    for (const int device : devices.devices) text += concat(device, ",");
    return text;
  }
};

Program device_form(const Program& program, const DeviceScope& scope);

bool names_sums(const Specs& specs) {
  return std::any_of(specs.begin(), specs.end(), [](const PartitionSpec& spec) { return !spec.unreduced.empty(); });
}

// An unreduced operand is nonzero on the first device only, as buffers of these arrays store it.
Array as_summand(Array x, const AxisList& axes) {
  for (const std::string& axis : axes) {
    const Array index = lax::axis_index(axis);
    const Array is_first = lax::eq(index, scalar_like(index, 0));
    x = lax::select(lax::broadcast_in_dim(is_first, x.shape(), {}), x, lax::zeros_like(x));
  }
  return x;
}

// The same map with its sums taken at its boundary, so that its text needs none.
Attrs with_sums_taken(const Attrs& attrs) {
  const ShardMapView map(attrs);
  if (!names_sums(map.in_specs()) && !names_sums(map.out_specs())) return attrs;
  const Program plain = with_plain_types(map.program());
  const MeshScope scope(map.mesh(), map.manual(), false);
  const Program program = stage(
                              [&](std::span<const Array> inputs) {
                                Arrays operands(inputs.begin(), inputs.end());
                                for (std::size_t i = 0; i < operands.size(); ++i)
                                  operands[i] = as_summand(operands[i], map.in_specs()[i].unreduced);
                                Arrays results = evaluate_program(plain, operands);
                                for (std::size_t i = 0; i < results.size(); ++i) {
                                  const AxisList& axes = map.out_specs()[i].unreduced;
                                  if (!axes.empty()) results[i] = lax::psum(results[i], axes);
                                }
                                return results;
                              },
                              plain.input_types(), plain.name())
                              .program;
  Specs in = map.in_specs(), out = map.out_specs();
  for (PartitionSpec& spec : in) spec.unreduced.clear();
  for (PartitionSpec& spec : out) spec.unreduced.clear();
  return map.with(program, std::move(in), std::move(out));
}

Attrs per_device_attrs(const Attrs& given, AxisList bound) {
  const Attrs attrs = with_sums_taken(given);
  const ShardMapView map(attrs);
  for (const std::string& axis : map.manual()) {
    if (std::find(bound.begin(), bound.end(), axis) == bound.end()) bound.push_back(axis);
  }
  const DeviceScope inner{map.devices(), std::move(bound)};
  return attrs.with("jaxpr", device_form(map.program(), inner)).with("check_vma", false).with("per_device", true);
}

// Inserts a dimension of size one at `dim`.
Array widened(const Array& x, int64_t dim) {
  Shape shape = x.shape();
  shape.insert(shape.begin() + dim, 1);
  return lax::reshape(x, shape);
}

Array narrowed(const Array& x, int64_t dim) {
  Shape shape = x.shape();
  shape.erase(shape.begin() + dim);
  return lax::reshape(x, shape);
}

class DeviceFormTrace final : public Trace {
 public:
  DeviceFormTrace(std::shared_ptr<Trace> outer, const DeviceScope& scope) : scope_(scope) { parent = std::move(outer); }
  const char* kind() const override { return "shard_map"; }

  Arrays bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) override {
    TraceScope scope(parent);
    if (primitive == prim::shard_map()) return parent->bind(primitive, inputs, per_device_attrs(attrs, scope_.bound));
    if (is_cast(primitive)) return Arrays(inputs.begin(), inputs.end());
    if (primitive == prim::psum_invariant() || primitive == prim::unreduced_psum())
      return reduced(prim::psum(), inputs, attrs.with("axis_index_groups", Attr()));
    if (primitive == prim::psum() || primitive == prim::pmax() || primitive == prim::pmin())
      return reduced(primitive, inputs, attrs);
    if (primitive == prim::all_gather_invariant() || primitive == prim::all_gather_reduced())
      return {gathered(inputs[0], attrs.with("axis_index_groups", Attr()))};
    if (primitive == prim::all_gather()) return {gathered(inputs[0], attrs)};
    if (primitive == prim::unreduced_reduce_scatter())
      return {scattered(inputs[0], attrs.with("axis_index_groups", Attr()))};
    if (primitive == prim::reduce_scatter()) return {scattered(inputs[0], attrs)};
    if (primitive == prim::all_to_all()) return {exchanged(inputs[0], attrs)};
    if (primitive == prim::ppermute()) return {permuted(inputs[0], attrs)};
    if (primitive == prim::pbroadcast()) return {broadcast(inputs[0], attrs)};
    if (primitive == prim::axis_index()) return {index(axis_names(attrs, "axis_name"))};
    if (!holds_programs(attrs)) return parent->bind(primitive, inputs, attrs);
    return parent->bind(primitive, inputs, rewrite_programs(attrs, [this](const Program& program) {
                          return device_form(program, scope_);
                        }));
  }

 private:
  DeviceGroups groups_of(const Primitive& primitive, const lax::AxisNames& names, const Attrs& attrs) const {
    for (const std::string& name : names) {
      if (scope_.binds(name)) continue;
      throw NotImplementedError(concat(primitive.name(), " over '", name,
                                       "': the axis is of no mesh that shard_map binds",
                                       "\nHint: name it in axis_names of shard_map"));
    }
    const lax::AxisGroups index_groups = attrs.has("axis_index_groups") ? lax::index_groups(attrs) : lax::AxisGroups{};
    return device_groups(scope_.mesh(), names, index_groups);
  }

  static bool alone(const DeviceGroups& groups) {
    return std::all_of(groups.begin(), groups.end(), [](const Ints& group) { return group.size() == 1; });
  }

  static Array exchange(const Primitive& primitive, const Array& x, const Attrs& attrs, const DeviceGroups& groups) {
    return alone(groups) ? x : bind1(primitive, {x}, attrs.with("devices", lax::groups_attr(groups)));
  }

  Arrays reduced(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) const {
    const DeviceGroups groups = groups_of(primitive, axis_names(attrs, "axes"), attrs);
    Arrays results;
    for (const Array& x : inputs) results.push_back(exchange(primitive, x, attrs, groups));
    return results;
  }

  Array gathered(const Array& x, const Attrs& attrs) const {
    const DeviceGroups groups = groups_of(prim::all_gather(), axis_names(attrs, "axis_name"), attrs);
    const int64_t dim = attrs.integer("all_gather_dimension");
    return exchange(prim::all_gather(), attrs.boolean("tiled") ? x : widened(x, dim), attrs.with("tiled", true),
                    groups);
  }

  Array scattered(const Array& x, const Attrs& attrs) const {
    const DeviceGroups groups = groups_of(prim::reduce_scatter(), axis_names(attrs, "axis_name"), attrs);
    const Array parts = exchange(prim::reduce_scatter(), x, attrs.with("tiled", true), groups);
    return attrs.boolean("tiled") ? parts : narrowed(parts, attrs.integer("scatter_dimension"));
  }

  Array exchanged(const Array& x, const Attrs& attrs) const {
    const DeviceGroups groups = groups_of(prim::all_to_all(), axis_names(attrs, "axis_name"), attrs);
    if (attrs.boolean("tiled")) return exchange(prim::all_to_all(), x, attrs, groups);
    // The parts are along a dimension of their own, and the dimension that was split is removed.
    const int64_t split = attrs.integer("split_axis"), join = attrs.integer("concat_axis");
    const int64_t at = join <= split ? join : join + 1, own = join <= split ? split + 1 : split;
    const Attrs tiled = attrs.with("tiled", true).with("split_axis", own).with("concat_axis", at);
    return narrowed(exchange(prim::all_to_all(), widened(x, at), tiled, groups), own);
  }

  Array permuted(const Array& x, const Attrs& attrs) const {
    DeviceGroups pairs;
    for (const Ints& group : groups_of(prim::ppermute(), axis_names(attrs, "axis_name"), attrs)) {
      for (const Attr& entry : attrs.list("perm")) {
        const Ints& pair = *entry.get_if<Ints>();
        pairs.push_back({group[static_cast<std::size_t>(pair[0])], group[static_cast<std::size_t>(pair[1])]});
      }
    }
    if (pairs.empty()) return lax::zeros_like(x);
    return bind1(prim::ppermute(), {x}, attrs.with("devices", lax::groups_attr(pairs)));
  }

  // Selected from the gathered values: compilers for the CPU have no broadcast between devices.
  Array broadcast(const Array& x, const Attrs& attrs) const {
    const lax::AxisNames names = axis_names(attrs, "axis_name");
    const Array all = gathered(x, {{"all_gather_dimension", int64_t{0}},
                                   {"axis_index_groups", Attr()},
                                   {"axis_name", lax::name_list(names)},
                                   {"axis_size", axes_size(scope_.mesh(), names)},
                                   {"tiled", false}});
    return lax::index_in_dim(all, attrs.integer("source"), 0, false);
  }

  Array index(const lax::AxisNames& names) const {
    Array result;
    for (const std::string& name : names) {
      groups_of(prim::axis_index(), {name}, {});
      const Array own = index_along(name);
      if (!result.defined()) {
        result = own;
        continue;
      }
      const Array before = lax::mul(result, scalar_like(own, static_cast<double>(scope_.mesh().axis_size(name))));
      result = lax::add(before, own);
    }
    return result;
  }

  // The index of a device is known if all axes are manual: otherwise a map over the others is wrapped around it.
  Array index_along(const std::string& name) const {
    const Mesh& mesh = scope_.mesh();
    if (mesh.axis_size(name) == 1) return scalar_of(DType::int32, 0);
    const Attrs attrs{{"axis_name", name}, {"place", Ints{axis_stride(mesh, name), mesh.axis_size(name)}}};
    const AxisList rest = scope_.unbound();
    if (rest.empty()) return capibara::bind(prim::axis_index(), {}, attrs)[0];
    const Program inner =
        stage([&](std::span<const Array>) { return capibara::bind(prim::axis_index(), {}, attrs); }, {}, "axis_index")
            .program;
    const auto specs = [](Specs list) -> Attr {
      return std::shared_ptr<const Opaque>(std::make_shared<const SpecsAttr>(std::move(list)));
    };
    return capibara::bind(prim::shard_map(), {},
                          {{"check_vma", false},
                           {"in_specs", specs({})},
                           {"jaxpr", inner},
                           {"mesh", std::shared_ptr<const Opaque>(std::make_shared<const MeshAttr>(scope_.devices))},
                           {"newly_manual_axes", lax::name_list(rest)},
                           {"out_specs", specs({PartitionSpec{}})},
                           {"per_device", true}})[0];
  }

  DeviceScope scope_;
};

Program device_form(const Program& given, const DeviceScope& scope) {
  static Memo<Program> memo;
  return memo.get({given, {}, {}, 0, scope.text(), config().key()}, [&] {
    const Program program = with_plain_types(given);
    return stage(
               [&](std::span<const Array> inputs) {
                 auto trace = std::make_shared<DeviceFormTrace>(current_trace(), scope);
                 TraceEnd end(trace);
                 TraceScope traced(trace);
                 return evaluate_program(program, inputs);
               },
               program.input_types(), program.name())
        .program;
  });
}

bool holds_map(const Program& program) {
  return std::any_of(program.equations().begin(), program.equations().end(), [](const Equation& equation) {
    return equation.primitive == prim::shard_map() || any_program(equation.attrs, holds_map);
  });
}

}  // namespace

bool is_per_device(const Attrs& attrs) { return attrs.has("per_device"); }

Program with_device_programs(const Program& program, const std::function<bool(const NamedSharding&)>& chosen) {
  if (!holds_map(program)) return program;
  Copy copy(program);
  for (const Equation& equation : program.equations()) {
    Attrs attrs = equation.attrs;
    if (equation.primitive == prim::shard_map()) {
      const ShardMapView map(attrs);
      if (map.mesh().size() > 1 && chosen(map.devices())) attrs = per_device_attrs(attrs, {});
    } else {
      attrs = rewrite_programs(attrs, [&](const Program& nested) { return with_device_programs(nested, chosen); });
    }
    copy.emit(equation, copy(equation.inputs), std::move(attrs));
  }
  return copy.finish();
}

}  // namespace capibara
