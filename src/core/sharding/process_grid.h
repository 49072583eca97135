// The part of a mesh that each process holds: blocks of one shape, so that every axis is (across processes) x (inside).
#pragma once

#include <capibara/placement.h>

#include <string>
#include <vector>

namespace capibara {

// The process of a device of the native CPU, whose devices are numbered process by process.
int process_of_device(int device);
// True if all devices belong to this process, by the numbering of the native CPU.
bool is_addressable(const NamedSharding& placement);

// True if the devices of a process hold every element of an array with this placement.
bool holds_whole(const NamedSharding& placement, int process);
// True if this process's devices do, so that it can read the array.
bool is_readable(const NamedSharding& placement);

// One axis of a mesh as this process sees it.
struct ProcessAxis {
  std::string name;
  int64_t block = 1;       // devices along it inside of the process
  int64_t first = 0;       // the first of them
  std::vector<int> group;  // the processes along it, in the order of their positions

  bool crosses() const { return group.size() > 1; }
};

class ProcessGrid {
 public:
  // Raises ValueError if the devices of this process are not a block of the mesh, or blocks differ between processes.
  explicit ProcessGrid(const NamedSharding& devices);

  bool spans() const;  // several processes
  const ProcessAxis& axis(const std::string& name) const;
  std::string text() const;  // for keys of caches

 private:
  std::vector<ProcessAxis> axes_;
};

}  // namespace capibara
