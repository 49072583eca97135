// The elementwise family: the code that its records share, and the list of its parts.
#include "lax/elementwise/elementwise.h"
#include "lax/sharding/splits.h"

#include <algorithm>

namespace capibara::elementwise {

namespace lax = jax::lax;

bool accepts(unsigned accepted, DType dtype) {
  switch (kind(dtype)) {
    case Kind::boolean:
      return accepted & booleans;
    case Kind::signed_integer:
      return (accepted & signed_integers) || ((accepted & wide_signed_integers) && capibara::bits(dtype) >= 8);
    case Kind::unsigned_integer:
      return accepted & unsigned_integers;
    case Kind::floating:
      return (accepted & floats) ||
             ((accepted & complex_parts) && (dtype == DType::float32 || dtype == DType::float64));
    case Kind::complex:
      return accepted & complexes;
    case Kind::key:
      return accepted & keys;
    default:
      return false;
  }
}

std::vector<DType> accepted_dtypes(unsigned accepted) {
  std::vector<DType> dtypes;
  for (const DTypeRow& row : dtype_table) {
    if (row.dtype != DType::int1 && row.dtype != DType::uint1 && row.kind != Kind::key &&
        accepts(accepted, row.dtype)) {
      dtypes.push_back(row.dtype);
    }
  }
  return dtypes;
}

void require_accepted(const std::string& op, unsigned accepted, DType dtype, int position) {
  if (accepts(accepted, dtype)) return;
  const std::string at = position < 0 ? "" : concat(" at position ", position);
  if (dtype == DType::float0) {
    throw TypeError(concat("Called ", op, " with a float0 array", at,
                           ": float0 is the tangent of an integer or boolean and takes part in no operation; was a "
                           "gradient taken with respect to an integer argument?"));
  }
  static constexpr std::pair<unsigned, const char*> names[] = {
      {booleans, "bool"}, {integers, "integer"}, {floats, "floating"}, {complexes, "complexfloating"}};
  std::string list;
  const auto add = [&](const char* name) { list += (list.empty() ? "" : ", ") + std::string(name); };
  for (const auto& [set, name] : names) {
    if ((accepted & set) == set)
      add(name);
    else if (set == integers && (accepted & (signed_integers | wide_signed_integers)))
      add("signedinteger");
    else if (set == integers && (accepted & unsigned_integers))
      add("unsignedinteger");
    else if (set == floats && (accepted & complex_parts))
      add("float32, float64");
  }
  if (is_signed(dtype) && (accepted & wide_signed_integers)) {
    throw TypeError(concat(op, " does not accept dtype ", dtype_name(dtype),
                           ". Integers narrower than a byte take part only in basic arithmetic and type casting."));
  }
  throw TypeError(concat(op, " does not accept dtype ", dtype_name(dtype), at, ". Accepted dtypes", at,
                         " are subtypes of ", list, "."));
}

TypeRule type_rule(std::string op, std::size_t operands, unsigned accepted, ResultDType result, unsigned tolerated) {
  return [=, op = std::move(op)](std::span<const ArrayType> types, const Attrs&) -> TypeResult {
    require_count(op, types, operands);
    bool weak = true;
    for (std::size_t i = 0; i < operands; ++i) {
      if (!accepts(tolerated, types[i].dtype)) {
        require_accepted(op, accepted, types[i].dtype, operands == 1 ? -1 : static_cast<int>(i));
      }
      weak = weak && types[i].weak_type;
    }
    require_same_dtypes(op, types);
    ArrayType out;
    out.shape = operands == 1 ? types[0].shape : broadcast_operand_shapes(op, types);
    out.dtype = result(types[0].dtype);
    out.weak_type = weak;
    return Types{out};
  };
}

SampleMaker sample_calls(std::size_t operands, SampleRange range, std::vector<Attrs> variants) {
  return [=](DType dtype) {
    std::vector<std::vector<Shape>> calls = {{{}}, {{3}}, {{0, 2}}, {{2, 3}}, {{2, 1, 3}}};
    for (std::vector<Shape>& shapes : calls) shapes.resize(operands, shapes[0]);
    if (operands > 1) {
      // A scalar with an array, and dimensions that broadcast.
      std::vector<Shape> scalar(operands, Shape{2, 3}), stretched(operands, Shape{2, 3});
      scalar[1] = {};
      stretched[0] = {2, 1};
      calls.push_back(scalar);
      calls.push_back(stretched);
    }
    std::vector<Sample> samples;
    for (const Attrs& attrs : variants) {
      for (const std::vector<Shape>& shapes : calls) {
        Sample sample;
        for (const Shape& shape : shapes) sample.inputs.push_back({shape, dtype, false, false, {}});
        sample.attrs = attrs;
        sample.low = range.low;
        sample.high = range.high;
        samples.push_back(std::move(sample));
      }
    }
    return samples;
  };
}

PrimitiveRecord record(std::string name, std::string doc, std::size_t operands, unsigned accepted,
                       std::string stablehlo, ResultDType result) {
  PrimitiveRecord r;
  r.name = name;
  r.doc = std::move(doc);
  r.dtypes = accepted_dtypes(accepted);
  r.type = type_rule(name, operands, accepted, result);
  r.batch = batch_elementwise;
  r.splits = operands == 1 ? unary_splits : nary_splits;
  if (operands > 1 && !stablehlo.empty()) r.lower = lower_broadcasting(name);
  r.stablehlo = std::move(stablehlo);
  r.samples = sample_calls(operands);
  r.traits.elementwise = operands == 1 ? Elementwise::same_shapes : Elementwise::any_scalar;
  r.flops = [](std::span<const ArrayType> types, const Attrs&) {
    int64_t size = 0;
    for (const ArrayType& type : types) size = std::max(size, type.size());
    return static_cast<double>(size);
  };
  return r;
}

Array zero_of(const Array& x) { return scalar_of(x.dtype(), 0, x.weak_type()); }
Array one_of(const Array& x) { return scalar_of(x.dtype(), 1, x.weak_type()); }

Array replace_zero(const Array& x) {
  const Array is_zero = lax::eq(x, scalar_like(x, 0));
  const Array ones = lax::full_like(x, 1);
  return lax::select(is_zero, ones, x);
}

Array broadcast_to(const Shape& shape, const Array& x, const Sharding& out_sharding) {
  if (x.shape() == shape && (!out_sharding.is_explicit() || out_sharding == x.type().sharding)) return x;
  if (x.ndim() == 0) return lax::broadcast_in_dim(x, shape, {}, out_sharding);
  Ints kept;
  Shape squeezed;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (x.shape()[i] != shape[i]) continue;
    kept.push_back(static_cast<int64_t>(i));
    squeezed.push_back(shape[i]);
  }
  return lax::broadcast_in_dim(lax::reshape(x, squeezed), shape, kept, out_sharding);
}

Arrays broadcast_operands(const std::string& op, std::span<const Array> operands) {
  Types types;
  for (const Array& operand : operands) types.push_back(operand.type());
  const Shape shape = broadcast_operand_shapes(op, types);
  Arrays result;
  for (const Array& operand : operands) result.push_back(broadcast_to(shape, operand));
  return result;
}

LowerRule lower_broadcasting(std::string name) {
  return [name = std::move(name)](std::span<const Array> inputs, const Attrs& attrs) -> Arrays {
    const auto differs = [&](const Array& x) { return x.shape() != inputs[0].shape(); };
    if (std::none_of(inputs.begin(), inputs.end(), differs)) return {};
    return capibara::bind(primitive(name), broadcast_operands(name, inputs), attrs);
  };
}

}  // namespace capibara::elementwise

namespace capibara {

Family elementwise_family() {
  Family family;
  for (Family (*part)() : {elementwise::arithmetic_records, elementwise::power_records, elementwise::extremum_records,
                           elementwise::transcendental_records, elementwise::comparison_records,
                           elementwise::bit_records, elementwise::conversion_records}) {
    for (PrimitiveRecord& record : part()) family.push_back(std::move(record));
  }
  return family;
}

}  // namespace capibara
