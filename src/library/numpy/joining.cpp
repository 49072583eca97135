// jax.numpy: joining and splitting arrays, and repeating elements.
#include <capibara/arithmetic_error.h>
#include <capibara/indexing.h>
#include <capibara/lax.h>
#include <capibara/numpy/indexing.h>
#include <capibara/numpy/manipulation.h>

#include <algorithm>

#include "lax/operators/promote.h"
#include "lax/shape/shape.h"
#include "program/trace/trace.h"

namespace capibara::jax::numpy {

namespace {

// Converts to one dtype: the requested one, else the common one.
Arrays of_one_dtype(const Arrays& arrays, std::optional<DType> dtype) {
  if (!dtype) return promote_dtypes(arrays);
  Arrays converted;
  for (const Array& x : arrays) converted.push_back(lax::convert_element_type(x, canonical(*dtype), false));
  return converted;
}

Arrays each(const Arrays& arrays, Array (*change)(const Array&)) {
  Arrays changed;
  for (const Array& x : arrays) changed.push_back(change(x));
  return changed;
}

}  // namespace

// ---- joining -----------------------------------------------------------------------------------------------------

Array concatenate(const Arrays& arrays, const ConcatenateOptions& options) {
  if (arrays.empty()) throw ValueError("concatenate: at least one array is needed, got none");
  if (!options.axis) {
    return concatenate(each(arrays, [](const Array& x) { return ravel(x); }), {.axis = 0, .dtype = options.dtype});
  }
  if (arrays[0].ndim() == 0) {
    throw ValueError("concatenate: zero-dimensional arrays cannot be concatenated (argument 'arrays'); use stack");
  }
  const int64_t axis = canonical_axis("concatenate", *options.axis, arrays[0].ndim());
  return lax::concatenate(of_one_dtype(arrays, options.dtype), axis);
}

Array concat(const Arrays& arrays, const ConcatenateOptions& options) { return concatenate(arrays, options); }

Array stack(const Arrays& arrays, const StackOptions& options) {
  if (arrays.empty()) throw ValueError("stack: at least one array is needed, got none");
  return lax::stack(of_one_dtype(arrays, options.dtype), options.axis);
}

Array hstack(const Arrays& tup, const JoinOptions& options) {
  if (tup.empty()) throw IndexError("hstack: at least one array is needed, got none (argument 'tup')");
  Arrays parts = each(tup, atleast_1d);
  return concatenate(parts, {.axis = parts[0].ndim() == 1 ? 0 : 1, .dtype = options.dtype});
}

Array vstack(const Arrays& tup, const JoinOptions& options) {
  return concatenate(each(tup, atleast_2d), {.axis = 0, .dtype = options.dtype});
}

Array dstack(const Arrays& tup, const JoinOptions& options) {
  return concatenate(each(tup, atleast_3d), {.axis = 2, .dtype = options.dtype});
}

Array column_stack(const Arrays& tup) {
  auto column = [](const Array& x) { return x.ndim() < 2 ? transpose(atleast_2d(x)) : x; };
  return concatenate(each(tup, column), {.axis = 1});
}

namespace {

struct Joined {
  Array array;
  int64_t depth;  // 1 for an array, one more for each enclosing list
};

Joined join_blocks(const Blocks& blocks) {
  if (!blocks.is_list()) return {blocks.array(), 1};
  if (blocks.items().empty()) throw ValueError("block: lists must not be empty (argument 'arrays')");
  std::vector<Joined> parts;
  for (const Blocks& item : blocks.items()) parts.push_back(join_blocks(item));
  int64_t rank = parts[0].depth;
  for (const Joined& part : parts) {
    if (part.depth != parts[0].depth) {
      throw ValueError(concat("block: all arrays must be nested in equally many lists, got depths ", parts[0].depth - 1,
                              " and ", part.depth - 1));
    }
    rank = std::max(rank, part.array.ndim());
  }
  Arrays arrays;
  for (const Joined& part : parts) arrays.push_back(lax::broadcast_to_rank(part.array, rank));
  return {concatenate(arrays, {.axis = -parts[0].depth}), parts[0].depth + 1};
}

}  // namespace

Array block(const Blocks& arrays) { return join_blocks(arrays).array; }

Array append(const Array& arr, const Array& values, std::optional<int64_t> axis) {
  if (!axis) return concatenate({ravel(arr), ravel(values)});
  return concatenate({arr, values}, {.axis = axis});
}

// ---- splitting ---------------------------------------------------------------------------------------------------

namespace {

Arrays split_into(const char* name, const Array& x, const Sections& sections, int64_t axis, bool equal) {
  if (axis < -x.ndim() || axis >= x.ndim()) {
    throw IndexError(concat(name, ": axis ", axis, " is out of bounds for array of dimension ", x.ndim()));
  }
  const int64_t size = x.shape(axis);
  Ints sizes;
  if (!sections.count()) {
    int64_t from = 0;
    for (int64_t position : sections.positions()) {
      sizes.push_back(position - from);
      from = position;
    }
    sizes.push_back(size - from);
    return lax::split(x, sizes, axis);
  }
  const int64_t count = *sections.count();
  if (count == 0)
    throw ZeroDivisionError(concat(name, ": division by zero: the number of sections must be positive, got 0"));
  if (count < 0) throw ValueError(concat(name, ": the number of sections must be positive, got ", count));
  const int64_t rest = size % count;
  if (rest != 0 && equal) {
    throw ValueError(concat(name, ": axis ", axis, " of size ", size, " has no equal division into ", count,
                            " sections; array_split allows unequal ones"));
  }
  for (int64_t i = 0; i < count; ++i) sizes.push_back(size / count + (i < rest));
  return lax::split(x, sizes, axis);
}

}  // namespace

Arrays split(const Array& ary, const Sections& indices_or_sections, int64_t axis) {
  return split_into("split", ary, indices_or_sections, axis, true);
}
Arrays array_split(const Array& ary, const Sections& indices_or_sections, int64_t axis) {
  return split_into("array_split", ary, indices_or_sections, axis, false);
}
Arrays hsplit(const Array& ary, const Sections& indices_or_sections) {
  return split_into("hsplit", ary, indices_or_sections, ary.ndim() == 1 ? 0 : 1, true);
}
Arrays vsplit(const Array& ary, const Sections& indices_or_sections) {
  return split_into("vsplit", ary, indices_or_sections, 0, true);
}
Arrays dsplit(const Array& ary, const Sections& indices_or_sections) {
  return split_into("dsplit", ary, indices_or_sections, 2, true);
}
Arrays unstack(const Array& x, int64_t axis) { return lax::unstack(x, canonical_axis("unstack", axis, x.ndim())); }

// ---- repetition --------------------------------------------------------------------------------------------------

Array tile(const Array& A, const Ints& reps) {
  Ints full = reps;
  while (static_cast<int64_t>(full.size()) < A.ndim()) full.insert(full.begin(), 1);
  return lax::tile(lax::broadcast_to_rank(A, static_cast<int64_t>(full.size())), full);
}

namespace {

// Every element the same number of times: a broadcast.
Array repeat_evenly(const Array& a, int64_t repeats, int64_t axis) {
  axis = canonical_axis("repeat", axis, a.ndim());
  Shape wide = inserted(a.shape(), axis + 1, repeats), shape = a.shape();
  shape[static_cast<std::size_t>(axis)] *= repeats;
  return lax::reshape(lax::broadcast_in_dim(a, wide, other_dims(a.ndim() + 1, {axis + 1})), shape);
}

// The source element of each position, for traced repeats: scatters a one where each element begins, and counts.
Array places_of_traced(const Array& repeats, int64_t total) {
  const DType dtype = default_int();
  Array counts = lax::convert_element_type(repeats, dtype, false);
  Array before = roll(counts, 1).at(0).set(0);
  Array begins = lax::cumsum(before);
  ArrayType zero;
  zero.shape = {total};
  zero.dtype = DType::int32;
  Array marks = lax::zeros(zero).at(begins).add(1);
  return lax::cumsum(marks) - 1;
}

}  // namespace

Array repeat(const Array& a, const Array& repeats, const RepeatOptions& options) {
  if (!is_integer(repeats.dtype()) && !is_bool(repeats.dtype())) {
    throw TypeError(concat("repeat: repeats must be integers, got ", to_string(repeats.type())));
  }
  const Array x = options.axis ? a : ravel(a);
  const int64_t axis = options.axis.value_or(0);
  std::optional<int64_t> total = options.total_repeat_length;
  if (!total) {
    if (repeats.is_tracer()) {
      throw ConcretizationTypeError(
          concat("repeat: the number of repeats must be known while tracing: pass concrete repeats, or ",
                 "total_repeat_length", origin_line(repeats)));
    }
    if (repeats.ndim() == 0 && x.ndim() != 0) return repeat_evenly(x, repeats.item<int64_t>(), axis);
  }
  Array counts = ravel(repeats);
  if (x.ndim() == 0) {
    if (counts.size() != 1) {
      throw ValueError(concat("repeat: a scalar is repeated a scalar number of times, got repeats of type ",
                              to_string(repeats.type())));
    }
    return lax::full({total ? *total : counts.item<int64_t>()}, x);
  }
  if (axis < -x.ndim() || axis >= x.ndim()) {
    throw IndexError(concat("repeat: axis ", axis, " is out of bounds for array of dimension ", x.ndim()));
  }
  const int64_t size = x.shape(axis);
  counts = capibara::broadcast_to("repeat", counts, {size});
  std::vector<int32_t> places;
  if (!total) {
    const Ints known = counts.to_vector<int64_t>();
    for (std::size_t i = 0; i < known.size(); ++i) {
      places.insert(places.end(), static_cast<std::size_t>(std::max<int64_t>(0, known[i])), static_cast<int32_t>(i));
    }
    total = static_cast<int64_t>(places.size());
  }
  if (*total == 0) {
    Shape shape = x.shape();
    shape[static_cast<std::size_t>(canonical_axis("repeat", axis, x.ndim()))] = 0;
    return lax::zeros(x.type().strong().with_shape(shape));
  }
  if (size == 0) return x;
  return take(x, options.total_repeat_length ? places_of_traced(counts, *total) : capibara::array<int32_t>(places),
              {.axis = axis});
}

}  // namespace capibara::jax::numpy
