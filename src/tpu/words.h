// Small text functions: joined lists, shapes such as 2x2x4, and the nearest of several names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace capibara::tpu {

std::string joined(const std::vector<std::string>& words, const char* between);
std::string shape_text(const std::vector<int>& shape);                              // 2x2x4
std::vector<int> read_shape(std::string_view text);                                 // empty if it is not one
std::string nearest(std::string_view name, const std::vector<std::string>& names);  // empty if none is near
// "; did you mean 'NAME'?", or empty.
std::string hint_of(std::string_view name, const std::vector<std::string>& names);

}  // namespace capibara::tpu
