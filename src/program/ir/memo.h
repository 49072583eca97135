// Memo: caches what was derived from a program, so that a program used many times is transformed once.
#pragma once

#include <capibara/program.h>

#include "core/array/hash.h"
#include "core/runtime/caches.h"

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace capibara {

// The parameters of a derivation besides the program.
struct MemoKey {
  Program program;
  std::vector<bool> first, second;
  int64_t number = 0;
  std::string text = {};
  std::size_t config = 0;
  std::vector<int64_t> positions = {};

  friend bool operator==(const MemoKey& a, const MemoKey& b) {
    return a.first == b.first && a.second == b.second && a.number == b.number && a.positions == b.positions &&
           a.text == b.text && a.config == b.config && a.program.name() == b.program.name() && a.program == b.program;
  }
};

struct MemoHash {
  std::size_t operator()(const MemoKey& key) const {
    Hasher hasher;
    hasher.mix(key.program.hash());
    hasher.mix(std::hash<std::vector<bool>>{}(key.first));
    hasher.mix(std::hash<std::vector<bool>>{}(key.second));
    hasher.mix(static_cast<std::size_t>(key.number));
    hasher.ints(key.positions);
    hasher.bytes(key.text.data(), key.text.size());
    hasher.mix(key.config);
    return hasher.value();
  }
};

// Programs may hold objects of the host language: comparing or freeing them may run its code, which may switch
// threads or re-enter here. Neither happens with the lock held.
template <class Value>
class Memo {
 public:
  Memo() {
    on_clear_caches([this] { clear(); });
  }

  template <class Make>
  Value get(const MemoKey& key, const Make& make) {
    const std::size_t hash = MemoHash{}(key);
    if (std::shared_ptr<const Entry> known = find(hash, key)) return known->value;
    auto made = std::make_shared<const Entry>(key, make());  // derivations nest
    if (std::shared_ptr<const Entry> first = find(hash, key)) return first->value;
    Entries old;
    {
      std::lock_guard lock(mutex_);
      if (entries_.size() >= capacity) old.swap(entries_);
      entries_.emplace(hash, made);
    }
    return made->value;
  }

  void clear() {
    Entries old;  // freed after the lock
    std::lock_guard lock(mutex_);
    old.swap(entries_);
  }

 private:
  struct Entry {
    MemoKey key;
    Value value;
    Entry(MemoKey key, Value value) : key(std::move(key)), value(std::move(value)) {}
  };
  using Entries = std::unordered_multimap<std::size_t, std::shared_ptr<const Entry>>;

  std::shared_ptr<const Entry> find(std::size_t hash, const MemoKey& key) {
    std::vector<std::shared_ptr<const Entry>> candidates;
    {
      std::lock_guard lock(mutex_);
      const auto [first, last] = entries_.equal_range(hash);
      for (auto it = first; it != last; ++it) candidates.push_back(it->second);
    }
    for (std::shared_ptr<const Entry>& candidate : candidates) {
      if (candidate->key == key) return candidate;
    }
    return nullptr;
  }

  static constexpr std::size_t capacity = 4096;  // entries; programs are held alive by it
  std::mutex mutex_;
  Entries entries_;
};

}  // namespace capibara
