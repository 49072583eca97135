// CHLO operations as functions of StableHLO operations: the same formulas that the backends compute.
#include "compiler/stablehlo/bytecode/plain_operations.h"

#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include <capibara/error.h>
#include <capibara/lax.h>

#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/syntax/parser.h"
#include "compiler/stablehlo/write.h"
#include "lax/math/array_value.h"
#include "lax/math/bessel.h"
#include "lax/math/complex_inverse.h"
#include "lax/math/error_function.h"
#include "lax/math/error_function_inverse.h"
#include "lax/math/gamma.h"
#include "program/trace/stage.h"

namespace capibara::stablehlo {

namespace {

namespace lax = jax::lax;

using PlainFunction = Arrays (*)(const Arrays& operands, const Attrs& attrs);

// Narrow types are computed in float32.
Arrays widely(const Arrays& operands, NdArray (*function)(const Arrays&)) {
  const DType dtype = operands[0].dtype();
  if (!is_floating(dtype) || bits(dtype) >= 32) return {function(operands)};
  Arrays wide;
  for (const NdArray& operand : operands) wide.push_back(lax::convert_element_type(operand, DType::float32));
  return {lax::convert_element_type(function(wide), dtype)};
}

// A formula of math/ on one operand.
template <NdArray (*function)(NdArray)>
Arrays plain_unary(const Arrays& operands, const Attrs&) {
  return widely(operands, [](const Arrays& in) { return function(in[0]); });
}
template <NdArray (*function)(NdArray, NdArray)>
Arrays plain_binary(const Arrays& operands, const Attrs&) {
  return widely(operands, [](const Arrays& in) { return function(in[0], in[1]); });
}
// A formula that also takes complex numbers, by their parts.
template <NdArray (*real)(NdArray), math::Complex<NdArray> (*complex)(math::Complex<NdArray>)>
Arrays plain_circular(const Arrays& operands, const Attrs& attrs) {
  if (!is_complex(operands[0].dtype())) return plain_unary<real>(operands, attrs);
  const math::Complex<NdArray> result = complex({lax::real(operands[0]), lax::imag(operands[0])});
  return {lax::complex(result.real, result.imag)};
}

// In float32 a quotient of polynomials; in float64 there is no operation to call.
NdArray plain_erf(NdArray x) { return math::is_double(x) ? math::in_lanes::erf(x) : math::erf(x); }

Arrays plain_square(const Arrays& operands, const Attrs&) { return {lax::mul(operands[0], operands[0])}; }

NdArray number_like(const NdArray& x, double value) { return math::Operations<NdArray>::constant(value, x); }

NdArray infinite(const NdArray& x, int sign) {
  const double infinity = std::numeric_limits<double>::infinity();
  return lax::eq(sign == 0 ? lax::abs(x) : x, number_like(x, sign < 0 ? -infinity : infinity));
}

// The bits of a number differ by one from those of its neighbours.
Arrays plain_nextafter(const Arrays& operands, const Attrs&) {
  const NdArray &x = operands[0], &y = operands[1];
  static constexpr DType integers[] = {DType::uint8, DType::uint16, DType::uint32, DType::uint64};
  const int width = bits(x.dtype());
  const DType type = integers[width == 8 ? 0 : width == 16 ? 1 : width == 32 ? 2 : 3];
  const NdArray own = lax::bitcast_convert_type(x, type);
  const NdArray other = lax::bitcast_convert_type(y, type);
  const NdArray one = number_like(own, 1);
  const NdArray sign = lax::shift_left(one, number_like(own, width - 1));
  const NdArray zero = number_like(x, 0);
  const NdArray is_zero = lax::eq(x, zero);
  const NdArray is_equal = lax::eq(x, y);
  const NdArray smallest = lax::bitwise_or(lax::bitwise_and(other, sign), one);
  const NdArray above = lax::add(own, one), below = lax::sub(own, one);
  // Away from zero if x < y for positive x, or not x < y for negative x.
  const NdArray outward = lax::eq(lax::lt(x, y), lax::gt(x, zero));
  const NdArray next = lax::select(is_zero, smallest, lax::select(outward, above, below));
  const NdArray number = lax::bitcast_convert_type(next, x.dtype());
  const NdArray unordered = lax::bitwise_or(lax::ne(x, x), lax::ne(y, y));
  return {lax::select(unordered, lax::add(x, y), lax::select(is_equal, y, number))};
}

// Of equal elements the first comes first: the last of the reversed ones in ascending order.
Arrays plain_top_k(const Arrays& operands, const Attrs& attrs) {
  const int64_t axis = attrs.integer("axis"), k = attrs.integer("k");
  const NdArray& x = operands[0];
  const int64_t size = x.shape()[static_cast<std::size_t>(axis)];
  const NdArray places = lax::broadcasted_iota(DType::int32, x.shape(), axis);
  const NdArray reversed = lax::rev(x, {axis});
  const Arrays sorted = lax::sort(Arrays{reversed, lax::rev(places, {axis})}, {.dimension = axis});
  Arrays results;
  for (const NdArray& part : sorted)
    results.push_back(lax::rev(lax::slice_in_dim(part, size - k, size, 1, axis), {axis}));
  return results;
}

const std::unordered_map<std::string_view, PlainFunction>& plain_functions() {
  using math::Complex;
  static const std::unordered_map<std::string_view, PlainFunction> functions = {
      {"erf", plain_unary<plain_erf>},
      {"erfc", plain_unary<math::erfc<NdArray>>},
      {"erf_inv", plain_unary<math::erf_inv<NdArray>>},
      {"lgamma", plain_unary<math::lgamma<NdArray>>},
      {"digamma", plain_unary<math::digamma<NdArray>>},
      {"polygamma", plain_binary<math::polygamma<NdArray>>},
      {"zeta", plain_binary<math::zeta<NdArray>>},
      {"bessel_i1e", plain_unary<math::bessel_i1e<NdArray>>},
      {"asin", plain_circular<math::asin<NdArray>, math::asin<NdArray>>},
      {"acos", plain_circular<math::acos<NdArray>, math::acos<NdArray>>},
      {"atan", plain_circular<math::atan<NdArray>, math::atan<NdArray>>},
      {"sinh", plain_circular<math::sinh<NdArray>, math::sinh<NdArray>>},
      {"cosh", plain_circular<math::cosh<NdArray>, math::cosh<NdArray>>},
      {"asinh", plain_circular<math::asinh<NdArray>, math::asinh<NdArray>>},
      {"acosh", plain_circular<math::acosh<NdArray>, math::acosh<NdArray>>},
      {"atanh", plain_circular<math::atanh<NdArray>, math::atanh<NdArray>>},
      {"square", plain_square},
      {"nextafter", plain_nextafter},
      {"is_inf", [](const Arrays& in, const Attrs&) { return Arrays{infinite(in[0], 0)}; }},
      {"is_pos_inf", [](const Arrays& in, const Attrs&) { return Arrays{infinite(in[0], 1)}; }},
      {"is_neg_inf", [](const Arrays& in, const Attrs&) { return Arrays{infinite(in[0], -1)}; }},
      {"top_k", plain_top_k},
  };
  return functions;
}

// Replaces operations by calls of functions added to the module, one per operation, attributes and types.
class ChloWriter {
 public:
  explicit ChloWriter(Module& module) : module_(module), functions_(module.functions.size()) {}

  std::size_t written_functions() const { return functions_; }

  void rewrite(Block& block) {
    for (Operation& operation : block.operations) {
      for (Region& region : operation.regions) {
        for (Block& inner : region.blocks) rewrite(inner);
      }
      if (!operation.name.starts_with("chlo.")) continue;
      operation.attributes = Dictionary({{"callee", Attribute::of(SymbolReference{symbol_of(operation), {}})}});
      operation.name = "func.call";
    }
  }

  void finish() {
    for (Function& function : added_) module_.functions.push_back(std::move(function));
  }

 private:
  std::string symbol_of(const Operation& operation) {
    std::string key = concat(operation.name, print_attribute(Attribute::of(operation.attributes)));
    Types inputs, outputs;
    for (const Value& operand : operation.operands) {
      inputs.push_back(array_type(operation, operand.type));
      key += operand.type.text();
    }
    for (const Value& result : operation.results) outputs.push_back(array_type(operation, result.type));
    const auto [it, added] = symbols_.try_emplace(std::move(key));
    if (!added) return it->second;
    const OperationRow* row = find_row(operation);
    const auto found = row ? plain_functions().find(row->primitive) : plain_functions().end();
    if (found == plain_functions().end()) {
      throw UnsupportedError(
          concat(place_of(operation),
                 ": this operation cannot be written to a StableHLO artifact, nor can another replace it"));
    }
    const Attrs attrs = row->read ? row->read({operation, inputs, outputs}) : Attrs();
    const Program program =
        lower(stage([&](std::span<const NdArray> in) { return found->second(Arrays(in.begin(), in.end()), attrs); },
                    inputs, std::string(row->primitive))
                  .program);
    Module written = parse_module(write_module(program));
    if (written.functions.size() != 1) fail(operation, "expected one function in its place");
    std::string name = operation.name;
    for (int suffix = 0; module_.find_function(name) || names_.count(name) != 0; ++suffix)
      name = concat(operation.name, "_", suffix);
    names_.insert(name);
    Function& function = written.functions[0];
    function.name = name;
    function.visibility = "private";
    added_.push_back(std::move(function));
    return it->second = name;
  }

  Module& module_;
  std::size_t functions_;
  std::vector<Function> added_;
  std::map<std::string, std::string> symbols_;  // by operation, attributes and types
  std::set<std::string> names_;
};

}  // namespace

Module without_chlo(Module module) {
  ChloWriter writer(module);
  for (std::size_t i = 0; i < writer.written_functions(); ++i) writer.rewrite(module.functions[i].body);
  writer.finish();
  return module;
}

}  // namespace capibara::stablehlo
