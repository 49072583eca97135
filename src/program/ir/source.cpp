// The table of interned sources.
#include "program/ir/source.h"

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

namespace capibara {

namespace {

struct Table {
  std::mutex mutex;
  std::deque<SourceInfo> infos{SourceInfo{}};  // 0: unknown
  std::map<std::tuple<std::string, std::string, int, const void*>, uint32_t> ids;
};

Table& table() {
  static Table instance;
  return instance;
}

thread_local Source current;
std::atomic<const SourceFinder*> finder = nullptr;  // never freed: it is set once

}  // namespace

Source intern(const SourceInfo& info) {
  Table& t = table();
  std::lock_guard lock(t.mutex);
  auto [it, added] = t.ids.try_emplace({info.name_scope, info.file, info.line, info.address}, 0);
  if (added) {
    it->second = static_cast<uint32_t>(t.infos.size());
    t.infos.push_back(info);
  }
  return Source{it->second};
}

SourceInfo source_info(Source source) {
  Table& t = table();
  std::lock_guard lock(t.mutex);
  return t.infos[source.id];
}

std::string to_string(Source source) {
  SourceInfo info = source_info(source);
  if (info.file.empty()) return info.name_scope;
  std::string text = concat(info.file, ":", info.line);
  return info.name_scope.empty() ? text : concat(text, " (", info.name_scope, ")");
}

Source current_source() {
  const SourceFinder* find = finder.load(std::memory_order_acquire);
  return find ? (*find)(current) : current;
}

Source current_scope() { return current; }

std::string joined_scope(const std::string& scope, const std::string& name) {
  if (scope.empty()) return name;
  const std::size_t open =
      scope.find_last_of('/') == std::string::npos ? scope.find("()") : scope.find("()", scope.find_last_of('/'));
  if (open == std::string::npos) return concat(scope, "/", name);
  return concat(scope.substr(0, open + 1), name, scope.substr(open + 1));
}

void set_source_finder(SourceFinder next) {
  finder.store(new SourceFinder(std::move(next)), std::memory_order_release);
}

SourceScope::SourceScope(Source source) : previous_(current) { current = source; }
SourceScope::~SourceScope() { current = previous_; }

}  // namespace capibara
