// Runs the text of a TPU kernel on the host, for tests: over its whole grid, window by window.
//
// What a TPU leaves undefined is made visible: elements of windows beyond their array are NaN or far integers, parallel
// dimensions of the grid are visited in random order, a use of scratch that was not written is an error, and so is an
// output block that is visited again after it was left.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel_text.h"

namespace capibara::mosaic {

struct Tensor {
  std::string element;  // f32, bf16, i32, i1, index
  std::vector<int64_t> shape;
  std::vector<double> data;
};

// `results`: element types and shapes; their data is not read. Returns the results.
std::vector<Tensor> run_kernel(const std::string& text, const std::vector<Tensor>& operands,
                               const std::vector<Tensor>& results, uint32_t seed = 0);

double rounded_to(const std::string& element, double value);

}  // namespace capibara::mosaic
