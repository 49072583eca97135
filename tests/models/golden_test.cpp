// Recorded cases of named models: at least 95 % of them must pass.
#include "models/golden.h"

#include <gtest/gtest.h>

#include <iostream>
#include <map>

namespace capibara::models {

TEST(Golden, AtLeast95PercentOfTheRecordedCasesPass) {
  std::string folder = golden_folder();
  if (folder.empty()) GTEST_SKIP() << "no recorded cases of models beside the checkout";
  std::vector<CaseResult> results = run_golden_folder(folder);
  std::map<std::string, std::pair<int, int>> files;  // passed, all
  int passed = 0;
  for (const CaseResult& result : results) {
    auto& [good, all] = files[result.file];
    good += result.failure.empty();
    passed += result.failure.empty();
    ++all;
    if (!result.failure.empty())
      std::cout << result.file << " " << result.name << ": " << result.failure.substr(0, 300) << "\n";
  }
  for (const auto& [file, counts] : files) std::cout << file << ": " << counts.first << " of " << counts.second << "\n";
  std::cout << "all: " << passed << " of " << results.size() << "\n";
  ASSERT_FALSE(results.empty());
  EXPECT_GE(passed, 0.95 * static_cast<double>(results.size()));
}

}  // namespace capibara::models
