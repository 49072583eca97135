// Sets of effects.
#include <capibara/effects.h>

#include <algorithm>

namespace capibara {

void Effects::merge(const Effects& other) {
  flags |= other.flags;
  for (const std::string& axis : other.axes) add_axis(axis);
}

void Effects::add_axis(const std::string& axis) {
  auto it = std::lower_bound(axes.begin(), axes.end(), axis);
  if (it == axes.end() || *it != axis) axes.insert(it, axis);
}

void Effects::remove_axis(const std::string& axis) { std::erase(axes, axis); }

}  // namespace capibara
