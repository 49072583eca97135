// The monoids of named reductions: their identities, and their regions as programs.
#include "lax/reduce/monoid.h"

#include <capibara/lax.h>

#include <cstring>
#include <limits>

#include "core/array/element.h"
#include "program/trace/stage.h"
#include "program/trace/trace.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

template <class C>
Array make_scalar(DType dtype, C value) {
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(storage_size(dtype)));
  store_as<C>(dtype, buffer.mutable_data(), 0, value);
  return Array::from_buffer(scalar_type(dtype), buffer);
}

Array real_scalar(DType dtype, double value) {
  if (is_complex(dtype)) return make_scalar<std::complex<double>>(dtype, {value, 0.0});
  return make_scalar<double>(dtype, value);
}

// The lowest or highest value of an ordered dtype, or complex with that real part.
Array extreme(DType dtype, bool highest) {
  if (is_bool(dtype)) return make_scalar<bool>(dtype, highest);
  if (is_inexact(dtype)) {
    FloatInfo info = finfo(dtype);
    double infinity = std::numeric_limits<double>::infinity();
    double value = info.has_infinity ? infinity : info.max;
    return real_scalar(dtype, highest ? value : info.has_infinity ? -infinity : info.min);
  }
  IntInfo info = iinfo(dtype);
  if (is_unsigned(dtype)) return make_scalar<uint64_t>(dtype, highest ? info.max : 0);
  return make_scalar<int64_t>(dtype, highest ? static_cast<int64_t>(info.max) : info.min);
}

struct MonoidRow {
  Monoid monoid;
  const char* primitive;
  Array (*function)(const Array&, const Array&);
};
const MonoidRow monoid_table[] = {
    {Monoid::add, "add", lax::add},
    {Monoid::mul, "mul", lax::mul},
    {Monoid::max, "max", lax::max},
    {Monoid::min, "min", lax::min},
    {Monoid::bit_and, "and", lax::bitwise_and},
    {Monoid::bit_or, "or", lax::bitwise_or},
    {Monoid::bit_xor, "xor", lax::bitwise_xor},
};

}  // namespace

Array exact_scalar(DType dtype, int64_t value) {
  if (is_inexact(dtype)) return real_scalar(dtype, static_cast<double>(value));
  if (is_bool(dtype)) return make_scalar<bool>(dtype, value != 0);
  return make_scalar<int64_t>(dtype, value);
}

Array identity_element(Monoid monoid, DType dtype) {
  switch (monoid) {
    case Monoid::add:
    case Monoid::bit_or:
    case Monoid::bit_xor:
      return exact_scalar(dtype, 0);
    case Monoid::mul:
      return exact_scalar(dtype, 1);
    case Monoid::max:
      return extreme(dtype, false);
    case Monoid::min:
      return extreme(dtype, true);
    case Monoid::bit_and:
      return exact_scalar(dtype, is_bool(dtype) ? 1 : -1);
  }
  throw InternalError("identity_element: unknown monoid");
}

bool is_identity_element(Monoid monoid, const Array& value) {
  if (!value.defined() || value.is_tracer() || value.ndim() != 0) return false;
  if (!is_numeric(value.dtype()) && !is_bool(value.dtype())) return false;
  Array identity = identity_element(monoid, value.dtype());
  if (is_inexact(value.dtype())) {
    // Compared as numbers, so that -0 is a zero too.
    auto a = load_as<std::complex<double>>(value.dtype(), value.raw_data(), 0);
    auto b = load_as<std::complex<double>>(value.dtype(), identity.raw_data(), 0);
    return a == b;
  }
  return std::memcmp(value.raw_data(), identity.raw_data(), static_cast<std::size_t>(storage_size(value.dtype()))) == 0;
}

Program monoid_region(Monoid monoid, DType dtype) {
  for (const MonoidRow& row : monoid_table) {
    if (row.monoid != monoid) continue;
    ArrayType scalar = scalar_type(dtype);
    return stage_region(row.primitive,
                        [&](std::span<const Array> args) { return Arrays{row.function(args[0], args[1])}; },
                        {scalar, scalar});
  }
  throw InternalError("monoid_region: unknown monoid");
}

std::optional<Monoid> recognise_monoid(const Program& region) {
  if (region.invars().size() != 2 || region.outputs().size() != 1 || region.equations().size() != 1)
    return std::nullopt;
  const Equation& equation = region.equations()[0];
  if (equation.inputs.size() != 2 || equation.outputs.size() != 1) return std::nullopt;
  Atom first = region.invars()[0], second = region.invars()[1];
  bool straight = equation.inputs[0] == first && equation.inputs[1] == second;
  bool swapped = equation.inputs[0] == second && equation.inputs[1] == first;
  if (!straight && !swapped) return std::nullopt;
  if (region.outputs()[0] != Atom(equation.outputs[0])) return std::nullopt;
  if (region.type(equation.outputs[0]).dtype != region.type(region.invars()[0]).dtype) return std::nullopt;
  return equation.primitive->traits.combines == Combines::operands ? equation.primitive->traits.monoid : std::nullopt;
}

Program stage_region(const std::string& op, const ScalarFunction& function, const Types& types) {
  Staged staged = stage(function, types, op);
  if (!staged.captured.empty()) {
    throw NotImplementedError(concat(
        op, ": the computation uses ", staged.captured.size(),
        " traced value(s) of the function around it (argument 'computation'); a region may only use its own arguments "
        "and constants"));
  }
  return staged.program;
}

void check_region(const std::string& op, const Program& region, std::span<const ArrayType> operands) {
  Types inputs = region.input_types(), outputs = region.output_types();
  if (inputs.size() != 2 * operands.size() || outputs.size() != operands.size()) {
    throw TypeError(concat(op, ": the computation of ", operands.size(), " operand(s) must take ", 2 * operands.size(),
                           " scalars and return ", operands.size(), ", got ", inputs.size(), " and ", outputs.size()));
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const ArrayType& out = outputs[i];
    if (out.rank() != 0 || out.dtype != operands[i].dtype) {
      throw TypeError(concat(op, ": result ", i, " of the computation must be ", to_string(operands[i].dtype),
                             "[], got ", to_string(out)));
    }
    for (std::size_t j : {i, i + operands.size()}) {
      if (inputs[j].rank() != 0 || inputs[j].dtype != operands[i].dtype) {
        throw TypeError(concat(op, ": argument ", j, " of the computation must be ", to_string(operands[i].dtype),
                               "[], got ", to_string(inputs[j])));
      }
    }
  }
}

}  // namespace capibara
