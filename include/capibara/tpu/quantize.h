// Models with their matrices as integers of 8 or 4 bits, one scale for each column.
#pragma once

#include <capibara/model.h>
#include <capibara/tpu/error.h>

#include <string>

namespace capibara::tpu {

// codes * scale: each column is divided by its largest magnitude and rounded.
struct QuantizedMatrix {
  Array codes;  // int8 [rows, columns]; of 4 bits uint8 [(rows + 1) / 2, columns], the even row in the low half
  Array scale;  // float32 [columns]
  int bits = 8;
  int64_t rows = 0;

  Shape shape() const;
  int64_t bytes() const;  // of codes and scales
  // The matrix that the codes stand for.
  Array array(DType dtype = DType::float32) const;
};
// A matrix as integers. TPUError for other bits than 8 and 4, for other ranks and for values that are not finite.
QuantizedMatrix quantize_matrix(const Array& matrix, int bits = 8);
// left @ right of the codes, scaled once; float32 at least.
Array matmul(const Array& left, const QuantizedMatrix& right);

// Whether quantize_for_tpu makes integers of a parameter: a floating matrix whose name says nothing of norm, bias,
// scale or embed.
bool is_quantized(const std::string& name, const ArrayType& type);
// The model with its matrices as integers, which are widened where a function of the model reads them. The parameter
// NAME becomes NAME.codes and NAME.scale, all others stay as they are. TypeError where the model has no parameters yet,
// TPUError where nothing is quantized.
AnyModel quantize_for_tpu(const AnyModel& model, int bits = 8);

}  // namespace capibara::tpu
