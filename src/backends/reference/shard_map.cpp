// shard_map on the reference backend: every device runs the program, one after the other, and collectives are what they
// are defined to be. The truth for the lanes of compiled programs, with which it shares no rule.
#include "lax/shard_map.h"

#include <algorithm>
#include <map>

#include "backends/host_shards.h"
#include "backends/reference/backend.h"
#include "backends/reference/kernels.h"
#include "lax/collective.h"
#include "program/handles.h"
#include "program/nested.h"

namespace capibara::reference {

namespace {

namespace lax = jax::lax;

using PerDevice = std::vector<Arrays>;     // the values of each device
using Devices = std::vector<std::size_t>;  // positions among those of the manual axes

class DeviceByDevice {
 public:
  explicit DeviceByDevice(const ShardMapView& map) : map_(map) {
    for (const std::string& axis : map.manual()) sizes_.push_back(map.mesh().axis_size(axis));
  }

  std::size_t count() const { return static_cast<std::size_t>(element_count(sizes_)); }

  // The results of these devices, which all run the program; `inputs` has one entry for each of them.
  PerDevice run(const Program& program, const Devices& devices, const PerDevice& inputs) const {
    std::vector<std::vector<Array>> values(devices.size(),
                                           std::vector<Array>(static_cast<std::size_t>(program.var_count())));
    auto read = [&](std::size_t d, Atom atom) {
      return atom.is_literal() ? program.literal(atom) : values[d][static_cast<std::size_t>(atom.code)];
    };
    for (std::size_t d = 0; d < devices.size(); ++d) {
      for (std::size_t i = 0; i < program.constvars().size(); ++i)
        values[d][static_cast<std::size_t>(program.constvars()[i].id)] = program.constants()[i];
      for (std::size_t i = 0; i < inputs[d].size(); ++i)
        values[d][static_cast<std::size_t>(program.invars()[i].id)] = inputs[d][i];
    }
    for (const Equation& equation : program.equations()) {
      PerDevice operands(devices.size());
      for (std::size_t d = 0; d < devices.size(); ++d) {
        for (Atom input : equation.inputs) operands[d].push_back(read(d, input));
      }
      const PerDevice results = operation(equation.primitive, equation.attrs, equation.effects, devices, operands);
      for (std::size_t d = 0; d < devices.size(); ++d) {
        for (std::size_t i = 0; i < results[d].size(); ++i) {
          if (!equation.outputs[i].dropped())
            values[d][static_cast<std::size_t>(equation.outputs[i].id)] = results[d][i];
        }
      }
    }
    PerDevice outputs(devices.size());
    for (std::size_t d = 0; d < devices.size(); ++d) {
      for (Atom output : program.outputs()) outputs[d].push_back(read(d, output));
    }
    return outputs;
  }

 private:
  int64_t coordinate(std::size_t device, const std::string& axis) const {
    auto rest = static_cast<int64_t>(device);
    for (std::size_t i = sizes_.size(); i-- > 0;) {
      if (map_.manual()[i] == axis) return rest % sizes_[i];
      rest /= sizes_[i];
    }
    throw InternalError(concat("shard_map: '", axis, "' is not an axis of this map"));
  }

  bool uses_axes(const Effects& effects) const {
    return std::any_of(effects.axes.begin(), effects.axes.end(), [&](const std::string& axis) {
      return std::find(map_.manual().begin(), map_.manual().end(), axis) != map_.manual().end();
    });
  }

  PerDevice operation(const Primitive& primitive, const Attrs& attrs, const Effects& effects, const Devices& devices,
                      const PerDevice& in) const {
    if (primitive == prim::pvary()) return in;
    if (!uses_axes(effects)) return one_by_one(primitive, attrs, in);
    if (primitive == prim::axis_index()) return indices(attrs, devices);
    if (attrs.has("axis_name") || attrs.has("axes")) return collective(primitive, attrs, devices, in);
    switch (primitive->traits.control) {
      case Control::scan:
        return scan(attrs, devices, in);
      case Control::while_loop:
        return while_loop(attrs, devices, in);
      case Control::cond:
        return cond(attrs, devices, in);
      default:
        break;
    }
    if (const char* called = primitive->traits.called_program) return run(attrs.program(called), devices, in);
    throw NotImplementedError(
        concat("shard_map on the reference backend: '", primitive.name(), "' holds a program with collectives"));
  }

  static PerDevice one_by_one(const Primitive& primitive, const Attrs& attrs, const PerDevice& in) {
    PerDevice results;
    for (const Arrays& operands : in) results.push_back(capibara::bind(primitive, operands, attrs));
    return results;
  }

  PerDevice indices(const Attrs& attrs, const Devices& devices) const {
    const std::string axis = axis_names(attrs, "axis_name")[0];
    PerDevice results;
    for (std::size_t device : devices)
      results.push_back({scalar_of(DType::int32, static_cast<double>(coordinate(device, axis)))});
    return results;
  }

  // ---- collectives: among the devices that differ along their axes alone ----------------------------------------

  using Group = std::vector<std::size_t>;  // entries of the lists by device, in the order of the axes

  std::vector<Group> groups(const Attrs& attrs, const Devices& devices) const {
    const lax::AxisNames names = axis_names(attrs, attrs.has("axis_name") ? "axis_name" : "axes");
    std::map<Ints, std::map<int64_t, std::size_t>> members;
    int64_t size = 1;
    for (const std::string& name : names) size *= map_.mesh().axis_size(name);
    for (std::size_t d = 0; d < devices.size(); ++d) {
      Ints others;
      for (const std::string& axis : map_.manual()) {
        if (std::find(names.begin(), names.end(), axis) == names.end()) others.push_back(coordinate(devices[d], axis));
      }
      int64_t position = 0;
      for (const std::string& name : names)
        position = position * map_.mesh().axis_size(name) + coordinate(devices[d], name);
      members[others][position] = d;
    }
    std::vector<Group> all;
    for (const auto& [others, by_position] : members) {
      if (static_cast<int64_t>(by_position.size()) != size) {
        throw RuntimeError(
            "shard_map: a collective is reached by some devices of its axis only; the others would wait for ever");
      }
      Group group;
      for (const auto& [position, d] : by_position) group.push_back(d);
      add_index_groups(attrs, group, all);
    }
    return all;
  }

  static void add_index_groups(const Attrs& attrs, const Group& group, std::vector<Group>& all) {
    const lax::AxisGroups chosen = attrs.has("axis_index_groups") ? lax::index_groups(attrs) : lax::AxisGroups{};
    if (chosen.empty()) return all.push_back(group);
    for (const Ints& indices : chosen) {
      Group own;
      for (int64_t index : indices) own.push_back(group[static_cast<std::size_t>(index)]);
      all.push_back(std::move(own));
    }
  }

  PerDevice collective(const Primitive& primitive, const Attrs& attrs, const Devices& devices,
                       const PerDevice& in) const {
    PerDevice results(in.size());
    for (const Group& group : groups(attrs, devices)) {
      for (std::size_t operand = 0; operand < in[0].size(); ++operand) {
        Arrays values;
        for (std::size_t d : group) values.push_back(in[d][operand]);
        for (std::size_t member = 0; member < group.size(); ++member) {
          results[group[member]].push_back(received(primitive, attrs, values, static_cast<int64_t>(member)));
        }
      }
    }
    return results;
  }

  // What one member of a group gets of the values of all.
  static Array received(const Primitive& primitive, const Attrs& attrs, const Arrays& values, int64_t member) {
    const auto own = static_cast<std::size_t>(member);
    if (primitive == prim::psum() || primitive == prim::psum_invariant()) return combined(prim::add(), values);
    if (primitive == prim::pmax()) return combined(prim::max(), values);
    if (primitive == prim::pmin()) return combined(prim::min(), values);
    if (primitive == prim::pbroadcast()) return values[static_cast<std::size_t>(attrs.integer("source"))];
    if (primitive == prim::ppermute()) return sent(attrs, values, member);
    const bool tiled = attrs.boolean("tiled");
    const auto size = static_cast<int64_t>(values.size());
    if (primitive == prim::reduce_scatter())
      return part(combined(prim::add(), values), attrs.integer("scatter_dimension"), member, size, tiled);
    if (primitive == prim::all_gather() || primitive == prim::all_gather_invariant())
      return stacked(values, attrs.integer("all_gather_dimension"), tiled);
    if (primitive == prim::all_to_all()) {
      Arrays parts;
      for (const Array& value : values) parts.push_back(part(value, attrs.integer("split_axis"), member, size, tiled));
      return stacked(parts, attrs.integer("concat_axis"), tiled);
    }
    throw NotImplementedError(concat("shard_map on the reference backend: there is no definition of '",
                                     primitive.name(), "' for device ", own));
  }

  static Array combined(const Primitive& operation, const Arrays& values) {
    Array result = values[0];
    for (std::size_t i = 1; i < values.size(); ++i) result = bind1(operation, {result, values[i]});
    return result;
  }

  static Array sent(const Attrs& attrs, const Arrays& values, int64_t member) {
    for (const Attr& pair : attrs.list("perm")) {
      if ((*pair.get_if<Ints>())[1] == member) return values[static_cast<std::size_t>((*pair.get_if<Ints>())[0])];
    }
    return lax::zeros_like(values[0]);
  }

  static Array part(const Array& x, int64_t dim, int64_t member, int64_t parts, bool tiled) {
    if (!tiled) return lax::index_in_dim(x, member, dim, false);
    const int64_t size = x.shape(dim) / parts;
    return lax::slice_in_dim(x, member * size, (member + 1) * size, 1, dim);
  }

  static Array stacked(Arrays values, int64_t dim, bool tiled) {
    if (tiled) return lax::concatenate(values, dim);
    for (Array& value : values) value = lax::expand_dims(value, {dim});
    return lax::concatenate(values, dim);
  }

  // ---- control flow: devices that go the same way run together --------------------------------------------------

  PerDevice cond(const Attrs& attrs, const Devices& devices, const PerDevice& in) const {
    const CondView view(attrs);
    std::map<int64_t, std::vector<std::size_t>> chosen;
    for (std::size_t d = 0; d < devices.size(); ++d) chosen[in[d][0].item<int64_t>()].push_back(d);
    PerDevice results(devices.size());
    for (const auto& [index, entries] : chosen) {
      Devices some;
      PerDevice operands;
      for (std::size_t d : entries) {
        some.push_back(devices[d]);
        operands.emplace_back(in[d].begin() + 1, in[d].end());
      }
      const PerDevice own = run(view.branch(index), some, operands);
      for (std::size_t i = 0; i < entries.size(); ++i) results[entries[i]] = own[i];
    }
    return results;
  }

  PerDevice while_loop(const Attrs& attrs, const Devices& devices, const PerDevice& in) const {
    const WhileView loop(attrs);
    PerDevice carry, results(devices.size());
    std::vector<std::size_t> going;
    for (std::size_t d = 0; d < devices.size(); ++d) {
      const std::span<const Array> init = loop.carry(in[d]);
      carry.emplace_back(init.begin(), init.end());
      going.push_back(d);
    }
    auto call = [&](const Program& program, bool is_body) {
      Devices some;
      PerDevice operands;
      for (std::size_t d : going) {
        some.push_back(devices[d]);
        const std::span<const Array> consts = is_body ? loop.body_consts(in[d]) : loop.cond_consts(in[d]);
        operands.emplace_back(consts.begin(), consts.end());
        operands.back().insert(operands.back().end(), carry[d].begin(), carry[d].end());
      }
      return run(program, some, operands);
    };
    for (;;) {
      const PerDevice tests = call(loop.condition(), false);
      std::vector<std::size_t> next;
      for (std::size_t i = 0; i < going.size(); ++i) {
        if (tests[i][0].item<bool>()) next.push_back(going[i]);
      }
      going = std::move(next);
      if (going.empty()) return carry;
      const PerDevice stepped = call(loop.body(), true);
      for (std::size_t i = 0; i < going.size(); ++i) carry[going[i]] = stepped[i];
    }
  }

  PerDevice scan(const Attrs& attrs, const Devices& devices, const PerDevice& in) const {
    const ScanView loop(attrs);
    PerDevice operands = in;
    std::vector<std::vector<Arrays>> slices(devices.size(), std::vector<Arrays>(loop.ys()));
    for (int64_t step = 0; step < loop.length(); ++step) {
      const int64_t at = loop.reverse() ? loop.length() - 1 - step : step;
      for (std::size_t d = 0; d < devices.size(); ++d) {
        for (std::size_t i = loop.first_xs(); i < operands[d].size(); ++i)
          operands[d][i] = lax::index_in_dim(in[d][i], at, 0, false);
      }
      const PerDevice stepped = run(loop.body(), devices, operands);
      for (std::size_t d = 0; d < devices.size(); ++d) {
        for (std::size_t i = 0; i < loop.carry(); ++i) operands[d][loop.consts() + i] = stepped[d][i];
        for (std::size_t i = 0; i < loop.ys(); ++i) slices[d][i].push_back(stepped[d][loop.carry() + i]);
      }
    }
    PerDevice results(devices.size());
    for (std::size_t d = 0; d < devices.size(); ++d) {
      const std::span<const Array> last = loop.carry(std::span<const Array>(operands[d]));
      results[d].assign(last.begin(), last.end());
      for (std::size_t i = 0; i < loop.ys(); ++i) {
        Arrays own = slices[d][i];
        if (loop.reverse()) std::reverse(own.begin(), own.end());
        results[d].push_back(own.empty() ? empty_stack(loop, i) : stacked(own, 0, false));
      }
    }
    return results;
  }

  static Array empty_stack(const ScanView& loop, std::size_t i) {
    ArrayType type = loop.body().output_types()[loop.carry() + i];
    type.shape.insert(type.shape.begin(), 0);
    return lax::zeros(type);
  }

  const ShardMapView& map_;
  Shape sizes_;
};

// The manual axes alone, over as many devices: what splits operands and results.
NamedSharding manual_placement(const ShardMapView& map, const PartitionSpec& spec) {
  NamedSharding placement{"cpu", {}, {map.manual(), {}, {}}, spec, ""};
  for (const std::string& axis : map.manual()) placement.mesh.axis_sizes.push_back(map.mesh().axis_size(axis));
  for (int i = 0; i < static_cast<int>(placement.mesh.size()); ++i) placement.devices.push_back(i);
  return placement;
}

// On no device in particular.
Array unplaced(const Array& x, const ArrayType& type) { return Array::from_buffer(type, x.buffer()); }

}  // namespace

Arrays run_shard_map(const KernelArgs& args) {
  const ShardMapView map(args.attrs);
  const DeviceByDevice devices(map);
  PerDevice parts(devices.count());
  Devices all;
  for (std::size_t d = 0; d < devices.count(); ++d) all.push_back(d);
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    const std::vector<Array> shards = host_shards(args.inputs[i], manual_placement(map, map.in_specs()[i]));
    for (std::size_t d = 0; d < shards.size(); ++d) parts[d].push_back(unplaced(shards[d], shards[d].type()));
  }
  const PerDevice results = devices.run(map.program(), all, parts);
  Arrays outputs;
  for (std::size_t i = 0; i < args.output_types.size(); ++i) {
    std::vector<Array> shards;
    for (const Arrays& own : results) shards.push_back(own[i]);
    const Array joined =
        joined_host_shards(args.output_types[i].shape, manual_placement(map, map.out_specs()[i]), shards);
    outputs.push_back(unplaced(joined, args.output_types[i]));
  }
  return outputs;
}

}  // namespace capibara::reference
