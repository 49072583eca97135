// Table rows for jax.numpy: shapes, joining, repetition and padding.
#include <capibara/lax.h>
#include <capibara/numpy/manipulation.h>

#include "lax/index/index_expression.h"
#include "library/table/families.h"
#include "library/table/keywords.h"
#include "library/table/lax/arguments.h"

namespace capibara::library {

namespace {

namespace numpy = jax::numpy;

// A sequence of arrays, or the rows of one.
Arrays parts(const Arguments& a, std::string_view name) {
  const Array* whole = a[name].array();
  if (whole && whole->ndim() == 0) {
    throw ValueError(concat(a.function(), ": argument '", name, "' must be a sequence of arrays, got a scalar"));
  }
  return a.arrays(name);
}

template <auto function>
Value each_of(const Arguments& a) {
  Arrays results;
  for (const Array& x : a.arrays("arys")) results.push_back(function(x));
  return results.size() == 1 ? Value(results[0]) : Value(results);
}

numpy::Sections sections(const Arguments& a) {
  constexpr std::string_view name = "indices_or_sections";
  const Value& value = a[name];
  const Array* array = value.array();
  if (value.sequence() || (array && array->ndim() > 0)) return a.ints(name);
  if (const double* real = value.get_if<double>()) return static_cast<int64_t>(*real);
  return a.integer(name);
}

numpy::Blocks blocks(const Arguments& a, const Value& value) {
  const Sequence* sequence = value.sequence();
  if (!sequence) return leaf_array(a, value);
  if (!sequence->is_list) throw ValueError("block: arrays must be given in lists, got a tuple (argument 'arrays')");
  std::vector<numpy::Blocks> items;
  for (const Value& item : sequence->items) items.push_back(blocks(a, item));
  return items;
}

// Python's slice is passed as a sequence of that type name: start, stop, step.
std::optional<Array> positions_of_slice(const Value& value, int64_t size) {
  const Sequence* sequence = value.sequence();
  if (!sequence || sequence->type_name != "slice" || sequence->items.size() != 3) return std::nullopt;
  auto bound = [&](std::size_t i) -> std::optional<int64_t> {
    const int64_t* number = sequence->items[i].get_if<int64_t>();
    return number ? std::optional(*number) : std::nullopt;
  };
  const ResolvedSlice resolved = resolve_slice({bound(0), bound(1), bound(2)}, size);
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < resolved.size; ++i) positions.push_back(resolved.start + i * resolved.step);
  return capibara::array<int64_t>(positions);
}

int64_t length_of(const Array& x, const std::optional<int64_t>& axis) {
  if (!axis) return x.size();
  if (*axis < -x.ndim() || *axis >= x.ndim()) {
    throw ValueError(concat("axis ", *axis, " is out of bounds for array of dimension ", x.ndim()));
  }
  return x.shape(*axis);
}

// ---- pad ---------------------------------------------------------------------------------------------------------

using ValuePairs = std::vector<std::pair<Array, Array>>;

// The elements of a concrete array, each a strong scalar; nothing is staged for them.
Arrays plain_scalars(const Array& x) {
  const int64_t size = storage_size(x.dtype());
  const std::byte* data = x.size() == 0 ? nullptr : x.raw_data();
  Arrays scalars;
  for (int64_t i = 0; i < x.size(); ++i) scalars.push_back(Array::from_host(x.dtype(), {}, data + i * size));
  return scalars;
}

// NumPy's notations for (before, after) per axis: all pairs, one pair, or one number.
ValuePairs value_pairs(const Value& value, int64_t rank, const char* name) {
  Array all;
  try {
    all = array_of(value, "pad");
  } catch (const ValueError& error) {
    throw TypeError(concat("pad: entries of '", name, "' must have equal shapes: ", error.what()));
  }
  if (all.is_tracer())
    throw ConcretizationTypeError(concat("pad: argument '", name, "' must be concrete, got a traced array"));
  const Shape& shape = all.shape();
  const auto count = static_cast<std::size_t>(rank);
  const Arrays numbers = plain_scalars(all);
  ValuePairs result;
  if (shape == Shape{rank, 2}) {
    for (std::size_t i = 0; i < count; ++i) result.emplace_back(numbers[2 * i], numbers[2 * i + 1]);
    return result;
  }
  if (shape == Shape{1, 2} || shape == Shape{2}) return ValuePairs(count, {numbers[0], numbers[1]});
  if (shape == Shape{1} || shape.empty()) return ValuePairs(count, {numbers[0], numbers[0]});
  throw ValueError(concat("pad: argument '", name, "' must be a number, (before, after) or ", rank,
                          " such pairs, got shape ", to_string(all.type())));
}

numpy::PadWidths integer_pairs(const Value& value, int64_t rank, const char* name) {
  numpy::PadWidths result;
  for (const auto& [before, after] : value_pairs(value, rank, name)) {
    if (!is_integer(before.dtype()))
      throw TypeError(concat("pad: argument '", name, "' must be integers, got ", to_string(before.type())));
    result.emplace_back(before.item<int64_t>(), after.item<int64_t>());
  }
  return result;
}

void require_known_keywords(const Arguments& a, const std::string& mode) {
  static const std::vector<std::pair<std::string, std::string>> allowed = {{"empty", ""},
                                                                           {"edge", ""},
                                                                           {"wrap", ""},
                                                                           {"constant", "constant_values"},
                                                                           {"linear_ramp", "end_values"},
                                                                           {"maximum", "stat_length"},
                                                                           {"mean", "stat_length"},
                                                                           {"median", "stat_length"},
                                                                           {"minimum", "stat_length"},
                                                                           {"reflect", "reflect_type"},
                                                                           {"symmetric", "reflect_type"}};
  for (const auto& [known, keyword] : allowed) {
    if (known != mode) continue;
    for (const std::string& field : keywords_of(a, "kwargs").fields) {
      if (field != keyword)
        throw ValueError(concat("pad: unsupported keyword arguments for mode '", mode, "': '", field, "'"));
    }
    return;
  }
  throw NotImplementedError(concat("pad: mode '", mode, "' is not implemented"));
}

Value pad(const Arguments& a) {
  const Array x = a.array("array");
  const numpy::PadWidths widths = integer_pairs(a["pad_width"], x.ndim(), "pad_width");
  if (const Callable* function = a["mode"].get_if<Callable>()) {
    const Sequence& named = keywords_of(a, "kwargs");
    return numpy::pad(x, widths, [&](const Array& vector, std::pair<int64_t, int64_t> width, int64_t axis) {
      Value options = Value::named_tuple("dict", named.fields, named.items);
      return array_of((*function)({vector, Value::tuple_of({Value(width.first), Value(width.second)}), axis, options}),
                      "pad");
    });
  }
  numpy::PadOptions options{.mode = a.text("mode")};
  require_known_keywords(a, options.mode);
  if (const Value* values = keyword(a, "kwargs", "constant_values")) options.constant_values = array_of(*values, "pad");
  if (const Value* values = keyword(a, "kwargs", "end_values"))
    options.end_values = value_pairs(*values, x.ndim(), "end_values");
  if (const Value* length = keyword(a, "kwargs", "stat_length"); length && !length->is_none()) {
    options.stat_length = integer_pairs(*length, x.ndim(), "stat_length");
  }
  if (const Value* type = keyword(a, "kwargs", "reflect_type")) {
    const std::string* text = type->get_if<std::string>();
    if (!text) throw TypeError(concat("pad: argument 'reflect_type' must be a string, got ", type->type_name()));
    options.reflect_type = *text;
  }
  return numpy::pad(x, widths, options);
}

// ---- rows --------------------------------------------------------------------------------------------------------

const Function numpy_manipulation_functions[] = {
    // Shape.
    {"reshape", "a, shape, order='C', *, copy=None, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return numpy::reshape(a.array("a"), a.shape("shape"), {.order = a.text("order")});
     },
     "The same elements in another shape; one size may be -1."},
    {"ravel", "a, order='C', *, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return numpy::ravel(a.array("a"), {.order = a.text("order")});
     },
     "The array flattened to one dimension."},
    {"resize", "a, new_shape",
     [](const Arguments& a) -> Value { return numpy::resize(a.array("a"), a.shape("new_shape")); },
     "The array in a new shape; elements are repeated or dropped as needed."},
    {"transpose", "a, axes=None",
     [](const Arguments& a) -> Value {
       const Array x = a.array("a");
       return numpy::transpose(x, a.given("axes") ? std::optional(integer_sequence(a, "axes")) : std::nullopt);
     },
     "The array with its axes permuted; by default reversed."},
    {"permute_dims", "a, /, axes",
     [](const Arguments& a) -> Value { return numpy::permute_dims(a.array("a"), integer_sequence(a, "axes")); },
     "The array with its axes in the given order."},
    {"matrix_transpose", "x, /", [](const Arguments& a) -> Value { return numpy::matrix_transpose(a.array("x")); },
     "The array with its last two axes exchanged."},
    {"moveaxis", "a, source: int | Sequence[int], destination",
     [](const Arguments& a) -> Value { return numpy::moveaxis(a.array("a"), a.ints("source"), a.ints("destination")); },
     "The array with axes moved to other positions; the rest keep their order."},
    {"swapaxes", "a, axis1, axis2",
     [](const Arguments& a) -> Value { return numpy::swapaxes(a.array("a"), a.integer("axis1"), a.integer("axis2")); },
     "The array with two axes exchanged."},
    {"rollaxis", "a, axis, start: int = 0",
     [](const Arguments& a) -> Value { return numpy::rollaxis(a.array("a"), a.integer("axis"), a.integer("start")); },
     "The array with one axis moved back to the position before start."},
    {"expand_dims", "a, axis: int | Sequence[int]",
     [](const Arguments& a) -> Value { return numpy::expand_dims(a.array("a"), a.ints("axis")); },
     "The array with new axes of size one at these positions of the result."},
    {"squeeze", "a, axis=None",
     [](const Arguments& a) -> Value { return numpy::squeeze(a.array("a"), a.axis("axis")); },
     "The array without its axes of size one, or without the given ones."},
    {"broadcast_to", "array, shape, *, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return numpy::broadcast_to(a.array("array"), a.shape("shape"));
     },
     "The array repeated along new axes and axes of size one."},
    {"broadcast_arrays", "*args -> list[Array]",
     [](const Arguments& a) -> Value { return numpy::broadcast_arrays(a.arrays("args")); },
     "The arrays broadcast to their common shape."},
    {"atleast_1d", "*arys -> Array if len(arys) == 1 else list[Array]", each_of<numpy::atleast_1d>,
     "Turns scalars into arrays of one element."},
    {"atleast_2d", "*arys -> Array if len(arys) == 1 else list[Array]", each_of<numpy::atleast_2d>,
     "Adds leading axes of size one up to two dimensions."},
    {"atleast_3d", "*arys -> Array if len(arys) == 1 else list[Array]", each_of<numpy::atleast_3d>,
     "Adds axes of size one up to three dimensions."},
    // Order.
    {"flip", "m, axis=None", [](const Arguments& a) -> Value { return numpy::flip(a.array("m"), a.axis("axis")); },
     "The elements in reverse order along axes."},
    {"fliplr", "m", [](const Arguments& a) -> Value { return numpy::fliplr(a.array("m")); },
     "The columns in reverse order."},
    {"flipud", "m", [](const Arguments& a) -> Value { return numpy::flipud(a.array("m")); },
     "The rows in reverse order."},
    {"rot90", "m, k=1, axes: tuple[int, int] = (0, 1)",
     [](const Arguments& a) -> Value {
       const Array x = a.array("m");
       const Ints axes = a.ints("axes");
       if (axes.size() != 2) throw ValueError(concat("rot90: axes must be two, got ", axes.size()));
       return numpy::rot90(x, {.k = a.integer("k"), .axes = {axes[0], axes[1]}});
     },
     "The array rotated k times by 90 degrees, from the first axis toward the second."},
    {"roll", "a, shift, axis=None",
     [](const Arguments& a) -> Value { return numpy::roll(a.array("a"), a.array_like("shift"), a.axis("axis")); },
     "The elements shifted along axes; those shifted out at one end re-enter at the other."},
    // Joining.
    {"concatenate", "arrays, axis: int | None = 0, dtype=None",
     [](const Arguments& a) -> Value {
       return numpy::concatenate(parts(a, "arrays"),
                                 {.axis = a.optional_integer("axis"), .dtype = a.optional_dtype("dtype")});
     },
     "Arrays joined along an existing axis."},
    {"concat", "arrays, /, *, axis: int | None = 0",
     [](const Arguments& a) -> Value {
       return numpy::concatenate(parts(a, "arrays"), {.axis = a.optional_integer("axis")});
     },
     "Arrays joined along an existing axis."},
    {"stack", "arrays, axis=0, out=None, dtype=None",
     [](const Arguments& a) -> Value {
       const Arrays arrays = a.arrays("arrays");
       a.require_absent("out");
       return numpy::stack(arrays, {.axis = a.integer("axis"), .dtype = a.optional_dtype("dtype")});
     },
     "Arrays of one shape joined along a new axis."},
    {"hstack", "tup, dtype=None",
     [](const Arguments& a) -> Value {
       const Arrays arrays = parts(a, "tup");
       if (arrays.empty() && a["tup"].array()) throw ValueError("hstack: at least one array is needed, got no rows");
       return numpy::hstack(arrays, {.dtype = a.optional_dtype("dtype")});
     },
     "Arrays joined side by side, along the second axis."},
    {"vstack", "tup, dtype=None",
     [](const Arguments& a) -> Value { return numpy::vstack(parts(a, "tup"), {.dtype = a.optional_dtype("dtype")}); },
     "Arrays joined as rows, along the first axis."},
    {"dstack", "tup, dtype=None",
     [](const Arguments& a) -> Value { return numpy::dstack(parts(a, "tup"), {.dtype = a.optional_dtype("dtype")}); },
     "Arrays joined along the third axis."},
    {"column_stack", "tup", [](const Arguments& a) -> Value { return numpy::column_stack(parts(a, "tup")); },
     "Vectors joined as the columns of a matrix."},
    {"block", "arrays: ArrayLike | list[Any]",
     [](const Arguments& a) -> Value { return numpy::block(blocks(a, a["arrays"])); },
     "An array assembled from nested lists of blocks."},
    {"append", "arr, values, axis: int = None",
     [](const Arguments& a) -> Value {
       return numpy::append(a.array("arr"), a.array("values"), a.optional_integer("axis"));
     },
     "An array with values appended at its end."},
    // Splitting.
    {"split", "ary, indices_or_sections, axis=0 -> list[Array]",
     [](const Arguments& a) -> Value { return numpy::split(a.array("ary"), sections(a), a.integer("axis")); },
     "Splits an array into equal sections, or at the given positions."},
    {"array_split", "ary, indices_or_sections, axis=0 -> list[Array]",
     [](const Arguments& a) -> Value { return numpy::array_split(a.array("ary"), sections(a), a.integer("axis")); },
     "Splits an array into sections whose sizes differ by at most one, or at the given positions."},
    {"hsplit", "ary, indices_or_sections -> list[Array]",
     [](const Arguments& a) -> Value { return numpy::hsplit(a.array("ary"), sections(a)); },
     "Splits an array along the second axis, or the first of a vector."},
    {"vsplit", "ary, indices_or_sections -> list[Array]",
     [](const Arguments& a) -> Value { return numpy::vsplit(a.array("ary"), sections(a)); },
     "Splits an array along the first axis."},
    {"dsplit", "ary, indices_or_sections -> list[Array]",
     [](const Arguments& a) -> Value { return numpy::dsplit(a.array("ary"), sections(a)); },
     "Splits an array along the third axis."},
    {"unstack", "x, /, *, axis=0 -> tuple[Array, ...]",
     [](const Arguments& a) -> Value { return Value::tuple_of(numpy::unstack(a.array("x"), a.integer("axis"))); },
     "The slices along an axis."},
    // Repetition.
    {"tile", "A, reps", [](const Arguments& a) -> Value { return numpy::tile(a.array("A"), a.ints("reps")); },
     "The whole array repeated along each axis."},
    {"repeat", "a, repeats, axis: int = None, *, total_repeat_length=None, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return numpy::repeat(
           a.array("a"), a.array("repeats"),
           {.axis = a.optional_integer("axis"), .total_repeat_length = a.optional_integer("total_repeat_length")});
     },
     "Each element repeated; traced repeats need total_repeat_length."},
    {"pad", "array, pad_width, mode: str | Callable[..., Any] = 'constant', **kwargs: Any", pad,
     "The array padded at both ends of each axis; the mode says with which values."},
    // Elements added and removed.
    {"insert", "arr, obj, values, axis: int = None",
     [](const Arguments& a) -> Value {
       const Array x = a.array("arr");
       const std::optional<int64_t> axis = a.optional_integer("axis");
       const std::optional<Array> places = positions_of_slice(a["obj"], length_of(x, axis));
       return numpy::insert(x, places ? *places : a.array("obj"), a.array("values"), {.axis = axis});
     },
     "The array with values inserted before the given positions."},
    {"delete", "arr, obj, axis: int = None, *, assume_unique_indices=False",
     [](const Arguments& a) -> Value {
       const Array x = a.array("arr");
       const std::optional<int64_t> axis = a.optional_integer("axis");
       const std::optional<Array> places = positions_of_slice(a["obj"], length_of(x, axis));
       return numpy::delete_(x, places ? *places : a.array("obj"),
                             {.axis = axis, .assume_unique_indices = places || a.flag("assume_unique_indices")});
     },
     "The array without the given positions."},
    {"trim_zeros", "filt, trim='fb', axis=None",
     [](const Arguments& a) -> Value {
       return numpy::trim_zeros(a.array("filt"), {.trim = a.text("trim"), .axis = a.axis("axis")});
     },
     "Zeros removed from the front and the back; the values must be concrete."},
};

}  // namespace

Family numpy_manipulation() { return numpy_manipulation_functions; }

}  // namespace capibara::library
