// Planes of an XSpace in the making: names become numbers, events of a step one group.
#pragma once

#include <capibara/profile_data.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "operate/reports/xspace.h"

namespace capibara::profile {

inline constexpr int64_t picoseconds = 1000;  // in a nanosecond

// A plane in the making: names become numbers.
class PlaneBuilder {
 public:
  PlaneBuilder(int64_t id, std::string name) {
    plane_.id = id;
    plane_.name = std::move(name);
    stat_id("group_id");  // its absence would mean that nobody has grouped the events
  }

  XStat stat(std::string_view name, XStat::Value value) { return {stat_id(name), std::move(value)}; }
  XStat integer(std::string_view name, int64_t value) { return stat(name, XStat::Value(value)); }
  XStat text(std::string_view name, std::string value) { return stat(name, XStat::Value(std::move(value))); }

  // The number of the metadata with the key; new ones begin empty.
  int64_t event_id(const std::string& key) {
    const auto [it, is_new] = event_ids_.emplace(key, static_cast<int64_t>(event_ids_.size()) + 1);
    if (is_new) plane_.event_metadata[it->second].name = key;
    return it->second;
  }
  XEventMetadata& metadata(int64_t id) { return plane_.event_metadata[id]; }

  XLine& line(int64_t id, std::string name, int64_t timestamp) {
    XLine& made = plane_.lines.emplace_back();
    made.id = id;
    made.name = std::move(name);
    made.timestamp_ns = timestamp;
    return made;
  }
  void add(XStat stat) { plane_.stats.push_back(std::move(stat)); }
  XPlane take() { return std::move(plane_); }

 private:
  int64_t stat_id(std::string_view name) {
    const auto [it, is_new] = stat_ids_.emplace(std::string(name), static_cast<int64_t>(stat_ids_.size()) + 1);
    if (is_new) plane_.stat_metadata[it->second] = it->first;
    return it->second;
  }

  XPlane plane_;
  std::unordered_map<std::string, int64_t> event_ids_, stat_ids_;
};

// The steps of a profile in the order of time. Each is a group, whose number is the step's where no two are the same:
// xprof shows it as the step.
class Groups {
 public:
  explicit Groups(const Profile& profile) {
    for (const Event& event : profile.events) {
      if (event.kind == EventKind::step) steps_.push_back(&event);
    }
    std::stable_sort(steps_.begin(), steps_.end(), [](const Event* a, const Event* b) { return a->start < b->start; });
    for (std::size_t i = 0; i < steps_.size(); ++i) by_number_[steps_[i]->step].push_back(static_cast<int64_t>(i));
    unique_ = by_number_.size() == steps_.size();
  }

  const std::vector<const Event*>& steps() const { return steps_; }
  // The index of the step with the number that had begun at a time; -1 where there is none. Numbers may come again:
  // then the last one before is meant.
  int64_t of(int64_t number, int64_t time) const {
    const auto it = by_number_.find(number);
    if (it == by_number_.end()) return -1;
    int64_t group = it->second.front();
    for (const int64_t candidate : it->second) {
      if (steps_[static_cast<std::size_t>(candidate)]->start <= time) group = candidate;
    }
    return group;
  }
  int64_t shown(int64_t group) const { return unique_ ? steps_[static_cast<std::size_t>(group)]->step : group; }

 private:
  std::vector<const Event*> steps_;
  bool unique_ = true;
  std::unordered_map<int64_t, std::vector<int64_t>> by_number_;
};

inline XEvent timed(int64_t id, int64_t start, int64_t duration) {
  return {id, start * picoseconds, duration * picoseconds, {}};
}

}  // namespace capibara::profile
