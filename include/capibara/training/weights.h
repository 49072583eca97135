// How generation stores weights: as they were trained, in bfloat16, or in bytes with one scale for each output.
#pragma once

#include <capibara/training/layers.h>

#include <string>

namespace capibara::training {

// The parameters of a language model with weights in "float32", "bfloat16" or "int8". Bytes are those of the matrices
// alone, each output with a scale of its own beside it, under the matrix's name and ".scale"; all else stays float32.
Parameters convert_weights(const Parameters& parameters, const std::string& weights);

}  // namespace capibara::training
