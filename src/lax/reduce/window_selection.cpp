// Selections in windows, which are the derivatives of reductions over them: select_and_scatter and related primitives.
#include "lax/reduce/window.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/splits.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

void require_selection(const std::string& op, const Attrs& attrs) {
  const std::string& select = attrs.text("select_prim");
  if (select != "ge" && select != "le") throw ValueError(concat(op, ": select_prim must be ge or le, got ", select));
}

void require_source_shape(const std::string& op, const ArrayType& operand, const ArrayType& source,
                          const Window& window) {
  Shape expected = window_output_shape(op, operand, window);
  if (source.shape != expected) {
    throw TypeError(concat(op, ": source must have the shape of the windows over ", to_string(operand), ": expected ",
                           to_string(operand.with_shape(expected)), ", got ", to_string(source)));
  }
}

PrimitiveRecord select_and_scatter_record() {
  PrimitiveRecord record;
  record.name = "select_and_scatter";
  record.factors = window_factors;
  record.splits = same_splits;
  record.traits.combines = Combines::windows;
  record.traits.region = true;
  record.traits.element_nanoseconds = 10;
  record.doc = "Selects one element of each window by a region and folds a source value into its place by another.";
  record.stablehlo = "stablehlo.select_and_scatter";
  record.dtypes = float_dtypes;
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    require_count("select_and_scatter", types, 3);
    require_source_shape("select_and_scatter", types[0], types[1], Window::of(attrs));
    if (types[1].dtype != types[0].dtype || types[2].dtype != types[0].dtype || types[2].rank() != 0) {
      throw TypeError(concat("select_and_scatter: source and scalar init_value must have the dtype of ",
                             to_string(types[0]), ", got ", to_string(types[1]), " and ", to_string(types[2])));
    }
    ArrayType out = types[0];
    out.weak_type = all_weak(types);
    return Types{out};
  };
  record.samples = [](DType dtype) {
    ArrayType scalar = scalar_type(dtype);
    auto greater = [](std::span<const Array> a) { return Arrays{lax::ge(a[0], a[1])}; };
    Sample s;
    Window window{{1, 2}, {1, 2}, {{0, 0}, {0, 1}}, {1, 1}, {1, 1}};
    s.inputs = {scalar.with_shape({2, 5}), scalar.with_shape({2, 3}), scalar};
    s.attrs = window.attrs_without_dilation()
                  .with("select_jaxpr", stage_region("select_and_scatter", greater, {scalar, scalar}))
                  .with("select_consts", Ints{})
                  .with("scatter_jaxpr", monoid_region(Monoid::add, dtype))
                  .with("scatter_consts", Ints{});
    return std::vector<Sample>{s};
  };
  return record;
}

std::vector<Sample> selection_samples(DType dtype, bool scatter) {
  std::vector<Sample> samples;
  for (const char* select : {"ge", "le"}) {
    for (Sample& base : window_samples(dtype, false)) {
      Window window = Window::of(base.attrs);
      const ArrayType operand = base.inputs[0];
      ArrayType source = scatter ? operand.with_shape(window_output_shape("window", operand, window)) : operand;
      Sample s;
      s.inputs = {source, operand};
      s.attrs = (scatter ? window.attrs_without_dilation() : window.attrs()).with("select_prim", select);
      samples.push_back(std::move(s));
    }
  }
  return samples;
}

// Both are linear in their first operand; the second only determines which element is selected.
JvpResult selection_jvp(const JvpArgs& args) {
  Array out = capibara::bind(args.primitive, args.primals, args.attrs)[0];
  if (!args.tangents[0].defined()) return {{out}, {Array()}};
  return {{out}, capibara::bind(args.primitive, Arrays{args.tangents[0], args.primals[1]}, args.attrs)};
}

BatchResult selection_batch(const BatchArgs& args) {
  Arrays inputs = {batch_at(args.inputs[0], args.dims[0], args.axis),
                   batch_at(args.inputs[1], args.dims[1], args.axis)};
  Window window = Window::of(args.attrs).with_batch(0);
  Attrs attrs = args.attrs.has("base_dilation") ? window.attrs() : window.attrs_without_dilation();
  return {capibara::bind(args.primitive, inputs, attrs.with("select_prim", args.attrs["select_prim"])), {0}};
}

PrimitiveRecord select_and_scatter_add_record() {
  PrimitiveRecord record;
  record.name = "select_and_scatter_add";
  record.factors = window_factors;
  record.splits = same_splits;
  record.traits.element_nanoseconds = 10;
  record.doc = "Adds each source value at the position of its window's largest (ge) or smallest (le) element.";
  record.dtypes = float_dtypes;
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    require_count("select_and_scatter_add", types, 2);
    require_selection("select_and_scatter_add", attrs);
    require_same_dtypes("select_and_scatter_add", types);
    require_source_shape("select_and_scatter_add", types[1], types[0], Window::of(attrs));
    ArrayType out = types[1];
    out.weak_type = all_weak(types);
    return Types{out};
  };
  record.jvp = selection_jvp;
  record.batch = selection_batch;
  record.transpose = [](const TransposeArgs& args) -> Arrays {
    if (!args.cotangents[0].defined()) return {Array(), Array()};
    Attrs attrs = Window::of(args.attrs).attrs().with("select_prim", args.attrs["select_prim"]);
    return {bind_window("select_and_gather_add", {args.cotangents[0], args.inputs[1]}, attrs), Array()};
  };
  // The operand is padded with a value that is never selected, since XLA's CPU backend cannot pad here.
  record.lower = [](std::span<const Array> inputs, const Attrs& attrs) -> Arrays {
    const Array &source = inputs[0], &operand = inputs[1];
    bool greatest = attrs.text("select_prim") == "ge";
    Window window = Window::of(attrs);
    DType dtype = operand.dtype();
    std::vector<lax::PadDim> config;
    Ints start, stop;
    for (std::size_t d = 0; d < window.padding.size(); ++d) {
      auto [low, high] = window.padding[d];
      config.push_back({low, high, 0});
      start.push_back(low);
      stop.push_back(low + operand.shape()[d]);
    }
    Array padded = lax::pad(operand, identity_element(greatest ? Monoid::max : Monoid::min, dtype), config);
    window.padding.assign(window.padding.size(), {0, 0});
    ArrayType scalar = scalar_type(dtype);
    auto select = [greatest](std::span<const Array> a) {
      return Arrays{greatest ? lax::ge(a[0], a[1]) : lax::le(a[0], a[1])};
    };
    Attrs general = window.attrs_without_dilation()
                        .with("select_jaxpr", stage_region("select", select, {scalar, scalar}))
                        .with("select_consts", Ints{})
                        .with("scatter_jaxpr", monoid_region(is_bool(dtype) ? Monoid::bit_or : Monoid::add, dtype))
                        .with("scatter_consts", Ints{});
    Array out = bind_window("select_and_scatter", {padded, source, exact_scalar(dtype, 0)}, general);
    return {lax::slice(out, start, stop)};
  };
  record.samples = [](DType dtype) { return selection_samples(dtype, true); };
  return record;
}

PrimitiveRecord select_and_gather_add_record() {
  PrimitiveRecord record;
  record.name = "select_and_gather_add";
  record.factors = window_factors;
  record.splits = same_splits;
  record.traits.element_nanoseconds = 10;
  record.doc = "The tangent at the position of each window's largest (ge) or smallest (le) element.";
  record.dtypes = float_dtypes;
  record.type = [](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    require_count("select_and_gather_add", types, 2);
    require_selection("select_and_gather_add", attrs);
    require_same_dtypes("select_and_gather_add", types);
    if (!is_floating(types[0].dtype)) {
      throw TypeError(concat("select_and_gather_add: ", attrs.text("select_prim"), " does not order dtype ",
                             to_string(types[0].dtype), "; the operand must be floating"));
    }
    if (types[0].shape != types[1].shape) {
      throw TypeError(concat("select_and_gather_add: tangents and operand shapes must match, got ", to_string(types[0]),
                             " and ", to_string(types[1])));
    }
    ArrayType out = types[0].with_shape(window_output_shape("select_and_gather_add", types[1], Window::of(attrs)));
    out.weak_type = all_weak(types);
    return Types{out};
  };
  record.jvp = selection_jvp;
  record.batch = selection_batch;
  record.transpose = [](const TransposeArgs& args) -> Arrays {
    Window window = Window::of(args.attrs);
    const Attr& select = args.attrs["select_prim"];
    if (std::any_of(window.window_dilation.begin(), window.window_dilation.end(), [](int64_t d) { return d != 1; })) {
      throw NotImplementedError(
          "select_and_gather_add: the derivative of a windowed maximum or minimum with window "
          "dilation is not defined in reverse mode");
    }
    if (!args.cotangents[0].defined()) return {Array(), Array()};
    Array operand = args.inputs[1];
    bool base_dilated =
        std::any_of(window.base_dilation.begin(), window.base_dilation.end(), [](int64_t d) { return d != 1; });
    if (base_dilated) {
      Monoid monoid = args.attrs.text("select_prim") == "ge" ? Monoid::max : Monoid::min;
      std::vector<lax::PadDim> config;
      for (int64_t d : window.base_dilation) config.push_back({0, 0, d - 1});
      operand = lax::pad(operand, identity_element(monoid, operand.dtype()), config);
    }
    Array result = bind_window("select_and_scatter_add", {args.cotangents[0], operand},
                               window.attrs_without_dilation().with("select_prim", select));
    if (base_dilated) result = lax::slice(result, Ints(result.shape().size(), 0), result.shape(), window.base_dilation);
    return {result, Array()};
  };
  record.lower = [](std::span<const Array> inputs, const Attrs& attrs) -> Arrays {
    static const Primitive reduce_window = primitive("reduce_window");
    bool greatest = attrs.text("select_prim") == "ge";
    DType dtype = inputs[1].dtype();
    ArrayType scalar = scalar_type(dtype);
    auto choose = [greatest](std::span<const Array> a) -> Arrays {
      Array first = greatest ? lax::ge(a[0], a[2]) : lax::le(a[0], a[2]);
      return {lax::select(first, a[0], a[2]), lax::select(first, a[1], a[3])};
    };
    Attrs general = Window::of(attrs)
                        .attrs()
                        .with("jaxpr", stage_region("select_and_gather_add", choose, {scalar, scalar, scalar, scalar}))
                        .with("consts", Ints{});
    Arrays operands = {inputs[1], inputs[0], identity_element(greatest ? Monoid::max : Monoid::min, dtype),
                       exact_scalar(dtype, 0)};
    return {capibara::bind(reduce_window, operands, general)[1]};
  };
  record.samples = [](DType dtype) { return selection_samples(dtype, false); };
  return record;
}

}  // namespace

Family selection_records() {
  return {select_and_scatter_record(), select_and_scatter_add_record(), select_and_gather_add_record()};
}

}  // namespace capibara
