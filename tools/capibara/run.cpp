// capibara run: runs a StableHLO file or an exported function on inputs from .npy files.
#include <cstdio>
#include <filesystem>
#include <memory>

#include <capibara/config.h>
#include <capibara/error.h>
#include <capibara/program.h>

#include "backends/backend.h"
#include "command.h"
#include "io/files/npy.h"
#include "program_file.h"

namespace capibara::command {

int run(const Arguments& arguments) {
  if (arguments.words.empty()) throw UsageError{"a file is needed"};
  Config settings = config();
  settings.enable_x64 = true;  // types come from the file
  settings.platform = arguments.text("backend", settings.platform);
  ConfigScope scope(settings);
  Backend& backend = default_backend();
  const ProgramFile file = read_program_file(arguments.words[0]);
  const Types types = file.input_types();
  if (arguments.words.size() - 1 != types.size()) {
    throw UsageError{concat(arguments.words[0], " takes ", types.size(), " inputs, got ", arguments.words.size() - 1)};
  }
  Arrays inputs;
  for (std::size_t i = 0; i < types.size(); ++i) {
    inputs.push_back(read_npy(arguments.words[i + 1], types[i].dtype));
    const bool symbolic = file.exported && file.exported->has_symbolic_sizes();  // which checks its own types
    if (!symbolic && (inputs[i].shape() != types[i].shape || inputs[i].dtype() != types[i].dtype)) {
      throw ValueError(concat("input ", i, ": expected ", to_string(types[i]), ", got ", to_string(inputs[i].type()),
                              " in ", arguments.words[i + 1]));
    }
  }
  const Arrays outputs = [&] {
    auto waiting =
        std::make_unique<Waiting>(concat(file.exported ? "compiling and running " : "compiling ", arguments.words[0]));
    if (file.exported) return file.exported->call_flat(inputs);
    const std::shared_ptr<Executable> executable = backend.compile(file.program);
    waiting.reset();
    return executable->execute(inputs, {});
  }();
  const std::string folder = arguments.text("output", "");
  if (!folder.empty()) std::filesystem::create_directories(folder);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (folder.empty()) {
      std::printf("%s\n%s\n", to_string(outputs[i].type()).c_str(), outputs[i].to_string().c_str());
    } else {
      write_npy((std::filesystem::path(folder) / concat("out", i, ".npy")).string(), outputs[i]);
    }
  }
  return 0;
}

}  // namespace capibara::command
