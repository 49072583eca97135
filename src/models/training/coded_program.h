// Programs with matrices of codes among their inputs.
#pragma once

#include <capibara/kernels/quantized.h>
#include <capibara/program.h>

#include <span>
#include <variant>

namespace capibara::training {

using CodedInput = std::variant<Array, kernels::QuantizedMatrix>;

// Runs a floating-point program under the current trace. Matmuls by an input of codes [inputs, outputs], or by
// its transpose, use the codes; any other equation receives it widened.
Arrays evaluate_with_codes(const Program& program, std::span<const CodedInput> inputs);

}  // namespace capibara::training
