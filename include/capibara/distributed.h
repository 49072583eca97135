// This process as one of several that run one program: how they meet, and what they tell each other.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <string>
#include <vector>

namespace capibara {

// A process of the job died, does not come to a collective, or calls another one.
class DistributedError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

namespace jax::distributed {

// What is not given is read from JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID, or from what started
// the processes: `capibara launch`, mpirun, mpiexec or srun.
struct InitializeOptions {
  std::optional<std::string> coordinator_address;  // HOST:PORT of process 0
  std::optional<int> num_processes, process_id;
  std::string coordinator_bind_address;  // where process 0 listens; empty: at the coordinator's address
  int initialization_timeout = 300;      // seconds
  int heartbeat_timeout_seconds = 10;    // of silence before a process counts as dead
  int shutdown_timeout_seconds = 300;    // to wait for the others at the end
  double collective_timeout_seconds =
      0;  // of waiting in a collective before it is an error; 0: CAPIBARA_COLLECTIVE_TIMEOUT, or never
};

// Meets the other processes; call it once, before anything is computed.
void initialize(const InitializeOptions& options = {});
// Whether this process has met the others.
bool is_initialized();
// Waits for the others and leaves.
void shutdown();

}  // namespace jax::distributed

namespace jax {
// The number of this process.
int process_index();
// The number of processes of this program.
int process_count();
}  // namespace jax

// Messages name the line of the call, which the last two arguments are.
namespace jax::multihost_utils {

// The arrays of all processes, which have one shape: stacked along a new first axis, or concatenated along the first
// where tiled.
Array process_allgather(const Array& x, bool tiled = false, const char* file = __builtin_FILE(),
                        int line = __builtin_LINE());
// The array of the source, which is process 0 unless one process says that it is.
Array broadcast_one_to_all(const Array& x, std::optional<bool> is_source = std::nullopt,
                           const char* file = __builtin_FILE(), int line = __builtin_LINE());
// Returns when all processes have come with this name.
void sync_global_devices(const std::string& name, const char* file = __builtin_FILE(), int line = __builtin_LINE());
// Raises ValueError where the processes have different values.
void assert_equal(const Array& x, const std::string& fail_message = "", const char* file = __builtin_FILE(),
                  int line = __builtin_LINE());

}  // namespace jax::multihost_utils

}  // namespace capibara
