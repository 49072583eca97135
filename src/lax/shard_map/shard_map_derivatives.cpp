// Partial evaluation and transpose of shard_map.
//
// Residuals leave the known map with every device's part along dimension 0, scalars as arrays of one element; the
// staged map restores their shapes.
#include "lax/shard_map/shard_map.h"

#include <algorithm>

#include "program/derive/spmd.h"
#include "program/ir/manual_axes.h"
#include "program/ir/varying.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

Array with_leading(const Array& x) { return x.ndim() == 0 ? lax::broadcast_in_dim(x, {1}, {}) : x; }
Array without_leading(const Array& x, const ArrayType& wanted) { return wanted.rank() == 0 ? lax::squeeze(x, {0}) : x; }

// The axes over which devices share a value; those of spmd_axis_name distinguish members of an enclosing vmap.
AxisList sharing_axes(const PartitionSpec& spec, const ShardMapView& map) {
  AxisList axes = map.unnamed(spec);
  std::erase_if(axes, SpmdScope::covers);
  return axes;
}

// The specification of a cotangent: reduced axes become unreduced, and vice versa.
PartitionSpec cotangent_spec(PartitionSpec spec) {
  std::swap(spec.unreduced, spec.reduced);
  return spec;
}

Specs cotangent_specs(Specs specs) {
  for (PartitionSpec& spec : specs) spec = cotangent_spec(std::move(spec));
  return specs;
}

PartitionSpec residual_spec(const ArrayType& type, const ShardMapView& map) {
  AxisList axes;
  for (const std::string& axis : map.manual()) {
    if (SpmdScope::covers(axis)) continue;
    if (!map.checked() || varies_over(type, axis)) axes.push_back(axis);
  }
  PartitionSpec spec = axes.empty() ? PartitionSpec{} : PartitionSpec{{axes}, {}, {}};
  if (!map.checked()) return spec;
  ManualAxes own = manual_axes_of(type);
  spec.unreduced = std::move(own.unreduced);
  spec.reduced = std::move(own.reduced);
  return spec;
}

// The residuals that the known map returns: all but its own inputs.
struct Residuals {
  std::vector<bool> returned;
  Specs specs;  // of all
};

Residuals residuals_of(const ProgramSplit& halves, const ShardMapView& map) {
  Residuals residuals;
  for (std::size_t r = 0; r < halves.residual_types.size(); ++r) {
    const int input = halves.residual_inputs[r];
    residuals.returned.push_back(input < 0);
    residuals.specs.push_back(input < 0 ? residual_spec(halves.residual_types[r], map)
                                        : map.in_specs()[static_cast<std::size_t>(input)]);
  }
  return residuals;
}

Program known_half(const ProgramSplit& halves, const Residuals& residuals) {
  const std::size_t outputs = halves.known.outputs().size() - residuals.returned.size();
  return stage(
             [&](std::span<const Array> inputs) {
               const Arrays all = evaluate_program(halves.known, inputs);
               Arrays results = part(all, 0, outputs);
               for (std::size_t r = 0; r < residuals.returned.size(); ++r) {
                 if (residuals.returned[r]) results.push_back(with_leading(all[outputs + r]));
               }
               return results;
             },
             halves.known.input_types(), halves.known.name())
      .program;
}

Program staged_half(const ProgramSplit& halves, const Residuals& residuals) {
  const Types own = halves.staged.input_types();
  Types types = own;
  for (std::size_t r = 0; r < residuals.returned.size(); ++r) {
    if (residuals.returned[r] && types[r].rank() == 0) types[r].shape = {1};
  }
  return stage(
             [&](std::span<const Array> inputs) {
               Arrays operands(inputs.begin(), inputs.end());
               for (std::size_t r = 0; r < residuals.returned.size(); ++r) {
                 if (residuals.returned[r]) operands[r] = without_leading(operands[r], own[r]);
               }
               return evaluate_program(halves.staged, operands);
             },
             types, halves.staged.name())
      .program;
}

Program bound_program(const ShardMapView& map, const Program& program, const Specs& in, const Specs& out,
                      const Types& types) {
  return stage([&](std::span<const Array> inputs) { return map.bind(program, inputs, in, out); }, types, program.name())
      .program;
}

// The cotangent of a value that devices share, if types do not record that: each device contributes its fraction.
Array shared_cotangent(const Array& cotangent, const PartitionSpec& spec, const ShardMapView& map) {
  const int64_t sharing = map.size(sharing_axes(spec, map));
  return sharing == 1 ? cotangent : lax::div(cotangent, scalar_like(cotangent, static_cast<double>(sharing)));
}

// Values that devices share get the sum of their cotangents.
Program with_sums(const Program& program, const Specs& specs, const ShardMapView& map) {
  static const Primitive psum = primitive("psum");
  return stage(
             [&](std::span<const Array> inputs) {
               Arrays results = evaluate_program(program, inputs);
               for (std::size_t i = 0; i < results.size(); ++i) {
                 const AxisList axes = sharing_axes(specs[i], map);
                 if (axes.empty()) continue;
                 results[i] =
                     bind1(psum, {results[i]},
                           {{"axes", Attr(Attr::List(axes.begin(), axes.end()))}, {"axis_index_groups", Attr()}});
               }
               return results;
             },
             program.input_types(), program.name())
      .program;
}

}  // namespace

PartialEvalSplit partial_eval_shard_map(const PartialEvalArgs& args) {
  const ShardMapView map(args.attrs);
  ProgramSplit halves;
  Residuals residuals;
  Program known, staged;
  {
    const MeshScope scope = map.scope();
    halves = partial_eval_program(map.program(), args.unknown, {}, args.policy);
    residuals = residuals_of(halves, map);
    known = known_half(halves, residuals);
    staged = staged_half(halves, residuals);
  }
  const Specs returned = where(residuals.specs, residuals.returned);
  PartialEvalSplit split;
  split.unknown_outputs = halves.unknown_outputs;
  const Types types(args.types.begin(), args.types.end());
  split.known =
      bound_program(map, known, where(map.in_specs(), !args.unknown),
                    joined(where(map.out_specs(), !halves.unknown_outputs), returned), where(types, !args.unknown));
  Types staged_types;
  const Types returned_types = known.output_types();
  std::size_t next = returned_types.size() - returned.size();
  for (std::size_t r = 0; r < residuals.returned.size(); ++r) {
    if (residuals.returned[r]) {
      split.operands.push_back({true, split.residual_count++});
      staged_types.push_back(global_type(returned_types[next++], residuals.specs[r], map));
    } else {
      split.operands.push_back({false, halves.residual_inputs[r]});
      staged_types.push_back(types[static_cast<std::size_t>(halves.residual_inputs[r])]);
    }
  }
  for (std::size_t i = 0; i < args.unknown.size(); ++i) {
    if (!args.unknown[i]) continue;
    split.operands.push_back({false, static_cast<int>(i)});
    staged_types.push_back(types[i]);
  }
  split.staged = bound_program(map, staged, joined(residuals.specs, where(map.in_specs(), args.unknown)),
                               where(map.out_specs(), halves.unknown_outputs), staged_types);
  return split;
}

Arrays transpose_shard_map(const TransposeArgs& args) {
  const ShardMapView map(args.attrs);
  const Mask known = defined_mask(args.inputs), nonzero = defined_mask(args.cotangents);
  const Specs linear_specs = cotangent_specs(where(map.in_specs(), !known));
  const Specs given_specs = cotangent_specs(map.out_specs());
  TransposedProgram derived;
  Specs results;
  {
    const MeshScope scope = map.scope();
    derived = transpose_program(map.program(), !known, nonzero, false);
    results = where(linear_specs, derived.nonzero_results);
    if (!map.checked()) derived.program = with_sums(derived.program, results, map);
  }
  // Cotangents first, as in jax.
  Arrays operands;
  for (std::size_t i = 0; i < nonzero.size(); ++i) {
    if (!nonzero[i]) continue;
    operands.push_back(map.checked() ? args.cotangents[i] : shared_cotangent(args.cotangents[i], given_specs[i], map));
  }
  Program::Body body = derived.program.body();
  std::rotate(body.invars.begin(), body.invars.end() - std::ssize(operands), body.invars.end());
  append(operands, where(args.inputs, known));
  const Arrays cotangents = map.bind(Program(std::move(body)), operands,
                                     joined(where(given_specs, nonzero), where(map.in_specs(), known)), results);
  return spread(spread(cotangents, derived.nonzero_results), !known);
}

}  // namespace capibara
