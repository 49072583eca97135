// A child process compiles with libtpu, which may crash, hang or take minutes; what it dumps is read from its folder.
#include "tpu/compiled.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>
#include <vector>

#include <capibara/error.h>

#include "backends/pjrt/backend.h"

namespace capibara::tpu {

namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> names;
  if (DIR* handle = opendir(folder.c_str())) {
    while (const dirent* entry = readdir(handle)) {
      if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    }
    closedir(handle);
  }
  return names;
}

std::string file_with(const std::string& folder, const char* ending) {
  for (const std::string& name : files_of(folder)) {
    if (name.size() > std::string(ending).size() && name.ends_with(ending)) return folder + "/" + name;
  }
  return "";
}

class Folder {
 public:
  Folder() {
    const char* parent = std::getenv("TMPDIR");
    std::string name = concat(parent ? parent : "/tmp", "/capibara-tpu-XXXXXX");
    if (!mkdtemp(name.data())) throw RuntimeError(concat("plan: no folder can be made in ", parent ? parent : "/tmp"));
    path = name;
  }
  ~Folder() {
    for (const std::string& name : files_of(path)) unlink((path + "/" + name).c_str());
    rmdir(path.c_str());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path;
};

// Bytes of all allocations in device memory but thread-local ones, from a buffer assignment's text.
double assigned_bytes(const std::string& text) {
  double bytes = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("allocation ", 0) != 0) continue;
    if (line.find("thread-local") != std::string::npos || line.find("color 0") == std::string::npos) {
      if (line.find("color") != std::string::npos || line.find("thread-local") != std::string::npos) continue;
    }
    const std::size_t size = line.find("size ");
    if (size != std::string::npos) bytes += std::strtod(line.c_str() + size + 5, nullptr);
  }
  return bytes;
}

double estimated_cycles(const std::string& text) {
  double cycles = 0;
  static const std::string key = "\"estimated_cycles\":\"";
  const std::size_t entry = text.find("\nENTRY");
  for (std::size_t at = text.find(key, entry == std::string::npos ? 0 : entry); at != std::string::npos;
       at = text.find(key, at + 1)) {
    cycles += std::strtod(text.c_str() + at + key.size(), nullptr);
  }
  return cycles;
}

// The last line that says what went wrong, without the stack traces that libtpu prints.
std::string failure_of(const std::string& text) {
  std::istringstream lines(text);
  std::string best;
  for (std::string line; std::getline(lines, line);) {
    for (const char* mark :
         {"RESOURCE_EXHAUSTED", "INVALID_ARGUMENT", "ABORTED", "capibara compile:", "ERROR:", "UNIMPLEMENTED"}) {
      if (line.find(mark) != std::string::npos) best = line;
    }
  }
  return best.substr(0, 400);
}

}  // namespace

std::string libtpu_problem() {
#if !defined(__x86_64__)
  return "libtpu exists for x86_64 alone: figures here are modelled";
#else
  for (const pjrt::Candidate& candidate : pjrt::search().found) {
    if (candidate.platform == "tpu") return "";
  }
  return "libtpu is not installed (pip install libtpu, or TPU_LIBRARY_PATH): figures here are modelled";
#endif
}

CompileReport compile_in_child(const CompileRequest& request) {
  CompileReport report;
  report.problem = libtpu_problem();
  if (!report.problem.empty()) return report;
  const Folder folder;
  const std::string program = folder.path + "/program.mlir", log = folder.path + "/log.txt";
  std::ofstream(program) << request.text;
  std::string options = concat("xla_dump_to=", folder.path, " xla_dump_hlo_as_text=True");
  for (const auto& [name, value] : request.options) options += concat(" ", name, "=", value);
  std::string config = request.config.empty() || request.config == "default"
                           ? ""
                           : concat("--options=chip_config_name=", request.config);
  std::string topology = concat("--topology=", request.topology);
  const auto start = std::chrono::steady_clock::now();
  auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const pid_t child = fork();
  if (child < 0) throw RuntimeError("plan: no process can be started to compile in");
  if (child == 0) {
    setpgid(0, 0);
    const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(out, 1);
    dup2(out, 2);
    setenv("CAPIBARA_XLA_OPTIONS", options.c_str(), 1);
    std::vector<char*> words;
    std::string command = request.command, verb = "compile", path = program;
    for (std::string* word : {&command, &verb, &path, &topology, &config}) {
      if (!word->empty()) words.push_back(word->data());
    }
    words.push_back(nullptr);
    execv(words[0], words.data());
    _exit(127);
  }
  int status = 0;
  bool ended = false, killed = false;
  while (!ended) {
    ended = waitpid(child, &status, WNOHANG) != 0;
    if (ended) break;
    const bool enough =
        request.only_memory && !file_with(folder.path, "after_optimizations_after_buffer_assignment.txt").empty();
    if (enough || elapsed() > request.seconds) {
      kill(-child, SIGKILL);
      waitpid(child, &status, 0);
      ended = killed = true;
      if (!enough) report.problem = concat("the compiler was ended after ", request.seconds, " s");
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
  }
  report.seconds = elapsed();
  const std::string said = read_file(log);
  report.fits = said.find("CompileTimeHbmOom") == std::string::npos;
  if (const std::string path = file_with(folder.path, "buffer-assignment.txt"); !path.empty())
    report.total_gib = assigned_bytes(read_file(path)) / 1073741824;
  if (const std::string path = file_with(folder.path, "after_codegen.txt"); !path.empty())
    report.cycles = estimated_cycles(read_file(path));
  const bool failed = !killed && (!WIFEXITED(status) || WEXITSTATUS(status) != 0) && report.fits;
  if (report.problem.empty() && failed) {
    const std::string why = failure_of(said);
    report.problem = WIFSIGNALED(status) ? concat("the compiler ended by signal ", WTERMSIG(status))
                     : why.empty()       ? "the compiler failed without a word"
                                         : why;
  }
  report.done = report.problem.empty();
  return report;
}

double compiled_matmul_seconds(const std::string& command, const Chip& chip, const Matmul& m, std::string* problem) {
  const char* home = std::getenv("CAPIBARA_TPU_CACHE");
  const char* user = std::getenv("HOME");
  const std::string folder = home ? home : concat(user ? user : "/tmp", "/.cache/capibara-tpu");
  const std::string name = concat("matmul-", chip.name, "-", m.batch, "x", m.rows, "x", m.columns, "x", m.inner,
                                  m.large_vmem ? "-large" : "", ".txt");
  if (std::ifstream known(folder + "/" + name); known) {
    double cycles = 0;
    if (known >> cycles && cycles > 0) return cycles / (chip.clock_ghz * 1e9);
  }
  const std::string left = concat("tensor<", m.rows, "x", m.inner, "xbf16>"),
                    right = concat("tensor<", m.inner, "x", m.columns, "xbf16>"),
                    result = concat("tensor<", m.rows, "x", m.columns, "xbf16>");
  CompileRequest request;
  request.command = command;
  request.text = concat("module @matmul {\n  func.func public @main(%0: ", left, ", %1: ", right, ") -> ", result,
                        " {\n    %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (", left, ", ",
                        right, ") -> ", result, "\n    return %2 : ", result, "\n  }\n}\n");
  request.topology = concat(chip.family, chip.dimensions == 3 ? ":2x2x1" : ":2x2");
  request.config = chip.config;
  request.only_memory = false;
  request.seconds = 300;
  if (m.large_vmem) {
    const std::string_view generation = chip.name;
    request.options["xla_tpu_scoped_vmem_limit_kib"] = generation == "v4"      ? "24576"
                                                       : generation == "v5p"   ? "49152"
                                                       : generation == "tpu7x" ? "61440"
                                                                               : "98304";
  }
  const CompileReport report = compile_in_child(request);
  if (!report.done || report.cycles <= 0) {
    *problem = report.problem.empty() ? "the compiler gave no cycles" : report.problem;
    return 0;
  }
  mkdir(folder.substr(0, folder.rfind('/')).c_str(), 0777);
  mkdir(folder.c_str(), 0777);
  std::ofstream(folder + "/" + name) << report.cycles << "\n";
  return report.cycles / (chip.clock_ghz * 1e9);
}

}  // namespace capibara::tpu
