// Matrices as integers with a scale for each column, and models of them.
#include <capibara/lax.h>
#include <capibara/numpy.h>
#include <capibara/tpu/quantize.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/array/format.h"

namespace capibara::tpu {

namespace lax = jax::lax;

namespace {

constexpr int64_t zero_code = 8;  // of four bits: codes are stored from 1 to 15

void require_bits(int bits) {
  if (bits != 4 && bits != 8) throw TPUError(concat("quantize_for_tpu: bits is 4 or 8, got ", bits));
}

Array number_of(DType dtype, double value) { return lax::convert_element_type(Array(value), dtype); }

// Two rows in each byte.
Array packed(Array codes) {
  codes = lax::convert_element_type(lax::convert_element_type(codes, DType::int32) + zero_code, DType::uint8);
  const int64_t rows = codes.shape(0), columns = codes.shape(1);
  if (rows % 2 != 0) {
    const Array last = lax::broadcast_in_dim(number_of(DType::uint8, zero_code), {1, columns}, {});
    codes = lax::concatenate({codes, last}, 0);
  }
  const Array pairs = lax::reshape(codes, {(rows + 1) / 2, 2, columns});
  const Array low = lax::index_in_dim(pairs, 0, 1, false), high = lax::index_in_dim(pairs, 1, 1, false);
  const Array four = lax::broadcast_in_dim(number_of(DType::uint8, 4), high.shape(), {});
  return lax::bitwise_or(low, lax::shift_left(high, four));
}

Array unpacked(const Array& codes, int64_t rows) {
  const Shape shape = codes.shape();
  auto full = [&](double value) { return lax::broadcast_in_dim(number_of(DType::uint8, value), shape, {}); };
  const Array low = lax::bitwise_and(codes, full(15)), high = lax::shift_right_logical(codes, full(4));
  const Array all = lax::reshape(lax::stack({low, high}, 1), {2 * shape[0], shape[1]});
  return lax::convert_element_type(lax::slice_in_dim(all, 0, rows), DType::int32) - zero_code;
}

// The codes as float32.
Array widened_codes(const QuantizedMatrix& matrix) {
  return lax::convert_element_type(matrix.bits == 4 ? unpacked(matrix.codes, matrix.rows) : matrix.codes,
                                   DType::float32);
}

}  // namespace

Shape QuantizedMatrix::shape() const { return {rows, codes.shape(1)}; }

int64_t QuantizedMatrix::bytes() const { return codes.size() + 4 * scale.size(); }

Array QuantizedMatrix::array(DType dtype) const {
  const Array wide = widened_codes(*this), row = lax::reshape(scale, {1, scale.shape(0)});
  return lax::convert_element_type(wide * row, dtype);
}

QuantizedMatrix quantize_matrix(const Array& matrix, int bits) {
  require_bits(bits);
  if (matrix.ndim() != 2) {
    throw TPUError(concat("quantize_for_tpu: expected a matrix, got ", to_string(matrix.type())));
  }
  const Array values = lax::convert_element_type(matrix, DType::float32);
  const Array largest = lax::reduce_max(lax::abs(values), {.axes = {0}});
  if (!matrix.is_tracer()) {
    const std::vector<float> sizes = largest.to_vector<float>();
    for (std::size_t column = 0; column < sizes.size(); ++column) {
      if (std::isfinite(sizes[column])) continue;
      throw TPUError(concat("quantize_for_tpu: expected finite values, got ", python_float(sizes[column]),
                            " in column ", column, " of ", to_string(matrix.type())));
    }
  }
  const float limit = bits == 8 ? 127.0F : 7.0F;
  const Array scale = jax::numpy::maximum(largest, 1e-30F) / limit;
  const Array scaled =
      lax::round(values / lax::reshape(scale, {1, scale.shape(0)}), lax::RoundingMethod::to_nearest_even);
  const Array least = number_of(DType::float32, -limit), most = number_of(DType::float32, limit);
  const Array codes = lax::convert_element_type(lax::clamp(least, scaled, most), DType::int8);
  return {bits == 4 ? packed(codes) : codes, scale, bits, matrix.shape(0)};
}

Array matmul(const Array& left, const QuantizedMatrix& right) {
  const Array product = jax::numpy::matmul(left, widened_codes(right));
  return product * right.scale;
}

bool is_quantized(const std::string& name, const ArrayType& type) {
  if (type.shape.size() != 2 || !is_floating(type.dtype)) return false;
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* kept : {"norm", "bias", "scale", "embed"}) {
    if (lower.find(kept) != std::string::npos) return false;
  }
  return true;
}

AnyModel quantize_for_tpu(const AnyModel& model, int bits) {
  require_bits(bits);
  ModelParts parts = model.parts();
  if (parts.parameters.empty()) {
    throw TypeError(concat("quantize_for_tpu: ", model.name(),
                           " has no parameters yet (argument 'model'); give it those ", "that its init(key) makes"));
  }
  std::map<std::string, int64_t> rows;  // of what is quantized
  Parameters stored;
  for (const auto& [name, array] : parts.parameters) {
    if (!is_quantized(name, array.type())) {
      stored[name] = array;
      continue;
    }
    const QuantizedMatrix matrix = quantize_matrix(array, bits);
    rows[name] = matrix.rows;
    stored[name + ".codes"] = matrix.codes;
    stored[name + ".scale"] = matrix.scale;
  }
  if (rows.empty()) {
    throw TPUError(
        concat("quantize_for_tpu: ", model.name(), " has no matrix to quantize (argument 'model'); only ",
               "floating arrays of two dimensions are, whose names say nothing of norm, bias, scale or embed"));
  }
  auto widened = [rows, bits](const Parameters& given) {
    Parameters whole = given;
    for (const auto& [name, count] : rows) {
      whole[name] = QuantizedMatrix{given.at(name + ".codes"), given.at(name + ".scale"), bits, count}.array();
      whole.erase(name + ".codes");
      whole.erase(name + ".scale");
    }
    return whole;
  };
  ModelParts made;
  made.name = parts.name;
  made.parameters = std::move(stored);
  for (const auto& [from, to] : {std::pair(&ModelParts::apply, &parts.apply), std::pair(&ModelParts::loss, &parts.loss),
                                 std::pair(&ModelParts::evaluate, &parts.evaluate)}) {
    if (!*to) continue;
    made.*from = [widened, function = *to](const Parameters& given, const Arrays& batch) {
      return function(widened(given), batch);
    };
  }
  return AnyModel(std::move(made));
}

}  // namespace capibara::tpu
