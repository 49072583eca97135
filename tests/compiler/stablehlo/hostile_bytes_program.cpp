// Reads damaged artifacts and exported functions: hostile_bytes_program FOLDER SAMPLES prints how many were rejected,
// and how much memory the worst of them took beyond reading the intact ones.
#include <capibara/error.h>
#include <capibara/exported.h>
#include <capibara/program.h>

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

namespace {

long peak_kilobytes() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return use.ru_maxrss;
}

// True if the bytes were rejected with one of our errors.
bool is_refused(const std::string& bytes, bool exported) {
  try {
    if (exported)
      capibara::jax::read_exported(bytes);
    else
      capibara::from_stablehlo(bytes);
    return false;
  } catch (const capibara::Error&) {
    return true;
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  std::vector<std::pair<std::string, bool>> files;
  for (const auto& entry : std::filesystem::directory_iterator(words[1])) {
    const std::string suffix = entry.path().extension().string();
    if (suffix != ".mlirbc" && suffix != ".exported") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files.emplace_back(std::string(std::istreambuf_iterator<char>(file), {}), suffix == ".exported");
  }
  std::sort(files.begin(), files.end());
  for (const auto& [bytes, exported] : files) {
    if (is_refused(bytes, exported)) return 3;
  }
  const long before = peak_kilobytes();
  std::mt19937 draw(7);
  const int samples = std::atoi(words[2]);
  int refused = 0;
  for (int i = 0; i < samples; ++i) {
    const auto& [bytes, exported] = files[draw() % files.size()];
    std::string damaged = bytes;
    if (i % 4 == 0) {
      damaged.resize(draw() % damaged.size());
    } else {
      for (unsigned flips = 1 + draw() % 4; flips > 0; --flips)
        damaged[draw() % damaged.size()] ^= static_cast<char>(1 << draw() % 8);
    }
    refused += is_refused(damaged, exported) ? 1 : 0;
  }
  std::printf("%d of %d refused, %ld KiB more\n", refused, samples, peak_kilobytes() - before);
  return 0;
}
