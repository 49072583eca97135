// Text elements of the reports: times, sources, columns.
#pragma once

#include <capibara/profile.h>

#include <cstdio>
#include <string>

namespace capibara::profile {

template <class... Values>
std::string formatted(const char* format, Values... values) {
  const int size = std::snprintf(nullptr, 0, format, values...);
  std::string text(static_cast<std::size_t>(size < 0 ? 0 : size), '\0');
  std::snprintf(text.data(), text.size() + 1, format, values...);
  return text;
}

std::string readable_time(double nanoseconds);                    // 1.25 ms
std::string source_of(const Slot& slot);                          // "file:line", or the scope
std::string tail_of(const std::string& text, std::size_t width);  // its last characters, after an ellipsis

}  // namespace capibara::profile
