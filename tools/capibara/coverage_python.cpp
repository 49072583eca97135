// capibara coverage --python: counts the names of jax that pass all their comparisons with jax.
#include <capibara/error.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "command.h"

namespace capibara::command {

namespace {

struct Count {
  int names = 0, passing = 0;
  std::vector<std::string> failing, without_calls;
};

// Lines of module, name, tier, calls passed, calls failed, separated by tabs.
std::map<std::string, std::map<std::string, Count>> read_counts(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw ValueError(
        concat(path, " cannot be opened; it is written by the comparison with jax: ./run test differential"));
  }
  std::map<std::string, std::map<std::string, Count>> modules;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string module, name, tier;
    int passed = 0, failed = 0;
    if (!(fields >> module >> name >> tier >> passed >> failed))
      throw ValueError(concat(path, ": no row of coverage: ", line));
    Count& count = modules[module][tier];
    ++count.names;
    if (failed > 0)
      count.failing.push_back(name);
    else if (passed > 0)
      ++count.passing;
    else
      count.without_calls.push_back(name);
  }
  return modules;
}

void print_names(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::printf("      %s:", what);
  for (const std::string& name : names) std::printf(" %s", name.c_str());
  std::printf("\n");
}

}  // namespace

int coverage_python(const Arguments& arguments) {
  const auto modules = read_counts(arguments.text("results"));
  std::map<std::string, Count> totals;
  std::printf("%-22s %-5s %6s %8s\n", "module", "tier", "names", "passing");
  for (const auto& [module, tiers] : modules) {
    for (const auto& [tier, count] : tiers) {
      std::printf("%-22s %-5s %6d %8d\n", module.c_str(), tier.c_str(), count.names, count.passing);
      print_names("a comparison fails", count.failing);
      print_names("no comparison", count.without_calls);
      totals[tier].names += count.names;
      totals[tier].passing += count.passing;
    }
  }
  for (const auto& [tier, count] : totals) {
    std::printf("tier %-5s %d of %d names pass (%.1f %%)\n", tier.c_str(), count.passing, count.names,
                100.0 * count.passing / count.names);
  }
  return 0;
}

}  // namespace capibara::command
