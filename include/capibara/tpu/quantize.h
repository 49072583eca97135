// Models with their matrices as integers of 8 or 4 bits, for the TPU toolbox.
#pragma once

#include <capibara/kernels/quantized.h>
#include <capibara/model.h>
#include <capibara/tpu/error.h>

#include <string>

namespace capibara::tpu {

// A matrix [inputs, outputs] as integers: of 8 bits with a scale for each output, of 4 bits with one for each block of
// 32 inputs. TPUError for other bits than 8 and 4, for other ranks and for values that are not finite.
kernels::QuantizedMatrix quantize_matrix(const Array& matrix, int bits = 8);

// Whether quantize_for_tpu makes integers of a parameter: a floating matrix whose name says nothing of norm, bias,
// scale or embed.
bool is_quantized(const std::string& name, const ArrayType& type);
// training::quantize_model for 8 or 4 bits: the parameter NAME becomes NAME.codes and NAME.scale, which matmuls read as
// they are, all others stay as they are. TypeError where the model has no parameters yet, TPUError where nothing is
// quantized.
AnyModel quantize_for_tpu(const AnyModel& model, int bits = 8);

}  // namespace capibara::tpu
