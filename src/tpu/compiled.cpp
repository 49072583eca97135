// Compiles with libtpu in a child process, as it may crash, hang or take minutes, and reads the files that it dumps.
#include "tpu/compiled.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <thread>
#include <vector>

#include <capibara/error.h>

#include "backends/pjrt/backend.h"
#include "tpu/dump.h"

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

// Modules that libtpu extracts from the program are dumped next to it.
std::string file_with(const std::string& folder, const char* ending) {
  for (const std::string& name : files_of(folder)) {
    const bool extracted = name.find(".extracted.") != std::string::npos;
    if (!extracted && name.size() > std::string(ending).size() && name.ends_with(ending)) return folder + "/" + name;
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
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);  // libtpu creates folders in it
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path;
};

// The last line that reports an error, without the stack traces that libtpu prints.
std::string failure_of(const std::string& text) {
  std::istringstream lines(text);
  std::string best;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("libtpu multi-process lockfile") != std::string::npos)
      return "another process holds libtpu's lock: wait for it, or set ALLOW_MULTIPLE_LIBTPU_LOAD=true";
    for (const char* mark :
         {"RESOURCE_EXHAUSTED", "INVALID_ARGUMENT", "ABORTED", "capibara compile:", "ERROR:", "UNIMPLEMENTED"}) {
      if (line.find(mark) != std::string::npos) best = line;
    }
  }
  return best.substr(0, 400);
}

// The GiB that a program would need according to the compiler, from "(32.92G) exceeds available HBM".
double refused_gib(const std::string& text) {
  const std::size_t end = text.find("G) exceeds available HBM");
  const std::size_t open = end == std::string::npos ? end : text.rfind('(', end);
  return open == std::string::npos ? 0 : std::strtod(text.c_str() + open + 1, nullptr);
}

volatile std::sig_atomic_t stop_signal = 0;
void note_signal(int number) { stop_signal = number; }

// During its lifetime, Ctrl-C and termination signals are recorded, so that the child and its folder are removed first.
class Interruption {
 public:
  Interruption() {
    stop_signal = 0;
    struct sigaction action = {};
    action.sa_handler = note_signal;
    for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &action, &before_[i]);
  }
  ~Interruption() {
    for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  static bool requested() { return stop_signal != 0; }

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[3] = {};
};

// True if a file appears to be complete: it ends with a closing brace or a newline.
bool is_complete(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  if (size < 2) return false;
  file.seekg(size - 2);
  char last[2] = {};
  file.read(last, 2);
  return last[0] == '}' || last[1] == '}' || last[1] == '\n';
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

CompiledProgram compile_in_child(const CompileRequest& request) {
  CompiledProgram report;
  report.problem = libtpu_problem();
  if (!report.problem.empty()) return report;
  const Interruption interruption;
  const Folder folder;
  const std::string program = folder.path + "/program.mlir", log = folder.path + "/log.txt";
  if (!(std::ofstream(program) << request.text)) {
    report.problem = concat("the program cannot be written to ", folder.path);
    return report;
  }
  std::string options = concat("xla_dump_to=", folder.path, " xla_dump_hlo_as_text=True");
  for (const auto& [name, value] : request.options) options += concat(" ", name, "=", value);
  std::string config = request.config.empty() || request.config == "default"
                           ? ""
                           : concat("--options=chip_config_name=", request.config);
  if (request.slices > 1) config += concat(config.empty() ? "--options=" : ",", "num_slices=", request.slices);
  std::string topology = concat("--topology=", request.topology);
  std::string command = request.command, verb = "compile", path = program;
  std::vector<char*> words;
  for (std::string* word : {&command, &verb, &path, &topology, &config}) {
    if (!word->empty()) words.push_back(word->data());
  }
  words.push_back(nullptr);
  const auto start = std::chrono::steady_clock::now();
  auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const pid_t parent = getpid(), child = fork();
  if (child < 0) throw RuntimeError("plan: no process can be started to compile in");
  if (child == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // in case this process is killed
    if (getppid() != parent) _exit(127);
    const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(out, 1);
    dup2(out, 2);
    setenv("CAPIBARA_XLA_OPTIONS", options.c_str(), 1);
    execv(words[0], words.data());
    _exit(127);
  }
  int status = 0;
  bool killed = false;
  auto end_child = [&] {
    kill(-child, SIGKILL);
    kill(child, SIGKILL);  // in case it has no group of its own yet
    waitpid(child, &status, 0);
    killed = true;
  };
  while (waitpid(child, &status, WNOHANG) == 0) {
    const std::string last =
        request.only_memory ? file_with(folder.path, "after_optimizations_after_buffer_assignment.txt") : std::string();
    const bool enough = !last.empty() && is_complete(last);
    if (enough || Interruption::requested() || elapsed() > request.seconds) {
      end_child();
      report.interrupted = !enough && Interruption::requested();
      if (report.interrupted)
        report.problem = "interrupted";
      else if (!enough)
        report.problem = concat("the compiler was ended after ", request.seconds, " s");
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  report.seconds = elapsed();
  const std::string said = read_file(log);
  report.fits = said.find("CompileTimeHbmOom") == std::string::npos;
  const bool failed = !killed && (!WIFEXITED(status) || WEXITSTATUS(status) != 0) && report.fits;
  if (report.problem.empty() && failed) {
    const std::string why = failure_of(said);
    const int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    report.problem = number == SIGKILL ? "the compiler was killed (signal 9), perhaps for lack of memory"
                     : number != 0     ? concat("the compiler crashed: signal ", number, ", ", strsignal(number))
                     : WEXITSTATUS(status) == 127 ? concat("the compiler cannot be started: ", request.command)
                     : why.empty() ? concat("the compiler failed without a word (status ", WEXITSTATUS(status), ")")
                                   : why;
  }
  report.done = report.problem.empty();
  if (!report.done) return report;
  auto dumped = [&](const char* ending) {
    const std::string found = file_with(folder.path, ending);
    return found.empty() ? std::string() : read_file(found);
  };
  std::string scheduled = dumped("after_optimizations_after_buffer_assignment.txt");
  if (scheduled.empty()) scheduled = dumped("oom_intermediate_module.txt");
  report.memory = read_buffers(dumped("-buffer-assignment.txt"), dumped("-live-range.txt"), scheduled);
  report.collectives = read_collectives(scheduled);
  if (const double requested = refused_gib(said); !report.fits && requested > 0) report.memory.total_gib = requested;
  if (!request.only_memory) report.cycles = read_cycles(dumped("after_codegen.txt"));
  return report;
}

CompiledProgram compile_program(const std::string& text, const Slice& slice, const CompileChoices& choices) {
  CompileRequest request;
  request.command = choices.command;
  request.text = text;
  request.topology = slice.topology();
  request.slices = slice.slices;
  request.config = slice.chip->config;
  request.options = choices.flags;
  request.only_memory = !choices.cycles;
  request.seconds = choices.seconds;
  return compile_in_child(request);
}

CompiledProgram compile_step(const Training& training, const CompileChoices& choices) {
  CompiledProgram report;
  report.problem = libtpu_problem();
  if (!report.problem.empty()) return report;
  try {
    return compile_program(step_stablehlo(training), training.slice, choices);
  } catch (const Error& error) {
    report.problem = error.what();
  }
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
  if (m.large_vmem) request.options["xla_tpu_scoped_vmem_limit_kib"] = std::to_string(large_vmem_kib(chip));
  const CompiledProgram report = compile_in_child(request);
  if (!report.done || report.cycles.total <= 0) {
    *problem = report.problem.empty() ? "the compiler gave no cycles" : report.problem;
    return 0;
  }
  mkdir(folder.substr(0, folder.rfind('/')).c_str(), 0777);
  mkdir(folder.c_str(), 0777);
  std::ofstream(folder + "/" + name) << report.cycles.total << "\n";
  return report.cycles.total / (chip.clock_ghz * 1e9);
}

}  // namespace capibara::tpu
