// The table of single operations, by primitive, types, attributes and settings.
#include "backends/single_operations.h"

#include <capibara/config.h>

#include "program/build.h"
#include "program/hash.h"

namespace capibara {

std::shared_ptr<Executable> SingleOperations::find(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs,
                                                   const Compile& compile) {
  const std::size_t settings = config_key();
  Types types;
  Hasher hasher;
  hasher.bytes(primitive.name().data(), primitive.name().size());
  hasher.mix(attrs.hash());
  hasher.mix(settings);
  for (const Array& input : inputs) {
    types.push_back(input.type());
    hasher.type(types.back());
  }
  const std::size_t key = hasher.value();
  {
    std::lock_guard lock(mutex_);
    const auto [first, last] = entries_.equal_range(key);
    for (auto place = first; place != last; ++place) {
      const Entry& entry = place->second;
      if (entry.settings == settings && entry.primitive == primitive && entry.types == types && entry.attrs == attrs) return entry.executable;
    }
  }
  const FlatFunction call = [&](std::span<const Array> operands) { return capibara::bind(primitive, operands, attrs); };
  std::shared_ptr<Executable> executable = compile(stage(call, types, primitive.name()).program);
  std::lock_guard lock(mutex_);
  if (entries_.size() >= most_entries_) entries_.clear();
  entries_.emplace(key, Entry{primitive, std::move(types), attrs, settings, executable});
  return executable;
}

}  // namespace capibara
