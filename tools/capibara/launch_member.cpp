// One process of a launched group, between mpirun and the program: marks lines, reports the exit code, leaves nothing
// behind.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <capibara/error.h>

#include "launch.h"
#include "processes/launch_environment.h"

namespace capibara::command {

namespace {

pid_t program_id = 0;

void pass_on(int signal) {
  if (program_id > 0) kill(program_id, signal);
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

// One stream of the program: whole lines go on, each with the mark.
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

[[noreturn]] void become(const std::vector<std::string>& program, int out, int err) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == 1) _exit(1);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
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

void pass_streams(Stream& out, Stream& err) {
  bool open[2] = {true, true};
  Stream* streams[2] = {&out, &err};
  while (open[0] || open[1]) {
    pollfd waiting[2] = {{open[0] ? out.from : -1, POLLIN, 0}, {open[1] ? err.from : -1, POLLIN, 0}};
    if (poll(waiting, 2, -1) < 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (open[i] && waiting[i].revents) open[i] = streams[i]->pass();
    }
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
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
    throw RuntimeError("no pipe for the output of the program");
  program_id = fork();
  if (program_id < 0) throw RuntimeError("the program cannot be started: no process can be made");
  if (program_id == 0) become(program, out[1], err[1]);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) std::signal(signal, pass_on);
  std::signal(SIGPIPE, SIG_IGN);
  close(out[1]);
  close(err[1]);
  Stream streams[2] = {{out[0], STDOUT_FILENO, line_mark + number, ""},
                       {err[0], STDERR_FILENO, line_mark + number, ""}};
  pass_streams(streams[0], streams[1]);
  int status = 0;
  while (waitpid(program_id, &status, 0) < 0 && errno == EINTR) {
  }
  const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  write_all(STDERR_FILENO, exit_mark + number + std::to_string(code) + '\n');
  return code;
}

}  // namespace capibara::command
