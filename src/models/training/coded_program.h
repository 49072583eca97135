// Programs some of whose inputs are matrices of codes.
#pragma once

#include <capibara/kernels/quantized.h>
#include <capibara/program.h>

#include <span>
#include <variant>

namespace capibara::training {

using CodedInput = std::variant<Array, kernels::QuantizedMatrix>;

// Runs a program of floats under the current trace. Where it multiplies by an input of codes [inputs, outputs], or by
// its transpose, the codes are multiplied; any other equation gets it widened.
Arrays evaluate_with_codes(const Program& program, std::span<const CodedInput> inputs);

}  // namespace capibara::training
