// Who may write to a training run's folder: one process at a time, and only to a folder that is empty or a run's.
#pragma once

#include <string>
#include <vector>

#include "core/runtime/private_folder.h"

namespace capibara::training {

// Whether a folder holds a run. ValueError where it is no folder, or holds something else; what a killed start has left
// counts as nothing.
bool holds_run(const std::string& folder);

// Holds run.lock of a folder, which names the process that holds it. The kernel gives it back when the process ends,
// however it ends.
class RunLock {
 public:
  // Makes the folder where it does not exist. ValueError where it holds something else than a run, or where another
  // process has it, which is named; then nothing was changed.
  explicit RunLock(const std::string& folder);
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  // Where the folder holds no run by now, removes what was made for one.
  ~RunLock();

 private:
  void take();
  void remove_made_folders() const;

  std::string folder_;
  std::vector<std::string> made_;  // folders, the outermost first
  Descriptor file_;
};

}  // namespace capibara::training
