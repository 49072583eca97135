// Recorders of devices: started and stopped with the session, each independently.
#include "core/profile/devices.h"

#include <capibara/profile.h>

#include <exception>
#include <mutex>

namespace capibara::profile {

namespace {

struct Entry {
  std::unique_ptr<DeviceRecorder> recorder;
  bool running = false;
  std::string refusal;  // of this session
};

struct Devices {
  std::mutex mutex;
  std::vector<Entry> entries;
};

// Never freed: plugins stay until the very end.
Devices& devices() {
  static auto* const made = new Devices;
  return *made;
}

void start_one(Entry& entry) {
  entry.refusal.clear();
  try {
    entry.recorder->start();
    entry.running = true;
  } catch (const std::exception& error) {
    entry.refusal = error.what();
  }
}

}  // namespace

void add_device_recorder(std::unique_ptr<DeviceRecorder> recorder) {
  Devices& all = devices();
  std::lock_guard lock(all.mutex);
  all.entries.push_back({std::move(recorder)});
  if (active()) start_one(all.entries.back());
}

void start_device_recorders() {
  Devices& all = devices();
  std::lock_guard lock(all.mutex);
  for (Entry& entry : all.entries) {
    if (!entry.running) start_one(entry);
  }
}

void stop_device_recorders(Profile& profile) {
  Devices& all = devices();
  std::lock_guard lock(all.mutex);
  for (Entry& entry : all.entries) {
    if (entry.running) {
      entry.running = false;
      try {
        profile.device_spaces.push_back(entry.recorder->stop(profile.refusals));
      } catch (const std::exception& error) {
        entry.refusal = error.what();
      }
    }
    if (!entry.refusal.empty()) profile.refusals.push_back(std::move(entry.refusal));
    entry.refusal.clear();
  }
}

}  // namespace capibara::profile
