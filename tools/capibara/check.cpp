// capibara check: runs StableHLO files that contain their own expected values, and counts passes and failures.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <capibara/config.h>
#include <capibara/error.h>
#include <capibara/program.h>

#include "backends/backend.h"
#include "backends/pjrt/backend.h"
#include "command.h"
#include "compiler/optimise/passes.h"
#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/operations_check.h"
#include "lax/linalg/lapack_calls.h"
#include "program/ir/build.h"
#include "program/ir/handles.h"
#include "program_file.h"

namespace capibara::command {

namespace {

struct Verdict {
  enum class Kind { passed, failed, skipped };
  Kind kind = Kind::passed;
  std::vector<std::string> lines;  // what failed, or the reason for skipping
};

// A program and its input arrays.
struct Application {
  Program program;
  Arrays arguments;
};

// The files hold their inputs and expected values as constants, so an optimiser could fold the whole program at compile
// time and nothing would be left to run. Results of functions without parameters, and all constant arrays, become
// arguments instead.
Application apply_to_arguments(const Program& program) {
  Program::Body body = program.body();
  Arrays arguments;
  std::vector<Equation> equations;
  for (Equation& equation : body.equations) {
    if (equation.primitive != prim::jit() || !equation.inputs.empty() || !equation.effects.empty()) {
      equations.push_back(std::move(equation));
      continue;
    }
    const Arrays values = backend("reference").compile(equation.attrs.program("jaxpr"))->execute({}, {});
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (equation.outputs[i].dropped()) continue;
      body.invars.push_back(equation.outputs[i]);
      arguments.push_back(values[i]);
    }
  }
  body.equations = std::move(equations);
  const Program lifted = passes::lift_constants(Program(std::move(body)));
  arguments.insert(arguments.begin(), lifted.constants().begin(), lifted.constants().end());
  return {constants_to_inputs(lifted), std::move(arguments)};
}

Verdict judge(const std::string& path, const Config& settings, bool self_test) {
  ConfigScope scope(settings);
  stablehlo::CheckLog log;
  log.perturb = self_test;
  log.parts_share_error = settings.platform != "reference";
  stablehlo::CheckScope checks(log);
  try {
    for (const Program& program : read_programs(path)) {
      if (!program.invars().empty()) {
        return {Verdict::Kind::skipped, {concat("@", program.name(), " takes inputs: nothing to run it on")}};
      }
      if (const std::string target = opaque_call(program); !target.empty() && !pjrt::is_platform(settings.platform)) {
        return {Verdict::Kind::skipped, {concat("calls '", target, "', which no native backend has")}};
      }
      log.probes.clear();
      const Application run = apply_to_arguments(program);
      default_backend().compile(run.program)->execute(run.arguments, {});
    }
  } catch (const stablehlo::UnsupportedError& error) {
    return {Verdict::Kind::skipped, {error.what()}};
  } catch (const std::exception& error) {
    return {Verdict::Kind::failed, {error.what()}};
  }
  if (!log.failures.empty()) return {Verdict::Kind::failed, log.failures};
  if (log.expectations == 0) return {Verdict::Kind::skipped, {"holds no expected values"}};
  return {};
}

// The program files below a folder, sorted; the path itself if it is a file.
std::vector<std::string> collect(const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!fs::exists(path)) throw ValueError(concat("check: there is no file or folder ", path));
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
      if (entry.is_regular_file() && is_program_name(entry.path().extension().string()))
        found.push_back(entry.path().string());
    }
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

}  // namespace

int check(const Arguments& arguments) {
  const int jobs = std::max(1, arguments.integer("jobs", static_cast<int>(std::thread::hardware_concurrency())));
  std::vector<std::string> paths = arguments.words;
  const char* golden = std::getenv("CAPIBARA_GOLDEN");
  if (paths.empty()) {
    if (!golden || !std::filesystem::exists(golden)) {
      std::printf("no files to check: name a folder, or set CAPIBARA_GOLDEN to one%s\n0 passed, 0 failed, 0 skipped\n",
                  golden ? " that exists" : "");
      return 0;
    }
    paths.push_back(golden);
  }
  const std::vector<std::string> files = collect(paths);
  Config settings = config();
  settings.enable_x64 = true;
  settings.platform = arguments.text("backend", settings.platform);
  settings.default_matmul_precision = "highest";  // expected values assume full-precision matmuls
  backend(settings.platform);                     // an unknown name is an error before any file is read
  const bool self_test = arguments.has("self-test");

  std::vector<Verdict> verdicts(files.size());
  std::atomic<std::size_t> next{0};
  auto work = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) verdicts[i] = judge(files[i], settings, self_test);
  };
  std::vector<std::thread> workers;
  for (int i = 1; i < jobs; ++i) workers.emplace_back(work);
  work();
  for (std::thread& worker : workers) worker.join();

  std::size_t counts[3] = {};
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Verdict& verdict = verdicts[i];
    ++counts[static_cast<int>(verdict.kind)];
    // In a self-test every file is expected to fail.
    const bool expected = self_test ? verdict.kind == Verdict::Kind::failed : verdict.kind == Verdict::Kind::passed;
    if (expected && !arguments.has("verbose")) continue;
    const char* words[] = {"PASS", "FAIL", "SKIP"};
    std::printf("%s %s\n", words[static_cast<int>(verdict.kind)], files[i].c_str());
    for (const std::string& line : verdict.lines) std::printf("     %s\n", line.c_str());
  }
  if (self_test)
    std::printf("self-test: one expected element of each file was changed, so that every file must fail\n");
  std::printf("%zu passed, %zu failed, %zu skipped\n", counts[0], counts[1], counts[2]);
  return (self_test ? counts[0] : counts[1]) == 0 ? 0 : 1;
}

}  // namespace capibara::command
