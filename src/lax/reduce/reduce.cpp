// Reductions: sums, products, extremes and bitwise folds over axes, and the general reduction.
#include "lax/families.h"
#include "lax/reduce/batch_norm.h"
#include "lax/reduce/monoid.h"
#include "lax/reduce/reduction_rules.h"
#include "lax/rules.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/out_sharding.h"
#include "lax/sharding/splits.h"
#include "program/ir/explicit_types.h"

#include <algorithm>
#include <numeric>

#include "core/array/format.h"
#include "lax/reduce/reduction_calls.h"

namespace capibara {

namespace lax = jax::lax;

Shape without_axes(const Shape& shape, const Ints& axes) {
  Shape out;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) == axes.end()) out.push_back(shape[d]);
  }
  return out;
}

BatchResult batch_reduction(const BatchArgs& args) {
  int64_t batch_dim = args.dims[0];
  Ints axes = shifted(args.attrs.ints("axes"), batch_dim);
  int64_t out_dim = batch_dim;
  for (int64_t axis : axes) out_dim -= axis < batch_dim ? 1 : 0;
  Attrs attrs = args.attrs.with("axes", axes);
  if (requested_sharding(attrs))
    attrs = attrs.with("out_sharding", sharding_attr(batched_sharding(args, args.inputs[0], batch_dim, out_dim)));
  return {capibara::bind(args.primitive, args.inputs, attrs), {out_dim}};
}

namespace {

std::vector<DType> with_bool(std::vector<DType> dtypes) {
  dtypes.insert(dtypes.begin(), DType::bool_);
  return dtypes;
}

std::vector<DType> logical_dtypes() {
  std::vector<DType> dtypes = {DType::bool_};
  for (DType d : sum_dtypes) {
    if (is_integer(d)) dtypes.push_back(d);
  }
  return dtypes;
}

void check_axes(const std::string& op, const Ints& axes, const ArrayType& operand, const char* argument) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0 || axes[i] >= operand.rank()) {
      throw ValueError(concat(op, ": axis ", axes[i], " is out of range for ", to_string(operand), " (argument '",
                              argument, "'); axes are counted from 0 to ", operand.rank() - 1));
    }
    if (std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), axes[i]) !=
        axes.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw ValueError(concat(op, ": duplicate value in 'axes' ", shape_tuple(axes), " (argument '", argument, "')"));
    }
  }
}

enum class Accepts { numbers, anything, integers };

TypeRule reduce_type(const std::string& op, Accepts accepts, bool strong) {
  return [op, accepts, strong](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    require_count(op, types, 1);
    DType dtype = types[0].dtype;
    if (accepts == Accepts::numbers && !is_numeric(dtype)) {
      throw TypeError(
          concat(op, " does not accept dtype ", to_string(dtype), ". Accepted dtypes are subtypes of number."));
    }
    if (accepts == Accepts::integers && !is_integer(dtype) && !is_bool(dtype)) {
      throw TypeError(
          concat(op, ": logical reduction requires operand dtype bool or int, got ", to_string(dtype), "."));
    }
    if (is_key(dtype) || dtype == DType::token || dtype == DType::float0) {
      throw TypeError(concat(op, " does not accept dtype ", to_string(dtype), "; it reduces numbers and booleans"));
    }
    const Ints& axes = attrs.ints("axes");
    check_axes(op, axes, types[0], "axes");
    ArrayType out = types[0].with_shape(without_axes(types[0].shape, axes));
    if (strong) out.weak_type = false;
    return Types{out};
  };
}

// The mapped axis joins the dimensions that are kept.
std::vector<Sample> reduction_samples(DType dtype, Attrs extra) {
  auto sample = [&](Shape shape, Ints axes) {
    ArrayType type = scalar_type(dtype).with_shape(std::move(shape));
    Sample s;
    s.inputs = {type};
    s.attrs = extra.with("axes", std::move(axes));
    return s;
  };
  return {sample({5}, {0}),          sample({2, 3}, {1}),   sample({2, 3}, {0}),
          sample({3, 2, 4}, {0, 2}), sample({3, 2, 4}, {}), sample({}, {}),
          sample({0, 3}, {0}),       sample({3, 0}, {0}),   sample({1, 1, 7}, {0, 1, 2})};
}

// Named reductions become the general one with a region, as StableHLO has it.
LowerRule lower_to_reduce(Monoid monoid) {
  return [monoid](std::span<const Array> inputs, const Attrs& attrs) -> Arrays {
    static const Primitive reduce = primitive("reduce");
    DType dtype = inputs[0].dtype();
    Array init = identity_element(monoid, dtype);
    return capibara::bind(reduce, Arrays{inputs[0], init},
                          {{"jaxpr", monoid_region(monoid, dtype)}, {"dimensions", attrs.ints("axes")}});
  };
}

PrimitiveRecord named_reduction(std::string name, std::string doc, Monoid monoid, Accepts accepts, bool strong) {
  PrimitiveRecord record;
  record.name = name;
  record.factors = reduction_factors;
  record.splits = reduction_splits;
  record.doc = std::move(doc);
  record.traits.combines = Combines::axes;
  record.traits.monoid = monoid;
  record.type = reduce_type(name, accepts, strong);
  record.batch = batch_reduction;
  record.lower = lower_to_reduce(monoid);
  record.samples = [](DType dtype) { return reduction_samples(dtype, {}); };
  record.flops = [](std::span<const ArrayType> types, const Attrs&) { return static_cast<double>(types[0].size()); };
  return record;
}

PrimitiveRecord reduce_sum_record() {
  PrimitiveRecord record =
      named_reduction("reduce_sum", "The sum over some axes.", Monoid::add, Accepts::numbers, false);
  record.traits.nan_checked = true;
  record.splits = reduce_sum_splits;
  record.dtypes = sum_dtypes;
  record.jvp = linear_jvp();
  record.transpose = [](const TransposeArgs& args) -> Arrays {
    if (!args.cotangents[0].defined()) return {Array()};
    const Ints& axes = args.attrs.ints("axes");
    Ints kept;
    for (int64_t d = 0; d < args.types[0].rank(); ++d) {
      if (std::find(axes.begin(), axes.end(), d) == axes.end()) kept.push_back(d);
    }
    const Sharding wanted = cotangent_sharding(args.types[0].sharding);
    return {lax::broadcast_in_dim(args.cotangents[0], args.types[0].shape, kept, wanted)};
  };
  record.samples = [](DType dtype) { return reduction_samples(dtype, {{"out_sharding", Attr()}}); };
  return record;
}

PrimitiveRecord reduce_prod_record() {
  PrimitiveRecord record =
      named_reduction("reduce_prod", "The product over some axes.", Monoid::mul, Accepts::numbers, false);
  record.traits.nan_checked = true;
  record.dtypes = sum_dtypes;
  record.jvp = [](const JvpArgs& args) -> JvpResult {
    auto multiply = [](std::span<const Array> xs) { return Arrays{lax::mul(xs[0], xs[1])}; };
    Arrays init = {exact_scalar(args.primals[0].dtype(), 1)};
    return reduction_tree_jvp(multiply, init, args.primals, args.tangents, args.attrs.ints("axes"));
  };
  return record;
}

// The tangents at the extreme, averaged over all elements that attain it.
PrimitiveRecord reduce_extreme_record(std::string name, std::string doc, Monoid monoid) {
  PrimitiveRecord record = named_reduction(name, std::move(doc), monoid, Accepts::anything, false);
  record.dtypes = with_bool(sum_dtypes);
  record.jvp = [](const JvpArgs& args) -> JvpResult {
    const Ints& axes = args.attrs.ints("axes");
    const Array& operand = args.primals[0];
    const Array& tangent = args.tangents[0];
    Array out = capibara::bind(args.primitive, args.primals, args.attrs)[0];
    Shape kept = operand.shape();
    for (int64_t axis : axes) kept[static_cast<std::size_t>(axis)] = 1;
    Array chosen = lax::convert_element_type(lax::eq(operand, lax::reshape(out, kept)), tangent.dtype());
    Array counts = lax::reduce_sum(chosen, {.axes = axes});
    Array total = lax::reduce_sum(lax::mul(tangent, chosen), {.axes = axes});
    return {{out}, {lax::div(total, counts)}};
  };
  return record;
}

PrimitiveRecord reduce_logical_record(std::string name, std::string doc, Monoid monoid) {
  PrimitiveRecord record = named_reduction(name, std::move(doc), monoid, Accepts::integers, true);
  record.dtypes = logical_dtypes();
  record.differentiable = false;
  return record;
}

PrimitiveRecord general_reduce_record() {
  PrimitiveRecord record;
  record.name = "reduce";
  record.factors = kept_factors;
  record.splits = reduction_splits;
  record.traits.combines = Combines::axes;
  record.traits.region = true;
  record.traits.multiple_results = true;
  record.traits.nan_checked = true;
  record.doc = "Folds operands together over some dimensions with a region that combines accumulators and elements.";
  record.stablehlo = "stablehlo.reduce";
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    if (types.empty() || types.size() % 2 != 0) {
      throw TypeError(concat("reduce: needs one initial value per operand, got ", types.size(), " inputs in all"));
    }
    std::size_t n = types.size() / 2;
    const Ints& dimensions = attrs.ints("dimensions");
    check_axes("reduce", dimensions, types[0], "dimensions");
    Types out;
    for (std::size_t i = 0; i < n; ++i) {
      if (types[i].shape != types[0].shape) {
        throw TypeError(
            concat("reduce: operands must have equal shapes, got ", to_string(types[0]), " and ", to_string(types[i])));
      }
      if (types[n + i].rank() != 0) {
        throw ValueError(concat("reduce: initial value ", i, " must be a scalar, got ", to_string(types[n + i])));
      }
      if (types[n + i].dtype != types[i].dtype) {
        throw TypeError(concat("reduce: operand dtypes should match corresponding initial value dtypes, got ",
                               to_string(types[i]), " and ", to_string(types[n + i])));
      }
      ArrayType type = types[i].with_shape(without_axes(types[i].shape, dimensions));
      type.weak_type = types[i].weak_type && types[n + i].weak_type;
      out.push_back(type);
    }
    check_region("reduce", attrs.program("jaxpr"), types.subspan(0, n));
    return out;
  };
  record.jvp = [](const JvpArgs& args) -> JvpResult {
    std::size_t n = args.primals.size() / 2;
    for (std::size_t i = n; i < args.tangents.size(); ++i) {
      if (args.tangents[i].defined()) {
        throw NotImplementedError(
            "reduce: the derivative with respect to the initial values of a general reduction is not defined; add them "
            "after reducing");
      }
    }
    Program region = args.attrs.program("jaxpr");
    auto combine = [&](std::span<const Array> xs) { return apply_region(region, xs); };
    return reduction_tree_jvp(combine,
                              Arrays(args.primals.begin() + static_cast<std::ptrdiff_t>(n), args.primals.end()),
                              args.primals.subspan(0, n), args.tangents.subspan(0, n), args.attrs.ints("dimensions"));
  };
  record.batch = [](const BatchArgs& args) -> BatchResult {
    std::size_t n = args.inputs.size() / 2;
    Arrays inputs;
    Ints dimensions = shifted(args.attrs.ints("dimensions"), 0);
    bool mapped_init = false;
    for (std::size_t i = 0; i < n; ++i) {
      inputs.push_back(batch_at(args.inputs[i], args.dims[i], args.axis));
      mapped_init = mapped_init || args.mapped(n + i);
    }
    if (!mapped_init) {
      inputs.insert(inputs.end(), args.inputs.begin() + static_cast<std::ptrdiff_t>(n), args.inputs.end());
      return {capibara::bind(args.primitive, inputs, args.attrs.with("dimensions", dimensions)),
              std::vector<int64_t>(n, 0)};
    }
    throw NotImplementedError("reduce: batching over initial values is not defined; they must be the same for all");
  };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    ArrayType scalar = scalar_type(dtype);
    // Odd lengths and an idempotent fold: the derivative's tree also folds in the initial value, whatever it is.
    Monoid monoid = is_complex(dtype) ? Monoid::add : Monoid::max;
    for (Shape shape : {Shape{5, 3}, Shape{3, 0, 2}, Shape{5}}) {
      Sample s;
      s.inputs = {scalar.with_shape(shape), scalar};
      s.attrs = {{"jaxpr", monoid_region(monoid, dtype)}, {"dimensions", Ints{0}}};
      samples.push_back(s);
    }
    if (!is_complex(dtype)) {
      Sample pair;
      pair.inputs = {scalar.with_shape({2, 5}), scalar.with_shape({2, 5}), scalar, scalar};
      auto both = [](std::span<const Array> a) { return Arrays{lax::max(a[0], a[2]), lax::min(a[1], a[3])}; };
      pair.attrs = {{"jaxpr", stage_region("reduce", both, {scalar, scalar, scalar, scalar})}, {"dimensions", Ints{1}}};
      samples.push_back(pair);
    }
    return samples;
  };
  record.dtypes = with_bool(sum_dtypes);
  return record;
}

}  // namespace

Family reduce_family() {
  Family family = {
      reduce_sum_record(),
      reduce_prod_record(),
      reduce_extreme_record("reduce_max", "The largest element over some axes; NaN wins.", Monoid::max),
      reduce_extreme_record("reduce_min", "The least element over some axes; NaN wins.", Monoid::min),
      reduce_logical_record("reduce_and", "The bitwise and of all elements over some axes.", Monoid::bit_and),
      reduce_logical_record("reduce_or", "The bitwise or of all elements over some axes.", Monoid::bit_or),
      reduce_logical_record("reduce_xor", "The bitwise exclusive or of all elements over some axes.", Monoid::bit_xor),
      argmax_record(),
      argmin_record(),
      general_reduce_record(),
  };
  for (PrimitiveRecord& record : batch_norm_family()) family.push_back(std::move(record));
  return family;
}

}  // namespace capibara

namespace capibara::jax::lax {

Array reduce_sum(const Array& x, const ReduceOptions& options) {
  return reduce_sum(x, options, taken_out_sharding(x.shape().size() - options.axes.size()));
}

Array reduce_sum(const Array& x, const ReduceOptions& options, const Sharding& out_sharding) {
  static const Primitive p = primitive("reduce_sum");
  return bind1(p, {x}, {{"axes", options.axes}, {"out_sharding", sharding_attr(out_sharding)}});
}
Array reduce_prod(const Array& x, const ReduceOptions& options) {
  static const Primitive p = primitive("reduce_prod");
  return bind1(p, {x}, {{"axes", options.axes}});
}
Array reduce_max(const Array& x, const ReduceOptions& options) {
  static const Primitive p = primitive("reduce_max");
  return bind1(p, {x}, {{"axes", options.axes}});
}
Array reduce_min(const Array& x, const ReduceOptions& options) {
  static const Primitive p = primitive("reduce_min");
  return bind1(p, {x}, {{"axes", options.axes}});
}
Array reduce_and(const Array& x, const ReduceOptions& options) {
  static const Primitive p = primitive("reduce_and");
  return bind1(p, {x}, {{"axes", options.axes}});
}
Array reduce_or(const Array& x, const ReduceOptions& options) {
  static const Primitive p = primitive("reduce_or");
  return bind1(p, {x}, {{"axes", options.axes}});
}
Array reduce_xor(const Array& x, const ReduceOptions& options) {
  static const Primitive p = primitive("reduce_xor");
  return bind1(p, {x}, {{"axes", options.axes}});
}

Arrays reduce(const Arrays& operands, const Arrays& init_values, const Computation& computation,
              const Ints& dimensions) {
  static const Primitive p = primitive("reduce");
  Arrays init = adopt_dtypes("reduce", operands, init_values);
  Arrays inputs = operands;
  inputs.insert(inputs.end(), init.begin(), init.end());
  return capibara::bind(p, inputs,
                        {{"jaxpr", variadic_region("reduce", computation, init)}, {"dimensions", dimensions}});
}

Array reduce(const Array& operand, const Array& init_value, const BinaryFunction& computation, const Ints& dimensions) {
  Array init = adopt_dtypes("reduce", {operand}, {init_value})[0];
  if (std::optional<Monoid> monoid = monoid_of(computation); monoid && is_identity_element(*monoid, init)) {
    ReduceOptions options{dimensions};
    bool numbers = is_numeric(operand.dtype());
    switch (*monoid) {
      case Monoid::add:
        if (numbers) return reduce_sum(operand, options);
        break;
      case Monoid::mul:
        if (numbers) return reduce_prod(operand, options);
        break;
      case Monoid::max:
        return reduce_max(operand, options);
      case Monoid::min:
        return reduce_min(operand, options);
      case Monoid::bit_and:
        return reduce_and(operand, options);
      case Monoid::bit_or:
        return reduce_or(operand, options);
      case Monoid::bit_xor:
        return reduce_xor(operand, options);
    }
  }
  return reduce(Arrays{operand}, Arrays{init}, widen(computation), dimensions)[0];
}

}  // namespace capibara::jax::lax
