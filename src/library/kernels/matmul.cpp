// adaptive_matmul and optimized_matmul: precision, transposes and splitting of a matmul over parts or devices.
#include <capibara/collective.h>
#include <capibara/explicit.h>
#include <capibara/kernels/dense.h>
#include <capibara/lax.h>
#include <capibara/placement.h>
#include <capibara/shard_map.h>

#include <algorithm>

#include "core/sharding/explicit.h"
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

// One operand: its array, and the positions of its rows or columns and of its contracted axis.
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

// The largest number of parts up to `wanted` that divides an axis evenly.
int64_t even_parts(int64_t size, int64_t wanted) {
  for (int64_t parts = std::min(wanted, size); parts > 1; --parts) {
    if (size % parts == 0) return parts;
  }
  return 1;
}

// Splits the contracted axis: [..., k, ...] to [..., parts, k / parts, ...].
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

// The mesh that an operand is placed on; none if it is on one device, or if a trace hides it.
std::optional<NamedSharding> mesh_of(const Array& x) {
  const Sharding& type = x.type().sharding;
  std::optional<NamedSharding> placement;
  if (type.is_explicit() && type.mesh().any_is(AxisType::Explicit)) {
    const auto& around = context_mesh();
    placement =
        around && around->mesh.axis_names == type.mesh().axis_names ? *around : jax::make_sharding(type.mesh(), {});
  } else {
    placement = jax::placement(x);
  }
  if (!placement || placement->mesh.size() < 2) return std::nullopt;
  placement->spec = {};
  placement->memory_kind.clear();
  return placement;
}

// The devices that sum the partial matmuls: those of the operand that has more, or inside a traced function
// those of the mesh in context.
std::optional<NamedSharding> devices_of(const Array& a, const Array& b) {
  std::optional<NamedSharding> devices = mesh_of(a), other = mesh_of(b);
  if (other && (!devices || other->devices.size() > devices->devices.size())) devices = other;
  if (devices || (!a.is_tracer() && !b.is_tracer())) return devices;
  const auto& around = context_mesh();
  return around && around->mesh.size() > 1 ? std::optional(*around) : std::nullopt;
}

// Each device multiplies its part of the contracted axis; the results are summed over the mesh.
Array contract_over(const NamedSharding& devices, const Operand& a, const Operand& b, const Rounding& rounding,
                    DType wide) {
  const AxisList& axes = devices.mesh.axis_names;
  auto spec_of = [&](const Operand& x, bool left) {
    PartitionSpec spec;
    spec.dims.resize(x.array.shape().size());
    spec.dims[static_cast<std::size_t>(contracted_axis(x, left))] = axes;
    return spec;
  };
  const std::vector<PartitionSpec> specs = {spec_of(a, true), spec_of(b, false)};
  auto mapped = jax::shard_map(
      [&](const Arrays& parts) {
        return Arrays{lax::psum(contract({parts[0], a.transposed}, {parts[1], b.transposed}, 1, rounding, wide), axes)};
      },
      {.mesh = devices, .in_specs = specs, .out_specs = {PartitionSpec{}}});
  return mapped({a.array, b.array})[0];
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
  const DType wide = narrow ? DType::float32 : operand;
  if (split == Split::devices || split == Split::by_placement) {
    const bool hidden = a.array.is_tracer() || b.array.is_tracer();
    std::optional<NamedSharding> devices;
    if (split == Split::devices || !hidden) devices = devices_of(a.array, b.array);  // 'auto' ignores traced operands
    if (devices && depth > 0 && depth % devices->mesh.size() == 0) {
      return contract_over(*devices, a, b, rounding, wide).astype(dtype);
    }
    if (devices && depth > 0 && split == Split::devices) {
      throw ValueError(concat(op, ": tpu_strategy 'collective' cuts the contracted axis into one part for each of ",
                              devices->mesh.size(), " devices, got size ", depth, "; use 'local' or pad the axis"));
    }
    if (!devices && hidden && split == Split::devices && jax::devices().size() > 1) {
      throw ValueError(concat(op, ": tpu_strategy 'collective' inside of a traced function needs a mesh in context, ",
                              "since the function does not see how its arguments are placed, got none; trace it under ",
                              "jax.set_mesh(mesh), or use 'auto' or 'local'"));
    }
  }
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
