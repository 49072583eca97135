// The cache of single operations, keyed by primitive, types, attributes and settings.
#include "backends/single_operations.h"

#include <capibara/config.h>

#include "core/array/hash.h"
#include "core/runtime/caches.h"
#include "program/trace/stage.h"

#include <algorithm>

namespace capibara {

SingleOperations::SingleOperations(std::size_t max_entries) : max_entries_(max_entries) {
  on_clear_caches([this] {  // backends live as long as the process
    Entries old;            // freed after the lock
    std::lock_guard lock(mutex_);
    old.swap(entries_);
  });
}

std::shared_ptr<Executable> SingleOperations::find(const Primitive& primitive, std::span<const Array> inputs,
                                                   const Attrs& attrs, const Compile& compile) {
  const std::size_t settings = config_key();
  Hasher hasher;
  hasher.mix(std::hash<const void*>{}(&primitive.record()));
  hasher.mix(attrs.hash());
  hasher.mix(settings);
  for (const Array& input : inputs) hasher.type(input.type());
  const std::size_t key = hasher.value();
  const auto has_types = [&](const Array& input, const ArrayType& type) { return input.type() == type; };
  // Attributes may hold objects of the host language, whose comparison may let other threads run: the lock must not be
  // held.
  std::vector<std::shared_ptr<const Entry>> candidates;
  {
    std::lock_guard lock(mutex_);
    const auto [first, last] = entries_.equal_range(key);
    for (auto it = first; it != last; ++it) candidates.push_back(it->second);
  }
  for (const std::shared_ptr<const Entry>& entry : candidates) {
    if (entry->settings == settings && entry->primitive == primitive &&
        std::equal(inputs.begin(), inputs.end(), entry->types.begin(), entry->types.end(), has_types) &&
        entry->attrs == attrs) {
      return entry->executable;
    }
  }
  Types types;
  for (const Array& input : inputs) types.push_back(input.type());
  const FlatFunction call = [&](std::span<const Array> operands) { return capibara::bind(primitive, operands, attrs); };
  std::shared_ptr<Executable> executable = compile(stage(call, types, primitive.name()).program);
  auto made = std::make_shared<const Entry>(Entry{primitive, std::move(types), attrs, settings, executable});
  Entries old;  // freed after the lock
  std::lock_guard lock(mutex_);
  if (entries_.size() >= max_entries_) old.swap(entries_);
  entries_.emplace(key, std::move(made));
  return executable;
}

}  // namespace capibara
