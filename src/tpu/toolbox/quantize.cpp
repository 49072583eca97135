// Matrices as integers of 8 or 4 bits, and models with them, with the toolbox's errors.
#include <capibara/tpu/quantize.h>
#include <capibara/training/weights.h>

namespace capibara::tpu {

namespace {

const char* format_of(int bits) {
  if (bits != 4 && bits != 8) throw TPUError(concat("quantize_for_tpu: bits is 4 or 8, got ", bits));
  return bits == 8 ? "int8" : "int4";
}

}  // namespace

kernels::QuantizedMatrix quantize_matrix(const Array& matrix, int bits) {
  const std::string format = format_of(bits);
  try {
    return kernels::quantize(matrix, {.format = format});
  } catch (const ValueError& error) {
    throw TPUError(concat("quantize_for_tpu: ", error.what()));
  }
}

bool is_quantized(const std::string& name, const ArrayType& type) { return training::becomes_codes(name, type); }

AnyModel quantize_for_tpu(const AnyModel& model, int bits) {
  const std::string format = format_of(bits);
  try {
    return training::quantize_model(model, format);
  } catch (const TypeError& error) {
    throw TypeError(concat("quantize_for_tpu: ", error.what()));
  } catch (const ValueError& error) {
    throw TPUError(concat("quantize_for_tpu: ", error.what()));
  }
}

}  // namespace capibara::tpu
