// Machine code of modules, keyed by their content: in memory while the process runs, and on disk.
#include <capibara/error.h>

#include <map>
#include <mutex>

#include "backends/cpu/execution/backend.h"
#include "backends/cpu/execution/compiler.h"
#include "core/runtime/disk_cache.h"

namespace capibara::cpu {

namespace {

class CodeCache {
 public:
  static std::shared_ptr<const Code> get(const Module& module) {
    static CodeCache* cache = new CodeCache;  // never freed: programs may run until the very end
    return cache->find(module);
  }

 private:
  std::shared_ptr<const Code> find(const Module& module) {
    Compiler& generator = compiler();
    const Target target = process_target();
    const Digest key = digest(concat(generator.version(), "\n", target.key(), "\n", to_string(module)));
    {
      std::lock_guard lock(mutex_);
      if (std::shared_ptr<const Code> known = codes_[key].lock()) return known;
      if (codes_.size() > max_entries) std::erase_if(codes_, [](const auto& entry) { return entry.second.expired(); });
    }
    std::shared_ptr<const Code> code = from_disk(generator, key);
    if (!code) {
      const std::string object = generator.object_code(module, target);
      DiskCache::instance().store(key, object);
      code = generator.link(object);
    }
    std::lock_guard lock(mutex_);
    codes_[key] = code;
    return code;
  }

  // Null if the file is absent or cannot be linked.
  static std::shared_ptr<const Code> from_disk(Compiler& generator, const Digest& key) {
    std::optional<std::string> object = DiskCache::instance().find(key);
    if (!object) return nullptr;
    try {
      return generator.link(*object);
    } catch (const std::runtime_error&) {
      return nullptr;
    }
  }

  static constexpr std::size_t max_entries = 4096;
  std::mutex mutex_;
  std::map<Digest, std::weak_ptr<const Code>> codes_;
};

}  // namespace

std::shared_ptr<const Code> code_of(const Module& module) { return CodeCache::get(module); }

}  // namespace capibara::cpu
