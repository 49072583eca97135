// Reads the tab-separated recordings.
#pragma once

#include "data/recordings.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace capibara::testing {

// Rows of cells of a recording; lines that begin with '#' are left out. Empty if there is no such recording.
inline std::vector<std::vector<std::string>> read_rows(const std::string& name) {
  std::vector<std::vector<std::string>> rows;
  std::ifstream input(oracle::recording(name));
  for (std::string line; std::getline(input, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> cells(1);
    for (char c : line) {
      if (c == '\t')
        cells.emplace_back();
      else
        cells.back() += c;
    }
    rows.push_back(std::move(cells));
  }
  return rows;
}

}  // namespace capibara::testing
