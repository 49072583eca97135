// Table rows for jax.numpy: creation of arrays, and queries on whole arrays.
#include <capibara/lax.h>
#include <capibara/numpy/creation.h>
#include <algorithm>

#include "core/array/bad_value.h"
#include "core/array/element.h"
#include "core/runtime/warning.h"
#include "lax/operators/promote.h"
#include "library/table/families.h"
#include "library/table/host_number.h"
#include "library/table/keywords.h"

namespace capibara::library {

namespace {

namespace numpy = jax::numpy;

void require_order(const Value& order) {
  const std::string* text = order.get_if<std::string>();
  if (order.is_none() || (text && *text == "K")) return;
  throw NotImplementedError("array: only order='K' is implemented: arrays have no memory order of their own");
}

Array made(const Arguments& a, const Value& object, bool copy, int64_t ndmin) {
  const bool is_shared = object.array();  // an array from outside: all others are newly made
  const Array given = array_of(object, a.function().c_str(), a.optional_dtype("dtype"));
  if (!is_shared && !given.is_tracer()) require_good_values(given, a.function());
  return numpy::array(given, {.copy = copy && is_shared, .ndmin = ndmin});
}

Value make_array(const Arguments& a) {
  Value copy = a["copy"], order = a["order"], ndmin = a["ndmin"];
  const Values& rest = a.variadic("args");
  if (rest.size() > 3) {
    throw TypeError(concat("array() takes at most 5 positional arguments but ", rest.size() + 2, " were given"));
  }
  if (rest.size() > 0) {
    warn("Passing the copy, order, and ndmin arguments to jnp.array by position is deprecated; pass them by keyword.",
         WarningKind::deprecation);
    copy = rest[0];
  }
  if (rest.size() > 1) order = rest[1];
  if (rest.size() > 2) ndmin = rest[2];
  require_order(order);
  a.require_absent("out_sharding");
  const int64_t* rank = ndmin.get_if<int64_t>();
  if (!rank) throw TypeError(concat("array: argument 'ndmin' must be an integer, got ", ndmin.type_name()));
  const bool* truth = copy.get_if<bool>();
  return made(a, a["object"], truth ? *truth : !copy.is_none(), *rank);
}

// The dtype of zeros and similar functions; zeros(2, 3) gets an error with the intended call.
numpy::FillOptions fill_options(const Arguments& a) {
  a.require_absent("out_sharding");
  if (a["dtype"].get_if<int64_t>()) {
    const int64_t second = *a["dtype"].get_if<int64_t>();
    const int64_t* first = a["shape"].get_if<int64_t>();
    const std::string both = concat(first ? concat(*first, ", ") : std::string("..., "), second);
    throw TypeError(concat("Cannot interpret '", second, "' as a data type. Did you accidentally write `jax.numpy.",
                           a.function(), "(", both, ")` when you meant `jax.numpy.", a.function(), "((", both, "))`?"));
  }
  return {.dtype = a.optional_dtype("dtype")};
}

template <Array (*function)(const Shape&, const numpy::FillOptions&)>
Value filled(const Arguments& a) {
  const numpy::FillOptions options = fill_options(a);
  return function(a.shape("shape"), options);
}

numpy::LikeOptions like_options(const Arguments& a) {
  return {.dtype = a.optional_dtype("dtype"), .shape = a.optional_ints("shape")};
}

template <Array (*function)(const Array&, const numpy::LikeOptions&)>
Value filled_like(const Arguments& a) {
  a.require_absent("out_sharding");
  return function(a.array("a"), like_options(a));
}

// A bound of arange: numbers keep their full precision.
std::optional<numpy::RangeBound> bound(const Arguments& a, std::string_view name) {
  const Value& value = a[name];
  if (value.is_none()) return std::nullopt;
  if (const int64_t* integer = value.get_if<int64_t>()) return *integer;
  if (const double* real = value.get_if<double>()) return *real;
  return a.array(name);
}

numpy::LinspaceOptions linspace_options(const Arguments& a) {
  return {.num = a.integer("num"),
          .endpoint = a.flag("endpoint"),
          .dtype = a.optional_dtype("dtype"),
          .axis = a.integer("axis")};
}

Value linspace(const Arguments& a) {
  const numpy::LinspaceOptions options = linspace_options(a);
  if (a.flag("retstep")) return numpy::linspace_and_step(a.array("start"), a.array("stop"), options);
  return numpy::linspace(a.array("start"), a.array("stop"), options);
}

Value eye(const Arguments& a) {
  const int64_t rows = a.integer("N");
  const std::optional<int64_t> columns = a.optional_integer("M");
  numpy::EyeOptions options = {.M = columns, .k = 0, .dtype = a.optional_dtype("dtype")};
  // All diagonals beyond the matrix are equivalent.
  if (const int64_t* k = a["k"].get_if<int64_t>()) {
    options.k = std::clamp(*k, -std::max<int64_t>(rows, 0), std::max<int64_t>(columns.value_or(rows), 0));
  } else if (const BigInteger* k = big_integer(a["k"])) {
    options.k = k->real() < 0 ? -rows : columns.value_or(rows);
  } else {
    options.k = a.array("k");
  }
  return numpy::eye(rows, options);
}

Value meshgrid(const Arguments& a) {
  const Arrays sides = a.arrays("xi");
  if (!a.flag("copy")) throw ValueError("meshgrid: argument 'copy' must be True: arrays share no memory");
  return numpy::meshgrid(sides, {.sparse = a.flag("sparse"), .indexing = a.text("indexing")});
}

// A result of the user's function: one array or a tree of sequences; the leaves are extracted and put back.
void take_leaves(const Value& value, Arrays& leaves) {
  if (const Sequence* sequence = value.sequence()) {
    for (const Value& item : sequence->items) take_leaves(item, leaves);
  } else {
    leaves.push_back(array_of(value, "fromfunction"));
  }
}

Value put_leaves(const Value& like, const Arrays& leaves, std::size_t& next) {
  const Sequence* sequence = like.sequence();
  if (!sequence) return leaves[next++];
  Sequence result = *sequence;
  for (Value& item : result.items) item = put_leaves(item, leaves, next);
  return result;
}

Value fromfunction(const Arguments& a) {
  const Callable function = a.callable("function");
  Value structure;
  const std::function<Arrays(const Arrays&)> call = [&](const Arrays& at) {
    Values values(at.begin(), at.end());
    const Sequence& named = keywords_of(a, "kwargs");
    if (!named.items.empty()) values.push_back(Value::named_tuple("keywords", named.fields, named.items));
    structure = function(values);
    Arrays leaves;
    take_leaves(structure, leaves);
    return leaves;
  };
  const Arrays leaves = numpy::fromfunction(call, a.shape("shape"), {.dtype = a.dtype("dtype")});
  std::size_t next = 0;
  return put_leaves(structure, leaves, next);
}

// The bytes of a buffer: a sequence of numbers below 256, or the memory of an array.
std::vector<uint8_t> bytes_of(const Arguments& a) {
  const Value& buffer = a["buffer"];
  std::vector<uint8_t> bytes;
  if (const Array* array = buffer.array()) {
    const auto* begin = reinterpret_cast<const uint8_t*>(array->raw_data());
    return {begin, begin + array->size() * storage_size(array->dtype())};
  }
  const Sequence* sequence = buffer.sequence();
  if (!sequence || sequence->is_list) {
    throw TypeError(concat("frombuffer: a bytes-like object is needed, got ", buffer.type_name()));
  }
  for (const Value& item : sequence->items) {
    const int64_t* byte = item.get_if<int64_t>();
    if (!byte || *byte < 0 || *byte > 255) throw TypeError("frombuffer: a bytes-like object is needed, got a sequence");
    bytes.push_back(static_cast<uint8_t>(*byte));
  }
  return bytes;
}

Value frombuffer(const Arguments& a) {
  const std::vector<uint8_t> bytes = bytes_of(a);
  // The buffer holds the given dtype, even if the configuration narrows it afterwards.
  const Value& requested = a["dtype"];
  const std::string* text = requested.get_if<std::string>();
  const std::optional<DType> named = text && *text == "float" ? DType::float64
                                     : text && *text == "int" ? DType::int64
                                                              : dtype_of(requested);
  if (!named) throw TypeError(concat("frombuffer: argument 'dtype' must be a dtype, got ", requested.type_name()));
  const int64_t size = storage_size(*named), offset = a.integer("offset"), total = static_cast<int64_t>(bytes.size());
  if (offset < 0 || offset > total) {
    throw ValueError(concat("frombuffer: argument 'offset' must lie in [0, ", total, "], got ", offset));
  }
  int64_t count = a.integer("count");
  if (count < 0) {
    if ((total - offset) % size != 0) {
      throw ValueError(concat("frombuffer: ", total - offset, " bytes are no multiple of the element size ", size));
    }
    count = (total - offset) / size;
  }
  if (offset + count * size > total) {
    throw ValueError(concat("frombuffer: ", count, " elements of ", size, " bytes do not fit in ", total - offset));
  }
  return Array::from_host(*named, {count}, bytes.data() + offset);
}

Array array_or_list(const Arguments& a, std::string_view name) { return a.array_like(name); }

// The argument of ndim, shape and size: arrays, other objects with a shape, and (deprecated) lists and None.
Shape measured(const Arguments& a) {
  if (const auto* foreign = a["a"].get_if<std::shared_ptr<const Foreign>>()) {
    if (const std::optional<Shape> shape = (*foreign)->shape()) return *shape;
  }
  if (a["a"].sequence() || !a.given("a")) {
    warn(concat(a.function(), " requires ndarray or scalar arguments, got ", a["a"].type_name(),
                "; this will become an error."),
         WarningKind::deprecation);
  }
  return a.given("a") ? a.array_like("a").shape() : Shape();
}

bool is_complex_object(const Value& value, const Arguments& a) {
  if (value.is_none() || value.get_if<std::string>()) return false;
  return is_complex(array_of(value, a.function().c_str()).dtype());
}

Value size(const Arguments& a) {
  return a.given("axis") ? numpy::size(a.array_like("a"), a.axis("axis")) : element_count(measured(a));
}

Value broadcast_shapes(const Arguments& a) {
  std::vector<Shape> shapes;
  for (const Value& item : a.variadic("shapes")) {
    const Values one = {item};
    static const Signature signature("shape");
    shapes.push_back(Arguments(a.function(), signature, one).ints("shape"));
  }
  return Value::tuple_of(numpy::broadcast_shapes(shapes));
}

Value tri(const Arguments& a) {
  numpy::TriOptions options{.M = a.optional_integer("M"), .k = 0, .dtype = a.optional_dtype("dtype")};
  const Array* k = a["k"].array();
  if (!k || !k->is_tracer()) {
    options.k = a.integer("k");
    return numpy::tri(a.integer("N"), options);
  }
  // The diagonal is known only at run time.
  const Shape shape{a.integer("N"), options.M.value_or(a.integer("N"))};
  const Array row = jax::lax::broadcasted_iota(k->dtype(), shape, 0),
              column = jax::lax::broadcasted_iota(k->dtype(), shape, 1);
  const Array below = jax::lax::ge(jax::lax::add(row, jax::lax::broadcast_in_dim(*k, shape, {})), column);
  return jax::lax::convert_element_type(below, options.dtype.value_or(DType::float32));
}

const Function numpy_creation_functions[] = {
    // From values.
    {"array", "object: Any, dtype=None, *args: Any, copy=True, order='K', ndmin=0, device=None, out_sharding=None",
     make_array, "A new array from numbers, arrays, or nested sequences of them."},
    {"asarray", "a: Any, dtype=None, order=None, *, copy=None, device=None, out_sharding=None",
     [](const Arguments& a) -> Value {
       require_order(a["order"]);
       a.require_absent("out_sharding");
       return made(a, a["a"], a.flag("copy"), 0);
     },
     "An array from numbers, arrays, or nested sequences of them; an array is returned as it is."},
    {"copy", "a, order=None",
     [](const Arguments& a) -> Value {
       const Array x = a.array("a");
       require_order(a["order"]);
       return numpy::copy(x);
     },
     "A copy of the array."},
    {"astype", "x, dtype: DTypeLike | None, /, *, copy=False, device=None",
     [](const Arguments& a) -> Value {
       const Array x = a.array("x");
       const DType dtype = a.given("dtype") ? a.dtype("dtype") : default_float();
       if (is_complex(x.dtype()) && !is_complex(dtype) && !is_bool(dtype)) {
         warn(
             "Casting from complex to real dtypes will soon raise a ValueError. Take jnp.real or jnp.imag of the array "
             "first.",
             WarningKind::deprecation);
       }
       return numpy::astype(x, dtype, {.copy = a.flag("copy")});
     },
     "The elements converted to another dtype."},
    {"frombuffer", "buffer: bytes | bytearray | memoryview | np.ndarray, dtype='float', count=-1, offset=0", frombuffer,
     "The numbers stored in a buffer of bytes."},
    {"fromstring", "string, dtype='float', count=-1, *, sep",
     [](const Arguments& a) -> Value {
       return numpy::fromstring(a.text("string"),
                                {.dtype = a.dtype("dtype"), .count = a.integer("count"), .sep = a.text("sep")});
     },
     "The numbers written in a text, separated by sep."},
    {"fromfunction", "function, shape, *, dtype='float', **kwargs", fromfunction,
     "function(i, j, ...) at every index of a grid."},
    // Filled with one value.
    {"zeros", "shape, dtype=None, *, device=None, out_sharding=None", filled<numpy::zeros>, "An array of zeros."},
    {"ones", "shape, dtype=None, *, device=None, out_sharding=None", filled<numpy::ones>, "An array of ones."},
    {"empty", "shape, dtype=None, *, device=None, out_sharding=None", filled<numpy::empty>,
     "An array of unspecified elements, which are zeros."},
    {"full", "shape, fill_value, dtype=None, *, device=None, out_sharding=None",
     [](const Arguments& a) -> Value {
       const numpy::FillOptions options = fill_options(a);
       const Array value = options.dtype ? converted(a, "fill_value", *options.dtype) : a.array("fill_value");
       return numpy::full(a.shape("shape"), value, options);
     },
     "An array filled with one value, or with an array broadcast to the shape."},
    {"zeros_like", "a: Prototype, dtype=None, shape=None, *, device=None, out_sharding=None",
     filled_like<numpy::zeros_like>, "Zeros of the type of another array."},
    {"ones_like", "a: Prototype, dtype=None, shape=None, *, device=None, out_sharding=None",
     filled_like<numpy::ones_like>, "Ones of the type of another array."},
    {"empty_like", "prototype: Prototype, dtype=None, shape=None, *, device=None",
     [](const Arguments& a) -> Value { return numpy::empty_like(a.array("prototype"), like_options(a)); },
     "An array of the type of another one, of unspecified elements, which are zeros."},
    {"full_like", "a: Prototype, fill_value, dtype=None, shape=None, *, device=None, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       const Array like = a.array("a");
       const numpy::LikeOptions options = like_options(a);
       const DType dtype = options.dtype.value_or(like.dtype());
       const bool is_strong = options.dtype || (is_integer(dtype) && !like.weak_type());
       return numpy::full_like(like, is_strong ? converted(a, "fill_value", dtype) : a.array("fill_value"), options);
     },
     "An array of the type of another one, filled with one value."},
    // Sequences.
    {"arange", "start, stop=None, step=None, dtype=None, *, device=None, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       const numpy::FillOptions options = {.dtype = a.optional_dtype("dtype")};
       const std::optional<numpy::RangeBound> start = bound(a, "start");
       if (!start)
         throw TypeError("arange requires ndarray or scalar arguments, got <class 'NoneType'> at position 0.");
       return numpy::arange(*start, bound(a, "stop"), bound(a, "step"), options);
     },
     "Numbers from start (by default 0) up to but excluding stop."},
    {"linspace",
     "start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None -> tuple[Array, Array] if "
     "retstep else Array",
     linspace, "Numbers evenly spaced from start to stop."},
    {"logspace", "start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0",
     [](const Arguments& a) -> Value {
       const numpy::LinspaceOptions all = linspace_options(a);
       return numpy::logspace(
           a.array("start"), a.array("stop"),
           {.num = all.num, .endpoint = all.endpoint, .base = a.array("base"), .dtype = all.dtype, .axis = all.axis});
     },
     "Numbers evenly spaced on a logarithmic scale, from base^start to base^stop."},
    {"geomspace", "start, stop, num=50, endpoint=True, dtype=None, axis=0",
     [](const Arguments& a) -> Value {
       return numpy::geomspace(a.array("start"), a.array("stop"), linspace_options(a));
     },
     "Numbers from start to stop in geometric progression."},
    // Matrices and grids.
    {"eye", "N, M=None, k: ArrayLike = 0, dtype=None, *, device=None", eye,
     "A matrix with ones on a diagonal and zeros elsewhere."},
    {"identity", "n, dtype=None",
     [](const Arguments& a) -> Value { return numpy::identity(a.integer("n"), {.dtype = a.optional_dtype("dtype")}); },
     "The identity matrix."},
    {"tri", "N, M=None, k=0, dtype=None", tri, "A matrix with ones on and below a diagonal, and zeros above."},
    {"meshgrid", "*xi, copy=True, sparse=False, indexing='xy' -> list[Array]", meshgrid,
     "The coordinates of a grid's points, from the coordinates along each axis."},
    {"indices", "dimensions, dtype=None, sparse=False -> tuple[Array, ...] if sparse else Array",
     [](const Arguments& a) -> Value {
       const numpy::FillOptions options = {.dtype = a.optional_dtype("dtype")};
       if (a.flag("sparse")) return Value::tuple_of(numpy::sparse_indices(a.shape("dimensions"), options));
       return numpy::indices(a.shape("dimensions"), options);
     },
     "The indices of every element of a grid."},
    // Queries.
    {"array_equal", "a1, a2, equal_nan=False",
     [](const Arguments& a) -> Value {
       const Array first = array_or_list(a, "a1"), second = array_or_list(a, "a2");
       return numpy::array_equal(first, second, {.equal_nan = a.flag("equal_nan")});
     },
     "Whether two arrays have the same shape and elements."},
    {"array_equiv", "a1, a2",
     [](const Arguments& a) -> Value {
       const Array first = array_or_list(a, "a1"), second = array_or_list(a, "a2");
       return numpy::array_equiv(first, second);
     },
     "Whether two arrays are equal after broadcasting."},
    {"isscalar", "element: Any -> bool",
     [](const Arguments& a) -> Value {
       const Value& element = a["element"];
       if (const Array* array = element.array()) return numpy::isscalar(*array);
       return element.is_number() || element.get_if<std::string>() != nullptr;
     },
     "Whether this is a number or an array without axes."},
    {"iscomplexobj", "x: Any -> bool", [](const Arguments& a) -> Value { return is_complex_object(a["x"], a); },
     "Whether this is a complex number or an array of them."},
    {"isrealobj", "x: Any -> bool", [](const Arguments& a) -> Value { return !is_complex_object(a["x"], a); },
     "Whether this is neither a complex number nor an array of them."},
    {"ndim", "a: Prototype -> int",
     [](const Arguments& a) -> Value { return static_cast<int64_t>(measured(a).size()); }, "The number of axes."},
    {"shape", "a: Prototype -> tuple[int, ...]",
     [](const Arguments& a) -> Value { return Value::tuple_of(measured(a)); }, "The sizes along the axes."},
    {"size", "a: Prototype, axis=None -> int", size, "The number of elements, in all or along some axes."},
    {"broadcast_shapes", "*shapes -> tuple[int, ...]", broadcast_shapes, "The shape to which all of these broadcast."},
};

}  // namespace

Family numpy_creation() { return numpy_creation_functions; }

}  // namespace capibara::library
