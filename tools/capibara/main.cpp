// The program `capibara`: finds the command by name and runs it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>

#include <capibara/error.h>

#include "command.h"

namespace capibara::command {

const std::vector<Command>& commands() {
  static const std::vector<Command> table = {
      {"show",
       "FILE.mlir [--lowered] [--stablehlo | --loops | --ir] [--after PASS] | FILE.mlir --sharded [--mesh x=4,y=2 --in "
       "x,y;-,y] | --passes",
       "Prints the program of a StableHLO file, or what it is after a pass of the optimiser, or on one device of a "
       "mesh; --passes lists them.",
       {"after", "mesh", "in"},
       {"lowered", "stablehlo", "passes", "loops", "ir", "sharded"},
       show},
      {"run",
       "FILE.mlir [INPUT.npy ...] [--output FOLDER] [--backend NAME]",
       "Runs a StableHLO file and prints its results, or writes them as .npy files.",
       {"output", "backend"},
       {},
       run},
      {"check",
       "[FOLDER|FILE.mlir ...] [--backend NAME] [--jobs N] [--self-test]",
       "Runs StableHLO files that hold their own expected values; the folder is CAPIBARA_GOLDEN by default.",
       {"backend", "jobs"},
       {"self-test", "verbose"},
       check},
      {"compile",
       "FILE.mlir [--topology NAME] [--platform NAME] [--options NAME=VALUE,...] [--output FILE]",
       "Compiles a StableHLO file by a plugin, for devices that need not be here (v5e:4x4, v4:2x2x4, 1x1x4), and "
       "prints the memory it needs.",
       {"topology", "platform", "options", "output"},
       {},
       compile},
      {"plan",
       "--tpu SLICE (--model NAME | --program FILE.mlir) [--batch N] [--seq N] [--mesh data=8,model=8] [--remat "
       "POLICY] "
       "[--flags TEXT] [--search] [--compile] [--cycles] [--html FILE] [--json] | --models",
       "Models memory and time of a training step or a program on a TPU slice, compiles them where libtpu is "
       "installed; "
       "nothing runs on a TPU.",
       {"tpu", "model", "program", "batch", "seq", "mesh", "remat", "flags", "html"},
       {"search", "compile", "cycles", "json", "models"},
       plan},
      {"coverage",
       "[--markdown] | --python [--results FILE.tsv]",
       "Prints which rules each primitive has and which backends run it, or which names of jax pass in Python.",
       {"results"},
       {"markdown", "python"},
       coverage},
      {"library",
       "[MODULE] [--markdown]",
       "Prints the functions of the library, or those of one module with their signatures.",
       {},
       {"markdown"},
       list_library},
      {"bench",
       "[--only NAME,...] [--repeat N] [--peers LIST] [--json FILE] [--build FOLDER] [--list | --report]",
       "Times capibara beside its peers, in a source tree; ./run bench installs the peers.",
       {"only", "repeat", "peers", "json", "build"},
       {"list", "report", "no-check"},
       bench},
      {"launch",
       "-n N [--devices D] [--hosts A,B] [--restarts K] [--timeout S] [--collective-timeout S] -- PROGRAM ARGUMENTS",
       "Starts N processes of a program over MPI (mpirun, mpiexec or srun), with D devices each; restarts them K times "
       "after failures.",
       {"n", "devices", "hosts", "restarts", "timeout", "collective-timeout"},
       {"member"},
       launch},
      {"doctor", "", "Prints which backends and plugins there are, and tries each.", {}, {}, doctor},
      {"help", "", "Prints this list.", {}, {}, help},
  };
  return table;
}

std::string Arguments::text(const std::string& name, const std::string& otherwise) const {
  const auto it = options.find(name);
  return it == options.end() ? otherwise : it->second;
}

int Arguments::integer(const std::string& name, int otherwise) const {
  const auto it = options.find(name);
  if (it == options.end()) return otherwise;
  const std::string& text = it->second;
  if (text.empty() || text.size() > 6 || text.find_first_not_of("0123456789") != std::string::npos) {
    throw UsageError{concat("--", name, " needs a number, got '", text, "'")};
  }
  return std::stoi(text);
}

Arguments parse_arguments(const Command& command, const std::vector<std::string>& words) {
  Arguments arguments;
  auto listed = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") {
      arguments.words.insert(arguments.words.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (words[i].size() == 2 && words[i][0] == '-' && listed(command.valued, words[i].substr(1))) {
      if (i + 1 == words.size()) throw UsageError{concat(words[i], " needs a value")};
      const std::string short_name = words[i].substr(1);
      arguments.options[short_name] = words[++i];
      continue;
    }
    if (words[i].rfind("--", 0) != 0) {
      arguments.words.push_back(words[i]);
      continue;
    }
    const std::size_t equals = words[i].find('=');
    const std::string name = words[i].substr(2, equals == std::string::npos ? equals : equals - 2);
    if (listed(command.switches, name)) {
      arguments.options[name] = "";
    } else if (listed(command.valued, name)) {
      if (equals != std::string::npos) arguments.options[name] = words[i].substr(equals + 1);
      else if (i + 1 < words.size()) arguments.options[name] = words[++i];
      else throw UsageError{concat("--", name, " needs a value")};
    } else {
      throw UsageError{concat("unknown option --", name)};
    }
  }
  return arguments;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ValueError(concat(path, " cannot be opened"));
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string own_path() {
  char* resolved = realpath("/proc/self/exe", nullptr);
  const std::string path = resolved ? resolved : "";
  std::free(resolved);
  return path;
}

int help(const Arguments&) {
  std::printf("capibara COMMAND ...\n\n");
  for (const Command& command : commands()) {
    std::printf("  %s %s\n      %s\n", command.name, command.usage, command.doc);
  }
  std::printf("\nExit code: 0 success, 1 failures, 2 wrong command line.\n");
  return 0;
}

}  // namespace capibara::command

int main(int count, char** values) {
  using namespace capibara::command;
  std::vector<std::string> words(values + std::min(count, 1), values + count);
  std::string name = words.empty() ? "help" : words[0];
  if (name == "--help" || name == "-h") name = "help";
  for (const Command& command : commands()) {
    if (name != command.name) continue;
    try {
      if (!words.empty()) words.erase(words.begin());
      const auto own = std::find(words.begin(), words.end(), "--");  // what follows is another program's
      if (std::find(words.begin(), own, "--help") != own) {
        std::printf("capibara %s %s\n%s\n", command.name, command.usage, command.doc);
        return 0;
      }
      const int code = command.run(parse_arguments(command, words));
      if (words.empty() && count == 1) return 2;  // no command at all: the list is the answer, but not success
      return code;
    } catch (const UsageError& error) {
      std::fprintf(stderr, "capibara %s: %s\nusage: capibara %s %s\n", command.name, error.message.c_str(), command.name,
                   command.usage);
      return 2;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "capibara %s: %s\n", command.name, error.what());
      return 1;
    }
  }
  std::fprintf(stderr, "capibara: unknown command '%s'; try 'capibara help'\n", name.c_str());
  return 2;
}
