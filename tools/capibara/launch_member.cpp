// One process of a launched group, between mpirun and the program: marks lines, reports the exit code, leaves no
// processes behind.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include <capibara/error.h>

#include "core/processes/launch_environment.h"
#include "core/processes/launch_report.h"
#include "launch.h"

namespace capibara::command {

namespace {

pid_t program_id = 0;
constexpr unsigned seconds_to_end = 10;  // for the program to exit, after a terminating signal

void pass_on(int signal) {
  if (program_id <= 0) return;
  kill(program_id, signal);
  alarm(seconds_to_end);
}

void end_program(int) {
  if (program_id > 0) kill(program_id, SIGKILL);
}

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void write_all(int descriptor, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t sent = write(descriptor, text.data() + done, text.size() - done);
    if (sent > 0)
      done += static_cast<std::size_t>(sent);
    else if (errno != EINTR && errno != EAGAIN)
      return;
  }
}

// One output stream of the program: forwards complete lines, each with the mark.
struct Stream {
  int from, to;
  std::string mark, rest;

  bool pass() {
    char block[4096];
    const ssize_t size = read(from, block, sizeof block);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (size > 0) rest.append(block, static_cast<std::size_t>(size));
    for (std::size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1))
      write_all(to, mark + rest.substr(0, end + 1));
    if (size <= 0 && !rest.empty()) write_all(to, mark + rest + '\n');
    return size > 0;
  }
};

[[noreturn]] void become(const std::vector<std::string>& program, int out, int err, int report) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == 1) _exit(1);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  fcntl(report, F_SETFD, 0);
  setenv(processes::launch_report_variable, std::to_string(report).c_str(), 1);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) std::signal(signal, SIG_DFL);
  execvp(program[0].c_str(), as_arguments(program).data());
  std::perror(("capibara launch: " + program[0]).c_str());
  _exit(127);
}

void share_devices() {
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  const char* number = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  const char* count = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (list && number && count)
    setenv("CUDA_VISIBLE_DEVICES", own_share(list, std::atoi(number), std::atoi(count)).c_str(), 1);
}

// Waits for the program's exit and reports it once.
class Ending {
 public:
  Ending(std::string mark, Stream& reports) : mark_(std::move(mark)), reports_(reports) {}

  // True if it has exited; with `wait`, blocks until it has.
  bool look(bool wait) {
    if (code_) return true;
    int status = 0;
    pid_t found = 0;
    while ((found = waitpid(program_id, &status, wait ? 0 : WNOHANG)) < 0 && errno == EINTR) {
    }
    if (found != program_id) return false;
    program_id = 0;  // the pid may be reused from now on
    code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    reports_.pass();  // the program's own reports say why, so they come first
    write_all(STDERR_FILENO, concat(mark_, "exit ", now_ns(), " ", *code_, "\n"));
    return true;
  }
  int code() const { return code_.value_or(1); }

 private:
  std::string mark_;
  Stream& reports_;
  std::optional<int> code_;
};

// Runs until the program's output is closed, which its children may keep open after it has exited.
void pass_streams(Stream (&streams)[3], Ending& ending) {
  bool open[3] = {true, true, true};
  while (open[0] || open[1]) {
    pollfd waiting[3];
    for (int i = 0; i < 3; ++i) waiting[i] = {open[i] ? streams[i].from : -1, POLLIN, 0};
    const bool any = poll(waiting, 3, 100) > 0;
    for (int i = 2; any && i >= 0; --i) {
      if (open[i] && waiting[i].revents) open[i] = streams[i].pass();
    }
    ending.look(false);
  }
}

}  // namespace

std::string own_share(const std::string& list, int number, int count) {
  std::vector<std::string> all(1);
  for (const char c : list) {
    if (c == ',')
      all.emplace_back();
    else
      all.back() += c;
  }
  const std::size_t each = count > 0 ? all.size() / static_cast<std::size_t>(count) : 0;
  if (each == 0 || number < 0 || number >= count) return list;
  std::string share;
  for (std::size_t i = 0; i < each; ++i) share += (i ? "," : "") + all[static_cast<std::size_t>(number) * each + i];
  return share;
}

std::vector<char*> as_arguments(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

int run_member(const std::vector<std::string>& program) {
  const auto launched = processes::find_launch();
  const std::string number = std::to_string(launched ? launched->process_id : 0) + ' ';
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  share_devices();
  int out[2], err[2], report[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0 || pipe2(report, O_CLOEXEC) != 0)
    throw RuntimeError("no pipe for the output of the program");
  program_id = fork();
  if (program_id < 0) throw RuntimeError("the program cannot be started: no process can be made");
  if (program_id == 0) become(program, out[1], err[1], report[1]);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) std::signal(signal, pass_on);
  std::signal(SIGALRM, end_program);
  std::signal(SIGPIPE, SIG_IGN);
  for (const int end : {out[1], err[1], report[1]}) close(end);
  fcntl(report[0], F_SETFL, O_NONBLOCK);
  Stream streams[3] = {{out[0], STDOUT_FILENO, line_mark + number, ""},
                       {err[0], STDERR_FILENO, line_mark + number, ""},
                       {report[0], STDERR_FILENO, report_mark + number, ""}};
  Ending ending(report_mark + number, streams[2]);
  pass_streams(streams, ending);
  ending.look(true);
  return ending.code();
}

}  // namespace capibara::command
