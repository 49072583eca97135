// Conversions: between dtypes, to and from complex numbers, of bits, of precision; copies; functions mapped by region.
#include <capibara/config.h>

#include "lax/elementwise/elementwise.h"
#include "lax/sharding/factors.h"
#include "lax/sharding/splits.h"

#include "program/trace/stage.h"

namespace capibara::elementwise {

namespace lax = jax::lax;

namespace {

Arrays one_transpose(const TransposeArgs& args, Array (*rule)(const Array& t)) {
  return {args.cotangents[0].defined() ? rule(args.cotangents[0]) : Array()};
}

// ---- dtypes -----------------------------------------------------------------------------------------------------

PrimitiveRecord convert_record() {
  PrimitiveRecord r = record("convert_element_type", "x in another dtype; floats truncate toward zero to integers.", 1,
                             anything, "stablehlo.convert");
  r.splits = same_splits;
  r.traits.only_order = true;
  r.type = [](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    require_count("convert_element_type", types, 1);
    const DType from = types[0].dtype, to = attrs.dtype("new_dtype");
    const auto is_value = [](DType dtype) { return is_numeric(dtype) || is_bool(dtype) || dtype == DType::float0; };
    if (from != to && !(is_value(from) && is_value(to))) {
      throw TypeError(concat("convert_element_type: cannot convert ", dtype_name(from), " to ", dtype_name(to),
                             is_key(from) ? "; use jax.random.key_data for the words of a key" : ""));
    }
    ArrayType out = types[0];
    out.dtype = to;
    out.weak_type = attrs.boolean("weak_type");
    return Types{out};
  };
  r.jvp = [](const JvpArgs& args) {
    JvpResult result;
    result.primals = capibara::bind(args.primitive, args.primals, args.attrs);
    result.tangents.resize(1);
    if (args.tangents[0].defined() && is_inexact(args.attrs.dtype("new_dtype"))) {
      result.tangents = capibara::bind(args.primitive, args.tangents, args.attrs);
    }
    return result;
  };
  r.transpose = [](const TransposeArgs& args) {
    const ArrayType& type = args.types[0];
    if (!args.cotangents[0].defined() || !is_inexact(type.dtype)) return Arrays(1);
    return Arrays{
        bind1(args.primitive, {args.cotangents[0]}, Attrs{{"new_dtype", type.dtype}, {"weak_type", type.weak_type}})};
  };
  r.lower = [](std::span<const Array> in, const Attrs& attrs) -> Arrays {
    const Array& x = in[0];
    const DType to = attrs.dtype("new_dtype");
    if (is_complex(x.dtype()) && !is_complex(to)) return {lax::convert_element_type(lax::real(x), to, false)};
    // StableHLO's conversion to i1 truncates; a boolean is "not zero".
    if (is_bool(to) && !is_bool(x.dtype())) return {lax::ne(x, lax::full_like(x, 0))};
    if (x.dtype() == to) return {x};
    return {};
  };
  r.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (DType to : {DType::float64, DType::float32, DType::bfloat16, DType::int32, DType::uint8, DType::bool_,
                     DType::complex64}) {
      for (const Shape& shape : {Shape{}, Shape{0, 2}, Shape{2, 3}}) {
        samples.push_back({{{shape, dtype, false, false, {}}}, Attrs{{"new_dtype", to}, {"weak_type", false}}});
      }
    }
    return samples;
  };
  return r;
}

PrimitiveRecord bitcast_record() {
  PrimitiveRecord r = record("bitcast_convert_type",
                             "The bits of x as another dtype; a trailing dimension splits or "
                             "joins elements of other widths.",
                             1, anything, "stablehlo.bitcast_convert");
  r.traits.elementwise = Elementwise::no;  // dimensions are added or removed
  r.splits = bitcast_splits;
  r.factors = elementwise_factors;
  r.type = [](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    require_count("bitcast_convert_type", types, 1);
    const DType from = types[0].dtype, to = attrs.dtype("new_dtype");
    require_accepted("bitcast_convert_type", anything, from);
    require_accepted("bitcast_convert_type", anything, to);
    ArrayType out = types[0];
    out.dtype = to;
    out.weak_type = false;
    const int old_bits = capibara::bits(from), new_bits = capibara::bits(to);
    if (from != to && (is_bool(from) || is_bool(to) || (is_complex(from) && is_complex(to)))) {
      throw TypeError(
          concat("lax.bitcast_convert_type does not support bool or complex values unless the operand and "
                 "destination types match. Got operand dtype=",
                 dtype_name(from), ", new_dtype=", dtype_name(to), "."));
    }
    if (old_bits > new_bits) {
      out.shape.push_back(old_bits / new_bits);
    } else if (old_bits < new_bits) {
      const int64_t last = out.shape.empty() ? 1 : out.shape.back();
      if (last * old_bits != new_bits) {
        throw ValueError(concat("bitcast_convert_type: ", to_string(types[0]), " cannot become ", dtype_name(to),
                                ": its last dimension must hold ", new_bits / old_bits, " elements of ", old_bits,
                                " bits"));
      }
      out.shape.pop_back();
    }
    return Types{out};
  };
  r.jvp = zero_jvp();
  r.differentiable = false;
  r.batch = [](const BatchArgs& args) {
    // If the trailing dimension is joined into one element, the mapped one must not be the last.
    const bool joins = capibara::bits(args.attrs.dtype("new_dtype")) > capibara::bits(args.inputs[0].dtype());
    const int64_t dim = joins && args.dims[0] == args.inputs[0].ndim() - 1 ? 0 : args.dims[0];
    return BatchResult{{bind1(args.primitive, {move_axis(args.inputs[0], args.dims[0], dim)}, args.attrs)}, {dim}};
  };
  r.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (DType to : {DType::uint8, DType::int16, DType::float32, DType::uint64}) {
      if (!(is_integer(dtype) || is_floating(dtype)) || capibara::bits(dtype) < capibara::bits(to)) continue;
      if (capibara::bits(dtype) % 8 != 0) continue;
      for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 0}}) {
        samples.push_back({{{shape, dtype, false, false, {}}}, Attrs{{"new_dtype", to}}});
      }
    }
    samples.push_back({{{{2, 3}, dtype, false, false, {}}}, Attrs{{"new_dtype", dtype}}});
    return samples;
  };
  return r;
}

PrimitiveRecord reduce_precision_record() {
  PrimitiveRecord r = record("reduce_precision", "x rounded to a float format with fewer bits, in its own dtype.", 1,
                             floats, "stablehlo.reduce_precision");
  r.splits = same_splits;
  r.type = [same = r.type](std::span<const ArrayType> types, const Attrs& attrs) {
    const int64_t exponent = attrs.integer("exponent_bits"), mantissa = attrs.integer("mantissa_bits");
    if (exponent < 1) throw ValueError(concat("reduce_precision: exponent_bits must be positive; got ", exponent));
    if (mantissa < 0) throw ValueError(concat("reduce_precision: mantissa_bits must be non-negative; got ", mantissa));
    return same(types, attrs);
  };
  r.jvp = linear_jvp();
  r.transpose = [](const TransposeArgs& args) {
    if (!args.cotangents[0].defined()) return Arrays(1);
    return Arrays{bind1(args.primitive, {args.cotangents[0]}, args.attrs)};
  };
  r.samples = sample_calls(
      1, {}, {Attrs{{"exponent_bits", 5}, {"mantissa_bits", 10}}, Attrs{{"exponent_bits", 8}, {"mantissa_bits", 3}}});
  return r;
}

// ---- complex numbers --------------------------------------------------------------------------------------------

PrimitiveRecord complex_record() {
  PrimitiveRecord r =
      record("complex", "x + iy from two real arrays.", 2, complex_parts, "stablehlo.complex", complex_dtype);
  r.traits.elementwise = Elementwise::same_shapes;
  r.jvp = linear_jvp();
  r.transpose = [](const TransposeArgs& args) {
    Arrays result(2);
    const Array& t = args.cotangents[0];
    if (!t.defined()) return result;
    if (args.linear(0)) result[0] = unbroadcast(lax::real(t), args.types[0]);
    if (args.linear(1)) result[1] = unbroadcast(lax::imag(lax::neg(t)), args.types[1]);
    return result;
  };
  return r;
}

PrimitiveRecord conj_record() {
  PrimitiveRecord r = record("conj", "The complex conjugate; real input becomes complex.", 1, complex_parts | complexes,
                             "", complex_dtype);
  r.jvp = linear_jvp();
  r.transpose = [](const TransposeArgs& args) {
    if (!args.cotangents[0].defined()) return Arrays(1);
    return Arrays{is_complex(args.attrs.dtype("input_dtype")) ? lax::conj(args.cotangents[0])
                                                              : lax::real(args.cotangents[0])};
  };
  r.lower = [](std::span<const Array> in, const Attrs&) -> Arrays {
    const Array& x = in[0];
    if (!is_complex(x.dtype())) return {lax::complex(x, lax::full_like(x, 0))};
    const Array re = lax::real(x);
    return {lax::complex(re, lax::neg(lax::imag(x)))};
  };
  r.samples = [](DType dtype) { return sample_calls(1, {}, {Attrs{{"input_dtype", dtype}}})(dtype); };
  return r;
}

// ---- identities -------------------------------------------------------------------------------------------------

PrimitiveRecord copy_record(const char* name, const char* doc) {
  PrimitiveRecord r = record(name, doc, 1, anything, "");
  r.splits = same_splits;
  r.traits.elementwise = Elementwise::no;
  r.traits.moves = Moves::index;
  r.traits.free_to_recompute = true;
  r.type = [op = std::string(name)](std::span<const ArrayType> types, const Attrs&) {
    require_count(op, types, 1);
    return TypeResult(Types{types[0]});
  };
  r.jvp = linear_jvp();
  r.transpose = [](const TransposeArgs& args) {
    if (!args.cotangents[0].defined()) return Arrays(1);
    return Arrays{bind1(args.primitive, {args.cotangents[0]})};
  };
  r.lower = [](std::span<const Array> in, const Attrs&) { return Arrays{in[0]}; };
  return r;
}

PrimitiveRecord stop_gradient_record() {
  PrimitiveRecord r = copy_record("stop_gradient", "x, with a derivative of zero.");
  // Through lax, so that every enclosing derivative is stopped, not only this one.
  r.jvp = [](const JvpArgs& args) { return JvpResult{{lax::stop_gradient(args.primals[0])}, {Array()}}; };
  r.transpose = nullptr;
  r.differentiable = false;
  return r;
}

// ---- a function of scalars, applied to each element -------------------------------------------------------------

PrimitiveRecord map_record() {
  PrimitiveRecord r;
  r.name = "map";
  r.splits = nary_splits;
  r.factors = elementwise_factors;
  r.traits.region = true;
  r.doc = "A program on scalars applied to the elements of equally shaped arrays.";
  r.type = [](std::span<const ArrayType> types, const Attrs& attrs) -> TypeResult {
    const Program& program = attrs.program("jaxpr");
    const Types inputs = program.input_types(), outputs = program.output_types();
    require_count("map", types, inputs.size());
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (inputs[i].rank() != 0 || inputs[i].dtype != types[i].dtype || types[i].shape != types[0].shape) {
        throw TypeError(concat("map: operand ", i, " must have shape ", to_string(types[0]), " and the dtype ",
                               to_string(inputs[i]), " of the computation, got ", to_string(types[i])));
      }
    }
    Types result;
    for (const ArrayType& output : outputs) {
      if (output.rank() != 0)
        throw TypeError(concat("map: the computation must yield scalars, got ", to_string(output)));
      ArrayType type = output;
      if (!types.empty()) type.shape = types[0].shape;
      result.push_back(type);
    }
    return result;
  };
  r.batch = [](const BatchArgs& args) {
    int64_t to = not_mapped;
    for (int64_t dim : args.dims) {
      if (to == not_mapped) to = dim;
    }
    Arrays inputs;
    for (std::size_t i = 0; i < args.inputs.size(); ++i) {
      inputs.push_back(to == not_mapped ? args.inputs[i] : batch_at(args.inputs[i], args.dims[i], args.axis, to));
    }
    Ints dimensions;
    for (int64_t i = 0; i < (inputs.empty() ? 0 : inputs[0].ndim()); ++i) dimensions.push_back(i);
    Arrays outputs = capibara::bind(args.primitive, inputs, args.attrs.with("dimensions", dimensions));
    std::vector<int64_t> dims(outputs.size(), to);
    return BatchResult{std::move(outputs), std::move(dims)};
  };
  r.stablehlo = "stablehlo.map";
  r.samples = [](DType dtype) {
    const ArrayType scalar{{}, dtype, false, false, {}};
    const Program greater = stage([](std::span<const Array> in) { return Arrays{lax::max(in[0], in[1])}; },
                                  Types{scalar, scalar}, "greater")
                                .program;
    std::vector<Sample> samples;
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{0, 2}, Shape{2, 3}}) {
      Ints dimensions;
      for (std::size_t i = 0; i < shape.size(); ++i) dimensions.push_back(static_cast<int64_t>(i));
      samples.push_back(
          {{scalar.with_shape(shape), scalar.with_shape(shape)}, {{"jaxpr", greater}, {"dimensions", dimensions}}});
    }
    return samples;
  };
  return r;
}

}  // namespace

Family conversion_records() {
  Family family;
  const auto add = [&](PrimitiveRecord r) -> PrimitiveRecord& { return family.emplace_back(std::move(r)); };
  add(convert_record());
  add(bitcast_record());
  add(reduce_precision_record());
  {
    PrimitiveRecord& r = add(record("real", "The real part.", 1, complexes, "stablehlo.real", real_dtype));
    r.traits.only_order = true;
    r.jvp = linear_jvp();
    r.transpose = [](const TransposeArgs& args) {
      return one_transpose(args, [](const Array& t) { return lax::complex(t, scalar_of(t.dtype(), 0)); });
    };
  }
  {
    PrimitiveRecord& r = add(record("imag", "The imaginary part.", 1, complexes, "stablehlo.imag", real_dtype));
    r.traits.only_order = true;
    r.jvp = linear_jvp();
    r.transpose = [](const TransposeArgs& args) {
      return one_transpose(args, [](const Array& t) { return lax::complex(scalar_of(t.dtype(), 0), lax::neg(t)); });
    };
  }
  add(complex_record());
  add(conj_record());
  add(copy_record("copy", "A copy of x in memory of its own."));
  add(stop_gradient_record());
  add(map_record());
  return family;
}

}  // namespace capibara::elementwise

namespace capibara::jax::lax {

Array real(const Array& x) { return elementwise::call<"real">(x); }
Array imag(const Array& x) { return elementwise::call<"imag">(x); }
Array complex(const Array& x, const Array& y) { return elementwise::call<"complex">(x, y); }
Array copy(const Array& x) { return elementwise::call<"copy">(x); }

Array stop_gradient(const Array& x) {
  static const Primitive p = primitive("stop_gradient");
  return is_key(x.dtype()) ? x : bind1(p, {x});
}

Array conj(const Array& x) {
  static const Primitive p = primitive("conj");
  return bind1(p, {x}, Attrs{{"input_dtype", x.dtype()}});
}

Array reduce_precision(const Array& x, int64_t exponent_bits, int64_t mantissa_bits) {
  static const Primitive p = primitive("reduce_precision");
  return bind1(p, {x}, Attrs{{"exponent_bits", exponent_bits}, {"mantissa_bits", mantissa_bits}});
}

// 64-bit requests follow the configuration, except for 64-bit operands: those come from programs that were read.
Array convert_element_type(const Array& x, DType dtype) {
  const bool wide = capibara::config().enable_x64 || canonicalize(x.dtype(), false) != x.dtype();
  return convert_element_type(x, canonicalize(dtype, wide), false);
}

Array convert_element_type(const Array& x, DType dtype, bool weak_type) {
  static const Primitive p = primitive("convert_element_type");
  if (x.dtype() == dtype && x.weak_type() == weak_type) return x;
  const bool foldable = is_plain_number(x) && (is_numeric(dtype) || is_bool(dtype));
  if (foldable) return number_as(x, dtype, weak_type);
  return bind1(p, {x}, Attrs{{"new_dtype", dtype}, {"weak_type", weak_type}});
}

Array bitcast_convert_type(const Array& x, DType dtype) {
  static const Primitive p = primitive("bitcast_convert_type");
  const DType to = canonicalize(dtype, capibara::config().enable_x64 || bits(x.dtype()) >= 64);
  if (is_complex(x.dtype()) != is_complex(to)) {
    throw TypeError(concat(
        "lax.bitcast_convert_type does not support bool or complex values unless the operand and "
        "destination types match. Got operand dtype=",
        dtype_name(x.dtype()), ", new_dtype=", dtype_name(to), ". Consider using the arr.view() method instead."));
  }
  return bind1(p, {x}, Attrs{{"new_dtype", to}});
}

}  // namespace capibara::jax::lax
