// Reads collectives between the devices of a manual computation: over the axes of its mesh that their device numbers
// describe.
#include <algorithm>

#include <capibara/collective.h>
#include <capibara/error.h>
#include <capibara/lax.h>

#include "compiler/stablehlo/read_body.h"
#include "compiler/stablehlo/read_groups.h"
#include "compiler/stablehlo/sharding_text.h"
#include "core/sharding/device_groups.h"
#include "core/sharding/explicit.h"
#include "lax/reduce/monoid.h"

namespace capibara::stablehlo {

namespace lax = jax::lax;

namespace {

// The numbers of the participating devices; for a permutation, pairs of them.
struct DeviceExchange {
  std::vector<Ints> groups;
  std::vector<std::pair<int64_t, int64_t>> pairs;
};

// The form that collectives take: axes, and groups along them.
struct Along {
  lax::AxisNames axes;
  lax::AxisGroups groups;
};

std::string groups_text(const std::vector<Ints>& groups) {
  std::string text;
  for (std::size_t i = 0; i < groups.size() && i < 4; ++i) text += concat(i ? ", " : "", list_text(groups[i]));
  return concat("[", text, groups.size() > 4 ? ", .." : "", "]");
}

[[noreturn]] void refuse_devices(const Operation& operation, const ManualScope& scope, const std::string& what) {
  throw UnsupportedError(concat(place_of(operation), ": the devices ", what, " are along no axes of ",
                                axes_text(scope.bound), ", over which the computation is manual",
                                "\nHint: every device of the mesh must be in one group, and groups must be the same "
                                "wherever the other axes are"));
}

Along along_axes(const Operation& operation, const ManualScope& scope, const std::vector<Ints>& groups) {
  Ints members;
  for (const Ints& group : groups) members.insert(members.end(), group.begin(), group.end());
  std::sort(members.begin(), members.end());
  for (std::size_t i = 1; i < members.size(); ++i) {
    if (members[i] == members[i - 1]) fail(operation, concat("device ", members[i], " is in two groups"));
  }
  for (const Ints& group : groups) {
    if (group.size() == groups[0].size()) continue;
    throw UnsupportedError(
        concat(place_of(operation), ": groups of different sizes are not supported, got ", groups_text(groups)));
  }
  const std::optional<GroupsAlongAxes> found = find_axes(scope.mesh, scope.bound, groups);
  if (!found) refuse_devices(operation, scope, groups_text(groups));
  return {found->axes, found->index_groups};
}

NdArray gathered(const NdArray& x, const Along& along) {
  return lax::all_gather(x, along.axes, {.axis = 0, .tiled = false, .axis_index_groups = along.groups});
}

// The values of the group, combined one after another.
NdArray combined(const NdArray& x, const Along& along, const Program& region) {
  const NdArray all = gathered(x, along);
  Ints dims;
  for (int64_t dim = 0; dim < x.ndim(); ++dim) dims.push_back(dim);
  NdArray total = lax::index_in_dim(all, 0, 0, false);
  for (int64_t i = 1; i < all.shape(0); ++i) {
    const NdArray next = lax::index_in_dim(all, i, 0, false);
    total = bind_named("map", {total, next}, {{"jaxpr", region}, {"dimensions", dims}})[0];
  }
  return total;
}

Program region_of(BodyReader& body, const Operation& operation) {
  if (operation.regions.size() != 1) fail(operation, "expected one region");
  return body.closed_region(operation, operation.regions[0]);
}

NdArray all_reduced(const NdArray& x, const Along& along, const Program& region) {
  const std::optional<Monoid> monoid = recognise_monoid(region);
  if (monoid == Monoid::add) return lax::psum(x, along.axes, along.groups);
  if (monoid == Monoid::max && !is_complex(x.dtype())) return lax::pmax(x, along.axes, along.groups);
  if (monoid == Monoid::min && !is_complex(x.dtype())) return lax::pmin(x, along.axes, along.groups);
  return combined(x, along, region);
}

int64_t dimension_of(const Operation& operation, std::string_view name, const NdArray& x) {
  const int64_t dim = integer_attribute(operation, name);
  if (dim < 0 || dim >= x.ndim()) fail(operation, concat("there is no dimension ", dim, " in ", to_string(x.type())));
  return dim;
}

NdArray exchanged(BodyReader& body, const Operation& operation, const NdArray& x, const Along& along) {
  if (operation.name == "stablehlo.all_reduce") return all_reduced(x, along, region_of(body, operation));
  if (operation.name == "stablehlo.all_gather") {
    const int64_t dim = dimension_of(operation, "all_gather_dim", x);
    return lax::all_gather(x, along.axes, {.axis = dim, .tiled = true, .axis_index_groups = along.groups});
  }
  if (operation.name == "stablehlo.reduce_scatter") {
    if (recognise_monoid(region_of(body, operation)) != Monoid::add) {
      throw UnsupportedError(concat(place_of(operation), ": only sums are supported over ", axes_text(along.axes),
                                    "\nHint: reduce by stablehlo.all_reduce and take a slice"));
    }
    const int64_t dim = dimension_of(operation, "scatter_dimension", x);
    return lax::psum_scatter(x, along.axes,
                             {.scatter_dimension = dim, .tiled = true, .axis_index_groups = along.groups});
  }
  if (operation.name == "stablehlo.all_to_all") {
    return lax::all_to_all(x, along.axes, dimension_of(operation, "split_dimension", x),
                           dimension_of(operation, "concat_dimension", x),
                           {.tiled = true, .axis_index_groups = along.groups});
  }
  if (operation.name == "stablehlo.collective_broadcast") return lax::index_in_dim(gathered(x, along), 0, 0, false);
  throw UnsupportedError(concat(place_of(operation), ": this operation is not supported in a manual computation over ",
                                axes_text(along.axes)));
}

NdArray permuted(const Operation& operation, const NdArray& x, const ManualScope& scope, const DeviceExchange& who) {
  const std::optional<PairsAlongAxes> found = find_axes(scope.mesh, scope.bound, who.pairs);
  if (!found) {
    std::vector<Ints> pairs;
    for (const auto& [from, to] : who.pairs) pairs.push_back({from, to});
    refuse_devices(operation, scope, groups_text(pairs));
  }
  return lax::ppermute(x, found->axes, found->pairs);
}

// ---- numbers of devices ------------------------------------------------------------------------------------------

const Operation* find_definition(const Block& block, const Value& value) {
  for (const Operation& operation : block.operations) {
    for (const Value& result : operation.results) {
      if (result.id == value.id) return &operation;
    }
  }
  return nullptr;
}

const Operation* find_definition(const Block& block, const Value& value, std::string_view name) {
  const Operation* found = find_definition(block, value);
  return found && found->name == name ? found : nullptr;
}

std::optional<int64_t> find_constant(const Block& block, const Value& value) {
  const Operation* found = find_definition(block, value, "stablehlo.constant");
  const Attribute dense = found ? found->attributes.find("value") : Attribute();
  const auto* number = dense.as<DenseElements>();
  if (!number || !number->type.dims().empty()) return std::nullopt;
  return dense_array(*found, *number).item<int64_t>();
}

// partition_id / stride % size, the expression for a device's position along an axis; empty: something else.
std::string axis_of_remainder(const Block& block, const Operation& remainder, const ManualScope& scope) {
  if (remainder.name != "stablehlo.remainder" || remainder.operands.size() != 2) return "";
  const Operation* divide = find_definition(block, remainder.operands[0], "stablehlo.divide");
  if (!divide || divide->operands.size() != 2) return "";
  if (!find_definition(block, divide->operands[0], "stablehlo.partition_id")) return "";
  const std::optional<int64_t> stride = find_constant(block, divide->operands[1]);
  const std::optional<int64_t> size = find_constant(block, remainder.operands[1]);
  for (const std::string& axis : scope.bound) {
    if (stride == axis_stride(scope.mesh, axis) && size == scope.mesh.axis_size(axis)) return axis;
  }
  return "";
}

std::string axis_of_convert(const Block& block, const Operation& operation, const ManualScope& scope) {
  if (operation.name != "stablehlo.convert" || operation.results.size() != 1 || operation.operands.size() != 1)
    return "";
  if (operation.results[0].type.dtype() != DType::int32) return "";
  const Operation* remainder = find_definition(block, operation.operands[0]);
  return remainder ? axis_of_remainder(block, *remainder, scope) : "";
}

bool uses(const Operation& operation, const Value& value) {
  for (const Value& operand : operation.operands) {
    if (operand.id == value.id) return true;
  }
  for (const Region& region : operation.regions) {
    for (const Block& block : region.blocks) {
      for (const Operation& inner : block.operations) {
        if (uses(inner, value)) return true;
      }
    }
  }
  return false;
}

// True if a value is only a step in computing positions along axes.
bool is_step(const Block& block, const Operation& operation, const ManualScope& scope) {
  const Value& result = operation.results[0];
  for (const Operation& user : block.operations) {
    if (&user == &operation || !uses(user, result)) continue;
    const bool last = !axis_of_convert(block, user, scope).empty();
    const bool between = user.name == "stablehlo.divide" || !axis_of_remainder(block, user, scope).empty();
    if (!last && !(between && is_step(block, user, scope))) return false;
  }
  return true;
}

bool is_whole(const ManualScope& scope) {
  return std::all_of(scope.mesh.axis_names.begin(), scope.mesh.axis_names.end(), [&](const std::string& axis) {
    return scope.mesh.axis_size(axis) == 1 || lists_axis(scope.bound, axis);
  });
}

// The position of this device in the mesh.
NdArray device_number(const Operation& operation, const ManualScope& scope) {
  NdArray number;
  for (const std::string& axis : scope.mesh.axis_names) {
    if (scope.mesh.axis_size(axis) == 1) continue;
    if (!lists_axis(scope.bound, axis)) {
      throw UnsupportedError(
          concat(place_of(operation), ": the number of a device depends on axis \"", axis,
                 "\", which is not manual here: ", axes_text(scope.bound), " are",
                 "\nHint: a manual computation over the other axes may be around it, as jax writes"));
    }
    const NdArray index = lax::axis_index(axis);
    const NdArray part = index * NdArray(static_cast<int32_t>(axis_stride(scope.mesh, axis)));
    number = number.defined() ? lax::add(number, part) : part;
  }
  if (!number.defined()) number = NdArray(int32_t{0});
  return lax::convert_element_type(number, DType::uint32);
}

// Groups from #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>.
std::vector<Ints> groups_along_axes(const ModuleReader& module, const Operation& operation,
                                    const DialectAttribute& groups, const ManualScope& scope) {
  const Attribute named = groups.fields.find("mesh"), listed = groups.fields.find("axes");
  const auto* mesh = named.as<SymbolReference>();
  const auto* list = listed.as<Array>();
  if (groups.kind != "replica_group_mesh_axes" || !mesh || !list)
    fail(operation, concat("expected numbers of devices or axes of a mesh as groups, got #stablehlo.", groups.kind));
  if (!(module.mesh_of(operation, mesh->name) == scope.mesh)) {
    throw UnsupportedError(concat(place_of(operation), ": groups along axes of mesh @", mesh->name,
                                  ", over which the computation is not manual"));
  }
  AxisList axes;
  for (const Attribute& element : list->elements) {
    const auto* reference = element.as<DialectAttribute>();
    const Attribute name = reference ? reference->fields.find("name") : Attribute();
    if (!name.as<String>()) fail(operation, "expected the name of an axis in groups");
    axes.push_back(name.as<String>()->value);
    if (reference->fields.size() > 1) {
      throw UnsupportedError(concat(place_of(operation), ": parts of an axis are not supported, got a part of \"",
                                    axes.back(), "\" in groups"));
    }
    if (!scope.mesh.has(axes.back()))
      fail(operation, concat("mesh @", mesh->name, " has no axis \"", axes.back(), "\""));
  }
  return device_groups(scope.mesh, axes);
}

Arrays read_device_exchange(BodyReader& body, const Operation& operation, const Arrays& operands,
                            const DeviceExchange& who) {
  const ManualScope scope = *body.module().manual();
  if (operation.name == "stablehlo.partition_id") return {device_number(operation, scope)};
  Arrays results;
  for (const NdArray& x : operands) {
    if (operation.name == "stablehlo.collective_permute") {
      results.push_back(permuted(operation, x, scope, who));
      continue;
    }
    const Along along = along_axes(operation, scope, who.groups);
    results.push_back(along.axes.empty() ? x : exchanged(body, operation, x, along));
  }
  return results;
}

}  // namespace

// In a manual computation: one replica, whose partitions are the devices of the mesh.
Arrays read_between_devices(BodyReader& body, const Operation& operation, const Arrays& operands) {
  const ManualScope& scope = *body.module().manual();
  DeviceExchange who;
  if (operation.name == "stablehlo.partition_id") return read_device_exchange(body, operation, operands, who);
  const int64_t devices = scope.mesh.size();
  if (operation.name == "stablehlo.collective_permute") {
    const Ints ids = integers_attribute(operation, "source_target_pairs");
    for (std::size_t i = 0; i + 1 < ids.size(); i += 2) who.pairs.emplace_back(ids[i], ids[i + 1]);
    return read_device_exchange(body, operation, operands, who);
  }
  if (const Attribute named = operation.attributes.find("replica_groups"); named.as<DialectAttribute>()) {
    who.groups = groups_along_axes(body.module(), operation, *named.as<DialectAttribute>(), scope);
    return read_device_exchange(body, operation, operands, who);
  }
  // jax sets no channel for a broadcast, but means devices.
  if (operation.name == "stablehlo.collective_broadcast" && channel_of(operation) <= 0) {
    who.groups = id_groups(operation, devices);
    return read_device_exchange(body, operation, operands, who);
  }
  for (const Group& group : process_groups(operation, {1, devices})) {
    Ints& own = who.groups.emplace_back();
    for (const ProcessId id : group) {
      if (id.replica != 0 || id.partition >= devices) {
        fail(operation,
             concat("there is no device ", id.replica * devices + id.partition, " in a mesh of ", devices, " devices"));
      }
      own.push_back(id.partition);
    }
  }
  return read_device_exchange(body, operation, operands, who);
}

bool read_axis_index(BodyReader& body, const Operation& operation) {
  static constexpr std::string_view steps[] = {"stablehlo.partition_id", "stablehlo.divide", "stablehlo.remainder"};
  const ManualScope* scope = body.module().manual();
  if (!scope || operation.results.size() != 1 || !operation.results[0].type.dims().empty() || !is_whole(*scope))
    return false;
  if (const std::string axis = axis_of_convert(body.block(), operation, *scope); !axis.empty()) {
    body.set_results(operation, {lax::axis_index(axis)});
    return true;
  }
  if (std::find(std::begin(steps), std::end(steps), operation.name) == std::end(steps)) return false;
  if (operation.results[0].type.dtype() != DType::uint32) return false;
  if (operation.name == "stablehlo.divide" &&
      !find_definition(body.block(), operation.operands[0], "stablehlo.partition_id"))
    return false;
  if (operation.name == "stablehlo.remainder" && axis_of_remainder(body.block(), operation, *scope).empty())
    return false;
  return is_step(body.block(), operation, *scope);  // nothing to compute
}

}  // namespace capibara::stablehlo
