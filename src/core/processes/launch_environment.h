// The launcher that started this process, found by the environment variables that it sets.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace capibara::processes {

// A process that an MPI launcher started as one of several.
struct Launched {
  std::string by;  // "mpirun (Open MPI)", "srun", "mpiexec (PMI)", "a PMIx launcher"
  int process_id = 0;
  std::optional<int> process_count;
};

using Variables = std::function<std::optional<std::string>(const std::string& name)>;

// Empty if no MPI launcher did.
std::optional<Launched> find_launch(const Variables& variables);
std::optional<Launched> find_launch();  // from the environment

// True if `capibara launch` did.
bool launched_by_us();

}  // namespace capibara::processes
