// Operations run one by one, as programs of one equation that are compiled once: what backends share for them.
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

  // The executable for operands of these types under the present settings. `compile` makes it where there is none yet;
  // null is remembered as well.
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

  const std::size_t max_entries_;  // then it begins anew
  std::mutex mutex_;
  Entries entries_;
};

}  // namespace capibara
