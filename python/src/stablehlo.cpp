// Parses StableHLO text into programs, and runs them on NumPy arrays.
#include <capibara/config.h>
#include <capibara/error.h>
#include <capibara/program.h>

#include <nanobind/stl/string.h>

#include "backends/backend.h"
#include "bindings.h"
#include "compiler/stablehlo/bytecode/read_bytecode.h"
#include "compiler/stablehlo/read.h"

namespace capibara::python {

namespace {

// The text states its types explicitly, so 64-bit ones are kept.
ConfigScope with_wide_types() {
  Config settings = config();
  settings.enable_x64 = true;
  return ConfigScope(settings);
}

nb::list run_stablehlo(const std::string& text, nb::iterable arguments) {
  const ConfigScope scope = with_wide_types();
  const Program program = from_stablehlo(text);
  const Types types = program.input_types();
  Arrays inputs;
  for (nb::handle argument : arguments) inputs.push_back(to_array(argument, "run_stablehlo"));
  if (types.size() != inputs.size())
    throw TypeError(concat("run_stablehlo: the program takes ", types.size(), " arguments, got ", inputs.size()));
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i].shape == inputs[i].shape() && types[i].dtype == inputs[i].dtype()) continue;
    throw TypeError(
        concat("run_stablehlo: argument ", i, " must be ", to_string(types[i]), ", got ", to_string(inputs[i].type())));
  }
  Arrays outputs;
  {
    nb::gil_scoped_release other_threads_run;
    outputs = default_backend().compile(program)->execute(inputs, {});
    for (const Array& output : outputs) output.block_until_ready();
  }
  nb::list results;
  for (const Array& output : outputs) results.append(numpy_view(output));
  return results;
}

}  // namespace

void bind_stablehlo(nb::module_& m) {
  m.def("run_stablehlo", &run_stablehlo, nb::arg("text"), nb::arg("arguments"),
        "Compiles a StableHLO text for the default backend and runs its main function on NumPy arrays, small floats of "
        "ml_dtypes included.");
  m.def(
      "program_from_stablehlo",
      [](const nb::bytes& artifact, const Types& arguments, bool with_placements) {
        const ConfigScope scope = with_wide_types();
        const std::string_view bytes(artifact.c_str(), artifact.size());
        if (!with_placements) return from_stablehlo(bytes, arguments);
        stablehlo::ReadOptions options;
        options.arguments = arguments;
        options.placements = true;
        return stablehlo::read_module(stablehlo::read_file(bytes), options);
      },
      nb::arg("artifact"), nb::arg("arguments") = Types{}, nb::arg("with_placements") = false,
      "The program of a StableHLO artifact's main function; where it leaves sizes open, for arguments of these types. "
      "With with_placements it keeps the sharding constraints.");
  m.def(
      "program_from_stablehlo",
      [](const std::string& text) {
        const ConfigScope scope = with_wide_types();
        return from_stablehlo(text);
      },
      nb::arg("text"), "The program of a StableHLO text's main function.");
}

}  // namespace capibara::python
