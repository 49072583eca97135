// The folder of a launch, for MPI's files and shared memory.
#pragma once

#include <string>

namespace capibara::command {

// Created at the start, locked while the launch or its mpirun is alive, and removed at the end; folders of killed
// launches, whose locks are free, are removed at the start of the next launch. Only files made by MPI are deleted.
class LaunchFolder {
 public:
  LaunchFolder();
  ~LaunchFolder();
  LaunchFolder(const LaunchFolder&) = delete;
  LaunchFolder& operator=(const LaunchFolder&) = delete;
  const std::string& path() const { return path_; }
  int lock() const { return lock_; }  // file descriptor with FD_CLOEXEC set

 private:
  std::string path_;
  int lock_ = -1;
};

}  // namespace capibara::command
