// Placement of results: forward through a program, one rule for each kind of operation; what no rule knows is on every
// device. Values are right whatever the rules say: an array's placement does not move its elements.
#include "backends/result_placement.h"

#include <algorithm>
#include <optional>

#include "array/body.h"
#include "lax/shard_map.h"
#include "program/handles.h"
#include "program/nested.h"
#include "program/views.h"
#include "sharding/explicit.h"
#include "sharding/placed_memory.h"

namespace capibara {

namespace {

using Spec = std::vector<AxisList>;     // one entry for each dimension
using MaybeSpec = std::optional<Spec>;  // nothing: placed nowhere in particular

// What the values of one program are placed on.
struct Places {
  std::shared_ptr<const NamedSharding> devices;  // null: not yet known
};

void drop_repeated(Spec& spec) {
  AxisList seen;
  for (AxisList& axes : spec) {
    std::erase_if(axes,
                  [&](const std::string& axis) { return std::find(seen.begin(), seen.end(), axis) != seen.end(); });
    seen.insert(seen.end(), axes.begin(), axes.end());
  }
}

// Only axes that divide a dimension split it.
void drop_uneven(Spec& spec, const Shape& shape, const Mesh& mesh) {
  for (std::size_t dim = 0; dim < spec.size(); ++dim) {
    int64_t parts = 1;
    for (const std::string& axis : spec[dim]) parts *= mesh.axis_size(axis);
    if (shape[dim] % parts != 0) spec[dim].clear();
  }
}

Spec elementwise_spec(const Types& types, const std::vector<MaybeSpec>& in, const ArrayType& out) {
  Spec spec(out.shape.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!in[i] || types[i].shape != out.shape) continue;
    for (std::size_t dim = 0; dim < spec.size(); ++dim) {
      if (spec[dim].empty()) spec[dim] = (*in[i])[dim];
    }
  }
  return spec;
}

Spec dot_spec(const std::vector<MaybeSpec>& in, const Types& types, const Attrs& attrs, const ArrayType& out) {
  const auto& d = attrs.get<DotDimensionNumbers>("dimension_numbers");
  auto entry = [&](std::size_t operand, int64_t dim) {
    return in[operand] ? (*in[operand])[static_cast<std::size_t>(dim)] : AxisList{};
  };
  Spec spec;
  for (std::size_t i = 0; i < d.lhs_batch.size(); ++i) {
    AxisList axes = entry(0, d.lhs_batch[i]);
    spec.push_back(axes.empty() ? entry(1, d.rhs_batch[i]) : axes);
  }
  auto add_free = [&](std::size_t operand, const Ints& contracting, const Ints& batch) {
    for (int64_t dim = 0; dim < types[operand].rank(); ++dim) {
      const bool used =
          std::count(contracting.begin(), contracting.end(), dim) || std::count(batch.begin(), batch.end(), dim);
      if (!used) spec.push_back(entry(operand, dim));
    }
  };
  add_free(0, d.lhs_contracting, d.lhs_batch);
  add_free(1, d.rhs_contracting, d.rhs_batch);
  spec.resize(out.shape.size());
  return spec;
}

Spec broadcast_spec(const Spec& in, const ArrayType& type, const Attrs& attrs, const ArrayType& out) {
  Spec spec(out.shape.size());
  const Ints& dims = attrs.ints("broadcast_dimensions");
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto to = static_cast<std::size_t>(dims[i]);
    if (type.shape[i] == out.shape[to]) spec[to] = in[i];
  }
  return spec;
}

Spec without_dimensions(const Spec& in, const Ints& dims) {
  Spec spec;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!std::count(dims.begin(), dims.end(), static_cast<int64_t>(i))) spec.push_back(in[i]);
  }
  return spec;
}

// Leading dimensions that a reshape leaves as they are.
Spec leading_spec(const Spec& in, const Shape& from, const Shape& to) {
  Spec spec(to.size());
  for (std::size_t i = 0; i < from.size() && i < to.size() && from[i] == to[i]; ++i) spec[i] = in[i];
  return spec;
}

Spec unchanged_spec(const Spec& in, const Shape& from, const Shape& to) {
  Spec spec(to.size());
  for (std::size_t i = 0; i < to.size() && from.size() == to.size(); ++i) {
    if (from[i] == to[i]) spec[i] = in[i];
  }
  return spec;
}

class Propagation {
 public:
  explicit Propagation(Places places) : places_(std::move(places)) {}

  std::vector<MaybeSpec> program(const Program& program, const std::vector<MaybeSpec>& inputs) {
    std::vector<MaybeSpec> values(static_cast<std::size_t>(program.var_count()));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      values[static_cast<std::size_t>(program.invars()[i].id)] = inputs[i];
    auto read = [&](Atom atom) {
      return atom.is_literal() ? MaybeSpec() : values[static_cast<std::size_t>(atom.code)];
    };
    for (const Equation& equation : program.equations()) {
      std::vector<MaybeSpec> in;
      Types types, out;
      for (Atom input : equation.inputs) {
        in.push_back(read(input));
        types.push_back(program.type(input));
      }
      for (Var output : equation.outputs) out.push_back(output.dropped() ? ArrayType{} : program.type(output));
      const std::vector<MaybeSpec> results = operation(equation.primitive, types, in, equation.attrs, out);
      for (std::size_t i = 0; i < results.size(); ++i) {
        if (!equation.outputs[i].dropped()) values[static_cast<std::size_t>(equation.outputs[i].id)] = results[i];
      }
    }
    std::vector<MaybeSpec> outputs;
    for (Atom output : program.outputs()) outputs.push_back(read(output));
    return outputs;
  }

  std::vector<MaybeSpec> operation(const Primitive& primitive, const Types& types, const std::vector<MaybeSpec>& in,
                                   const Attrs& attrs, const Types& out) {
    if (primitive == prim::shard_map()) return of_map(attrs, out);
    if (primitive == prim::sharding_constraint()) return {of_constraint(attrs, in[0], out[0])};
    if (std::none_of(in.begin(), in.end(), [](const MaybeSpec& spec) { return spec.has_value(); }))
      return std::vector<MaybeSpec>(out.size());
    if (const char* called = primitive->traits.called_program;
        called && attrs.program(called).invars().size() == in.size()) {
      return program(attrs.program(called), in);
    }
    std::vector<MaybeSpec> results;
    for (const ArrayType& type : out) {
      Spec spec = rule(primitive, types, in, attrs, type);
      spec.resize(type.shape.size());
      drop_repeated(spec);
      drop_uneven(spec, type.shape, places_.devices->mesh);
      results.push_back(std::move(spec));
    }
    return results;
  }

  const std::shared_ptr<const NamedSharding>& devices() const { return places_.devices; }

 private:
  static Spec rule(const Primitive& primitive, const Types& types, const std::vector<MaybeSpec>& in, const Attrs& attrs,
                   const ArrayType& out) {
    if (primitive->traits.elementwise != Elementwise::no) return elementwise_spec(types, in, out);
    if (primitive == prim::dot_general()) return dot_spec(in, types, attrs, out);
    if (in.empty() || !in[0]) return {};
    const Spec& first = *in[0];
    if (primitive == prim::broadcast_in_dim()) return broadcast_spec(first, types[0], attrs, out);
    if (primitive == prim::transpose()) {
      Spec spec;
      for (int64_t dim : attrs.ints("permutation")) spec.push_back(first[static_cast<std::size_t>(dim)]);
      return spec;
    }
    if (primitive == prim::squeeze()) return without_dimensions(first, attrs.ints("dimensions"));
    if (primitive == prim::reshape()) return leading_spec(first, types[0].shape, out.shape);
    if (primitive->traits.combines == Combines::axes && attrs.has("axes"))
      return without_dimensions(first, attrs.ints("axes"));
    if (primitive->traits.moves == Moves::index) return unchanged_spec(first, types[0].shape, out.shape);
    return {};
  }

  std::vector<MaybeSpec> of_map(const Attrs& attrs, const Types& out) {
    const ShardMapView map(attrs);
    if (!places_.devices) places_.devices = std::make_shared<const NamedSharding>(map.devices());
    std::vector<MaybeSpec> results;
    for (std::size_t i = 0; i < out.size(); ++i) {
      Spec spec = map.out_specs()[i].dims;
      spec.resize(std::max(spec.size(), out[i].shape.size()));
      results.push_back(std::move(spec));
    }
    return results;
  }

  MaybeSpec of_constraint(const Attrs& attrs, const MaybeSpec& in, const ArrayType& out) {
    const auto constraint = attrs.opaque<PlacementAttr>("sharding")->placement;
    if (constraint->devices.size() <= 1) return in;
    if (!places_.devices) places_.devices = constraint;
    Spec spec = constraint->spec.dims;
    spec.resize(out.shape.size());
    return spec;
  }

  Places places_;
};

bool is_placed_host_array(const Array& array) { return host_placement(array) != nullptr; }

void check_same_devices(const Array& first, const NamedSharding& devices, const Array& input,
                        const NamedSharding& own) {
  if (own.devices == devices.devices) return;
  auto sorted = [](std::vector<int> ids) {
    std::sort(ids.begin(), ids.end());
    return ids;
  };
  if (sorted(own.devices) == sorted(devices.devices)) return;
  throw ValueError(concat("Received incompatible devices for jitted computation. Got argument with shape ",
                          to_string(first.type()), " and sharding ", to_string(devices), " and argument with shape ",
                          to_string(input.type()), " and sharding ", to_string(own),
                          "; move one of them with device_put"));
}

NamedSharding first_device() { return {"cpu", {0}, {}, {}, ""}; }

// Where committed operands are; the specification of each.
Places places_of(std::span<const Array> inputs, std::vector<MaybeSpec>& specs) {
  Places places;
  const Array* first = nullptr;
  for (const Array& input : inputs) {
    specs.emplace_back();
    if (!input.committed()) continue;
    const auto& placed = host_placement(input);
    const NamedSharding own = placed ? *placed : first_device();
    if (!first) {
      first = &input;
      places.devices = std::make_shared<const NamedSharding>(own);
    } else {
      check_same_devices(*first, *places.devices, input, own);
      if (places.devices->mesh.axis_names.empty() && !own.mesh.axis_names.empty())
        places.devices = std::make_shared<const NamedSharding>(own);
    }
    Spec spec = own.spec.dims;
    spec.resize(static_cast<std::size_t>(input.ndim()));
    specs.back() = std::move(spec);
  }
  return places;
}

Arrays with_placements(const std::vector<MaybeSpec>& specs, const std::shared_ptr<const NamedSharding>& devices,
                       Arrays outputs) {
  if (!devices) return outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].is_tracer() || outputs[i].type().ref || outputs[i].device() != Device{}) continue;
    NamedSharding own = *devices;
    own.spec = {};
    if (specs[i]) own.spec.dims = *specs[i];
    while (!own.spec.dims.empty() && own.spec.dims.back().empty()) own.spec.dims.pop_back();
    const bool is_first = own.mesh.axis_names.empty() && own.devices[0] == 0;
    outputs[i] = placed_on_host(outputs[i], is_first ? nullptr : std::make_shared<const NamedSharding>(std::move(own)));
  }
  return outputs;
}

}  // namespace

bool any_placed(std::span<const Array> inputs) {
  return std::any_of(inputs.begin(), inputs.end(), is_placed_host_array);
}

bool says_placement(const Program& program) {
  for (const Equation& equation : program.equations()) {
    if (equation.primitive == prim::shard_map()) return true;
    if (equation.primitive == prim::sharding_constraint() &&
        equation.attrs.opaque<PlacementAttr>("sharding")->placement->devices.size() > 1)
      return true;
    if (any_program(equation.attrs, says_placement)) return true;
  }
  return false;
}

Arrays placed_results(const Program& program, std::span<const Array> inputs, Arrays outputs) {
  const auto on_host = [](const Array& output) { return output.device() == Device{}; };
  if (std::none_of(outputs.begin(), outputs.end(), on_host)) return outputs;  // the plugin has placed them
  std::vector<MaybeSpec> specs;
  Propagation propagation(places_of(inputs, specs));
  const std::vector<MaybeSpec> results = propagation.program(program, specs);
  return with_placements(results, propagation.devices(), std::move(outputs));
}

Arrays placed_results(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs, Arrays outputs) {
  std::vector<MaybeSpec> specs;
  Propagation propagation(places_of(inputs, specs));
  Types types, out;
  for (const Array& input : inputs) types.push_back(input.type());
  for (const Array& output : outputs) out.push_back(output.type());
  const std::vector<MaybeSpec> results = propagation.operation(primitive, types, specs, attrs, out);
  return with_placements(results, propagation.devices(), std::move(outputs));
}

namespace {

bool has_mesh(const NamedSharding& devices, const Mesh& mesh) {
  return devices.mesh.axis_names == mesh.axis_names && devices.mesh.axis_sizes == mesh.axis_sizes;
}

// The devices of a mesh of this shape.
NamedSharding devices_of(const Mesh& mesh, std::span<const Array> inputs,
                         const std::shared_ptr<const NamedSharding>& given) {
  for (const Array& input : inputs) {
    if (input.is_tracer() || input.type().ref) continue;
    if (const std::optional<NamedSharding> own = jax::placement(input); own && has_mesh(*own, mesh)) return *own;
  }
  if (given && has_mesh(*given, mesh)) return *given;
  if (context_mesh() && has_mesh(*context_mesh(), mesh)) return *context_mesh();
  return jax::make_sharding(mesh, {});
}

}  // namespace

Array left_to_compiler(const Array& x) {
  std::optional<NamedSharding> placement = jax::placement(x);
  if (!placement || !placement->mesh.any_is(AxisType::Explicit)) return x;
  for (AxisType& type : placement->mesh.axis_types) {
    if (type == AxisType::Explicit) type = AxisType::Auto;
  }
  return jax::device_put(x, *placement);
}

Arrays placed_by_types(const Types& types, std::span<const Array> inputs, Arrays outputs,
                       const std::shared_ptr<const NamedSharding>& devices) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!types[i].sharding.is_explicit() || outputs[i].is_tracer() || outputs[i].type().ref) continue;
    NamedSharding placement = devices_of(types[i].sharding.mesh(), inputs, devices);
    placement.mesh = types[i].sharding.mesh();
    placement.spec = types[i].sharding.spec();
    outputs[i] = jax::device_put(outputs[i], placement);
  }
  return outputs;
}

}  // namespace capibara
