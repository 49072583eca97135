// adaptive_matmul and optimized_matmul: precision, transposes and the split of a matrix product, as contractions.
#include <capibara/kernels/dense.h>
#include <capibara/lax.h>
#include <capibara/placement.h>

#include <algorithm>

#include "lax/contract/precision.h"
#include "lax/operators/promote.h"
#include "library/kernels/precision.h"

namespace capibara::kernels {

namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;

bool on_nvidia() {
  const std::vector<Device> devices = jax::devices();
  return !devices.empty() && (devices.front().platform == "gpu" || devices.front().platform == "cuda");
}

// One operand: its array, and where its rows or columns and its contracted axis are.
struct Operand {
  Array array;
  bool transposed;
  bool vector() const { return array.ndim() == 1; }
};

void require_operand(const char* op, const char* argument, const Operand& x) {
  if (x.array.ndim() == 0 || (x.vector() && x.transposed)) {
    throw TypeError(concat(op, ": expected an array of rank ", x.transposed ? 2 : 1, " or more (argument '", argument,
                           "'), got ", to_string(x.array.type())));
  }
}

int64_t contracted_axis(const Operand& x, bool left) {
  if (x.vector()) return 0;
  return left != x.transposed ? x.array.ndim() - 1 : x.array.ndim() - 2;
}

// The largest number of parts up to `wanted` into which an axis can be cut evenly.
int64_t even_parts(int64_t size, int64_t wanted) {
  for (int64_t parts = std::min(wanted, size); parts > 1; --parts) {
    if (size % parts == 0) return parts;
  }
  return 1;
}

// Cuts the contracted axis: [..., k, ...] to [..., parts, k / parts, ...].
Array cut(const Array& x, int64_t axis, int64_t parts) {
  Shape shape = x.shape();
  const auto place = shape.begin() + axis;
  *place /= parts;
  shape.insert(place, parts);
  return x.reshape(shape);
}

Array contract(const Operand& a, const Operand& b, int64_t parts, const Rounding& rounding, DType wide) {
  const std::string k = parts > 1 ? "pk" : "k", leading = parts > 1 ? "p" : "";
  const auto labels = [&](const Operand& x, const std::string& free, bool left) {
    if (x.vector()) return k;
    return "..." + (left != x.transposed ? free + k : k + free);
  };
  const std::string equation = labels(a, "m", true) + "," + labels(b, "n", false) + "->" + leading + "..." +
                               (a.vector() ? "" : "m") + (b.vector() ? "" : "n");
  const auto operand = [&](const Operand& x, bool left) {
    return parts > 1 ? cut(x.array, contracted_axis(x, left), parts) : x.array;
  };
  const Array left = operand(a, true), right = operand(b, false);
  const Array product =
      jnp::einsum(equation, {left, right}, {.precision = rounding.precision, .preferred_element_type = wide});
  return parts > 1 ? lax::reduce_sum(product, {.axes = {0}}) : product;
}

int64_t devices_of(const Array& x) {
  if (x.is_tracer()) return 1;
  const std::optional<NamedSharding> placement = jax::placement(x);
  return placement ? static_cast<int64_t>(std::max<std::size_t>(1, placement->devices.size())) : 1;
}

enum class Split { by_placement, none, parts, devices };

Array multiply(const char* op, Operand a, Operand b, const std::string& precision, Split split) {
  require_operand(op, "a", a);
  require_operand(op, "b", b);
  const int64_t depth = a.array.shape(contracted_axis(a, true)), other = b.array.shape(contracted_axis(b, false));
  if (depth != other) {
    throw TypeError(concat(op, ": the contracted axes must have one size, got ", depth, " of ",
                           to_string(a.array.type()), a.transposed ? " transposed" : "", " (argument 'a') and ", other,
                           " of ", to_string(b.array.type()), b.transposed ? " transposed" : "", " (argument 'b')"));
  }
  const DType dtype = result_type({a.array, b.array}).dtype;
  const Rounding rounding = rounding_of(op, precision, dtype);
  const DType operand = rounding.operand.value_or(dtype);
  a.array = a.array.astype(operand);
  b.array = b.array.astype(operand);
  const bool narrow = bits(operand) < 32 && is_floating(operand);
  int64_t parts = 1;
  if (split == Split::parts) parts = even_parts(depth, 8);
  if (split == Split::devices || split == Split::by_placement) {
    const int64_t devices = std::max(devices_of(a.array), devices_of(b.array));
    if (depth % devices == 0) {
      parts = devices;
    } else if (split == Split::devices) {
      throw ValueError(concat(op, ": tpu_strategy 'collective' cuts the contracted axis into one part for each of ",
                              devices, " devices, got size ", depth, "; use 'local' or pad the axis"));
    }
  }
  const DType wide = narrow ? DType::float32 : operand;
  return contract(a, b, parts, rounding, wide).astype(dtype);
}

}  // namespace

Rounding rounding_of(const char* op, const std::string& precision, DType dtype) {
  if (precision == "bfloat16") return {"", DType::bfloat16};
  if (precision == "float16") return {"", DType::float16};
  if (precision == "float32") return {"highest", DType::float32};
  if (precision == "highest" && dtype == DType::float32 && on_nvidia()) return {"BF16_BF16_F32_X6", std::nullopt};
  if (!precision.empty() && precision != "default" && precision != "high" && precision != "highest" &&
      !find_algorithm(precision)) {
    throw ValueError(
        concat(op,
               ": expected 'default', 'high', 'highest', 'float32', 'bfloat16', 'float16' or a dot algorithm "
               "like 'BF16_BF16_F32_X3' (argument 'precision'), got '",
               precision, "'"));
  }
  return {precision, std::nullopt};
}

Array adaptive_matmul(const Array& a, const Array& b, const AdaptiveMatmulOptions& options) {
  static const std::pair<const char*, Split> strategies[] = {
      {"auto", Split::by_placement}, {"local", Split::none}, {"split_k", Split::parts}, {"collective", Split::devices}};
  for (const auto& [name, split] : strategies) {
    if (options.tpu_strategy == name)
      return multiply("adaptive_matmul", {a, false}, {b, false}, options.precision, split);
  }
  throw ValueError(
      concat("adaptive_matmul: expected 'auto', 'local', 'split_k' or 'collective' (argument "
             "'tpu_strategy'), got '",
             options.tpu_strategy, "'"));
}

Array optimized_matmul(const Array& a, const Array& b, const OptimizedMatmulOptions& options) {
  static const std::pair<const char*, Split> algorithms[] = {
      {"auto", Split::none}, {"tpu_optimized", Split::none}, {"split_k", Split::parts}};
  for (const auto& [name, split] : algorithms) {
    if (options.algorithm != name) continue;
    return multiply("optimized_matmul", {a, options.transpose_a}, {b, options.transpose_b}, options.precision, split);
  }
  throw ValueError(
      concat("optimized_matmul: expected 'auto', 'tpu_optimized' or 'split_k' (argument 'algorithm'), got '",
             options.algorithm, "'"));
}

}  // namespace capibara::kernels
