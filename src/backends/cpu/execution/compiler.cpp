// Opens the module that holds LLVM, on first use.
#include "backends/cpu/execution/compiler.h"

#include <capibara/error.h>

#include <dlfcn.h>

#include "core/runtime/processor.h"

namespace capibara::cpu {

namespace {

constexpr const char* module_file = "libcapibara_cpu.so";

struct Opened {
  Compiler* compiler = nullptr;
  std::string reason;

  Opened() {
    void* handle = dlopen(module_file, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* message = dlerror();
      reason = message ? message : "unknown reason";
      return;
    }
    auto function = reinterpret_cast<decltype(&capibara_cpu_compiler)>(dlsym(handle, "capibara_cpu_compiler"));
    compiler = function ? function() : nullptr;
    if (!compiler) reason = concat(module_file, " belongs to another version of capibara");
  }
};

const Opened& opened() {
  static const Opened instance;  // stays open: its code may run until the very end
  return instance;
}

}  // namespace

bool has_compiler() { return opened().compiler != nullptr; }

Compiler& compiler() {
  const Opened& instance = opened();
  if (instance.compiler) return *instance.compiler;
  throw RuntimeError(concat("compile: needs the code generator in the module ", module_file,
                            ", which cannot be opened (", instance.reason,
                            "); install llvm-19-dev and libzstd-dev and build capibara with ",
                            "CAPIBARA_CPU=ON, or put the folder of the module into LD_LIBRARY_PATH"));
}

Target process_target() {
  Target target = compiler().host();
  if (target.triple.rfind("x86_64", 0) != 0) return target;
  std::erase_if(target.features, [](const std::string& feature) {
    if (feature == "+avx512vnni") return !has_vnni();
    if (feature.rfind("+avx512", 0) == 0) return !has_avx512();
    return !has_avx2() && (feature.rfind("+avx", 0) == 0 || feature == "+fma" || feature == "+f16c");
  });
  target.vector_bytes = has_avx512() ? 64 : has_avx2() ? 32 : 16;
  return target;
}

}  // namespace capibara::cpu
