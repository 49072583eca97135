// Connections are read, answered and closed as they become ready; each has a deadline, and their number is limited.
#include "operate/monitor/server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include <capibara/error.h>

#include "core/runtime/private_folder.h"

namespace capibara {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds head_time(2000), write_time(5000), close_time(1000), pause_time(100);
constexpr std::size_t max_read = 64 << 10;  // bytes read from a connection before the next one is served
constexpr std::size_t max_discarded = 4 << 20;

const char* reason_phrase(int status) {
  static constexpr std::pair<int, const char*> phrases[] = {{200, "OK"},
                                                            {400, "Bad Request"},
                                                            {403, "Forbidden"},
                                                            {404, "Not Found"},
                                                            {405, "Method Not Allowed"},
                                                            {409, "Conflict"},
                                                            {431, "Request Header Fields Too Large"},
                                                            {500, "Internal Server Error"}};
  for (const auto& [code, phrase] : phrases) {
    if (code == status) return phrase;
  }
  return "Unknown";
}

std::string answer_text(const HttpAnswer& answer, bool with_body) {
  return concat("HTTP/1.1 ", answer.status, " ", reason_phrase(answer.status), "\r\nContent-Type: ", answer.type,
                "\r\nContent-Length: ", answer.body.size(),
                "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
                "Content-Security-Policy: frame-ancestors 'none'\r\nConnection: close\r\n\r\n",
                with_body ? answer.body : "");
}

template <class Function>
HttpAnswer guarded(const Function& function) {
  try {
    return function();
  } catch (const std::exception& error) {
    return {500, "text/plain; charset=utf-8", error.what()};
  }
}

struct Connection {
  enum Phase { reading, working, writing, closing, done };

  Connection(Descriptor accepted, uint64_t own) : socket(std::move(accepted)), number(own) {}

  Descriptor socket;
  uint64_t number;
  Phase phase = reading;
  Clock::time_point deadline = Clock::now() + head_time;
  std::string in, out;
  std::size_t sent = 0, discarded = 0;
  bool with_body = true;

  short events() const { return phase == writing ? POLLOUT : phase == working ? 0 : POLLIN; }

  void answer(const HttpAnswer& given) {
    out = answer_text(given, with_body);
    phase = writing;
    deadline = Clock::now() + write_time;
    send_more();
  }

  void send_more() {
    while (sent < out.size()) {
      const ssize_t put = ::send(socket.number(), out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) {
        if (errno != EAGAIN) phase = done;
        return;
      }
      sent += static_cast<std::size_t>(put);
    }
    // Drains what the peer still sends: closing now would discard data that it has not read yet.
    ::shutdown(socket.number(), SHUT_WR);
    phase = closing;
    deadline = Clock::now() + close_time;
  }

  // True if the head is complete or too long; the peer may have disconnected.
  bool read_head() {
    char block[4096];
    for (std::size_t taken = 0; taken < max_read;) {
      const ssize_t got = ::recv(socket.number(), block, sizeof block, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        if (got == 0 || errno != EAGAIN) phase = done;
        return false;
      }
      taken += static_cast<std::size_t>(got);
      const std::size_t before = in.size() < 3 ? 0 : in.size() - 3;
      in.append(block, static_cast<std::size_t>(got));
      const std::size_t end = std::min(in.find("\r\n\r\n", before), in.find("\n\n", before));
      if (end != std::string::npos) in.resize(end);
      if (end != std::string::npos || in.size() > HttpServer::max_head_bytes) return true;
    }
    return false;
  }

  void discard() {
    char block[4096];
    for (std::size_t taken = 0; taken < max_read;) {
      const ssize_t got = ::recv(socket.number(), block, sizeof block, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got > 0) taken += static_cast<std::size_t>(got), discarded += static_cast<std::size_t>(got);
      if (got <= 0 || discarded > max_discarded) {
        phase = done;
        return;
      }
    }
  }
};

}  // namespace

struct HttpServer::State {
  HttpHandler handler;
  Descriptor listener, wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::string address;
  int port = 0;
  std::optional<HostNames> hosts;
  std::list<Connection> connections;  // oldest first
  uint64_t accepted = 0;
  Clock::time_point accept_after{};
  std::thread serving, working;
  std::mutex mutex;  // protects the two below
  bool ending = false;
  std::vector<std::pair<uint64_t, HttpAnswer>> worked;  // connection numbers, and their answers

  void listen_on(const std::string& name, int wanted_port);
  void notify() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t put = ::write(wake.number(), &one, sizeof one);
  }

  void respond(Connection& connection) {
    if (connection.in.size() > max_head_bytes)
      return connection.answer({431, "text/plain; charset=utf-8", "the head of the request is too long\n"});
    const std::optional<HttpCall> call = parse_http_head(connection.in);
    if (!call || call->host.empty())
      return connection.answer({400, "text/plain; charset=utf-8", "expected a request of HTTP/1.1 with one Host\n"});
    connection.with_body = call->method != "HEAD";
    if (!hosts->has(call->host)) {
      return connection.answer(
          {403, "text/plain; charset=utf-8",
           "this server does not answer to the name of the request's Host; ask for its address, or "
           "name the host in 'hosts' of the monitor or in CAPIBARA_MONITOR_HOSTS\n"});
    }
    HttpAnswer answer = guarded([&] { return handler(*call); });
    if (!answer.later) return connection.answer(answer);
    if (working.joinable()) working.join();  // the previous one has answered, or this one would not have been accepted
    connection.phase = Connection::working;
    working = std::thread([this, number = connection.number, later = std::move(answer.later)] {
      HttpAnswer made = guarded(later);
      const std::lock_guard lock(mutex);
      worked.emplace_back(number, std::move(made));
      notify();
    });
  }

  void advance(Connection& connection) {
    switch (connection.phase) {
      case Connection::reading:
        if (connection.read_head()) respond(connection);
        return;
      case Connection::writing:
        return connection.send_more();
      case Connection::closing:
        return connection.discard();
      default:
        return;
    }
  }

  void accept_all() {
    for (std::size_t i = 0; i < max_connections; ++i) {
      Descriptor socket(::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
          close_oldest();
          accept_after = Clock::now() + pause_time;
        }
        return;
      }
      if (connections.size() >= max_connections) close_oldest();
      advance(connections.emplace_back(std::move(socket), ++accepted));
    }
  }

  void close_oldest() {
    const auto oldest = std::find_if(connections.begin(), connections.end(),
                                     [](const Connection& one) { return one.phase != Connection::working; });
    if (oldest != connections.end()) connections.erase(oldest);
  }

  bool take_messages() {  // returns whether to continue
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake.number(), &count, sizeof count);
    std::vector<std::pair<uint64_t, HttpAnswer>> made;
    {
      const std::lock_guard lock(mutex);
      if (ending) return false;
      made = std::exchange(worked, {});
    }
    for (const auto& [number, answer] : made) {
      for (Connection& one : connections) {
        if (one.number == number) one.answer(answer);
      }
    }
    return true;
  }

  void serve() {
    std::vector<pollfd> waiting;
    while (true) {
      const Clock::time_point now = Clock::now();
      Clock::time_point next = now + std::chrono::hours(1);
      waiting.assign({{wake.number(), POLLIN, 0}, {accept_after > now ? -1 : listener.number(), POLLIN, 0}});
      if (accept_after > now) next = accept_after;
      for (const Connection& one : connections) {
        waiting.push_back({one.phase == Connection::working ? -1 : one.socket.number(), one.events(), 0});
        if (one.phase != Connection::working) next = std::min(next, one.deadline);
      }
      const auto pause = std::chrono::ceil<milliseconds>(std::max(next - now, Clock::duration(0)));
      ::poll(waiting.data(), waiting.size(), static_cast<int>(pause.count()));
      auto state = waiting.begin() + 2;
      for (Connection& one : connections) {
        if ((state++)->revents != 0) advance(one);
      }
      if (!take_messages()) return;
      if (waiting[1].revents != 0) accept_all();
      const Clock::time_point after = Clock::now();
      connections.remove_if([&](const Connection& one) {
        return one.phase == Connection::done || (one.phase != Connection::working && one.deadline <= after);
      });
    }
  }
};

void HttpServer::State::listen_on(const std::string& name, int wanted_port) {
  const auto refuse = [&](const char* why) {
    throw RuntimeError(concat("monitor: cannot listen on ", name, ":", wanted_port, " (", why,
                              "); choose another port, or 0 for a free one"));
  };
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int status =
      ::getaddrinfo(name.empty() ? nullptr : name.c_str(), std::to_string(wanted_port).c_str(), &hints, &found);
  if (status != 0) refuse(::gai_strerror(status));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, ::freeaddrinfo);
  int error = 0;
  for (const addrinfo* one = found; one && !listener; one = one->ai_next) {
    Descriptor socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (!socket || ::bind(socket.number(), one->ai_addr, one->ai_addrlen) != 0 ||
        ::listen(socket.number(), SOMAXCONN) != 0)
      error = errno;
    else
      listener = std::move(socket);
  }
  if (!listener || !wake) refuse(std::strerror(error));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  char host[NI_MAXHOST] = "", service[NI_MAXSERV] = "";
  ::getsockname(listener.number(), reinterpret_cast<sockaddr*>(&own), &size);
  ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, host, sizeof host, service, sizeof service,
                NI_NUMERICHOST | NI_NUMERICSERV);
  address = host;
  port = std::atoi(service);
}

HttpServer::HttpServer(const std::string& address, int port, std::vector<std::string> hosts)
    : state_(std::make_unique<State>()) {
  state_->listen_on(address, port);
  hosts.push_back(address);
  state_->hosts.emplace(state_->address, hosts);
}

void HttpServer::start(HttpHandler handler) {
  State& state = *state_;
  state.handler = std::move(handler);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are handled by the program's own threads
  state.serving = std::thread([&state] { state.serve(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

HttpServer::~HttpServer() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
  }
  state_->notify();
  if (state_->serving.joinable()) state_->serving.join();
  if (state_->working.joinable()) state_->working.join();
}

int HttpServer::port() const { return state_->port; }
std::string HttpServer::address() const { return state_->address; }

}  // namespace capibara
