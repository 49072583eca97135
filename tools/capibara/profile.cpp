// capibara profile: shows where the time of a program or a Python script goes, line by line.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include <capibara/config.h>
#include <capibara/error.h>
#include <capibara/lax.h>
#include <capibara/profile.h>
#include <capibara/program.h>

#include "backends/backend.h"
#include "command.h"
#include "io/files/npy.h"
#include "program/ir/source.h"
#include "program_file.h"

namespace capibara::command {

namespace {

// Default values for an input: 0.5, and zeros for types that may be indices.
Array made_input(const ArrayType& type) {
  return is_integer(type.dtype) || type.dtype == DType::bool_ ? jax::lax::zeros(type)
                                                              : jax::lax::full(type.shape, 0.5, type.dtype);
}

Arrays inputs_of(const Program& program, const Arguments& arguments) {
  const Types types = program.input_types();
  const std::size_t given = arguments.words.size() - 1;
  if (given != 0 && given != types.size()) {
    throw UsageError{concat(arguments.words[0], " takes ", types.size(), " inputs, got ", given, "; give all or none")};
  }
  Arrays inputs;
  for (std::size_t i = 0; i < types.size(); ++i) {
    inputs.push_back(given == 0 ? made_input(types[i]) : read_npy(arguments.words[i + 1], types[i].dtype));
    if (inputs[i].shape() != types[i].shape || inputs[i].dtype() != types[i].dtype) {
      throw ValueError(concat("input ", i, ": expected ", to_string(types[i]), ", got ", to_string(inputs[i].type()),
                              " in ", arguments.words[i + 1]));
    }
  }
  return inputs;
}

profile::Profile profile_program(const Arguments& arguments) {
  Config settings = config();
  settings.enable_x64 = true;  // types come from the file
  settings.platform = arguments.text("backend", settings.platform);
  const ConfigScope scope(settings);
  const int calls = arguments.integer("calls");
  if (calls < 1) throw UsageError{"--calls needs a number from 1 on"};
  SourceInfo own_file;
  own_file.file = std::filesystem::path(arguments.words[0]).filename().string();
  const Program program = [&] {
    const SourceScope lines(intern(own_file));
    return read_closed_file(arguments.words[0], sizes_of(arguments)).program;
  }();
  const Arrays inputs = inputs_of(program, arguments);
  auto waiting = std::make_unique<Waiting>(concat("compiling ", arguments.words[0]));
  const std::shared_ptr<Executable> executable = default_backend().compile(program);
  auto call = [&] {
    for (const Array& output : executable->execute(inputs, {})) output.block_until_ready();
  };
  // The first profiled call compiles the program with profiling marks, so it is not recorded.
  profile::start();
  call();
  profile::stop();
  waiting.reset();
  profile::start();
  for (int i = 0; i < calls; ++i) {
    const profile::Step step(i, "call");
    call();
  }
  return profile::stop();
}

// Runs the script in a separate Python process, which writes the profile when it exits.
profile::Profile profile_script(const Arguments& arguments) {
  const char* python = python_name();
  char name[] = "/tmp/capibara_profile_XXXXXX";
  const int made = ::mkstemp(name);
  if (made < 0) throw RuntimeError(concat("profile: no file can be made in /tmp: ", std::strerror(errno)));
  ::close(made);
  const std::string file = name;
  struct Remove {
    const std::string& name;
    ~Remove() { std::filesystem::remove(name); }
  } const remove{file};
  const pid_t child = ::fork();
  if (child < 0) throw RuntimeError(concat("profile: no process can be started: ", std::strerror(errno)));
  if (child == 0) {
    ::setenv("CAPIBARA_PROFILE", file.c_str(), 1);
    std::vector<char*> words{const_cast<char*>(python)};
    for (const std::string& word : arguments.words) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ::execvp(python, words.data());
    std::fprintf(stderr, "capibara profile: %s cannot be started: %s; name another in CAPIBARA_PYTHON\n", python,
                 std::strerror(errno));
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::fprintf(stderr, "capibara profile: %s ended with %s %d\n", arguments.words[0].c_str(),
                 WIFEXITED(status) ? "exit code" : "signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
  }
  if (std::filesystem::file_size(file) == 0) {
    throw RuntimeError(
        concat("profile: ", arguments.words[0], " wrote no profile: it ran nothing on capibara, or was killed"));
  }
  return profile::load(file);
}

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.ends_with(end);
}

profile::Profile taken_profile(const Arguments& arguments) {
  const std::string& what = arguments.words[0];
  if (!std::filesystem::exists(what)) throw ValueError(concat(what, " does not exist"));
  if (ends_with(what, ".py")) return profile_script(arguments);
  if (ends_with(what, ".json")) return profile::load(what);
  return profile_program(arguments);
}

}  // namespace

int profile_command(const Arguments& arguments) {
  if (arguments.words.empty()) throw UsageError{"a program, a script or a profile is needed"};
  const auto rows = static_cast<std::size_t>(arguments.integer("rows"));
  std::optional<profile::Profile> old;  // read first: a wrong name must not cost a run
  if (arguments.has("against")) old = profile::load(arguments.text("against", ""));
  const profile::Profile taken = taken_profile(arguments);
  if (const std::string file = arguments.text("out", ""); !file.empty()) profile::save(taken, file);
  const profile::Summary summary = profile::summarise(taken);
  if (arguments.has("json")) {
    if (!old)
      std::printf("%s\n", profile::to_json(summary).c_str());
    else
      std::printf("{\"profile\": %s, \"changes\": %s}\n", profile::to_json(summary).c_str(),
                  profile::to_json(compare(*old, taken)).c_str());
    return 0;
  }
  std::printf("%s", profile::to_string(summary, rows).c_str());
  for (const std::string& refusal : taken.refusals) std::printf("%s\n", refusal.c_str());
  if (taken.dropped > 0) std::printf("%lld records found no room\n", static_cast<long long>(taken.dropped));
  if (old)
    std::printf("\nAgainst %s, per execution:\n%s", arguments.text("against", "").c_str(),
                profile::to_string(compare(*old, taken), rows).c_str());
  return 0;
}

}  // namespace capibara::command
