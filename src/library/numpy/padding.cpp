// jax.numpy.pad in all its modes.
#include <capibara/indexing.h>
#include <capibara/lax.h>
#include <capibara/numpy/creation.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/indexing.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/numpy/reductions.h>
#include <capibara/numpy/statistics.h>

#include <algorithm>

#include "lax/operators/promote.h"
#include "lax/shape/shape.h"

namespace capibara::jax::numpy {

namespace {

using Width = std::pair<int64_t, int64_t>;

std::size_t place(int64_t axis) { return static_cast<std::size_t>(axis); }

// One entry per axis: given as such, or one for all axes.
template <class T>
std::vector<std::pair<T, T>> for_axes(const char* argument, const std::vector<std::pair<T, T>>& given, int64_t rank) {
  if (static_cast<int64_t>(given.size()) == rank) return given;
  if (given.size() == 1) return std::vector<std::pair<T, T>>(place(rank), given[0]);
  throw ValueError(
      concat("pad: ", argument, " must have one pair, or one for each of ", rank, " axes, got ", given.size()));
}

void require_no_padding(const Width& width, const std::string& mode) {
  if (width.first > 0 || width.second > 0) {
    throw ValueError(concat("pad: an empty axis cannot be padded in mode '", mode, "'"));
  }
}

Array part(const Array& x, int64_t start, int64_t stop, int64_t axis) {
  return lax::slice_in_dim(x, start, stop, 1, axis);
}

Array as_type_of(const Array& value, const Array& x) {
  return lax::convert_element_type(value, x.dtype(), x.weak_type());
}

// A slice of size one repeated along its axis, before and after.
Array around(const Array& x, const Array& before, const Array& after, const Width& width, int64_t axis) {
  return lax::concatenate({repeat(before, width.first, {.axis = axis}), x, repeat(after, width.second, {.axis = axis})},
                          axis);
}

Array pad_constant(Array x, const PadWidths& widths, const Array& values) {
  Array constants = as_type_of(values, x);
  const int64_t rank = x.ndim();
  if (constants.size() == 1 && constants.ndim() <= 1) {
    std::vector<lax::PadDim> dims;
    for (const Width& width : widths) dims.push_back({width.first, width.second, 0});
    return lax::pad(x, reshape(constants, {}), dims);
  }
  if (constants.ndim() == 1 && constants.size() != 2) {
    throw ValueError(
        concat("pad: constant_values must be a number, a pair or pairs for each axis, got ", to_string(values.type())));
  }
  constants = capibara::broadcast_to("pad", constants, {rank, 2});
  for (int64_t axis = 0; axis < rank; ++axis) {
    const Width& width = widths[place(axis)];
    for (bool after : {false, true}) {
      if ((after ? width.second : width.first) == 0) continue;
      std::vector<lax::PadDim> dims(place(rank));
      (after ? dims[place(axis)].high : dims[place(axis)].low) = after ? width.second : width.first;
      x = lax::pad(x, constants(axis, after ? 1 : 0), dims);
    }
  }
  return x;
}

Array pad_wrap(Array x, const PadWidths& widths) {
  for (int64_t axis = 0; axis < x.ndim(); ++axis) {
    const Width& width = widths[place(axis)];
    const int64_t size = x.shape(axis);
    if (size == 0) {
      require_no_padding(width, "wrap");
      continue;
    }
    Arrays parts;
    if (width.first % size > 0) parts.push_back(part(x, size - width.first % size, size, axis));
    for (int64_t i = 0; i < width.first / size + width.second / size + 1; ++i) parts.push_back(x);
    if (width.second % size > 0) parts.push_back(part(x, 0, width.second % size, axis));
    x = lax::concatenate(parts, axis);
  }
  return x;
}

// Mirrors one end repeatedly until it is long enough; odd reflections are point symmetric about the edge.
// `size` is the size of the axis before any padding.
Array reflect_end(Array x, int64_t padding, int64_t axis, int64_t size, bool before, const PadOptions& options) {
  const int64_t offset = options.mode == "reflect" && size > 1 ? 1 : 0;
  Array edge = before ? part(x, 0, 1, axis) : part(x, x.shape(axis) - 1, x.shape(axis), axis);
  while (padding > 0) {
    const int64_t step = std::min(padding, size - offset), now = x.shape(axis);
    padding -= step;
    Array mirrored = before ? part(x, offset, offset + step, axis) : part(x, now - step - offset, now - offset, axis);
    mirrored = flip(mirrored, axis);
    if (options.reflect_type == "odd") {
      mirrored = 2 * edge - mirrored;
      if (size > 1) edge = before ? part(mirrored, 0, 1, axis) : part(mirrored, step - 1, step, axis);
    }
    x = before ? lax::concatenate({mirrored, x}, axis) : lax::concatenate({x, mirrored}, axis);
  }
  return x;
}

Array pad_ramp(Array x, const PadWidths& widths, const PadOptions& options) {
  std::vector<std::pair<Array, Array>> ends = options.end_values;
  if (ends.empty()) ends.emplace_back(Array(0), Array(0));
  ends = for_axes("end_values", ends, x.ndim());
  for (int64_t axis = 0; axis < x.ndim(); ++axis) {
    const int64_t size = x.shape(axis);
    auto ramp = [&](const Array& from, const Array& edge, int64_t count) {
      Array line = linspace(from, lax::squeeze(edge, {axis}),
                            {.num = count, .endpoint = false, .dtype = x.dtype(), .axis = axis});
      return as_type_of(line, x);
    };
    Array before = ramp(ends[place(axis)].first, part(x, 0, 1, axis), widths[place(axis)].first);
    Array after = ramp(ends[place(axis)].second, part(x, size - 1, size, axis), widths[place(axis)].second);
    x = lax::concatenate({before, x, flip(after, axis)}, axis);
  }
  return x;
}

Array statistic(const std::string& mode, const Array& x, int64_t axis) {
  if (mode == "maximum") return max(x, {.axis = axis, .keepdims = true});
  if (mode == "minimum") return min(x, {.axis = axis, .keepdims = true});
  if (mode == "mean") return mean(x, {.axis = axis, .keepdims = true});
  return median(x, {.axis = axis, .keepdims = true});
}

Array pad_statistic(Array x, const PadWidths& widths, const PadOptions& options) {
  PadWidths lengths;
  if (options.stat_length) lengths = for_axes("stat_length", *options.stat_length, x.ndim());
  for (int64_t axis = 0; axis < x.ndim(); ++axis) {
    Array before, after;
    if (lengths.empty()) {
      before = after = statistic(options.mode, x, axis);
    } else {
      const int64_t size = x.shape(axis);
      const auto [first, last] = lengths[place(axis)];
      if (first == 0 || last == 0) throw ValueError("pad: a stat_length of 0 gives no value to pad with");
      before = statistic(options.mode, part(x, 0, std::min(first, size), axis), axis);
      after = statistic(options.mode, part(x, size - std::min(last, size), size, axis), axis);
    }
    if (is_integer(x.dtype())) {
      before = round(before);
      after = round(after);
    }
    Array as_type_of_before = as_type_of(before, x);
    x = around(x, as_type_of_before, as_type_of(after, x), widths[place(axis)], axis);
  }
  return x;
}

void require_positive(const PadWidths& widths) {
  for (const Width& width : widths) {
    if (width.first >= 0 && width.second >= 0) continue;
    throw ValueError(concat("pad: pad_width must not be negative, got (", width.first, ", ", width.second, ")"));
  }
}

}  // namespace

Array pad(const Array& array, const PadWidths& pad_width, const PadOptions& options) {
  if (array.ndim() == 0) return array;
  const PadWidths widths = for_axes("pad_width", pad_width, array.ndim());
  require_positive(widths);
  const std::string& mode = options.mode;
  if (mode == "constant") return pad_constant(array, widths, options.constant_values.value_or(Array(0)));
  if (mode == "wrap") return pad_wrap(array, widths);
  if (mode == "linear_ramp") return pad_ramp(array, widths, options);
  if (mode == "maximum" || mode == "minimum" || mode == "mean" || mode == "median") {
    return pad_statistic(array, widths, options);
  }
  if (mode == "empty") return pad_constant(array, widths, Array(0));
  if (mode != "edge" && mode != "reflect" && mode != "symmetric") {
    throw NotImplementedError(concat("pad: mode '", mode, "' is not implemented"));
  }
  if (options.reflect_type != "even" && options.reflect_type != "odd") {
    throw ValueError(concat("pad: reflect_type must be 'even' or 'odd', got '", options.reflect_type, "'"));
  }
  Array x = array;
  for (int64_t axis = 0; axis < x.ndim(); ++axis) {
    const Width& width = widths[place(axis)];
    const int64_t size = x.shape(axis);
    if (size == 0) {
      require_no_padding(width, mode);
    } else if (mode == "edge") {
      Array part_x = part(x, 0, 1, axis);
      x = around(x, part_x, part(x, size - 1, size, axis), width, axis);
    } else if (width.first > 0 || width.second > 0) {
      x = reflect_end(x, width.first, axis, size, true, options);
      x = reflect_end(x, width.second, axis, size, false, options);
    }
  }
  return x;
}

Array pad(const Array& array, const PadWidths& pad_width, const PadFunction& mode) {
  const PadWidths widths = for_axes("pad_width", pad_width, array.ndim());
  require_positive(widths);
  Array x = pad_constant(array, widths, Array(0));
  for (int64_t axis = 0; axis < x.ndim(); ++axis) {
    const std::function<Array(const Array&)> function = [&](const Array& vector) {
      return mode(vector, widths[place(axis)], axis);
    };
    x = apply_along_axis(function, axis, x);
  }
  return x;
}

}  // namespace capibara::jax::numpy
