// The table of chips. If the vendor prints different values of a figure, the one from the page named last in
// `sources` is used.
#include <capibara/error.h>
#include <capibara/tpu/chips.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "tpu/words.h"

namespace capibara::tpu {

const std::vector<Chip>& chips() {
  // Peaks, HBM and interconnect: cloud.google.com/tpu/docs/{v3,v4,v5e,v5p,v6e,tpu7x}. Cores, MXU, VMEM:
  // jax/_src/tpu_info.py. Clocks: xla/benchmarks/core/platform_info.py. Links, DCN of v2 to v4, PCIe: the scaling book.
  // Usable HBM: as planned by libtpu 0.0.51.
  static const std::vector<Chip> table = {
      {"v2",
       "TPU v2",
       "v2",
       "default",
       46,
       0,
       0,
       16,
       7.48,
       716,
       60,
       3.125,
       15,
       2,
       2,
       2,
       128,
       16,
       0.7,
       256,
       true,
       "jax's table (peak, HBM); links 1.2e11 B/s both ways: the scaling book; pod and clock from memory, unchecked"},
      {"v3",
       "TPU v3",
       "v3",
       "default",
       123,
       0,
       0,
       32,
       15.48,
       900,
       100,
       3.125,
       15,
       2,
       2,
       2,
       128,
       16,
       0.94,
       1024,
       true,
       "docs/v3; jax's table prints 140 TFLOP/s and 825 GB/s; links: the scaling book; clock from memory, unchecked"},
      {"v4",  "TPU v4",
       "v4",  "megacore",
       275,   275,
       0,     32,
       30.75, 1200,
       45,    6.25,
       15,    3,
       2,     1,
       128,   16,
       1.05,  4096,
       true,  "docs/v4; jax's table prints 1230 GB/s; clock from memory, unchecked"},
      {"v5e", "TPU v5 lite",
       "v5e", "default",
       197,   393,
       0,     16,
       15.75, 819,
       45,    3.125,
       15,    2,
       1,     1,
       128,   128,
       1.5,   256,
       false, "docs/v5e; its newer page prints 800 GiB/s"},
      {"v5p", "TPU v5",
       "v5p", "megacore",
       459,   918,
       459,   95,
       95.73, 2765,
       90,    6.25,
       15,    3,
       2,     1,
       128,   64,
       1.75,  8960,
       true,  "docs/v5p; jax's table prints 2460 GB/s; int8: jax's table"},
      {"v6e", "TPU v6 lite",
       "v6e", "default",
       918,   1836,
       918,   32,
       31.24, 1638,
       90,    12.5,
       32,    2,
       1,     1,
       256,   128,
       1.75,  256,
       false, "docs/v6e, docs/tpu7x; pages also print 1640 and 1600 GB/s"},
      {"tpu7x", "TPU7x",
       "tpu7x", "default",
       2307,    0,
       4614,    192,
       94.74,   7380,
       100,     12.5,
       32,      3,
       2,       2,
       256,     64,
       1.9,     9216,
       true,    "docs/tpu7x; links: 1200 GB/s both ways over six ports; PCIe as v6e, unchecked"},
  };
  return table;
}

const Chip& find_chip(std::string_view name) {
  static const std::map<std::string, std::string> others = {
      {"v5litepod", "v5e"},  {"v5lite", "v5e"},   {"tpuv5lite", "v5e"}, {"v5", "v5p"},
      {"tpuv5", "v5p"},      {"trillium", "v6e"}, {"v6", "v6e"},        {"tpuv6lite", "v6e"},
      {"ironwood", "tpu7x"}, {"tpu7", "tpu7x"},   {"v7x", "tpu7x"},     {"7x", "tpu7x"}};
  std::string word;
  for (const char c : name) {
    if (c != ' ' && c != '_') word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (const auto it = others.find(word); it != others.end()) word = it->second;
  if (word.rfind("tpuv", 0) == 0) word = word.substr(3);
  std::vector<std::string> names;
  for (const Chip& chip : chips()) {
    if (word == chip.name) return chip;
    names.emplace_back(chip.name);
  }
  throw ValueError(
      concat("tpu: no chip is called '", name, "'; there are ", joined(names, ", "), hint_of(word, names)));
}

}  // namespace capibara::tpu
