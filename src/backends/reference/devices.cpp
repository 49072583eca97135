// shard_map on the reference backend: every device runs the program on its own values.
//
// All devices step together, equation by equation, so that a collective sees the operands of its whole group. Loops
// and branches that contain collectives step together too, each with the devices that take part; all else is evaluated
// one device at a time. No code is shared with the lanes of the compiled form, for which this is the ground truth.
#include "backends/reference/devices.h"

#include <capibara/lax.h>

#include <algorithm>
#include <map>

#include "backends/reference/backend.h"
#include "backends/reference/kernels.h"
#include "core/array/bad_value.h"
#include "lax/collective/collective.h"
#include "lax/shard_map/shard_map.h"
#include "program/ir/nested.h"
#include "program/ir/plain_types.h"
#include "program/ir/source.h"
#include "program/ir/views.h"
#include "program/trace/trace.h"

namespace capibara::reference {

namespace lax = jax::lax;

namespace {

// Values of the devices that take part, by device.
using Each = std::map<std::size_t, Arrays>;

// Applies a function of one device's operands to each device.
template <class Function>
Each for_each_device(const Each& operands, const Function& function) {
  Each results;
  for (const auto& [device, values] : operands) results[device] = function(values);
  return results;
}

// The values that jax_debug_nans and jax_debug_infs search for.
struct Search {
  bool nans, infs;
};

class Devices {
 public:
  Devices(DeviceGrid grid, Search search) : grid_(std::move(grid)), search_(search) {}

  Each run(const Program& program, const Each& inputs) const {
    std::map<std::size_t, Arrays> values;  // of each device, by variable
    for (const auto& [device, own] : inputs) values[device] = bound(program, own);
    auto read = [&](std::span<const Atom> atoms) {
      return for_each_device(values, [&](const Arrays& known) {
        Arrays chosen;
        for (const Atom atom : atoms)
          chosen.push_back(atom.is_literal() ? program.literal(atom) : known[static_cast<std::size_t>(atom.code)]);
        return chosen;
      });
    };
    for (const Equation& equation : program.equations()) {
      for (auto& [device, results] : step(equation, read(equation.inputs))) {
        check(equation, results);
        for (std::size_t i = 0; i < equation.outputs.size(); ++i) {
          const Var output = equation.outputs[i];
          if (!output.dropped()) values[device][static_cast<std::size_t>(output.id)] = results[i];
        }
      }
    }
    return read(program.outputs());
  }

  Each shard_map(const Attrs& attrs, const Each& operands) const;

 private:
  // Errors name the user's operation, not those that split whole arrays and join results.
  void check(const Equation& equation, const Arrays& results) const {
    if (!search_.nans && !search_.infs) return;
    for (const Array& result : results) {
      const BadValue bad = find_bad_value(result, search_.nans, search_.infs);
      if (bad == BadValue::none) continue;
      const std::string source = to_string(equation.source);
      throw FloatingPointError(concat("Invalid value (", bad == BadValue::nan ? "nan" : "inf",
                                      ") encountered in sharded computation: in ", equation.primitive.name(),
                                      source.empty() ? "" : " at ", source));
    }
  }

  static Arrays bound(const Program& program, const Arrays& inputs) {
    Arrays values(static_cast<std::size_t>(program.var_count()));
    for (std::size_t i = 0; i < program.constants().size(); ++i)
      values[static_cast<std::size_t>(program.constvars()[i].id)] = program.constants()[i];
    for (std::size_t i = 0; i < inputs.size(); ++i)
      values[static_cast<std::size_t>(program.invars()[i].id)] = inputs[i];
    return values;
  }

  bool uses_our_axes(const Attrs& attrs) const {
    return any_program(attrs, [&](const Program& program) {
      const std::vector<std::string>& axes = program.effects().axes;
      return std::any_of(axes.begin(), axes.end(), [&](const std::string& axis) { return grid_.has(axis); });
    });
  }

  Each step(const Equation& equation, const Each& operands) const {
    if (is_collective(equation.primitive)) return collective(equation, operands);
    if (maps_devices(equation.primitive)) return shard_map(equation.attrs, operands);
    if (uses_our_axes(equation.attrs)) return together(equation, operands);
    return for_each_device(
        operands, [&](const Arrays& values) { return backend().run(equation.primitive, values, equation.attrs); });
  }

  Each together(const Equation& equation, const Each& operands) const {
    switch (equation.primitive->traits.control) {
      case Control::scan:
        return scan(ScanView(equation), operands);
      case Control::while_loop:
        return while_loop(WhileView(equation), operands);
      case Control::cond:
        return cond(CondView(equation), operands);
      default:
        break;
    }
    if (const Program* program = called_program(equation)) return run(*program, operands);
    throw NotImplementedError(
        concat("shard_map on the reference backend: collectives inside of '", equation.primitive.name(), "'"));
  }

  Each collective(const Equation& equation, const Each& operands) const {
    const char* key = equation.attrs.has("axes") ? "axes" : "axis_name";
    const lax::AxisNames names = axis_names(equation.attrs, key);
    Each results;
    for (const auto& [device, own] : operands) {
      const std::vector<std::size_t> line = grid_.line(device, names);
      const auto position = static_cast<std::size_t>(grid_.position(device, names));
      std::vector<Arrays> members;
      std::size_t place = 0;
      for (const std::size_t other : group_on_line(equation.attrs, position, line.size())) {
        if (other == position) place = members.size();
        members.push_back(operand_of(equation.primitive, operands, line[other]));
      }
      results[device] = exchanged(equation.primitive, equation.attrs, place, members);
    }
    return results;
  }

  static Arrays operand_of(const Primitive& primitive, const Each& operands, std::size_t device) {
    const auto it = operands.find(device);
    if (it != operands.end()) return it->second;
    throw RuntimeError(concat(primitive.name(), ": device ", device,
                              " does not come to this collective, because a predicate differs between devices"));
  }

  Each scan(const ScanView& loop, Each operands) const {
    const Each given = operands;
    std::map<std::size_t, std::vector<Arrays>> stacked;  // per device: the slices of each of its ys
    for (auto& [device, values] : operands) stacked[device].resize(loop.ys());
    for (int64_t step = 0; step < loop.length(); ++step) {
      const int64_t at = loop.reverse() ? loop.length() - 1 - step : step;
      for (auto& [device, values] : operands) {
        for (std::size_t i = loop.first_xs(); i < values.size(); ++i)
          values[i] = lax::index_in_dim(given.at(device)[i], at, 0, false);
      }
      for (auto& [device, results] : run(loop.body(), operands)) {
        std::copy_n(results.begin(), loop.carry(),
                    operands[device].begin() + static_cast<std::ptrdiff_t>(loop.consts()));
        for (std::size_t i = 0; i < loop.ys(); ++i) {
          Arrays& slices = stacked[device][i];
          slices.insert(loop.reverse() ? slices.begin() : slices.end(), results[loop.carry() + i]);
        }
      }
    }
    Each results;
    for (auto& [device, values] : operands) {
      const std::span<const Array> carry = loop.carry(values);
      results[device].assign(carry.begin(), carry.end());
      for (std::size_t i = 0; i < loop.ys(); ++i) results[device].push_back(stack_of(loop, i, stacked[device][i]));
    }
    return results;
  }

  static Array stack_of(const ScanView& loop, std::size_t y, const Arrays& slices) {
    if (!slices.empty()) return lax::stack(slices);
    ArrayType type = loop.body().type(loop.body().outputs()[loop.carry() + y]);
    type.shape.insert(type.shape.begin(), 0);
    return lax::zeros(type);
  }

  static Each with_carry(const Each& operands, std::size_t first, std::size_t count, const Each& carry) {
    Each joined;
    for (const auto& [device, own] : carry) {
      const Arrays& all = operands.at(device);
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
      joined[device].assign(begin, begin + static_cast<std::ptrdiff_t>(count));
      joined[device].insert(joined[device].end(), own.begin(), own.end());
    }
    return joined;
  }

  // Devices whose predicate is false leave the loop; the others continue.
  Each while_loop(const WhileView& loop, const Each& operands) const {
    Each running = for_each_device(operands, [&](const Arrays& values) {
      const std::span<const Array> carry = loop.carry(values);
      return Arrays(carry.begin(), carry.end());
    });
    Each ended;
    while (!running.empty()) {
      const Each tests = run(loop.condition(), with_carry(operands, 0, loop.cond_consts(), running));
      for (const auto& [device, test] : tests) {
        if (test[0].item<bool>()) continue;
        ended[device] = running[device];
        running.erase(device);
      }
      if (!running.empty())
        running = run(loop.body(), with_carry(operands, loop.cond_consts(), loop.body_consts(), running));
    }
    return ended;
  }

  Each cond(const CondView& view, const Each& operands) const {
    std::map<int64_t, Each> chosen;  // the devices of each branch
    for (const auto& [device, values] : operands) {
      const std::span<const Array> rest = view.operands(values);
      const int64_t last = std::ssize(view.branches()) - 1;
      chosen[std::clamp<int64_t>(values[0].item<int64_t>(), 0, last)][device] = Arrays(rest.begin(), rest.end());
    }
    Each results;
    for (const auto& [branch, inputs] : chosen) results.merge(run(view.branch(branch), inputs));
    return results;
  }

  const DeviceGrid grid_;
  const Search search_;
};

// The offset of a device's part along each dimension.
Ints first_of(const DeviceGrid& grid, std::size_t device, const PartitionSpec& spec, const Shape& part) {
  Ints first(part.size(), 0);
  for (std::size_t dim = 0; dim < spec.dims.size(); ++dim)
    first[dim] = grid.position(device, spec.dims[dim]) * part[dim];
  return first;
}

Array own_part(const Array& x, const Ints& first, const Shape& part) {
  Ints limits = first;
  for (std::size_t dim = 0; dim < part.size(); ++dim) limits[dim] += part[dim];
  return lax::slice(x, first, limits);
}

Array with_part(const Array& whole, const Array& part, const Ints& first) {
  Arrays starts;
  for (const int64_t index : first) {
    const auto start = static_cast<int32_t>(index);
    starts.push_back(Array::from_host(DType::int32, {}, &start));
  }
  return starts.empty() ? part : lax::dynamic_update_slice(whole, part, starts);
}

// Each device of the enclosing grid becomes a grid of its own: [outer axes..., manual axes...].
Each Devices::shard_map(const Attrs& attrs, const Each& operands) const {
  const ShardMapView map(attrs);
  std::vector<DeviceAxis> axes = grid_.axes();
  std::size_t inner = 1;
  for (const std::string& axis : map.manual()) {
    axes.push_back({axis, map.mesh().axis_size(axis)});
    inner *= static_cast<std::size_t>(axes.back().size);
  }
  const DeviceGrid grid(axes);
  Each parts;
  for (const auto& [outer, values] : operands) {
    for (std::size_t device = outer * inner; device < (outer + 1) * inner; ++device) {
      parts[device] = {};
      for (std::size_t i = 0; i < values.size(); ++i) {
        const Shape part = local_type(values[i].type(), map.in_specs()[i], map).shape;
        const PartitionSpec& spec = map.in_specs()[i];
        const Array own = own_part(values[i], first_of(grid, device, spec, part), part);
        // Of an unreduced value the first device holds everything, the others zeros.
        parts[device].push_back(grid.position(device, spec.unreduced) == 0 ? own : lax::zeros_like(own));
      }
    }
  }
  Each results;
  for (const auto& [device, own] : Devices(grid, search_).run(map.program(), parts)) {
    Arrays& whole = results[device / inner];
    for (std::size_t i = 0; i < own.size(); ++i) {
      const PartitionSpec& spec = map.out_specs()[i];
      if (whole.size() <= i) {
        ArrayType type = global_type(own[i].type(), spec, map);
        type.sharding = {};
        whole.push_back(lax::zeros(type));
      }
      if (grid.position(device, map.unnamed(spec)) != 0) continue;  // equal parts are taken from the first device
      const Ints first = first_of(grid, device, spec, own[i].shape());
      const Array before = own_part(whole[i], first, own[i].shape());
      whole[i] = with_part(whole[i], spec.unreduced.empty() ? own[i] : lax::add(before, own[i]), first);
    }
  }
  return results;
}

}  // namespace

Arrays run_shard_map(std::span<const Array> inputs, const Attrs& attrs) {
  const Attrs plain_attrs = rewrite_programs(attrs, with_plain_types);
  TraceScope scope(evaluation_trace());
  Config settings = own_platform();
  const Search search{settings.debug_nans, settings.debug_infs};
  settings.debug_nans = settings.debug_infs = false;
  ConfigScope own(settings);
  const Devices outside(DeviceGrid({}), search);
  Arrays given(inputs.begin(), inputs.end());
  if (explicit_types_exist()) {
    for (Array& input : given) input = unplaced(input);
  }
  return outside.shard_map(plain_attrs, {{0, std::move(given)}}).at(0);
}

}  // namespace capibara::reference
