// Reads the tab-separated files of expected values beside these tests.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace capibara::testing {

// The folder of a test's __FILE__. Compiler caches may make that relative to the build's folder; tests run in the tree's.
inline std::string folder_of(const std::string& file) {
  const std::string folder = file.substr(0, file.find_last_of('/') + 1);
  return folder.starts_with('/') ? folder : folder.substr(folder.rfind("tests/"));
}

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
