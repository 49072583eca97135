// The discrete Fourier transform over the last one to three dimensions.
#include "lax/families.h"
#include "lax/reduce/monoid.h"
#include "lax/rules.h"
#include "lax/sharding/factors.h"

#include <algorithm>

#include "core/array/format.h"
#include "lax/call.h"
#include "lax/operators/promote.h"
#include "program/trace/stage.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

// As jax numbers them.
enum FftKind : int64_t { forward = 0, inverse = 1, real_forward = 2, real_inverse = 3 };
const char* const kind_names[] = {"FFT", "IFFT", "RFFT", "IRFFT"};

Array fft(const Array& x, FftKind kind, const Ints& lengths) {
  return lax::fft(x, static_cast<lax::FftType>(kind), lengths);
}

double product(const Ints& lengths) {
  double size = 1;
  for (int64_t length : lengths) size *= static_cast<double>(length);
  return size;
}

// The multiplicity of each coefficient of a half spectrum in the whole one: 2, but 1 for the first and, for an even
// length, the last; shaped [1, ..., 1, m].
Array half_spectrum_weights(DType dtype, int64_t m, bool even, int64_t rank) {
  auto filled = [&](double value, int64_t size) { return lax::full({size}, scalar_of(dtype, value)); };
  Array weights = filled(2, m);
  weights = lax::dynamic_update_slice(weights, filled(1, 1), {exact_scalar(DType::int32, 0)});
  if (even) weights = lax::dynamic_update_slice(weights, filled(1, 1), {exact_scalar(DType::int32, m - 1)});
  Ints leading;
  for (int64_t d = 0; d + 1 < rank; ++d) leading.push_back(d);
  return lax::expand_dims(weights, leading);
}

Array transpose_rfft(const Array& cotangent, const Ints& lengths) {
  auto body = [&](std::span<const Array> xs) -> Arrays {
    const Array& t = xs[0];
    Array weights = half_spectrum_weights(t.dtype(), t.shape(-1), lengths.back() % 2 == 0, t.ndim());
    Array back = fft(lax::div(lax::conj(t), weights), real_inverse, lengths);
    return {lax::mul(scalar_of(back.dtype(), product(lengths)), back)};
  };
  Program program = stage(body, Types{cotangent.type()}, "_rfft_transpose").program;
  return call_program(program, Arrays{cotangent}, "_rfft_transpose")[0];
}

Array transpose_irfft(const Array& cotangent, const Ints& lengths) {
  Array x = fft(cotangent, real_forward, lengths);
  Array weights = half_spectrum_weights(x.dtype(), x.shape(-1), lengths.back() % 2 == 0, x.ndim());
  Array scaled = lax::mul(scalar_of(x.dtype(), 1 / product(lengths)), weights);
  return lax::conj(lax::mul(scaled, x));
}

TypeResult fft_type(std::span<const ArrayType> types, const Attrs& attrs) {
  require_count("fft", types, 1);
  const ArrayType& x = types[0];
  const Ints& lengths = attrs.ints("fft_lengths");
  int64_t kind = attrs.integer("fft_type");
  if (kind < forward || kind > real_inverse) throw ValueError(concat("fft: fft_type must be 0 to 3, got ", kind));
  std::string name = kind_names[kind];
  if (lengths.empty() || lengths.size() > 3) {
    throw ValueError(concat("fft: fft_lengths must have one to three entries, got ", lengths.size()));
  }
  if (static_cast<int64_t>(lengths.size()) > x.rank()) {
    throw ValueError(concat(name, " input shape ", shape_tuple(x.shape),
                            " must have at least as many input dimensions as fft_lengths ", shape_tuple(lengths)));
  }
  std::size_t first = x.shape.size() - lengths.size();
  bool real = kind == real_forward;
  if (real && x.dtype != DType::float32 && x.dtype != DType::float64) {
    throw ValueError(concat("RFFT input must be float32 or float64, got ", to_string(x.dtype)));
  }
  if (!real && !is_complex(x.dtype))
    throw ValueError(concat(name, " input must be complex64 or complex128, got ", to_string(x.dtype)));
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    bool last_of_half = kind == real_inverse && i + 1 == lengths.size();
    int64_t expected = last_of_half ? lengths[i] / 2 + 1 : lengths[i];
    if (x.shape[first + i] != expected && !(last_of_half && lengths[i] == 0)) {
      throw ValueError(concat(name, " input shape ", shape_tuple(x.shape), " minor dimensions must be equal to ",
                              kind == real_inverse
                                  ? concat("all except the last fft_length, got fft_lengths=", shape_tuple(lengths))
                                  : concat("fft_lengths ", shape_tuple(lengths)),
                              ": expected ", expected, " in dimension ", first + i, ", got ", x.shape[first + i]));
    }
  }
  ArrayType out = x;
  if (real) {
    out.dtype = complex_dtype(x.dtype);
    out.shape.back() = lengths.back() / 2 + 1;
  } else if (kind == real_inverse) {
    out.dtype = real_dtype(x.dtype);
    out.shape.back() = lengths.back();
  }
  return Types{out};
}

std::vector<Sample> fft_samples(DType dtype) {
  std::vector<Sample> samples;
  auto add = [&](DType type, Shape shape, FftKind kind, Ints lengths) {
    Sample s;
    s.inputs = {scalar_type(type).with_shape(std::move(shape))};
    s.attrs = {{"fft_type", static_cast<int64_t>(kind)}, {"fft_lengths", std::move(lengths)}};
    samples.push_back(std::move(s));
  };
  if (is_complex(dtype)) {
    for (FftKind kind : {forward, inverse}) {
      add(dtype, {8}, kind, {8});
      add(dtype, {2, 7}, kind, {7});
      add(dtype, {3, 4, 5}, kind, {4, 5});
      add(dtype, {2, 3, 4}, kind, {2, 3, 4});
      add(dtype, {0, 4}, kind, {4});
    }
    add(dtype, {5}, real_inverse, {8});
    add(dtype, {2, 4}, real_inverse, {7});
    add(dtype, {2, 3, 3}, real_inverse, {3, 4});
  } else {
    add(dtype, {8}, real_forward, {8});
    add(dtype, {2, 7}, real_forward, {7});
    add(dtype, {2, 3, 4}, real_forward, {3, 4});
  }
  return samples;
}

}  // namespace

Family fft_family() {
  PrimitiveRecord record;
  record.name = "fft";
  record.factors = fft_factors;
  record.traits.nan_checked = true;
  record.traits.element_nanoseconds = 30;
  record.doc =
      "The discrete Fourier transform over the last dimensions: complex, inverse, of real numbers, and back to them.";
  record.stablehlo = "stablehlo.fft";
  record.dtypes = {DType::float32, DType::float64, DType::complex64, DType::complex128};
  record.type = fft_type;
  record.jvp = linear_jvp();
  record.transpose = [](const TransposeArgs& args) -> Arrays {
    const Array& cotangent = args.cotangents[0];
    if (!cotangent.defined()) return {Array()};
    auto kind = static_cast<FftKind>(args.attrs.integer("fft_type"));
    const Ints& lengths = args.attrs.ints("fft_lengths");
    if (kind == real_forward) return {transpose_rfft(cotangent, lengths)};
    if (kind == real_inverse) return {transpose_irfft(cotangent, lengths)};
    return {fft(cotangent, kind, lengths)};
  };
  record.batch = [](const BatchArgs& args) -> BatchResult {
    Array x = move_axis(args.inputs[0], args.dims[0], 0);
    return {{fft(x, static_cast<FftKind>(args.attrs.integer("fft_type")), args.attrs.ints("fft_lengths"))}, {0}};
  };
  record.samples = fft_samples;
  return {record};
}

}  // namespace capibara

namespace capibara::jax::lax {

Array fft(const Array& x, FftType type, const Ints& fft_lengths) {
  static const Primitive p = primitive("fft");
  if (type == FftType::rfft && is_complex(x.dtype())) {
    throw ValueError(concat("fft: only real valued inputs supported for rfft, got ", to_string(x.type())));
  }
  DType inexact = inexact_dtype(x.dtype());
  DType dtype = type == FftType::rfft ? inexact : complex_dtype(inexact);
  // A nested function in the program, as in jax.
  auto body = [&](std::span<const Array> args) -> Arrays {
    Array input = convert_element_type(args[0], dtype);
    if (fft_lengths.empty()) return {input};
    return capibara::bind(p, Arrays{input}, {{"fft_type", static_cast<int64_t>(type)}, {"fft_lengths", fft_lengths}});
  };
  Program program = stage(body, Types{x.type()}, "fft").program;
  return call_program(program, Arrays{x}, "fft")[0];
}

}  // namespace capibara::jax::lax
