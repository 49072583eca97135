// Lists, shapes and nearest names, for the errors and tables of the TPU toolbox.
#include "tpu/words.h"

#include <capibara/error.h>

#include <algorithm>

namespace capibara::tpu {

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) text += (i ? between : "") + words[i];
  return text;
}

std::string shape_text(const std::vector<int>& shape) {
  std::string text;
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? "x" : "") + std::to_string(shape[i]);
  return text;
}

std::vector<int> read_shape(std::string_view text) {
  std::vector<int> shape;
  int number = -1;
  for (const char c : text) {
    if (c >= '0' && c <= '9' && number < 100000)
      number = std::max(number, 0) * 10 + (c - '0');
    else if (c == 'x' && number > 0) {
      shape.push_back(number);
      number = -1;
    } else {
      return {};
    }
  }
  if (number <= 0) return {};
  shape.push_back(number);
  return shape;
}

std::string nearest(std::string_view name, const std::vector<std::string>& names) {
  // An extra or missing character costs 2, a different one 3: llama3-8b is nearer to llama3.1-8b than to llama2-7b.
  std::string best;
  std::size_t best_distance = 2 * (name.size() / 3 + 2);
  std::vector<std::size_t> row, last;
  for (const std::string& candidate : names) {
    const std::size_t longer = std::max(candidate.size(), name.size()),
                      shorter = std::min(candidate.size(), name.size());
    if (2 * (longer - shorter) >= best_distance) continue;
    last.assign(candidate.size() + 1, 0);
    for (std::size_t j = 0; j <= candidate.size(); ++j) last[j] = 2 * j;
    for (std::size_t i = 1; i <= name.size(); ++i) {
      row.assign(candidate.size() + 1, 2 * i);
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        row[j] = std::min({row[j - 1] + 2, last[j] + 2, last[j - 1] + (name[i - 1] != candidate[j - 1] ? 3 : 0)});
      }
      std::swap(row, last);
    }
    if (last.back() < best_distance) {
      best_distance = last.back();
      best = candidate;
    }
  }
  return best;
}

std::string hint_of(std::string_view name, const std::vector<std::string>& names) {
  const std::string near = nearest(name, names);
  return near.empty() ? "" : concat("; did you mean '", near, "'?");
}

}  // namespace capibara::tpu
