// The folder of a launch, for what MPI keeps in files and shared memory.
#pragma once

#include <string>

namespace capibara::command {

// Made at the start, locked while the launch or its mpirun lives, and removed at the end; those of launches that were
// killed, whose locks are free, are removed at the start of the next one. Only files that MPI makes go.
class LaunchFolder {
 public:
  LaunchFolder();
  ~LaunchFolder();
  LaunchFolder(const LaunchFolder&) = delete;
  LaunchFolder& operator=(const LaunchFolder&) = delete;
  const std::string& path() const { return path_; }
  int lock() const { return lock_; }  // a descriptor, closed by exec unless its flag is cleared

 private:
  std::string path_;
  int lock_ = -1;
};

}  // namespace capibara::command
