// capibara launch: a front end to mpirun, mpiexec and srun, with the flags that the watch needs, labelled output lines,
// exit codes and restarts.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include <capibara/error.h>

#include "command.h"
#include "launch.h"
#include "launch_folder.h"
#include "launch_members.h"

namespace capibara::command {

namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr std::chrono::seconds kill_after(5);  // after mpirun received SIGTERM
constexpr int timeout_code = 124;              // as in timeout(1)

volatile std::sig_atomic_t caught = 0;
void catch_signal(int signal) { caught = signal; }

void say(const std::string& text) { std::fprintf(stderr, "capibara launch: %s\n", text.c_str()); }

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string found_program(const std::string& name) {
  std::string paths = variable("PATH") + ":";
  for (std::size_t end; (end = paths.find(':')) != std::string::npos; paths.erase(0, end + 1)) {
    const std::string path = paths.substr(0, end) + "/" + name;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return text;
  char block[512];
  while (std::fgets(block, sizeof block, pipe)) text += block;
  pclose(pipe);
  return text;
}

struct Group {
  int count = 0, devices = 0;
  std::string hosts;
  std::chrono::seconds limit{0};
  std::vector<std::string> program;
};

std::vector<std::string> open_mpi_flags(const Group& group, const std::string& folder) {
  std::vector<std::string> words = {
      "mpirun", "-n", std::to_string(group.count), "--oversubscribe", "--enable-recovery", "--bind-to", "none"};
  for (const char* name : {"orte_tmpdir_base", "btl_vader_backing_directory", "osc_sm_backing_directory"}) {
    words.insert(words.end(), {"--mca", name, folder});
  }
  words.insert(words.end(), {"--mca", "mpi_yield_when_idle", "1"});
  if (geteuid() == 0) {
    say("running as root: mpirun is started with --allow-run-as-root");
    words.push_back("--allow-run-as-root");
  }
  if (!group.hosts.empty()) words.insert(words.end(), {"--host", group.hosts});
  return words;
}

// The command that starts the group: srun inside a Slurm job, otherwise an installed mpirun or mpiexec.
std::vector<std::string> launcher(const Group& group, const std::string& folder) {
  const std::string count = std::to_string(group.count);
  if (!variable("SLURM_JOB_ID").empty() && !found_program("srun").empty()) {
    std::vector<std::string> words = {"srun", "-n", count, "--mpi=pmix", "--kill-on-bad-exit=0"};
    if (!group.hosts.empty()) words.insert(words.end(), {"-w", group.hosts});
    return words;
  }
  if (!found_program("mpirun").empty() && output_of("mpirun --version 2>&1").find("Open MPI") != std::string::npos) {
    return open_mpi_flags(group, folder);
  }
  if (!found_program("mpiexec").empty()) {
    std::vector<std::string> words = {"mpiexec", "-n", count, "-disable-auto-cleanup"};
    if (!group.hosts.empty()) words.insert(words.end(), {"-hosts", group.hosts});
    return words;
  }
  throw RuntimeError("neither mpirun, mpiexec nor srun was found\nHint: install openmpi-bin (./run does)");
}

void set_variables(const Group& group, int restart) {
  const auto cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  setenv("CAPIBARA_LAUNCH", "1", 1);
  setenv("CAPIBARA_RESTART", std::to_string(restart).c_str(), 1);
  setenv("CAPIBARA_NUM_THREADS", std::to_string(std::max(1, cores / group.count)).c_str(), 0);
  setenv("PYTHONUNBUFFERED", "1", 0);  // lines appear when they are printed
  if (group.devices > 0) setenv("JAX_NUM_CPU_DEVICES", std::to_string(group.devices).c_str(), 1);
}

struct Pipe {
  int descriptor;
  FILE* to;
  std::string rest;
  bool open = true;

  void pass(Members& members) {
    char block[8192];
    const ssize_t size = read(descriptor, block, sizeof block);
    if (size < 0 && errno == EINTR) return;
    if (size > 0) rest.append(block, static_cast<std::size_t>(size));
    for (std::size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1))
      members.take(rest.substr(0, end), to);
    if (size > 0) return;
    open = false;
    if (!rest.empty()) members.take(rest, to);
  }
};

class Run {
 public:
  Run(const std::vector<std::string>& words, const Group& group, int folder_lock)
      : group_(group), members_(group.count) {
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
      throw RuntimeError("no pipe for the output of the processes");
    child_ = fork();
    if (child_ < 0) throw RuntimeError(concat(words[0], " cannot be started: ", std::strerror(errno)));
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      fcntl(folder_lock, F_SETFD, 0);  // the folder is in use while mpirun is alive
      dup2(out[1], STDOUT_FILENO);
      dup2(err[1], STDERR_FILENO);
      execvp(words[0].c_str(), as_arguments(words).data());
      _exit(127);
    }
    close(out[1]);
    close(err[1]);
    pipes_[0] = {out[0], stdout, "", true};
    pipes_[1] = {err[0], stderr, "", true};
  }
  ~Run() {
    for (const Pipe& pipe : pipes_) close(pipe.descriptor);
  }
  Run(const Run&) = delete;

  int finish() {
    while (pipes_[0].open || pipes_[1].open) {
      look();
      pollfd waiting[2];
      for (int i = 0; i < 2; ++i) waiting[i] = {pipes_[i].open ? pipes_[i].descriptor : -1, POLLIN, 0};
      if (poll(waiting, 2, 100) <= 0) continue;
      for (int i = 0; i < 2; ++i) {
        if (waiting[i].revents) pipes_[i].pass(members_);
      }
    }
    int status = 0;
    while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    if (caught) return 128 + caught;
    if (reason_ == timeout_code) return timeout_code;
    if (const std::string failure = members_.failure(); !failure.empty()) say(failure);
    if (members_.code() != 0) return members_.code();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }
  bool was_stopped() const { return caught || reason_ == timeout_code; }

 private:
  void look() {
    const auto now = Clock::now();
    if (signalled_at_) {
      if (now - *signalled_at_ > kill_after) kill(child_, SIGKILL);
      return;
    }
    if (caught) return tell_to_end("stopped", 128 + caught);
    if (group_.limit.count() > 0 && now - started_ > group_.limit)
      return tell_to_end(concat("not over after ", group_.limit.count(), " s"), timeout_code);
    if (const auto deadline = members_.deadline(); deadline && now > *deadline) tell_to_end("a process has failed", 1);
  }
  void tell_to_end(const std::string& why, int reason) {
    say(concat(why, ": ending all processes"));
    reason_ = reason;
    signalled_at_ = Clock::now();
    members_.set_ending();
    kill(child_, SIGTERM);  // mpirun sends them SIGTERM, and SIGKILL a moment later
  }

  const Group& group_;
  Members members_;
  pid_t child_ = 0;
  Pipe pipes_[2];
  int reason_ = 0;
  const Clock::time_point started_ = Clock::now();
  std::optional<Clock::time_point> signalled_at_;
};

int run_group(const Group& group, int restart, bool& stopped) {
  const LaunchFolder folder;
  set_variables(group, restart);
  std::vector<std::string> words = launcher(group, folder.path());
  words.insert(words.end(), {own_path(), "launch", "--member", "--"});
  words.insert(words.end(), group.program.begin(), group.program.end());
  Run run(words, group, folder.lock());
  const int code = run.finish();
  stopped = run.was_stopped();
  return code;
}

}  // namespace

int launch(const Arguments& arguments) {
  if (arguments.words.empty()) throw UsageError{"the program is missing: capibara launch -n 4 -- PROGRAM ARGUMENTS"};
  if (arguments.has("member")) return run_member(arguments.words);
  const Group group{arguments.integer("n"), arguments.integer("devices", 0), arguments.text("hosts", ""),
                    std::chrono::seconds(arguments.integer("timeout", 0)), arguments.words};
  if (group.count < 1) throw UsageError{"-n needs a positive number"};
  if (arguments.has("collective-timeout"))
    setenv("CAPIBARA_COLLECTIVE_TIMEOUT", std::to_string(arguments.integer("collective-timeout", 0)).c_str(), 1);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, catch_signal);
  const int restarts = arguments.integer("restarts");
  for (int restart = 0;; ++restart) {
    bool stopped = false;
    const int code = run_group(group, restart, stopped);
    if (code == 0 || stopped || restart == restarts) return code;
    say(concat("restart ", restart + 1, " of ", restarts));
  }
}

}  // namespace capibara::command
