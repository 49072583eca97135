// capibara bench: runs the suite in benchmarks/ of the source tree with the Python that has the peers installed.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <capibara/error.h>

#include "command.h"

namespace capibara::command {
namespace {

bool exists(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

// The source tree: the current folder, or the nearest folder above this program that has the suite.
std::string source_tree() {
  const std::string suite = "/benchmarks/bench.py";
  if (exists("." + suite)) return ".";
  std::string folder = own_path();
  while (!folder.empty()) {
    folder.resize(folder.find_last_of('/') == std::string::npos ? 0 : folder.find_last_of('/'));
    if (exists(folder + suite)) return folder;
  }
  throw ValueError("bench: there is no benchmarks/bench.py here or above this program; it runs in a source tree");
}

}  // namespace

int bench(const Arguments& arguments) {
  if (!arguments.words.empty()) throw UsageError{concat("takes options only, got '", arguments.words[0], "'")};
  const std::string tree = source_tree();
  const std::string python = tree + "/build/bench-venv/bin/python";
  if (!exists(python))
    throw ValueError(concat("bench: ", python, " does not exist; ./run bench installs the peers there"));
  std::vector<std::string> words = {python, tree + "/benchmarks/bench.py"};
  for (const auto& [name, value] : arguments.options)
    words.push_back(value.empty() ? "--" + name : "--" + name + "=" + value);
  std::vector<char*> command;
  for (std::string& word : words) command.push_back(word.data());
  command.push_back(nullptr);
  execv(command[0], command.data());
  throw ValueError(concat("bench: ", python, " cannot be started: ", std::strerror(errno)));
}

}  // namespace capibara::command
