// Write access to a training run's folder: one process at a time, and only to a folder that is empty or a run's.
#pragma once

#include <string>
#include <vector>

#include "core/runtime/private_folder.h"

namespace capibara::training {

// True if a folder holds a run. ValueError if it is not a folder, or holds something else; the files of a killed start
// are ignored.
bool holds_run(const std::string& folder);

// Holds run.lock of a folder, which names the process that holds it. The kernel releases it however the process
// ends.
class RunLock {
 public:
  // Creates the folder if it does not exist. ValueError if it holds something other than a run, or if another
  // process, which is named, holds the lock; then nothing is changed.
  explicit RunLock(const std::string& folder);
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  // If the folder holds no run by now, removes everything made for one.
  ~RunLock();

 private:
  void take();
  void remove_made_folders() const;

  std::string folder_;
  std::vector<std::string> made_;  // folders, outermost first
  Descriptor file_;
};

}  // namespace capibara::training
