// Promotion and broadcasting as in jax.numpy.
#include "lax/operators/promote.h"

#include <capibara/config.h>

#include <algorithm>

#include "core/array/format.h"
#include "core/runtime/warning.h"
#include "lax/call.h"
#include "lax/operators/plain_number.h"
#include "lax/operators/promotion_scope.h"
#include "program/trace/stage.h"
#include "program/trace/trace.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

thread_local PromotionScope::Rule dtype_rule = PromotionScope::all, rank_rule = PromotionScope::all;

// The first promotion of several operands was of the user's; later ones are of the library's.
void use_up(PromotionScope::Rule& rule) {
  if (rule == PromotionScope::first) rule = PromotionScope::none;
}
void use_up(PromotionScope::Rule& rule, const Arrays& operands) {
  if (operands.size() > 1) use_up(rule);
}

void check_rank_promotion(const char* name, const Arrays& operands) {
  const std::string& mode = config().numpy_rank_promotion;
  if (mode == "allow" || rank_rule == PromotionScope::none) return;
  std::string shapes;
  for (const Array& x : operands) shapes += concat(shapes.empty() ? "" : " ", shape_tuple(x.shape()));
  if (mode == "raise") {
    throw ValueError(concat("Operands could not be broadcast together for ", name, " on shapes ", shapes,
                            " and with the config option jax_numpy_rank_promotion='raise'; reshape one of them"));
  }
  warn(concat("Following NumPy automatic rank promotion for ", name, " on shapes ", shapes,
              ". Set the jax_numpy_rank_promotion config option to 'allow' to disable this warning."));
}

Arrays convert_all(const Arrays& operands, ScalarType to) {
  Arrays converted;
  for (const Array& x : operands) converted.push_back(lax::convert_element_type(x, to.dtype, to.weak));
  return converted;
}

void require_numbers(const char* name, const Arrays& operands) {
  bool differ = false, keys = false;
  for (const Array& x : operands) {
    if (!x.defined()) throw TypeError(concat(name, ": an operand is an empty Array"));
    differ = differ || x.dtype() != operands[0].dtype();
    keys = keys || is_key(x.dtype());
  }
  if (!keys || !differ) return;
  std::string dtypes;
  for (const Array& x : operands) dtypes += concat(dtypes.empty() ? "" : ", ", to_string(x.dtype()));
  throw TypeError(concat(name, " does not accept dtypes ", dtypes, "."));
}

}  // namespace

PromotionMode promotion_mode() {
  if (dtype_rule == PromotionScope::none) return PromotionMode::standard;
  return config().numpy_dtype_promotion == "strict" ? PromotionMode::strict : PromotionMode::standard;
}

PromotionScope::PromotionScope(Rule rule) : dtypes_(dtype_rule), ranks_(rank_rule) { dtype_rule = rank_rule = rule; }

PromotionScope::~PromotionScope() {
  dtype_rule = dtypes_;
  rank_rule = ranks_;
}

DType canonical(DType dtype) { return canonicalize(dtype, config().enable_x64); }

DType default_float() { return canonical(DType::float64); }
DType default_int() { return canonical(DType::int64); }
DType default_uint() { return canonical(DType::uint64); }
DType default_complex() { return canonical(DType::complex128); }
DType inexact_dtype(DType dtype) {
  if (is_inexact(dtype)) return dtype;
  return is_integer(dtype) && bits(dtype) == 64 ? DType::float64 : DType::float32;
}

ScalarType result_type(const Arrays& operands) {
  std::vector<ScalarType> types;
  types.reserve(operands.size());
  for (const Array& x : operands) types.push_back({x.dtype(), x.weak_type()});
  return promote_types(types, config().enable_x64, promotion_mode());
}

bool are_promoted(const Array& a, const Array& b) {
  if (!a.defined() || !b.defined()) return false;
  const ArrayType &x = a.type(), &y = b.type();
  if (x.dtype != y.dtype || x.weak_type != y.weak_type) return false;
  if (x.rank() != y.rank() && x.rank() != 0 && y.rank() != 0) return false;
  use_up(dtype_rule);
  use_up(rank_rule);
  return true;
}

Arrays promote_dtypes(const Arrays& operands) {
  if (operands.size() < 2) return operands;
  const ArrayType& first = operands[0].type();
  if (std::all_of(operands.begin(), operands.end(),
                  [&](const Array& x) { return x.dtype() == first.dtype && x.weak_type() == first.weak_type; })) {
    use_up(dtype_rule, operands);
    return operands;
  }
  const ScalarType to = result_type(operands);
  use_up(dtype_rule, operands);
  return convert_all(operands, to);
}

Arrays promote_dtypes_inexact(const Arrays& operands) {
  ScalarType to = result_type(operands);
  use_up(dtype_rule, operands);
  to.dtype = inexact_dtype(to.dtype);
  return convert_all(operands, to);
}

Arrays promote_ranks(const char* name, const Arrays& operands) {
  int64_t rank = 0;
  bool differ = false;
  for (const Array& x : operands) {
    if (x.ndim() == 0) continue;
    differ = differ || (rank != 0 && x.ndim() != rank);
    rank = std::max(rank, x.ndim());
  }
  if (differ) check_rank_promotion(name, operands);
  use_up(rank_rule, operands);
  if (!differ) return operands;
  std::vector<Shape> shapes;
  for (const Array& x : operands) shapes.push_back(x.shape());
  lax::broadcast_shapes(shapes);  // raises ValueError if the shapes do not fit
  Arrays promoted;
  for (const Array& x : operands) promoted.push_back(x.ndim() == 0 ? x : lax::broadcast_to_rank(x, rank));
  return promoted;
}

Arrays promote_args(const char* name, const Arrays& operands) {
  if (operands.size() == 2 && are_promoted(operands[0], operands[1])) return operands;
  require_numbers(name, operands);
  return promote_ranks(name, promote_dtypes(operands));
}

Arrays promote_args_inexact(const char* name, const Arrays& operands) {
  const bool inexact = operands.size() == 2 && operands[0].defined() && is_inexact(operands[0].dtype());
  if (inexact && are_promoted(operands[0], operands[1])) return operands;
  require_numbers(name, operands);
  return promote_ranks(name, promote_dtypes_inexact(operands));
}

Array promote_inexact(const char* name, const Array& x) {
  if (x.defined() && is_inexact(x.dtype())) return x;  // a single operand needs no agreement
  return promote_args_inexact(name, {x})[0];
}

Array broadcast_to(const char* name, const Array& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const std::size_t rank = shape.size(), own = x.shape().size();
  if (own > rank) {
    throw ValueError(concat(name, ": Cannot broadcast to shape with fewer dimensions: ", to_string(x.type()),
                            " and requested shape ", shape_tuple(shape)));
  }
  bool fits = true;
  for (std::size_t i = 0; fits && i < own; ++i) fits = x.shape()[i] == 1 || x.shape()[i] == shape[rank - own + i];
  if (!fits) {
    throw ValueError(concat(name, ": Incompatible shapes for broadcasting: ", to_string(x.type()),
                            " and requested shape ", to_string(x.type().with_shape(shape))));
  }
  // Axes of size one are squeezed first: broadcast_in_dim then repeats along all new ones.
  Ints squeezed, kept;
  for (std::size_t i = 0; i < own; ++i) {
    const std::size_t to = rank - own + i;
    if (x.shape()[i] == shape[to])
      kept.push_back(static_cast<int64_t>(to));
    else
      squeezed.push_back(static_cast<int64_t>(i));
  }
  return lax::broadcast_in_dim(squeezed.empty() ? x : lax::squeeze(x, squeezed), shape, kept);
}

Arrays broadcast_arrays(const char* name, const Arrays& operands) {
  if (operands.empty()) return operands;
  std::vector<Shape> shapes;
  for (const Array& x : operands) shapes.push_back(x.shape());
  const Shape shape = lax::broadcast_shapes(shapes);
  Arrays result;
  for (const Array& x : operands) result.push_back(broadcast_to(name, x, shape));
  return result;
}

int64_t canonical_axis(const char* name, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    throw ValueError(concat(name, ": axis ", axis, " is out of bounds for array of dimension ", rank));
  }
  return axis < 0 ? axis + rank : axis;
}

Array named_call(const char* name, std::initializer_list<Array> inputs, const FlatFunction& function) {
  const Arrays operands(inputs);
  if (current_trace() == evaluation_trace()) return function(operands)[0];
  Types types;
  for (const Array& operand : operands) types.push_back(operand.type());
  const Staged staged = stage(function, types, name);
  Arrays all = staged.captured;
  all.insert(all.end(), operands.begin(), operands.end());
  return call_program(staged.program, all, name)[0];
}

}  // namespace capibara
