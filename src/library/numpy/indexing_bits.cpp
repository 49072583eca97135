// jax.numpy: packing bits into bytes and unpacking them.
#include <capibara/lax.h>
#include <capibara/numpy/indexing.h>
#include <capibara/numpy/manipulation.h>

#include "lax/operators/promote.h"
#include "lax/shape/shape.h"

namespace capibara::jax::numpy {

namespace {

// The position of each bit of a byte in the requested order, along the last of `rank` axes.
Array bit_places(const char* name, const std::string& bitorder, int64_t rank) {
  if (bitorder != "big" && bitorder != "little") {
    throw ValueError(concat(name, ": bitorder must be 'little' or 'big', got '", bitorder, "'"));
  }
  Array places = lax::iota(DType::uint8, 8);
  if (bitorder == "big") places = lax::rev(places, {0});
  return lax::expand_dims(places, range(rank - 1));
}

}  // namespace

Array packbits(const Array& a, const BitsOptions& options) {
  if (!is_integer(a.dtype()) && !is_bool(a.dtype())) {
    throw TypeError(concat("packbits: integers or booleans are needed, got ", to_string(a.type())));
  }
  bit_places("packbits", options.bitorder, 1);
  Array bits = lax::convert_element_type(lax::ne(a, lax::zeros_like(a)), DType::uint8, false);
  if (!options.axis) bits = ravel(bits);
  const int64_t axis = options.axis.value_or(0);
  bits = swapaxes(bits, axis, -1);
  const int64_t rest = bits.shape(-1) % 8;
  if (rest != 0) {
    std::vector<lax::PadDim> widths(static_cast<std::size_t>(bits.ndim()));
    widths.back().high = 8 - rest;
    bits = lax::pad(bits, 0, widths);
  }
  Shape bytes = bits.shape();
  bytes.back() /= 8;
  bytes.push_back(8);
  bits = lax::reshape(bits, bytes);
  Array places = broadcast_to(bit_places("packbits", options.bitorder, bits.ndim()), bits.shape());
  Array packed = lax::reduce_or(lax::shift_left(bits, places), {{bits.ndim() - 1}});
  return swapaxes(packed, axis, -1);
}

Array unpackbits(const Array& a, const BitsOptions& options) {
  if (a.dtype() != DType::uint8) throw TypeError(concat("unpackbits: uint8 is needed, got ", to_string(a.type())));
  bit_places("unpackbits", options.bitorder, 1);
  Array bytes = options.axis ? a : ravel(a);
  const int64_t axis = options.axis.value_or(0);
  bytes = swapaxes(bytes, axis, -1);
  Shape shape = bytes.shape(), wide = shape;
  shape.back() *= 8;
  wide.push_back(8);
  Array spread = broadcast_to(lax::expand_dims(bytes, {-1}), wide);
  Array places = broadcast_to(bit_places("unpackbits", options.bitorder, spread.ndim()), wide);
  Array shift_right_logical_spread = lax::shift_right_logical(spread, places);
  Array bits = lax::bitwise_and(shift_right_logical_spread, lax::ones(spread.type()));
  bits = lax::reshape(bits, shape);
  if (options.count) {
    const int64_t count = *options.count, size = bits.shape(-1);
    if (count > size) {
      std::vector<lax::PadDim> widths(static_cast<std::size_t>(bits.ndim()));
      widths.back().high = count - size;
      bits = lax::pad(bits, 0, widths);
    } else {
      const int64_t stop = count < 0 ? std::max<int64_t>(0, size + count) : count;
      bits = lax::slice_in_dim(bits, 0, stop, 1, -1);
    }
  }
  return swapaxes(bits, axis, -1);
}

}  // namespace capibara::jax::numpy
