// The fitted constants of the models, in one place; printed by tools/tpu/refit.cpp, refit.py and refit_memory.py.
#include "tpu/constants.h"

#include <string_view>
#include <utility>

namespace capibara::tpu {

const MatmulConstants& matmul_constants(const Chip& chip) {
  static const std::pair<const char*, MatmulConstants> table[] = {
      {"v4", {0.9781, 0.7384, 1.306, 25.95, 109, 1.586, 0.3934, 0.04996, 130, 31.91, 0.9034, 6.156, 6.403}},
      {"v5e", {1.056, 0.8255, 2.654, 11.23, 30.94, 3.638, 0.2757, 0.0855, 129.2, 41.93, 2.218, 6.262, 12.92}},
      {"v5p", {1.097, 0.8049, 1.252, 15.74, 37.19, 2.467, 0.5477, 0.04232, 39.55, 15.99, 2.196, 6.31, 1.22}},
      {"v6e", {1.1, 1.019, 0.3826, 23.73, 110, 2.537, 0.2101, 0.4492, 63.98, 30.56, 1.605, 6.217, 6.315}},
      {"tpu7x", {1.074, 0.9828, 0.9871, 26.11, 43.79, 2.855, 0.2805, 0.5396, 10.12, 4.15, 0.7, 7.306, 1.503}},
  };
  for (const auto& [name, constants] : table) {
    if (std::string_view(name) == chip.name) return constants;
  }
  return table[0].second;  // v2 and v3 have no compiled rows: use those of v4
}

const MemoryConstants& memory_constants() {
  static const MemoryConstants constants = {
      1.02,
      2.043,
      6.673,                                // at the loss, at the gradient of the output matrix
      {0.094, 4.869, 0.579, 3.13, 0.5},     // dense
      {1.025, 1.951, 7.744, 4.579, 0.397},  // experts with top-k routing
      {1.095, 2.054, 0, 3.27, 0},           // all experts
      {0, 5.574, 0, 3.27, 0.121},           // mamba: counted from the program, the largest moment in few rows
      4.801,                                // dispatch, combine and their gradients
      22.19,
      4.785,
      11.55,
      12.12,
      13.81,
      15.19,
      43.58,  // kept without remat
  };
  return constants;
}

const StepConstants& step_constants(const Chip& chip) {
  static const std::pair<const char*, StepConstants> table[] = {
      {"v4", {1.116, 0.417}},  {"v5e", {1.003, 0.417}},   {"v5p", {1.1, 0.417}},
      {"v6e", {1.346, 0.417}}, {"tpu7x", {1.111, 0.417}},
  };
  for (const auto& [name, constants] : table) {
    if (std::string_view(name) == chip.name) return constants;
  }
  return table[0].second;  // no published rows of v2 and v3 with their settings: use those of v4
}

}  // namespace capibara::tpu
