// Opens libcapibara_mpi.so. Open MPI loads plugins of its own, which look for its symbols among the global ones.
#include "core/processes/mpi_module.h"

#include <dlfcn.h>

#include <capibara/error.h>

namespace capibara::processes {

namespace {

constexpr const char* mpi_module_file = "libcapibara_mpi.so";

struct MpiModule {
  const mpi::Table* table = nullptr;
  std::string reason, library;

  MpiModule() {
    void* handle = dlopen(mpi_module_file, RTLD_NOW | RTLD_GLOBAL);
    if (!handle) {
      const char* message = dlerror();
      reason = concat("it cannot be opened (", message ? message : "unknown reason",
                      ")\nHint: install libopenmpi-dev and openmpi-bin and build capibara with CAPIBARA_MPI=ON, or put "
                      "the folder of the "
                      "module into LD_LIBRARY_PATH");
      return;
    }
    const auto function = reinterpret_cast<mpi::TableFunction>(dlsym(handle, mpi::table_symbol));
    const mpi::Table* found = function ? function() : nullptr;
    if (!found || found->version != mpi::table_version) {
      reason = "it belongs to another version of capibara";
      return;
    }
    bool as_built = false;
    library = found->library(&as_built);
    library = library.substr(0, library.find_first_of(",\n"));
    if (as_built)
      table = found;
    else
      reason = concat("it was built for another MPI than the one that is loaded, ", library,
                      "\nHint: build capibara with this MPI");
  }
};

const MpiModule& opened_mpi() {
  static const auto* instance = new MpiModule;  // stays open: the comm thread may run until the very end
  return *instance;
}

}  // namespace

const mpi::Table& require_mpi() {
  if (const mpi::Table* table = opened_mpi().table) return *table;
  throw RuntimeError(concat("distributed: collectives between processes need the module ", mpi_module_file, ", but ",
                            opened_mpi().reason));
}

std::string describe_mpi() {
  return opened_mpi().table ? opened_mpi().library : concat("none: ", mpi_module_file, ": ", opened_mpi().reason);
}

}  // namespace capibara::processes
