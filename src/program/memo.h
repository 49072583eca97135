// Memo: remembers what was derived from a program, so that a program used many times is transformed once.
#pragma once

#include <capibara/program.h>

#include "program/hash.h"

#include <mutex>
#include <unordered_map>

namespace capibara {

// What a derivation depends on besides the program.
struct MemoKey {
  Program program;
  std::vector<bool> first, second;
  int64_t number = 0;
  std::string text = {};
  std::size_t config = 0;
  std::vector<int64_t> positions = {};

  friend bool operator==(const MemoKey& a, const MemoKey& b) {
    return a.first == b.first && a.second == b.second && a.number == b.number && a.positions == b.positions && a.text == b.text &&
           a.config == b.config && a.program.name() == b.program.name() && a.program == b.program;
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

template <class Value>
class Memo {
 public:
  template <class Make>
  Value get(const MemoKey& key, const Make& make) {
    {
      std::lock_guard lock(mutex_);
      auto place = entries_.find(key);
      if (place != entries_.end()) return place->second;
    }
    Value value = make();  // outside the lock: derivations nest
    std::lock_guard lock(mutex_);
    if (entries_.size() >= capacity) entries_.clear();
    return entries_.try_emplace(key, std::move(value)).first->second;
  }

 private:
  static constexpr std::size_t capacity = 4096;  // entries; programs are held alive by it
  std::mutex mutex_;
  std::unordered_map<MemoKey, Value, MemoHash> entries_;
};

}  // namespace capibara
