// The stages of a jitted Python function: traced, lowered, compiled.
#include <capibara/default_device.h>
#include <capibara/partition.h>
#include <capibara/placement.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "backends/backend.h"
#include "backends/pjrt/mosaic/kernels.h"
#include "compiler/stablehlo/borders.h"
#include "jit.h"
#include "transforms/jit_object.h"

namespace capibara::python {

namespace {

// The stages after tracing; one class serves Traced, Lowered and Compiled.
struct Stage {
  std::shared_ptr<const detail::JitEntry> entry;
  std::vector<bool> donated;
  std::string name;
  nb::object function;
  std::shared_ptr<detail::JitCache> cache;
  detail::LeafShardings placements;  // of the arguments that it was made for
};
struct Traced : Stage {};
struct Lowered : Stage {};
struct Compiled : Stage {};

PyTree out_tree(const Stage& stage) {
  nb::object tree = static_object(detail::jit_entry_structure(*stage.entry));
  return nb::cast<const PyTree&>(tree);
}
PyTree in_tree(const Stage& stage) {
  nb::object key = static_object(detail::jit_entry_input_structure(*stage.entry));
  return nb::cast<PyTree>(nb::object(key[2]));
}

// The types of the arguments, without those of captured values, which come first.
Types argument_types(const Stage& stage) {
  Types types = detail::jit_entry_program(*stage.entry).input_types();
  types.erase(types.begin(), types.end() - static_cast<std::ptrdiff_t>(in_tree(stage).num_leaves()));
  return types;
}

// The arguments' types, and whether they are donated.
nb::object argument_info(const Stage& stage) {
  nb::object make = nb::module_::import_("capibara._types").attr("ArgInfo");
  const Types types = argument_types(stage);
  PyTree tree = in_tree(stage);
  std::vector<nb::object> leaves;
  for (std::size_t i = 0; i < tree.num_leaves(); ++i) {
    const ArrayType& type = types[i];
    leaves.push_back(make(int_tuple(type.shape), numpy_dtype(type.dtype), nb::bool_(stage.donated[i])));
  }
  return tree.unflatten(leaves);
}

// Raises an error that names the arguments whose types differ from those compiled for.
void check_types(const Compiled& self, const JitCall& call) {
  const Types types = argument_types(self);
  std::string text;
  nb::object name = nb::module_::import_("capibara._origins").attr("argument_name");
  for (std::size_t i = 0; i < types.size(); ++i) {
    const ArrayType& got = call.leaves[i].type();
    if (got.shape == types[i].shape && got.dtype == types[i].dtype) continue;
    text += concat("\nArgument '", nb::cast<std::string>(name(self.function, numbered_arguments(call), i)),
                   "' compiled with ", capibara::to_string(types[i]), " and called with ", capibara::to_string(got));
  }
  if (!text.empty()) {
    throw TypeError(concat(
        "Argument types differ from the types for which this computation was compiled. The mismatches are:", text));
  }
}

// Moves uncommitted arguments to the placements compiled for; an error names committed ones that are placed elsewhere.
Arrays placed_arguments(const Compiled& self, const JitCall& call) {
  Arrays leaves = call.leaves;
  if (self.placements.size() != leaves.size()) return leaves;
  nb::list wrong;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const auto& required = self.placements[i];
    if (!required || required->platform != "cpu" || leaves[i].type().ref) continue;
    if (required->replicated()) continue;  // also the default for a type under a context mesh, which no one requested
    if (!leaves[i].committed()) {
      leaves[i] = jax::device_put(leaves[i], *required);
      continue;
    }
    if (jax::placement(leaves[i]) == *required) continue;
    wrong.append(nb::make_tuple(i, nb::cast(leaves[i]), nb::cast(*required)));
  }
  if (nb::len(wrong) > 0) {
    nb::module_::import_("capibara.jax._stage_methods")
        .attr("refuse_placements")(self.function, numbered_arguments(call), wrong);
  }
  return leaves;
}

nb::object call_compiled(const Compiled& self, nb::args args, nb::kwargs kwargs) {
  // Static arguments are compiled in: a compiled function takes only the others.
  const JitCall call = take_apart({}, self.function, args, kwargs);
  PyTree expected = in_tree(self);
  if (!(call.in == expected)) {
    throw TypeError(
        concat("Function compiled with input pytree does not match the input pytree it was called with: compiled for ",
               expected.to_string(), ", called with ", call.in.to_string()));
  }
  for (const Array& leaf : call.leaves) {
    if (!leaf.is_tracer()) continue;
    throw TypeError(concat(
        "Cannot apply JAX transformations to a function lowered and compiled for a particular signature. Detected "
        "argument of Tracer type ",
        tracer_kind(leaf), ". Transform the function before it is compiled."));
  }
  check_types(self, call);
  detail::check_jit_entry(*self.entry, detail::jit_entry_input_structure(*self.entry), call.leaves);
  return rebuild(*self.entry, detail::call_jit_entry(*self.entry, placed_arguments(self, call)));
}

// Adds the shardings of arguments that are passed as types (ShapeDtypeStruct).
void add_described_placements(const JitFunction& jit, nb::handle args, nb::handle kwargs,
                              detail::LeafShardings& placements) {
  const std::vector<nb::object> leaves = dynamic_leaves(jit.settings, args, kwargs);
  if (leaves.size() != placements.size()) return;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (placements[i] || nb::isinstance<Array>(leaves[i]) || !nb::hasattr(leaves[i], "sharding")) continue;
    nb::object sharding = leaves[i].attr("sharding");
    if (nb::hasattr(sharding, "_placement")) {
      placements[i] = std::make_shared<const NamedSharding>(
          nb::cast<const NamedSharding&>(nb::object(sharding.attr("_placement"))));
    }
  }
}

// The devices of the topology that the program was lowered for; null for devices that are present.
std::shared_ptr<const NamedSharding> described_devices(const Stage& stage) {
  detail::LeafShardings all = stage.placements;
  all.push_back(stablehlo::find_borders(detail::jit_entry_program(*stage.entry)).first);
  for (const std::shared_ptr<const NamedSharding>& one : all) {
    if (one && one->platform.starts_with("topology:")) return one;
  }
  return nullptr;
}

nb::object memory_analysis(const Compiled& self) {
  const ExecutableDetails details = detail::compile_jit_entry(*self.entry, self.placements);
  if (!details.memory) return nb::none();
  const MemoryUse& use = *details.memory;
  return nb::module_::import_("capibara._types")
      .attr("CompiledMemoryStats")(use.generated_code, use.argument, use.output, use.alias, use.temp,
                                   use.host_generated_code, use.host_argument, use.host_output, use.host_alias,
                                   use.host_temp, use.peak);
}

nb::dict cost_analysis(const Stage& self) {
  const ProgramCost cost = detail::jit_entry_cost(*self.entry);
  nb::dict all;
  all["flops"] = cost.flops;
  if (cost.transcendentals > 0) all["transcendentals"] = cost.transcendentals;
  all["bytes accessed"] = cost.bytes_accessed;
  return all;
}

// The program partitioned for one device, under the placements of the arguments.
sharding::PartitionedProgram partitioned(const Stage& stage) {
  const Program& program = detail::jit_entry_program(*stage.entry);
  sharding::MaybeShardings inputs(program.invars().size());
  const std::size_t first = inputs.size() - stage.placements.size();
  for (std::size_t i = 0; i < stage.placements.size(); ++i) {
    if (stage.placements[i]) inputs[first + i] = *stage.placements[i];
  }
  return sharding::partition(program, inputs);
}

// One tuple for each collective: operation, axes, bytes to each device, times, line, cause.
nb::list collective_list(const sharding::PartitionedProgram& program) {
  nb::list list;
  for (const sharding::InsertedCollective& one : program.collectives) {
    nb::list axes;
    for (const std::string& axis : one.axes) axes.append(axis);
    list.append(nb::make_tuple(one.operation, nb::tuple(axes), one.bytes, one.times, one.source, one.cause));
  }
  return list;
}

// `arguments` and `results`: the header's names for the leaves of the arguments and of the result, in order.
void write_object(const Compiled& self, const std::string& object_path, const std::string& header_path,
                  const std::string& weights_path, const std::vector<std::string>& targets, const std::string& name,
                  const std::vector<std::string>& arguments, const std::vector<std::string>& results) {
  jax::ObjectOptions options;
  options.name = name.empty() ? self.name : name;
  options.targets = targets;
  options.external_weights = !weights_path.empty();
  detail::jit_entry_object(*self.entry, options, arguments, results).write(object_path, header_path, weights_path);
}

nb::list placement_list(const detail::LeafShardings& placements) {
  nb::list list;
  for (const auto& one : placements) list.append(one ? nb::cast(*one) : nb::none());
  return list;
}

template <class Next>
Next next_stage(const Stage& stage) {
  Next next;
  static_cast<Stage&>(next) = stage;
  return next;
}

Traced trace(const JitFunction& jit, nb::handle args, nb::handle kwargs) {
  // Arguments may be types (ShapeDtypeStruct).
  nb::object both = nb::make_tuple(nb::borrow(args), nb::borrow(kwargs));
  Traced traced;
  std::optional<DefaultDeviceScope> scope;
  if (jit.settings.device) scope.emplace(jit.settings.device);
  nb::object abstract = nb::module_::import_("capibara._types").attr("as_abstract_arrays")(both);
  const JitCall call = take_apart(jit.settings, jit.function, nb::object(abstract[0]), nb::object(abstract[1]));
  traced.entry = find_entry(jit, call);
  traced.donated = donated_leaves(jit.settings, call);
  traced.name = jit.name;
  traced.function = jit.function;
  traced.cache = jit.cache;
  traced.placements = detail::leaf_placements(call.leaves);
  add_described_placements(jit, args, kwargs, traced.placements);
  return traced;
}

}  // namespace

void bind_jit_stages(nb::module_& m, nb::class_<JitFunction>& function) {
  function
      .def("trace", [](const JitFunction& self, nb::args args, nb::kwargs kwargs) { return trace(self, args, kwargs); })
      .def("lower", [](const JitFunction& self, nb::args args,
                       nb::kwargs kwargs) { return next_stage<Lowered>(trace(self, args, kwargs)); })
      .def("eval_shape", [](const JitFunction& self, nb::args args, nb::kwargs kwargs) {
        const Traced traced = trace(self, args, kwargs);
        return shape_structs(out_tree(traced), detail::jit_entry_program(*traced.entry).output_types());
      });
  auto describe = [](auto& type) {
    type.def_prop_ro("out_tree", [](const Stage& self) { return out_tree(self); })
        .def_prop_ro("in_tree", [](const Stage& self) { return in_tree(self); })
        .def_prop_ro("fun_name", [](const Stage& self) { return self.name; })
        .def_prop_ro("out_info",
                     [](const Stage& self) {
                       return shape_structs(out_tree(self), detail::jit_entry_program(*self.entry).output_types());
                     })
        .def_prop_ro("args_info", [](const Stage& self) { return argument_info(self); })
        .def_prop_ro("in_avals",
                     [](const Stage& self) {
                       std::vector<nb::object> avals;
                       for (const ArrayType& type : argument_types(self)) avals.push_back(type_object(type));
                       return in_tree(self).unflatten(avals);
                     })
        .def_prop_ro("donate_argnums", [](const Stage& self) {
          nb::list donated;
          for (std::size_t i = 0; i < self.donated.size(); ++i) {
            if (self.donated[i]) donated.append(i);
          }
          return nb::tuple(donated);
        });
  };
  nb::class_<Stage>(m, "Stage");
  nb::class_<Traced, Stage> traced(m, "Traced");
  traced.def_prop_ro("jaxpr", [](const Traced& self) { return detail::jit_entry_program(*self.entry); })
      .def(
          "lower",
          [](const Traced& self, nb::object lowering_platforms) {
            if (!lowering_platforms.is_none()) {
              const nb::tuple own = nb::make_tuple(lowering_platform());
              if (!nb::tuple(lowering_platforms).equal(own)) {
                throw NotImplementedError(
                    concat("lower: programs are lowered for the platform that they were traced for, ",
                           nb::cast<std::string>(nb::repr(own)),
                           ", got lowering_platforms=", nb::cast<std::string>(nb::repr(lowering_platforms)),
                           "; trace under jax.default_device of that platform"));
              }
            }
            return next_stage<Lowered>(self);
          },
          nb::kw_only(), nb::arg("lowering_platforms") = nb::none());
  nb::class_<Lowered, Stage> lowered(m, "Lowered");
  lowered
      .def(
          "as_text",
          [](const Lowered& self, nb::object dialect, bool debug_info) {
            if (!dialect.is_none() && nb::cast<std::string>(dialect) != "stablehlo") {
              throw ValueError(concat("as_text: the dialect must be None or 'stablehlo', got '",
                                      nb::cast<std::string>(dialect), "'"));
            }
            return detail::lowered_text(*self.entry, self.placements, debug_info);
          },
          nb::arg("dialect") = nb::none(), nb::kw_only(), nb::arg("debug_info") = false)
      .def(
          "compile",
          [](const Lowered& self, nb::handle options) -> nb::object {
            if (const std::shared_ptr<const NamedSharding> described = described_devices(self)) {
              std::function<Program(const Program&)> rewrite;
              if (topology_plugin_platform(described->platform) == "tpu" && mosaic::are_kernels_enabled()) {
                rewrite = [several = described->devices.size() > 1](const Program& program) {
                  return mosaic::call_kernels(program, several);
                };
              }
              return compile_for_topology(described->platform, described->devices,
                                          detail::lowered_text(*self.entry, self.placements, false, rewrite),
                                          self.name);
            }
            Compiled compiled = next_stage<Compiled>(self);
            if (!options.is_none() && nb::len(options) > 0)
              compiled.entry = detail::with_compiler_options(*self.entry, options_of(options.attr("items")()));
            detail::compile_jit_entry(*compiled.entry, self.placements);
            return nb::cast(compiled);
          },
          nb::arg("compiler_options") = nb::none())
      .def("_tpu_kernels",
           [](const Lowered& self) {
             const std::shared_ptr<const NamedSharding> described = described_devices(self);
             const bool several = described && described->devices.size() > 1;
             std::vector<std::string> names;
             detail::lowered_text(*self.entry, self.placements, false, [&](const Program& program) {
               Program with = mosaic::call_kernels(program, several);
               names = mosaic::kernel_names(with);
               return with;
             });
             return names;
           })
      .def_prop_ro("_kept_var_idx",
                   [](const Lowered& self) {
                     nb::list kept;
                     for (std::size_t input : detail::kept_arguments(*self.entry)) kept.append(input);
                     return nb::tuple(kept);
                   })
      .def("cost_analysis", [](const Lowered& self) { return cost_analysis(self); })
      .def("explain_sharding", [](const Lowered& self) { return partitioned(self).text(); })
      .def("_inserted_collectives", [](const Lowered& self) { return collective_list(partitioned(self)); });
  nb::class_<Compiled, Stage> compiled(m, "Compiled");
  compiled.def("__call__", &call_compiled)
      .def("_inserted_collectives", [](const Compiled& self) { return collective_list(partitioned(self)); })
      .def("as_text", [](const Compiled& self) { return detail::compiled_text(*self.entry); })
      .def_prop_ro("_stablehlo",
                   [](const Compiled& self) { return detail::lowered_text(*self.entry, self.placements, false); })
      .def("cost_analysis", [](const Compiled& self) { return cost_analysis(self); })
      .def("memory_analysis", &memory_analysis)
      .def("_write_object", &write_object)
      .def_prop_ro("_captures_refs",
                   [](const Compiled& self) {
                     const Types types = detail::jit_entry_program(*self.entry).input_types();
                     return std::any_of(types.begin(), types.end(), [](const ArrayType& type) { return type.ref; });
                   })
      .def_prop_ro("_input_placements",
                   [](const Compiled& self) {
                     detail::LeafShardings placements = self.placements;
                     const Program& program = detail::jit_entry_program(*self.entry);
                     const std::size_t captured = program.invars().size() - placements.size();
                     for (const stablehlo::BorderDemand& demand : stablehlo::find_borders(program).arguments) {
                       if (demand.index >= captured) placements[demand.index - captured] = demand.placement;
                     }
                     return placement_list(placements);
                   })
      .def_prop_ro("_output_placements", [](const Compiled& self) {
        return placement_list(detail::compile_jit_entry(*self.entry, self.placements).outputs);
      });
  describe(traced);
  describe(lowered);
  describe(compiled);
}

}  // namespace capibara::python
