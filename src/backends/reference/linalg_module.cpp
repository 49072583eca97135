// Opens the linear algebra module and checks that its table has the same version.
#include "backends/reference/linalg_module.h"

#include <capibara/error.h>

#include <dlfcn.h>

namespace capibara::reference {

namespace {

constexpr const char* module_file = "libcapibara_lapack.so";

struct Module {
  const lapack::Table* table = nullptr;
  std::string reason;

  Module() {
    void* handle = dlopen(module_file, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* message = dlerror();
      reason = message ? message : "unknown reason";
      return;
    }
    auto function = reinterpret_cast<lapack::TableFunction>(dlsym(handle, lapack::table_symbol));
    const lapack::Table* found = function ? function() : nullptr;
    if (found && found->version == lapack::table_version)
      table = found;
    else
      reason = concat(module_file, " belongs to another version of capibara");
  }
};

const Module& opened() {
  static const Module instance;  // stays open: its routines may run until the process exits
  return instance;
}

}  // namespace

const lapack::Table* find_lapack() { return opened().table; }

const lapack::Table& require_lapack(const char* operation) {
  if (const lapack::Table* table = find_lapack()) return *table;
  throw RuntimeError(concat(operation, ": needs LAPACK from the module ", module_file, ", which cannot be opened (",
                            opened().reason,
                            "); install libopenblas-dev and build capibara with CAPIBARA_LAPACK=ON, or ",
                            "put the folder of the module into LD_LIBRARY_PATH"));
}

}  // namespace capibara::reference
