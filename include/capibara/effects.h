// Effects: what an equation does besides computing its outputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace capibara {

// A set of effects. Equations with effects other than named axes are never removed, duplicated or reordered.
struct Effects {
  enum Flag : uint32_t {
    none = 0,
    ordered_io = 1,
    io = 2,
    debug = 4,
    ref_read = 8,
    ref_write = 16,
    ordered_debug = 32
  };

  uint32_t flags = none;
  std::vector<std::string> axes;  // named axes in use, sorted

  Effects() = default;
  Effects(Flag flag) : flags(flag) {}

  bool empty() const { return flags == 0 && axes.empty(); }
  bool has(Flag flag) const { return (flags & flag) != 0; }
  bool keeps_equation() const { return flags != 0; }  // a root of dead-code elimination
  void merge(const Effects& other);
  void add_axis(const std::string& axis);
  void remove_axis(const std::string& axis);
  friend bool operator==(const Effects&, const Effects&) = default;
};

}  // namespace capibara
