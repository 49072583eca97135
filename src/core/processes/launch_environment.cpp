// A table of launchers and their variables, the most specific first.
#include "core/processes/launch_environment.h"

#include <charconv>
#include <cstdlib>

namespace capibara::processes {

namespace {

struct Launcher {
  const char *by, *process_id, *process_count;
};

// srun sets PMIX_* or PMI_* besides its own variables, depending on its option --mpi. Open MPI 4: OMPI_*; 5 and others
// over PMIx: PMIX_RANK alone, where MPI itself knows the number of processes. MPICH, Intel MPI, others over PMI: PMI_*.
constexpr Launcher launchers[] = {
    {"mpirun (Open MPI)", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"mpiexec (PMI)", "PMI_RANK", "PMI_SIZE"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    {"a PMIx launcher", "PMIX_RANK", ""},
};

std::optional<int> number(const std::optional<std::string>& text) {
  int value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<Launched> find_launch(const Variables& variables) {
  for (const Launcher& one : launchers) {
    const std::optional<int> id = number(variables(one.process_id)), count = number(variables(one.process_count));
    if (id && (count || !*one.process_count)) return Launched{one.by, *id, count};
  }
  return std::nullopt;
}

std::optional<Launched> find_launch() {
  return find_launch([](const std::string& name) -> std::optional<std::string> {
    const char* value = name.empty() ? nullptr : std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  });
}

bool launched_by_us() { return std::getenv("CAPIBARA_LAUNCH") != nullptr; }

}  // namespace capibara::processes
