// The checkpointer: which step is written when, by which process, and which steps are kept.
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/runtime/background.h"
#include "core/runtime/counters.h"
#include "core/runtime/warning.h"
#include "io/checkpoint/files.h"
#include "io/checkpoint/step.h"

namespace capibara {

namespace {

// A thread writes when nothing else needs the processor or the disk, until someone waits for it or it has taken long:
// a training that keeps every processor busy would leave it a few thousandths of one, and the step unsaved for minutes.
void set_idle(pid_t thread, bool idle) {
  const sched_param none{};
  ::sched_setscheduler(thread, idle ? SCHED_IDLE : SCHED_OTHER, &none);
#if defined(SYS_ioprio_set)
  constexpr int one_thread = 1, class_shift = 13, idle_class = 3;
  ::syscall(SYS_ioprio_set, one_thread, thread, idle ? idle_class << class_shift : 0);
#endif
}

std::atomic<int64_t> patience_ms{10'000};

bool has_step(const std::string& folder, int64_t step) {
  const Waiting waiting;
  return is_committed(step_folder(folder, step));
}

void count_save(const SaveJob& job, std::chrono::nanoseconds took) {
  uint64_t bytes = 0;
  for (const auto& [name, item] : job.items) {
    for (const HeldArray& array : item.arrays) bytes += array.buffer.size();
  }
  Counters::add(process_counters.checkpoints, 1);
  Counters::add(process_counters.checkpoint_bytes, bytes);
  Counters::add(process_counters.checkpoint_nanoseconds, static_cast<uint64_t>(took.count()));
}

}  // namespace

void set_checkpoint_patience(std::chrono::milliseconds patience) { patience_ms = patience.count(); }

struct Checkpointer::State {
  State(std::string path, CheckpointOptions given) : folder(std::move(path)), options(given) {}

  const std::string folder;
  const CheckpointOptions options;

  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::optional<SaveJob> job;  // for the thread to write
  bool writing = false, ending = false, looked_for_leftovers = false;
  std::exception_ptr error;         // of the last asynchronous save
  std::optional<EarlierStep> last;  // what this process saved last
  std::thread writer, watcher;
  pid_t writer_number = 0;
  int64_t saves = 0;
  mutable int waiting_threads = 0;

  void write(const SaveJob& one) {
    if (!std::exchange(looked_for_leftovers, true)) remove_leftovers(folder);
    if (options.link_unchanged && !last) find_earlier_step();
    const auto begun = std::chrono::steady_clock::now();
    EarlierStep written;
    try {
      written = write_step(folder, one, options, options.link_unchanged && last ? &*last : nullptr);
    } catch (...) {
      Counters::add(process_counters.checkpoint_failures, 1);
      throw;
    }
    count_save(one, std::chrono::steady_clock::now() - begun);
    last = std::move(written);
    if (options.max_to_keep == 0) return;
    std::vector<int64_t> steps = committed_steps(folder);
    // A folder with a number for a name may be another program's: only those with our manifest are removed.
    std::erase_if(steps, [&](int64_t step) { return step == one.step || !has_manifest(step_folder(folder, step)); });
    while (static_cast<int64_t>(steps.size()) >= options.max_to_keep && !steps.empty()) {
      remove_step(folder, steps.front());
      steps.erase(steps.begin());
    }
  }

  void find_earlier_step() {
    const std::vector<int64_t> steps = committed_steps(folder);
    if (steps.empty()) return;
    const std::string path = step_folder(folder, steps.back());
    try {
      if (has_manifest(path)) last = EarlierStep{path, read_manifest(path), {}};
    } catch (const Error&) {
      // A damaged earlier step must not prevent new saves.
    }
  }

  void work() {
    std::unique_lock lock(mutex);
    writer_number = ::gettid();
    while (true) {
      changed.wait(lock, [&] { return job || ending; });
      if (!job) return;
      {
        const SaveJob mine = *std::exchange(job, std::nullopt);
        writing = true;
        ++saves;
        changed.notify_all();
        set_idle(writer_number, waiting_threads == 0);
        lock.unlock();
        std::exception_ptr failure;
        try {
          write(mine);
        } catch (...) {
          failure = std::current_exception();
        }
        lock.lock();
        if (failure) error = failure;
      }  // releases the arrays
      writing = false;
      changed.notify_all();
    }
  }

  // Raises a save that has been written for long to the program's priority.
  void watch() {
    std::unique_lock lock(mutex);
    while (!ending) {
      changed.wait(lock, [&] { return writing || ending; });
      const int64_t watched = saves;
      const auto over = [&] { return !writing || saves != watched || ending; };
      if (changed.wait_for(lock, std::chrono::milliseconds(patience_ms), over)) continue;
      set_idle(writer_number, false);
      changed.wait(lock, over);
    }
  }

  void start_writer() {
    if (writer.joinable()) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // signals go to the threads of the program
    writer = std::thread([this] { work(); });
    try {
      watcher = std::thread([this] { watch(); });
    } catch (const std::system_error&) {
      // No thread is available: saves stay idle.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void wait_until_idle(std::unique_lock<std::mutex>& lock) const {
    if (!job && !writing) return;
    lock.unlock();
    const Waiting waiting;
    lock.lock();
    ++waiting_threads;
    if (writer_number != 0) set_idle(writer_number, false);
    changed.wait(lock, [&] { return !job && !writing; });
    --waiting_threads;
    lock.unlock();  // before the host language's lock is taken again
  }

  void wait_for_saves() const {
    std::unique_lock lock(mutex);
    wait_until_idle(lock);
  }

  void raise_error() {
    std::exception_ptr failure;
    {
      std::lock_guard lock(mutex);
      failure = std::exchange(error, nullptr);
    }
    if (failure) std::rethrow_exception(failure);
  }
};

Checkpointer::Checkpointer(std::string folder, CheckpointOptions options) {
  if (folder.empty()) throw ValueError("Checkpointer: expected the path of a folder, got an empty text");
  if (options.max_to_keep < 0)
    throw ValueError(concat("Checkpointer: max_to_keep is a number of steps, or 0 for all, got ", options.max_to_keep));
  if (options.chunk_bytes < 64)
    throw ValueError(concat("Checkpointer: chunk_bytes is at least 64, got ", options.chunk_bytes));
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (const std::size_t scheme = folder.find("://"); scheme != std::string::npos) {
    const std::string name = folder.substr(0, scheme);
    if (name != "file" && name != "gs")
      throw ValueError(concat("Checkpointer: '", folder, "': only folders, file:// and gs:// can hold checkpoints"));
    if (name == "file") folder.erase(0, scheme + 3);
  } else if (folder.starts_with("gs:/")) {
    throw ValueError(concat("Checkpointer: '", folder, "': expected gs://BUCKET/FOLDER; a pathlib.Path loses a slash"));
  }
  {
    const Waiting waiting;  // a store may be slow to answer
    make_folder_and_parents(folder);
  }
  state_ = std::make_unique<State>(std::move(folder), options);
}

Checkpointer::~Checkpointer() {
  if (!state_ || !state_->writer.joinable()) return;
  state_->wait_for_saves();
  {
    std::lock_guard lock(state_->mutex);
    state_->ending = true;
  }
  state_->changed.notify_all();
  state_->writer.join();
  if (state_->watcher.joinable()) state_->watcher.join();
}

void Checkpointer::save(int64_t step, CheckpointItems items, const std::string& metadata) {
  SaveJob job = make_save_job(step, std::move(items), metadata);
  state_->wait_for_saves();
  state_->raise_error();
  if (has_step(state_->folder, step)) {
    throw ValueError(concat("checkpoint save: step ", step, " is already in ", state_->folder,
                            "; remove it first, or save another step"));
  }
  if (!state_->options.async) {
    const Waiting waiting;
    return state_->write(job);
  }
  {
    std::lock_guard lock(state_->mutex);
    state_->start_writer();
    state_->job = std::move(job);
  }
  state_->changed.notify_all();
}

void Checkpointer::wait() {
  state_->wait_for_saves();
  state_->raise_error();
}

bool Checkpointer::saving() const {
  std::lock_guard lock(state_->mutex);
  return state_->job || state_->writing;
}

std::vector<int64_t> Checkpointer::steps() const {
  const Waiting waiting;
  return committed_steps(state_->folder);
}

std::optional<int64_t> Checkpointer::latest_step() const {
  const std::vector<int64_t> found = steps();
  return found.empty() ? std::nullopt : std::optional(found.back());
}

Checkpoint Checkpointer::restore(const RestoreOptions& options) const {
  state_->wait_for_saves();
  std::vector<int64_t> candidates = steps();
  auto listed = [&] {
    std::string text;
    for (const int64_t step : candidates) text += (text.empty() ? "" : ", ") + std::to_string(step);
    return text.empty() ? std::string("it holds none") : "it holds " + text;
  };
  if (candidates.empty()) throw CheckpointError(concat("checkpoint restore: no step is saved in ", state_->folder));
  if (options.step) {
    const auto it = std::find(candidates.begin(), candidates.end(), *options.step);
    if (it == candidates.end())
      throw CheckpointError(
          concat("checkpoint restore: step ", *options.step, " is not in ", state_->folder, "; ", listed()));
    candidates.erase(it + 1, candidates.end());
  }
  while (true) {
    const int64_t step = candidates.back();
    candidates.pop_back();
    try {
      const Waiting waiting;
      return read_step(state_->folder, step, options);
    } catch (const CorruptCheckpointError& error) {
      if (options.on_corruption == OnCorruption::error || candidates.empty()) throw;
      warn(concat("checkpoint restore: step ", step, " is damaged, taking step ", candidates.back(),
                  " instead: ", error.what()),
           WarningKind::runtime);
    }
  }
}

Arrays Checkpointer::read_parts(int64_t step, const std::vector<CheckpointPart>& parts) const {
  state_->wait_for_saves();
  if (!has_step(state_->folder, step))
    throw CheckpointError(concat("checkpoint restore: step ", step, " is not in ", state_->folder));
  const Waiting waiting;
  return read_step_parts(state_->folder, step, parts);
}

std::vector<CheckpointArrayInfo> Checkpointer::arrays(int64_t step) const {
  state_->wait_for_saves();
  const Waiting waiting;
  return step_arrays(state_->folder, step);
}

void Checkpointer::remove(int64_t step) {
  state_->wait_for_saves();
  if (!has_step(state_->folder, step))
    throw CheckpointError(concat("checkpoint remove: step ", step, " is not in ", state_->folder));
  {
    const Waiting waiting;
    remove_step(state_->folder, step);
  }
  if (state_->last && state_->last->folder == step_folder(state_->folder, step)) state_->last.reset();
}

const std::string& Checkpointer::folder() const { return state_->folder; }

}  // namespace capibara
