// Table rows for jax.lax: creating arrays, changing their shape, and random bits.
#include <capibara/lax.h>

#include "lax/collective/collective.h"
#include "library/numpy/placed_like.h"
#include "library/table/families.h"
#include "library/table/host_number.h"
#include "library/table/lax/arguments.h"

namespace capibara::library {

namespace lax = jax::lax;

namespace {

void require_scalar_fill(const Arguments& a, const Array& value) {
  if (value.ndim() == 0) return;
  throw TypeError(
      concat("lax.", a.function(), " must be called with a scalar fill_value, got ", to_string(value.type())));
}

Value full(const Arguments& a) {
  a.require_absent("sharding");
  const std::optional<DType> dtype = a.optional_dtype("dtype");
  const Array value = dtype ? converted(a, "fill_value", *dtype) : a.array("fill_value");
  require_scalar_fill(a, value);
  return lax::full(a.shape("shape"), value);
}

Value full_like(const Arguments& a) {
  a.require_absent("sharding");
  const Array x = a.array("x");
  const std::optional<DType> dtype = a.optional_dtype("dtype");
  const DType to = dtype.value_or(x.dtype());
  const bool is_strong = dtype || (is_integer(to) && !x.weak_type());
  const Array value = is_strong ? converted(a, "fill_value", to) : a.array("fill_value");
  require_scalar_fill(a, value);
  const Shape shape = a.given("shape") ? a.shape("shape") : x.shape();
  const auto placed = [&](const Array& made) { return jax::numpy::placed_like(x, lax::varied_as(x, made)); };
  if (is_strong) return placed(lax::full(shape, value));
  if (is_key(x.dtype()) && !is_key(value.dtype())) return placed(lax::zeros(x.type().with_shape(shape)));
  const Array scalar = lax::zeros({{}, x.dtype(), x.weak_type(), false, {}});
  return placed(lax::full(shape, lax::full_like(scalar, value)));
}

[[noreturn]] void refuse_padding_config() {
  throw TypeError("lax.pad: argument 'padding_config' must be a sequence of (low, high, interior) triples of integers");
}

int64_t padding_amount(const Value& value) {
  if (const int64_t* number = value.get_if<int64_t>()) return *number;
  const Array* array = value.array();
  if (!array || array->ndim() != 0 || !is_integer(array->dtype())) refuse_padding_config();
  return array->item<int64_t>();
}

std::vector<lax::PadDim> padding_config(const Arguments& a) {
  const Sequence* sequence = a["padding_config"].sequence();
  if (!sequence) refuse_padding_config();
  std::vector<lax::PadDim> config;
  for (const Value& item : sequence->items) {
    const Sequence* triple = item.sequence();
    if (!triple) refuse_padding_config();
    if (triple->items.size() != 3) {
      throw ValueError(concat("lax.pad: each entry of 'padding_config' must be (low, high, interior), got ",
                              triple->items.size(), " numbers"));
    }
    config.push_back(
        {padding_amount(triple->items[0]), padding_amount(triple->items[1]), padding_amount(triple->items[2])});
  }
  return config;
}

lax::RandomAlgorithm random_algorithm(const Arguments& a) {
  static const std::pair<std::string_view, lax::RandomAlgorithm> names[] = {
      {"rng_default", lax::RandomAlgorithm::rng_default},
      {"rng_threefry", lax::RandomAlgorithm::rng_three_fry},
      {"rng_philox", lax::RandomAlgorithm::rng_philox},
  };
  const Value& value = a["algorithm"];
  if (const int64_t* number = value.get_if<int64_t>(); number && *number >= 0 && *number < 3) {
    return names[static_cast<std::size_t>(*number)].second;
  }
  if (const std::string* text = value.get_if<std::string>()) {
    std::string plain;
    for (char c : *text) plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    if (plain == "rng_three_fry") plain = "rng_threefry";
    for (const auto& [name, algorithm] : names) {
      if (plain == name || plain == name.substr(4)) return algorithm;
    }
  }
  throw ValueError("lax.rng_bit_generator: argument 'algorithm' must be rng_default, rng_threefry or rng_philox");
}

const Function lax_shape_functions[] = {
    {"full", "shape, fill_value, dtype=None, *, sharding=None", full, "An array filled with one number."},
    {"full_like", "x: Prototype, fill_value, dtype=None, shape=None, sharding=None", full_like,
     "An array of the shape and dtype of x, filled with one number."},
    {"empty", "shape, dtype, *, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return lax::empty(a.shape("shape"), a.dtype("dtype"));
     },
     "An array of unspecified elements, which are zeros."},
    {"iota", "dtype, size", [](const Arguments& a) -> Value { return lax::iota(a.dtype("dtype"), a.integer("size")); },
     "0, 1, ... size - 1."},
    {"broadcasted_iota", "dtype, shape, dimension, *, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return lax::broadcasted_iota(a.dtype("dtype"), a.shape("shape"), a.integer("dimension"));
     },
     "Each element's position along one dimension."},
    {"broadcast", "operand, sizes, *, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return lax::broadcast(a.array("operand"), integer_sequence(a, "sizes"));
     },
     "Adds leading dimensions of these sizes."},
    {"broadcast_in_dim", "operand, shape, broadcast_dimensions, *, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       const Array x = a.array("operand");
       const Shape shape = integer_sequence(a, "shape");
       const Ints dimensions = integer_sequence(a, "broadcast_dimensions");
       if (dimensions.empty() && x.ndim() == static_cast<int64_t>(shape.size())) return x;
       return lax::broadcast_in_dim(x, shape, dimensions);
     },
     "Broadcasts to a shape; broadcast_dimensions gives the result's dimension of each operand dimension."},
    {"broadcast_like", "arr, like_arr",
     [](const Arguments& a) -> Value { return lax::broadcast_like(a.array("arr"), a.array("like_arr")); },
     "Broadcasts to the shape of another array."},
    {"broadcast_shapes", "*shapes -> tuple[int, ...]",
     [](const Arguments& a) -> Value {
       std::vector<Shape> shapes;
       for (const Value& value : a.variadic("shapes")) {
         const Sequence* sequence = value.sequence();
         if (!sequence)
           throw TypeError(
               concat("lax.broadcast_shapes: Shapes must be 1D sequences of concrete values of integer type, got ",
                      value.type_name()));
         Shape& shape = shapes.emplace_back();
         for (const Value& size : sequence->items) {
           const int64_t* number = size.get_if<int64_t>();
           if (!number) {
             throw TypeError(concat("lax.broadcast_shapes: sizes must be integers, got ", size.type_name()));
           }
           if (*number < 0)
             throw TypeError(
                 concat("lax.broadcast_shapes: Only non-negative indices are allowed as sizes, got ", *number));
           shape.push_back(*number);
         }
       }
       return Value::tuple_of(lax::broadcast_shapes(shapes));
     },
     "The shape that all these shapes broadcast to."},
    {"broadcast_to_rank", "x, rank",
     [](const Arguments& a) -> Value {
       const Array x = a.array("x");
       return x.ndim() >= a.integer("rank") ? x : lax::broadcast_to_rank(x, a.integer("rank"));
     },
     "Adds leading dimensions of size 1 until there are `rank` of them."},
    {"shape_as_value", "shape",
     [](const Arguments& a) -> Value {
       const Ints shape = integer_sequence(a, "shape");
       return array<int32_t>(std::vector<int32_t>(shape.begin(), shape.end()));
     },
     "A shape as an array of integers."},
    {"reshape", "operand, new_sizes, dimensions=None, *, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return lax::reshape(a.array("operand"), a.shape("new_sizes"), a.optional_ints("dimensions").value_or(Ints{}));
     },
     "The same elements in row-major order in another shape."},
    {"squeeze", "array, dimensions",
     [](const Arguments& a) -> Value { return lax::squeeze(a.array("array"), integer_sequence(a, "dimensions")); },
     "Removes dimensions of size 1."},
    {"expand_dims", "array, dimensions",
     [](const Arguments& a) -> Value { return lax::expand_dims(a.array("array"), integer_sequence(a, "dimensions")); },
     "Inserts dimensions of size 1 at these positions of the result."},
    {"collapse", "operand, start_dimension, stop_dimension=None",
     [](const Arguments& a) -> Value {
       const Array x = a.array("operand");
       return lax::collapse(x, a.integer("start_dimension"), a.optional_integer("stop_dimension").value_or(x.ndim()));
     },
     "Merges adjacent dimensions into one."},
    {"transpose", "operand, permutation",
     [](const Arguments& a) -> Value { return lax::transpose(a.array("operand"), integer_sequence(a, "permutation")); },
     "Reorders the dimensions."},
    {"rev", "operand, dimensions",
     [](const Arguments& a) -> Value { return lax::rev(a.array("operand"), integer_sequence(a, "dimensions")); },
     "Reverses the elements along dimensions."},
    {"pad", "operand, padding_value, padding_config",
     [](const Arguments& a) -> Value {
       const Array x = a.array("operand"), value = a.array("padding_value");
       require_same_dtypes(a, {x, value});
       return lax::pad(x, value, padding_config(a));
     },
     "Pads the ends of each dimension and between its elements; negative amounts remove elements."},
    {"concatenate", "operands, dimension",
     [](const Arguments& a) -> Value {
       const Arrays operands = a.arrays("operands");
       return lax::concatenate(operands, a.integer("dimension"));
     },
     "Joins arrays along a dimension."},
    {"split", "operand, sizes, axis=0 -> list[Array]",
     [](const Arguments& a) -> Value {
       return lax::split(a.array("operand"), integer_sequence(a, "sizes"), a.integer("axis"));
     },
     "Splits an array into parts of these sizes along an axis."},
    {"stack", "operands, axis=0",
     [](const Arguments& a) -> Value { return lax::stack(a.arrays("operands"), a.integer("axis")); },
     "Joins arrays of one shape along a new axis."},
    {"unstack", "x, axis=0 -> tuple[Array, ...]",
     [](const Arguments& a) -> Value { return Value::tuple_of(lax::unstack(a.array("x"), a.integer("axis"))); },
     "The slices of an array along an axis."},
    {"tile", "operand, reps",
     [](const Arguments& a) -> Value { return lax::tile(a.array("operand"), integer_sequence(a, "reps")); },
     "Repeats the array along each dimension."},
    {"rng_uniform", "a, b, shape",
     [](const Arguments& arguments) -> Value {
       const Array low = arguments.array("a"), high = arguments.array("b");
       require_same_dtypes(arguments, {low, high});
       return lax::rng_uniform(low, high, integer_sequence(arguments, "shape"));
     },
     "Uniform numbers from the backend's own state; programs should use jax.random."},
    {"rng_bit_generator",
     "key, shape, dtype='uint32', algorithm: str | RandomAlgorithm = 'rng_default', *, out_sharding=None -> "
     "tuple[Array, Array]",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return lax::rng_bit_generator(a.array("key"), a.shape("shape"), a.dtype("dtype"), random_algorithm(a));
     },
     "A new state and random bits from the backend's generator."},
};

}  // namespace

Family lax_shape() { return lax_shape_functions; }

}  // namespace capibara::library
