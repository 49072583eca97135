// Runs recorded cases of named models: evaluations, gradients, shapes, static and discarded keys, errors.
#pragma once

#include <capibara/models.h>

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace capibara::models {

class Mismatch : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Double precision, operation by operation.
inline Backend wide() { return {.dtype = DType::float64, .jit = false}; }
// A case with random shapes and values.
void run_random(const Value& test);

struct CaseResult {
  std::string file, name;
  std::string failure;  // empty: passed
};

// The folder of recorded cases: $CAPIBARA_GOLDEN_MODELS, which ./run golden sets; empty if it is not set.
std::string golden_folder();
// Runs every case of a known kind in every file of a folder.
std::vector<CaseResult> run_golden_folder(const std::string& folder);

// Throws Mismatch if an array differs from the recorded one.
void expect_close(const std::string& key, const Value& got, const Value& wanted);
// The cases of one file by name.
Value read_cases(const std::string& path);
using Shapes = std::map<std::string, std::optional<std::vector<std::optional<int64_t>>>>;
// Shapes inferred from the shapes of a case, and from additional ones.
Shapes inferred_shapes(const Value& test, const std::vector<std::pair<std::string, ShapeTemplate>>& besides);

}  // namespace capibara::models
