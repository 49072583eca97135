// Operations run one by one, as programs of one equation that are compiled once and cached; shared by the backends.
#pragma once

#include "backends/backend.h"

#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace capibara {

class SingleOperations {
 public:
  explicit SingleOperations(std::size_t max_entries);

  using Compile = std::function<std::shared_ptr<Executable>(const Program&)>;

  // The executable for operands of these types under the current settings. `compile` makes it if there is none yet; a
  // null result is cached as well.
  std::shared_ptr<Executable> find(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs,
                                   const Compile& compile);

 private:
  struct Entry {
    Primitive primitive;
    Types types;
    Attrs attrs;
    std::size_t settings;
    std::shared_ptr<Executable> executable;
  };
  using Entries = std::unordered_multimap<std::size_t, std::shared_ptr<const Entry>>;

  const std::size_t max_entries_;  // then the table is cleared
  std::mutex mutex_;
  Entries entries_;
};

}  // namespace capibara
