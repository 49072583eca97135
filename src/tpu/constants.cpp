// The fitted constants of the models, in one place; printed by tools/tpu/refit.cpp, refit.py and refit_memory.py.
#include "tpu/constants.h"

#include <string_view>
#include <utility>

namespace capibara::tpu {

const MatmulConstants& matmul_constants(const Chip& chip) {
  static const std::pair<const char*, MatmulConstants> table[] = {
      {"v4", {0.9783, 0.8232, 0.5664, 40, 62.92, 1.299, 1, 0.08331, 129.8, 29.73, 0.898, 6.161}},
      {"v5e", {1.1, 0.9147, 1.865, 37.68, 72.06, 2.39, 1, 0.3084, 129.7, 43.75, 1.937, 6.425}},
      {"v5p", {1.055, 1.029, 0, 27.25, 106, 2.607, 0.589, 0.4678, 43.43, 14.32, 2.047, 6.048}},
      {"v6e", {1.1, 0.9628, 3.939, 14.25, 94.86, 2.297, 0.3544, 0, 87.53, 19.35, 1.396, 7.409}},
      {"tpu7x", {1.077, 1.102, 1.017, 28.93, 66.94, 2.863, 0.2418, 0.8485, 29.98, 10.29, 0.7228, 7.431}},
  };
  for (const auto& [name, constants] : table) {
    if (std::string_view(name) == chip.name) return constants;
  }
  return table[0].second;  // v2 and v3 have no compiled rows: use those of v4
}

const MemoryConstants& memory_constants() {
  static const MemoryConstants constants = {
      0.743,
      2.089,
      5.391,                                // at the loss, at the gradient of the output matrix
      {0.243, 4.455, 0.436, 3.339, 0.504},  // dense
      {1.016, 1.799, 9.215, 1.889, 0.355},  // experts with top-k routing
      {1.096, 2.054, 0, 3.27, 0},           // all experts
      {0, 5.786, 0, 3.27, 0},               // mamba: counted from the program, the largest moment in few rows
      5.383,                                // dispatch, combine and their gradients
      22.53,
      4.763,
      11.51,
      12.04,
      13.8,
      14.23,
      44.08,  // kept without remat
  };
  return constants;
}

const StepConstants& step_constants(const Chip& chip) {
  static const std::pair<const char*, StepConstants> table[] = {
      {"v4", {1.092, 0.417}},  {"v5e", {0.968, 0.417}},   {"v5p", {1.1, 0.417}},
      {"v6e", {1.365, 0.417}}, {"tpu7x", {1.101, 0.417}},
  };
  for (const auto& [name, constants] : table) {
    if (std::string_view(name) == chip.name) return constants;
  }
  return table[0].second;  // no published rows of v2 and v3 with their settings: use those of v4
}

}  // namespace capibara::tpu
