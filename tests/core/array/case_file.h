// Reads the tab-separated files of expected values beside these tests.
#pragma once

#include "core/array/source_folder.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace capibara::testing {

// Rows of cells; lines that begin with '#' are left out. Empty where there is no such file.
inline std::vector<std::vector<std::string>> read_rows(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  std::ifstream input(path);
  for (std::string line; std::getline(input, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> cells(1);
    for (char c : line) {
      if (c == '\t') cells.emplace_back();
      else cells.back() += c;
    }
    rows.push_back(std::move(cells));
  }
  return rows;
}

}  // namespace capibara::testing
