// Reports twice a second, and describes from the roll who is missing.
#include "core/processes/watch.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include <capibara/error.h>

#include "core/processes/launch_report.h"
#include "core/runtime/warning.h"

namespace capibara::processes {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds period(500);
constexpr std::chrono::milliseconds time_to_read = 4 * period;
constexpr char separator = '\x1f';

std::string own_host() {
  char name[256] = "unknown host";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string in_parentheses(const std::string& text) { return text.empty() ? "" : concat(" (", text, ")"); }

bool in_group(const Call& call, int process) {
  return call.group.empty() || std::find(call.group.begin(), call.group.end(), process) != call.group.end();
}

}  // namespace

std::string encode_report(const Report& report) {
  const std::string calls = std::to_string(report.calls);
  std::string text;
  for (const std::string* field : {&report.host, &report.pid, &calls, &report.operation, &report.line, &report.waiting,
                                   &report.where, &report.ending, &report.failure}) {
    text += *field;
    text += separator;
  }
  return text;
}

Report decode_report(const std::string& text) {
  std::vector<std::string> fields(1);
  for (const char c : text) {
    if (c == separator)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  fields.resize(9);
  Report report{fields[0], fields[1], 0, fields[3], fields[4], fields[5], fields[6], fields[7], fields[8]};
  std::from_chars(fields[2].data(), fields[2].data() + fields[2].size(), report.calls);
  return report;
}

Watch::Watch(std::unique_ptr<Heartbeat> heartbeat, int process_id, int process_count, const WatchOptions& options)
    : heartbeat_(std::move(heartbeat)), process_id_(process_id), process_count_(process_count), options_(options) {
  own_.host = own_host();
  own_.pid = std::to_string(getpid());
  beat_once(false);
  thread_ = std::thread([this] { run(); });
}

Watch::~Watch() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Watch::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, period, [&] { return ending_ || left_; })) {
    lock.unlock();
    beat_once(false);
    lock.lock();
  }
}

bool Watch::beat_once(bool leaving) {
  std::lock_guard talk(talking_);
  std::string text;
  {
    std::lock_guard lock(mutex_);
    if (left_ && !leaving) return true;
    text = encode_report(own_);
  }
  const auto roll = leaving ? heartbeat_->leave(text) : heartbeat_->beat(text);
  {
    std::lock_guard lock(mutex_);
    if (roll) members_ = *roll;
  }
  if (!roll && !leaving) {
    fail(concat(name_of(0), ", which coordinates the others, died or is silent for ", options_.heartbeat_seconds, " s",
                who_waits({0})),
         0);
  } else {
    look_for_dead();
  }
  return roll.has_value();
}

// Finds processes that died, are silent for too long, or have found one that did.
void Watch::look_for_dead() {
  std::vector<MemberState> members;
  {
    std::lock_guard lock(mutex_);
    members = members_;
  }
  for (const MemberState& member : members) {
    if (member.state == MemberState::dead)
      return fail(concat(describe(member), " died", who_waits({member.process})), member.process);
  }
  for (const MemberState& member : members) {
    const std::string found = decode_report(member.status).failure;
    if (member.process != process_id_ && !found.empty()) return fail(found);
  }
  for (const MemberState& member : members) {
    if (member.state == MemberState::alive && member.silent_ms > int64_t{1000} * options_.heartbeat_seconds) {
      return fail(concat(describe(member), " has been silent for ", member.silent_ms / 1000,
                         " s (stopped, or its network is lost)", who_waits({member.process})),
                  member.process);
    }
  }
}

uint64_t Watch::begin(const Call& call) {
  std::lock_guard lock(mutex_);
  own_.operation = call.operation;
  own_.line = call.line;
  own_.waiting = "1";
  since_ = Clock::now();
  warned_ = false;
  return ++own_.calls;
}

void Watch::end(uint64_t number) {
  std::lock_guard lock(mutex_);
  if (number == own_.calls) own_.waiting.clear();
}

std::optional<std::string> Watch::failure() {
  if (!failed_) return std::nullopt;
  std::lock_guard lock(mutex_);
  return failure_;
}

void Watch::fail(const std::string& text, int process) {
  std::lock_guard lock(mutex_);
  if (failed_) return;
  failure_ = own_.failure = text;
  failed_ = true;
  report_blame(process);
}

// The processes that have not arrived at a call, described in words.
struct Watch::Missing {
  std::string text;
  std::vector<int> processes;

  void add(int process, const std::string& sentence) {
    text += concat(text.empty() ? "" : "; ", sentence);
    processes.push_back(process);
  }
};

// Those that will never arrive, if any; else those that have not arrived yet.
Watch::Missing Watch::missing_from(uint64_t number, const Call& call, bool& hopeless) const {
  std::lock_guard lock(mutex_);
  Missing late, never;
  for (const MemberState& member : members_) {
    const Report report = decode_report(member.status);
    if (!in_group(call, member.process) || member.process == process_id_ || report.calls > number) continue;
    const std::string name = describe(member);
    if (report.calls == number) {
      if (report.operation == call.operation) continue;
      never.add(member.process, concat(name, " is in ", report.operation, in_parentheses(report.line)));
    } else if (member.state == MemberState::left) {
      never.add(member.process, concat(name, " has ended", report.ending.empty() ? "" : " with ", report.ending));
    } else {
      late.add(member.process, concat(name, " has not come", report.where.empty() ? "" : ", it is at ", report.where));
    }
  }
  hopeless = !never.text.empty();
  return hopeless ? never : late;
}

void Watch::examine(uint64_t number, const Call& call) {
  if (failed_) return;
  bool hopeless = false;
  const Missing missing = missing_from(number, call, hopeless);
  if (missing.text.empty()) return;
  std::string text = missing.text + who_waits(missing.processes);
  if (hopeless) return fail(text, missing.processes.front());
  std::unique_lock lock(mutex_);
  const double seconds = std::chrono::duration<double>(Clock::now() - since_).count();
  text = concat("after ", static_cast<int64_t>(seconds), " s: ", text);
  const bool warns = seconds > options_.warning_seconds && !warned_;
  warned_ |= warns;
  lock.unlock();
  if (options_.collective_seconds > 0 && seconds > options_.collective_seconds)
    fail(text, missing.processes.front());
  else if (warns)
    warn(text, WarningKind::runtime);
}

std::string Watch::last_call_of(int process) {
  std::this_thread::sleep_for(3 * period);
  std::lock_guard lock(mutex_);
  for (const MemberState& member : members_) {
    if (member.process != process) continue;
    const Report report = decode_report(member.status);
    return report.operation + in_parentheses(report.line);
  }
  return "something else";
}

void Watch::set_where(const std::string& where) {
  std::lock_guard lock(mutex_);
  own_.where = where;
}

void Watch::set_ending(const std::string& ending) {
  std::lock_guard lock(mutex_);
  own_.ending = ending;
  report_failure();
}

bool Watch::ends_by_failure() const {
  std::lock_guard lock(mutex_);
  return failed_ || !own_.ending.empty();
}

bool Watch::leave(int timeout_seconds) {
  bool orderly = true;  // else the others will not get to the end: they have time to read why, and no more
  {
    std::lock_guard lock(mutex_);
    left_ = true;
    own_.waiting.clear();
    orderly = own_.ending.empty();
    changed_.notify_all();
  }
  const auto patience = orderly ? std::chrono::milliseconds(std::chrono::seconds(timeout_seconds)) : time_to_read;
  const Clock::time_point end = Clock::now() + patience;
  while (beat_once(true) && !failed_) {
    if (everybody_left()) return true;
    if (Clock::now() >= end) return !orderly;
    std::this_thread::sleep_for(period / 5);
  }
  // Process 0 serves the roll that the others must read, including those that have left: they wait for all to leave.
  const Clock::time_point begin = Clock::now();
  while (process_id_ == 0 && failed_ && Clock::now() < begin + time_to_read && beat_once(true) && !all_have_read(begin))
    std::this_thread::sleep_for(period / 5);
  return true;
}

bool Watch::all_have_read(Clock::time_point since) const {
  const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - since).count();
  std::lock_guard lock(mutex_);
  return std::all_of(members_.begin(), members_.end(), [&](const MemberState& member) {
    const bool knows = !decode_report(member.status).failure.empty();
    return member.process == process_id_ || member.state == MemberState::dead || knows || member.silent_ms < elapsed;
  });
}

bool Watch::everybody_left() const {
  std::lock_guard lock(mutex_);
  return std::all_of(members_.begin(), members_.end(),
                     [](const MemberState& member) { return member.state != MemberState::alive; });
}

std::string Watch::describe(const MemberState& member) const {
  const Report report = decode_report(member.status);
  return concat("process ", member.process, " (", report.host, ", pid ", report.pid, ")");
}

std::string Watch::name_of(int process) {
  std::lock_guard lock(mutex_);
  for (const MemberState& member : members_) {
    if (member.process == process) return describe(member);
  }
  return concat("process ", process);
}

// " while 3 others wait in psum over 'data' (train.py:41)"; the call is this process's, or a waiting one's.
std::string Watch::who_waits(const std::vector<int>& besides) const {
  std::lock_guard lock(mutex_);
  auto is_besides = [&](int process) { return std::find(besides.begin(), besides.end(), process) != besides.end(); };
  int waiting = 0;
  Report one = own_;
  for (const MemberState& member : members_) {
    if (member.process == process_id_ || is_besides(member.process) || member.state != MemberState::alive) continue;
    const Report report = decode_report(member.status);
    waiting += !report.waiting.empty();
    if (one.waiting.empty() && !report.waiting.empty()) one = report;
  }
  waiting += !own_.waiting.empty() && !is_besides(process_id_);
  if (waiting == 0) return "";
  return concat(" while ", waiting, waiting == 1 ? " other waits in " : " others wait in ", one.operation,
                in_parentheses(one.line));
}

}  // namespace capibara::processes
