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
#include <condition_variable>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include <capibara/error.h>

#include "core/runtime/private_folder.h"

namespace capibara {

// Ends the wait of the server's thread.
static void wake_up(const Descriptor& wake) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = ::write(wake.number(), &one, sizeof one);
}

// What was written and not taken by the server yet.
struct HttpReply::State {
  std::mutex mutex;  // protects the rest
  std::string pending;
  bool begun = false, ended = false, gone = false;
  std::shared_ptr<const Descriptor> wake;  // of the server, once it has the reply

  void notify() const {
    const uint64_t one = 1;
    if (wake) [[maybe_unused]]
      const ssize_t put = ::write(wake->number(), &one, sizeof one);
  }
};

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds head_time(2000), body_time(10000), write_time(5000), close_time(1000), pause_time(100);
constexpr Clock::time_point never = Clock::time_point::max();
constexpr std::size_t max_unsent = 4 << 20;  // of an answer that is written piece by piece
constexpr std::size_t max_read = 64 << 10;   // bytes read from a connection before the next one is served
constexpr std::size_t max_discarded = 4 << 20;

const char* reason_phrase(int status) {
  static constexpr std::pair<int, const char*> phrases[] = {{200, "OK"},
                                                            {400, "Bad Request"},
                                                            {401, "Unauthorized"},
                                                            {403, "Forbidden"},
                                                            {404, "Not Found"},
                                                            {405, "Method Not Allowed"},
                                                            {409, "Conflict"},
                                                            {411, "Length Required"},
                                                            {413, "Content Too Large"},
                                                            {415, "Unsupported Media Type"},
                                                            {429, "Too Many Requests"},
                                                            {431, "Request Header Fields Too Large"},
                                                            {500, "Internal Server Error"},
                                                            {503, "Service Unavailable"}};
  for (const auto& [code, phrase] : phrases) {
    if (code == status) return phrase;
  }
  return "Unknown";
}

// The head of an answer; without a length, the end of the connection ends its body.
std::string head_text(int status, const std::string& type, std::optional<std::size_t> length) {
  return concat("HTTP/1.1 ", status, " ", reason_phrase(status), "\r\nContent-Type: ", type,
                length ? concat("\r\nContent-Length: ", *length) : "",
                "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
                "Content-Security-Policy: frame-ancestors 'none'\r\nConnection: close\r\n\r\n");
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
  // Streaming: a reply is written by other threads. Writing: all of the answer is in `out`.
  enum Phase { reading, reading_body, working, streaming, writing, closing, done };

  Connection(Descriptor accepted, uint64_t own) : socket(std::move(accepted)), number(own) {}
  ~Connection() {
    if (!reply) return;
    const std::lock_guard lock(reply->mutex);
    reply->gone = true;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Descriptor socket;
  uint64_t number;
  Phase phase = reading;
  Clock::time_point deadline = Clock::now() + head_time;
  std::string in, out;  // in: the head; then the body
  HttpCall call;
  std::shared_ptr<HttpReply::State> reply;
  std::size_t sent = 0, discarded = 0;
  bool with_body = true;

  bool is_busy() const { return phase == working || phase == streaming || phase == writing; }

  short events() const {
    if (phase == streaming) return static_cast<short>(POLLIN | (sent < out.size() ? POLLOUT : 0));
    return phase == writing ? POLLOUT : phase == working ? 0 : POLLIN;
  }

  void answer(const HttpAnswer& given) {
    out = head_text(given.status, given.type, given.body.size());
    if (with_body) out += given.body;
    phase = writing;
    deadline = Clock::now() + write_time;
    send_more();
  }

  void stream(const std::shared_ptr<HttpReply::State>& given, std::shared_ptr<const Descriptor> wake) {
    reply = given;
    phase = streaming;
    deadline = never;
    {
      const std::lock_guard lock(reply->mutex);
      reply->wake = std::move(wake);
    }
    take_pieces();
  }

  // Sends what has been written to the reply since.
  void take_pieces() {
    out.erase(0, std::exchange(sent, 0));
    const bool was_empty = out.empty();
    {
      const std::lock_guard lock(reply->mutex);
      out += std::exchange(reply->pending, {});
      if (reply->ended) phase = writing;
    }
    if (out.size() > max_unsent) phase = done;  // the client does not read
    if (phase == done || (out.empty() && phase == streaming)) return;
    if (was_empty || phase == writing) deadline = Clock::now() + write_time;
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
    if (phase == streaming) {
      deadline = never;
      return;
    }
    // Drains what the peer still sends: closing now would discard data that it has not read yet.
    ::shutdown(socket.number(), SHUT_WR);
    phase = closing;
    deadline = Clock::now() + close_time;
  }

  // Passes what has arrived to `take`, up to max_read bytes, until that returns true; the peer may have disconnected.
  template <class Take>
  bool receive(const Take& take) {
    char block[4096];
    for (std::size_t taken = 0; taken < max_read;) {
      const ssize_t got = ::recv(socket.number(), block, sizeof block, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        if (got == 0 || errno != EAGAIN) phase = done;
        return false;
      }
      taken += static_cast<std::size_t>(got);
      if (take(std::string_view(block, static_cast<std::size_t>(got)))) return true;
    }
    return false;
  }

  // True if the head is complete or too long.
  bool read_head() {
    return receive([&](std::string_view piece) {
      const std::size_t before = in.size() < 3 ? 0 : in.size() - 3;
      in += piece;
      const std::size_t end = std::min(in.find("\r\n\r\n", before), in.find("\n\n", before));
      if (end == std::string::npos) return in.size() > HttpServer::max_head_bytes;
      call.body = in.substr(end + (in[end] == '\r' ? 4 : 2));
      in.resize(end);
      return true;
    });
  }

  // True if the body is complete.
  bool read_body() {
    const auto complete = [&] { return call.body.size() >= *call.content_length; };
    const auto append = [&](std::string_view piece) {
      call.body += piece;
      return complete();
    };
    if (!complete() && !receive(append)) return false;
    call.body.resize(*call.content_length);
    return true;
  }

  void discard() {
    const auto too_much = [&](std::string_view piece) { return (discarded += piece.size()) > max_discarded; };
    if (receive(too_much)) phase = done;
  }
};

}  // namespace

struct HttpServer::State {
  HttpHandler handler;
  Descriptor listener;
  std::shared_ptr<const Descriptor> wake = std::make_shared<Descriptor>(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  HttpServerOptions options;
  std::string address;
  int port = 0;
  std::optional<HostNames> hosts;
  std::list<Connection> connections;  // oldest first
  uint64_t accepted = 0;
  Clock::time_point accept_after{};
  std::thread serving, working;
  std::mutex mutex;  // protects what follows
  std::condition_variable changed;
  bool ending = false, draining = false, drained = false;
  std::vector<std::pair<uint64_t, HttpAnswer>> worked;  // connection numbers, and their answers

  void listen_on(const std::string& name, int wanted_port);
  void notify() { wake_up(*wake); }

  void respond(Connection& connection) {
    if (connection.in.size() > max_head_bytes)
      return connection.answer({431, "text/plain; charset=utf-8", "the head of the request is too long\n"});
    std::optional<HttpCall> call = parse_http_head(connection.in);
    if (!call || call->host.empty())
      return connection.answer({400, "text/plain; charset=utf-8", "expected a request of HTTP/1.1 with one Host\n"});
    connection.with_body = call->method != "HEAD";
    if (!hosts->has(call->host)) {
      return connection.answer({403, "text/plain; charset=utf-8",
                                concat("this server does not answer to the name of the request's Host; ask for its "
                                       "address, or name the host in ",
                                       options.hosts_hint, "\n")});
    }
    call->body = options.max_body_bytes == 0 ? "" : std::move(connection.call.body);
    connection.call = std::move(*call);
    if (options.max_body_bytes == 0) return pass_on(connection);
    if (connection.call.unknown_length)
      return connection.answer({411, "text/plain; charset=utf-8", "expected a body with a Content-Length\n"});
    const std::size_t length = connection.call.content_length.value_or(0);
    if (length > options.max_body_bytes) {
      return connection.answer(
          {413, "text/plain; charset=utf-8",
           concat("the body has ", length, " bytes; expected at most ", options.max_body_bytes, "\n")});
    }
    connection.call.content_length = length;
    connection.phase = Connection::reading_body;
    connection.deadline = Clock::now() + body_time;
    advance(connection);
  }

  // Calls the handler with a complete request.
  void pass_on(Connection& connection) {
    HttpAnswer answer = guarded([&] { return handler(connection.call); });
    connection.call.body.clear();
    if (answer.reply) return connection.stream(answer.reply->state(), wake);
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
      case Connection::reading_body:
        if (connection.read_body()) pass_on(connection);
        return;
      case Connection::streaming:
        connection.discard();  // a client that leaves ends the reply
        if (connection.phase == Connection::streaming) connection.send_more();
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
      if (connections.size() >= max_connections) continue;  // all are busy: the new one is closed
      advance(connections.emplace_back(std::move(socket), ++accepted));
    }
  }

  void close_oldest() {
    const auto oldest = std::find_if(connections.begin(), connections.end(), [](const Connection& one) {
      return one.phase != Connection::working && one.phase != Connection::streaming;
    });
    if (oldest != connections.end()) connections.erase(oldest);
  }

  bool take_messages() {  // returns whether to continue
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake->number(), &count, sizeof count);
    std::vector<std::pair<uint64_t, HttpAnswer>> made;
    {
      const std::lock_guard lock(mutex);
      if (ending) return false;
      made = std::exchange(worked, {});
    }
    for (Connection& one : connections) {
      if (one.phase == Connection::streaming) one.take_pieces();
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
      waiting.assign({{wake->number(), POLLIN, 0}, {accept_after > now ? -1 : listener.number(), POLLIN, 0}});
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
      const std::lock_guard lock(mutex);
      drained = draining && std::none_of(connections.begin(), connections.end(),
                                         [](const Connection& one) { return one.is_busy(); });
      if (draining) {
        listener = Descriptor();
        changed.notify_all();
      }
    }
  }
};

void HttpServer::State::listen_on(const std::string& name, int wanted_port) {
  const auto refuse = [&](const char* why) {
    throw RuntimeError(concat(options.what, ": cannot listen on ", name, ":", wanted_port, " (", why,
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
  if (!listener || !*wake) refuse(std::strerror(error));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  char host[NI_MAXHOST] = "", service[NI_MAXSERV] = "";
  ::getsockname(listener.number(), reinterpret_cast<sockaddr*>(&own), &size);
  ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, host, sizeof host, service, sizeof service,
                NI_NUMERICHOST | NI_NUMERICSERV);
  address = host;
  port = std::atoi(service);
}

HttpReply::HttpReply() : state_(std::make_shared<State>()) {}

void HttpReply::send(const HttpAnswer& answer) {
  const std::lock_guard lock(state_->mutex);
  state_->pending += head_text(answer.status, answer.type, answer.body.size()) + answer.body;
  state_->begun = state_->ended = true;
  state_->notify();
}

void HttpReply::begin(const std::string& type) {
  const std::lock_guard lock(state_->mutex);
  state_->pending += head_text(200, type, std::nullopt);
  state_->begun = true;
  state_->notify();
}

void HttpReply::write(std::string_view text) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->gone) state_->pending += text;
  state_->notify();
}

void HttpReply::end() {
  const std::lock_guard lock(state_->mutex);
  state_->ended = true;
  state_->notify();
}

bool HttpReply::begun() const {
  const std::lock_guard lock(state_->mutex);
  return state_->begun;
}

bool HttpReply::gone() const {
  const std::lock_guard lock(state_->mutex);
  return state_->gone;
}

HttpServer::HttpServer(const std::string& address, int port, HttpServerOptions options)
    : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  state_->listen_on(address, port);
  std::vector<std::string> hosts = state_->options.hosts;
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

void HttpServer::drain(int milliseconds) {
  std::unique_lock lock(state_->mutex);
  state_->draining = true;
  state_->notify();
  state_->changed.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] { return state_->drained; });
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
