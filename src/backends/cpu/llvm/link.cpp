// The linker: one block of memory per object, and no symbols except those of libm and memory copies.
//
// Each object has its own linker and block, so that threads link concurrently without a lock. One block keeps code
// and constants within range of relative addresses, and costs the process one mapping.
#include "backends/cpu/llvm/link.h"

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include <llvm/ExecutionEngine/JITSymbol.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

#include <sys/mman.h>
#include <unistd.h>

#include "backends/cpu/llvm/emit.h"

namespace capibara::cpu {

namespace {

struct Symbol {
  std::string_view name;
  void* address;
};

#define ONE(name)                                                                           \
  Symbol{#name, reinterpret_cast<void*>(static_cast<double (*)(double)>(::name))}, Symbol { \
#name "f", reinterpret_cast < void*>(static_cast <float (*)(float)>(::name##f))         \
  }
#define TWO(name)                                                                                   \
  Symbol{#name, reinterpret_cast<void*>(static_cast<double (*)(double, double)>(::name))}, Symbol { \
#name "f", reinterpret_cast < void*>(static_cast <float (*)(float, float)>(::name##f))          \
  }

// Functions that `call` names (Math), and those that code generators insert for operations the machine lacks.
const Symbol symbols[] = {
    ONE(sin),
    ONE(cos),
    ONE(tan),
    ONE(asin),
    ONE(acos),
    ONE(atan),
    TWO(atan2),
    ONE(sinh),
    ONE(cosh),
    ONE(asinh),
    ONE(acosh),
    ONE(atanh),
    TWO(pow),
    ONE(cbrt),
    ONE(erf),
    ONE(erfc),
    ONE(log),
    ONE(log1p),
    ONE(exp),
    ONE(expm1),
    ONE(tanh),
    TWO(fmod),
    ONE(lgamma),
    TWO(nextafter),
    ONE(round),
    ONE(sqrt),
    ONE(floor),
    ONE(ceil),
    ONE(trunc),
    ONE(rint),
    ONE(nearbyint),
    Symbol{"roundeven", reinterpret_cast<void*>(static_cast<double (*)(double)>(::nearbyint))},
    Symbol{"roundevenf", reinterpret_cast<void*>(static_cast<float (*)(float)>(::nearbyintf))},
    Symbol{"fma", reinterpret_cast<void*>(static_cast<double (*)(double, double, double)>(::fma))},
    Symbol{"fmaf", reinterpret_cast<void*>(static_cast<float (*)(float, float, float)>(::fmaf))},
    Symbol{"memcpy", reinterpret_cast<void*>(::memcpy)},
    Symbol{"memmove", reinterpret_cast<void*>(::memmove)},
    Symbol{"memset", reinterpret_cast<void*>(::memset)},
};
#undef ONE
#undef TWO

std::size_t rounded(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Code and constants are in one executable mapping, variables (currently none) on pages after them.
class Memory : public llvm::RuntimeDyld::MemoryManager {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  ~Memory() override {
    if (block_) ::munmap(block_, size_);
  }

  bool needsToReserveAllocationSpace() override { return true; }
  void reserveAllocationSpace(uintptr_t code, llvm::Align code_align, uintptr_t constants, llvm::Align constants_align,
                              uintptr_t variables, llvm::Align variables_align) override {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    fixed_ = rounded(code + code_align.value() + constants + constants_align.value(), page);
    size_ = fixed_ + rounded(variables + variables_align.value(), page);
    void* block = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
      throw std::runtime_error("link: no memory for " + std::to_string(size_) + " bytes of code");
    block_ = static_cast<uint8_t*>(block);
    used_ = 0;
    variables_ = fixed_;
  }

  uint8_t* allocateCodeSection(uintptr_t size, unsigned alignment, unsigned, llvm::StringRef) override {
    return take(used_, fixed_, size, alignment);
  }
  uint8_t* allocateDataSection(uintptr_t size, unsigned alignment, unsigned, llvm::StringRef, bool constant) override {
    return constant ? take(used_, fixed_, size, alignment) : take(variables_, size_, size, alignment);
  }
  void registerEHFrames(uint8_t*, uint64_t, size_t) override {}
  void deregisterEHFrames() override {}
  bool finalizeMemory(std::string* reason) override {
    if (!block_) return false;
    __builtin___clear_cache(reinterpret_cast<char*>(block_), reinterpret_cast<char*>(block_ + used_));
    if (::mprotect(block_, fixed_, PROT_READ | PROT_EXEC) == 0) return false;
    if (reason) *reason = std::strerror(errno);
    return true;
  }

 private:
  uint8_t* take(std::size_t& used, std::size_t end, std::size_t size, std::size_t alignment) {
    const std::size_t start = rounded(used, std::max<std::size_t>(1, alignment));
    if (start + size > end) throw std::runtime_error("link: the object code is larger than it says");
    used = start + size;
    return block_ + start;
  }

  uint8_t* block_ = nullptr;
  std::size_t size_ = 0, fixed_ = 0, used_ = 0, variables_ = 0;
};

class Resolver : public llvm::LegacyJITSymbolResolver {
 public:
  llvm::JITSymbol findSymbol(const std::string& name) override {
    for (const Symbol& symbol : symbols) {
      if (symbol.name == name) {
        return {static_cast<llvm::JITTargetAddress>(reinterpret_cast<uintptr_t>(symbol.address)),
                llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
      }
    }
    throw std::runtime_error("link: generated code needs the unknown symbol " + name);
  }
  llvm::JITSymbol findSymbolInLogicalDylib(const std::string&) override { return nullptr; }
};

class LinkedCode : public Code {
 public:
  explicit LinkedCode(const std::string& object_code) {
    llvm::MemoryBufferRef buffer(llvm::StringRef(object_code), "object");
    auto object = llvm::object::ObjectFile::createObjectFile(buffer);
    if (!object) throw std::runtime_error("link: " + llvm::toString(object.takeError()));
    Resolver resolver;
    llvm::RuntimeDyld linker(memory_, resolver);
    linker.loadObject(**object);
    linker.resolveRelocations();
    if (linker.hasError()) throw std::runtime_error("link: " + linker.getErrorString().str());
    const auto address = linker.getSymbol(driver_symbol).getAddress();
    if (address == 0) throw std::runtime_error("link: the object code holds no driver");
    std::string reason;
    if (memory_.finalizeMemory(&reason)) throw std::runtime_error("link: code cannot be made executable: " + reason);
    driver_ = reinterpret_cast<Entry>(static_cast<uintptr_t>(address));
  }
  Entry driver() const override { return driver_; }

 private:
  Memory memory_;
  Entry driver_ = nullptr;
};

}  // namespace

std::unique_ptr<Code> link_object(const std::string& object_code) { return std::make_unique<LinkedCode>(object_code); }

}  // namespace capibara::cpu
