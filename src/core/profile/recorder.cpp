// Sessions, the logs of threads, spans and steps.
#include "core/profile/recorder.h"

#include <capibara/error.h>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/profile/devices.h"
#include "core/profile/log.h"

namespace capibara::profile {

namespace detail {
constinit std::atomic<bool> recording{false};
}  // namespace detail

namespace {

constexpr int64_t max_records = 2'000'000;      // listed in one profile; marks of runs count, too
constexpr std::size_t max_listed_marks = 4096;  // of one run: calls beyond them are counted by site

struct Recorder {
  std::mutex mutex;  // of starting, stopping, and a thread's first record
  std::unique_ptr<Session> session;
  uint64_t sessions = 0;
  std::atomic<uint64_t> current{0};  // the session's number; 0: none
  std::atomic<int64_t> room{0}, dropped{0};
};

// Never freed: threads may record until the very end.
Recorder& recorder() {
  static Recorder* const made = [] {
    static Recorder* fresh = new Recorder;
    // A child of a fork records nothing: its threads, and whoever held the lock, are gone.
    pthread_atfork(nullptr, nullptr, [] {
      detail::recording.store(false);
      fresh->current.store(0);
    });
    return fresh;
  }();
  return *made;
}

struct Local {
  uint64_t session = 0;
  std::shared_ptr<ThreadLog> log;
  std::string name;
  int64_t step = -1, programs = 0;
  int inside = 0;
};
thread_local Local local;

Thread this_thread() {
  Thread thread{static_cast<int64_t>(syscall(SYS_gettid)), local.name};
  char name[64] = "";
  if (thread.name.empty() && pthread_getname_np(pthread_self(), name, sizeof name) == 0) thread.name = name;
  return thread;
}

// The log of this thread in the current session; null if there is none, or it is not the session named.
ThreadLog* log_of(uint64_t session) {
  Recorder& all = recorder();
  if (session == 0 || all.current.load(std::memory_order_acquire) != session) return nullptr;
  if (local.session != session) {
    std::lock_guard lock(all.mutex);
    if (!all.session || all.session->id != session) return nullptr;
    local.log = std::make_shared<ThreadLog>(this_thread());
    local.session = session;
    all.session->logs.push_back(local.log);
  }
  return local.log.get();
}

uint64_t current_session() { return active() ? recorder().current.load(std::memory_order_relaxed) : 0; }

void append(uint64_t session, Record record, int64_t count) {
  ThreadLog* log = log_of(session);
  if (!log) return;
  Recorder& all = recorder();
  if (all.room.fetch_sub(count, std::memory_order_relaxed) >= count) return log->append(std::move(record));
  all.dropped.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// ---- logs -------------------------------------------------------------------------------------------------------

ThreadLog::~ThreadLog() {
  for (Chunk* chunk = first_.next.load(); chunk;) {
    Chunk* next = chunk->next.load();
    delete chunk;
    chunk = next;
  }
}

void ThreadLog::append(Record record) {
  std::size_t count = last_->count.load(std::memory_order_relaxed);
  if (count == last_->records.size()) {
    auto fresh = std::make_unique<Chunk>();
    Chunk* next = fresh.release();
    last_->next.store(next, std::memory_order_release);
    last_ = next;
    count = 0;
  }
  last_->records[count] = std::move(record);
  last_->count.store(count + 1, std::memory_order_release);
}

// ---- sessions ---------------------------------------------------------------------------------------------------

void begin_session(std::vector<InitialBlock> blocks) {
  Recorder& all = recorder();
  std::unique_lock lock(all.mutex);
  if (all.session) throw RuntimeError("profile: a profile is being taken already; stop it first");
  all.session = std::make_unique<Session>();
  all.session->id = ++all.sessions;
  all.session->blocks = std::move(blocks);
  all.session->wall = std::chrono::system_clock::now().time_since_epoch().count();
  all.session->begin = now();
  all.room.store(max_records);
  all.dropped.store(0);
  all.current.store(all.session->id, std::memory_order_release);
  detail::recording.store(true, std::memory_order_release);
  lock.unlock();
  start_device_recorders();
}

Profile end_session() {
  Recorder& all = recorder();
  std::unique_ptr<Session> session;
  int64_t end = 0;
  {
    std::lock_guard lock(all.mutex);
    if (!all.session) throw RuntimeError("profile: no profile is being taken; start one first");
    detail::recording.store(false, std::memory_order_release);
    all.current.store(0, std::memory_order_release);
    end = now();
    session = std::move(all.session);
  }
  Profile profile = assemble(*session, end, all.dropped.load());
  stop_device_recorders(profile);
  if (local.session == session->id) local.session = 0, local.log = nullptr;
  return profile;
}

// ---- records ----------------------------------------------------------------------------------------------------

void record(Event event) {
  if (event.step < 0) event.step = local.step;
  append(current_session(), std::move(event), 1);
}

void record_memory(int64_t bytes, int64_t live, const void* address, std::string_view purpose) {
  MemorySample sample;
  sample.time = now();
  sample.bytes = bytes;
  sample.live = live;
  sample.address = reinterpret_cast<uint64_t>(address);
  sample.step = local.step;
  sample.purpose = purpose;
  append(current_session(), std::move(sample), 1);
}

void record_eager(int64_t begin, Slot site) {
  append(current_session(), Eager{begin, now(), local.step, std::make_unique<Slot>(std::move(site))}, 1);
}

void Timed::finish() {
  Event event;
  event.kind = kind_;
  event.start = begin_;
  event.duration = now() - begin_;
  event.name = name_;
  event.arguments = std::move(arguments_);
  record(std::move(event));
}

Run::Run(std::shared_ptr<const SiteTable> table, int64_t step)
    : table_(std::move(table)),
      step_(step),
      begin_(now()),
      session_(current_session()),
      max_listed_(recorder().room.load(std::memory_order_relaxed) > 0 ? max_listed_marks : 0) {
  listed_.reserve(std::min(table_->sites.size() + 1, max_listed_));
}

void Run::fold(int32_t site, int64_t time) {
  if (folded_.empty()) {
    folded_.resize(table_->sites.size() + 1);
    folded_from_ = time;
  } else {
    Sum& sum = folded_[static_cast<std::size_t>(last_.site)];
    ++sum.calls;
    sum.nanoseconds += time - last_.time;
  }
  last_ = {site, time};
}

void Run::finish() {
  const int64_t end = now();
  if (!folded_.empty()) fold(last_.site, end);
  const auto count = static_cast<int64_t>(listed_.size()) + 1;
  Record record{std::move(table_), step_, begin_, end, std::move(listed_), folded_from_, std::move(folded_)};
  append(session_, std::move(record), count);
}

Inside::Inside() { ++local.inside; }
Inside::~Inside() { --local.inside; }
bool inside() { return local.inside > 0; }

void note_program() { ++local.programs; }
int64_t programs_called() { return local.programs; }

std::shared_ptr<const SiteTable> WholeProgram::table(const std::string& name, const char* backend) {
  std::lock_guard lock(mutex_);
  if (!table_) {
    auto made = std::make_shared<SiteTable>();
    made->program = name;
    made->backend = backend;
    Slot& site = made->sites.emplace_back();
    site.name = name;
    site.kind = "program";
    site.text = concat("the whole program, on ", backend);
    table_ = std::move(made);
  }
  return table_;
}

// ---- spans ------------------------------------------------------------------------------------------------------

Span::Span(std::string_view name, std::vector<std::pair<std::string, std::string>> arguments)
    : Span(EventKind::span, name, std::move(arguments), -1) {}

Span::Span(EventKind kind, std::string_view name, std::vector<std::pair<std::string, std::string>> arguments,
           int64_t step)
    : outer_step_(local.step) {
  if (step >= 0) local.step = step;
  session_ = current_session();
  if (session_ == 0) return;
  event_.emplace();
  event_->kind = kind;
  event_->name = name;
  event_->arguments = std::move(arguments);
  event_->step = local.step;
  event_->start = now();
}

Span::~Span() {
  local.step = outer_step_;
  if (!event_) return;
  event_->duration = now() - event_->start;
  append(session_, std::move(*event_), 1);
}

void Span::argument(std::string_view name, std::string_view value) {
  if (event_) event_->arguments.emplace_back(name, value);
}

Step::Step(int64_t number, std::string_view name, std::vector<std::pair<std::string, std::string>> arguments)
    : Span(EventKind::step, name, std::move(arguments), number) {}

int64_t current_step() { return local.step; }

void name_thread(std::string_view name) { local.name = name; }

}  // namespace capibara::profile
