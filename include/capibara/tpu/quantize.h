// Models with their matrices as integers of 8 or 4 bits, for the TPU toolbox.
#pragma once

#include <capibara/kernels/quantized.h>
#include <capibara/model.h>
#include <capibara/tpu/error.h>

#include <string>

namespace capibara::tpu {

// A matrix [inputs, outputs] as integers: 8-bit with a scale for each output, or 4-bit with one for each block of
// 32 inputs. TPUError for other widths, other ranks and values that are not finite.
kernels::QuantizedMatrix quantize_matrix(const Array& matrix, int bits = 8);

// True if quantize_for_tpu quantizes a parameter: a floating matrix whose name does not contain norm, bias,
// scale or embed.
bool is_quantized(const std::string& name, const ArrayType& type);
// training::quantize_model for 8 or 4 bits: the parameter NAME becomes NAME.codes and NAME.scale, which matmuls read
// directly; all others are unchanged. TypeError if the model has no parameters yet, TPUError if nothing is
// quantized.
AnyModel quantize_for_tpu(const AnyModel& model, int bits = 8);

}  // namespace capibara::tpu
