// Cases where a property does not hold by design, with reasons. jax 0.10.2 behaves the same unless stated otherwise.
#pragma once

#include "properties/hard_points.h"

#include <string_view>

namespace capibara::properties {

struct Exception {
  std::string_view property;  // the beginning of its name
  std::string_view primitive;
  bool (*covers)(const Call&);
  std::string_view reason;
};

inline bool takes_complex(const Call& call) {
  return call.takes([](DType dtype) { return is_complex(dtype); });
}
inline bool takes_half(const Call& call) {
  return call.takes([](DType dtype) { return is_floating(dtype) && bits(dtype) <= 16; });
}
inline bool takes_rbg(const Call& call) {
  return call.takes([](DType dtype) { return dtype == DType::key_rbg || dtype == DType::key_unsafe_rbg; });
}
inline bool takes_scale(const Call& call) {
  return call.takes([](DType dtype) { return dtype == DType::float8_e8m0fnu; });
}
inline bool is_bare(const Call& call) { return !call.body; }
inline bool always(const Call&) { return true; }

inline constexpr Exception exceptions[] = {
    // Derivatives that are not limits of differences.
    {"jvp = finite", "sign", takes_complex, "the tangent of sign is zero, also where sign turns with a complex number"},
    {"jvp = finite", "bitcast_convert_type", always, "bits have no tangent"},
    {"jvp = finite", "reduce_precision", always, "the tangent is rounded, not the step function differentiated"},
    {"jvp = finite", "stop_gradient", always, "its purpose"},
    {"<ct", "reduce_precision", always, "rounding is not linear"},
    {"<ct", "reduce_max", [](const Call& call) { return call.sample.inputs[0].size() == 0; },
     "the tangent of no maximum is 0/0"},
    {"<ct", "reduce_min", [](const Call& call) { return call.sample.inputs[0].size() == 0; },
     "the tangent of no minimum is 0/0"},
    {"jvp = finite", "reduce", takes_complex,
     "the tree of the derivative meets a nonzero initial value more than once"},
    {"jvp = finite", "eigh", is_bare, "the derivative symmetrises its operand; the samples are not symmetric"},
    {"jvp = finite", "cholesky", takes_complex,
     "differences leave the Hermitian matrices, on which alone it is defined"},
    {"jvp = finite", "svd", takes_complex, "the phases of singular vectors are free"},
    {"jvp = finite", "pmax", always, "the composition stops its tangent: pmax has none"},
    {"jvp = finite", "pmin", always, "the composition stops its tangent: pmin has none"},
    // Derivatives rejected with an explicit error.
    {"jvp", "custom_vjp_call", always, "a custom_vjp function has a reverse derivative only"},
    {"jvp", "pure_callback", always, "a host function has no derivative"},
    {"<ct", "pure_callback", always, "a host function has no derivative"},
    {"jvp", "io_callback", always, "a host function has no derivative"},
    {"<ct", "io_callback", always, "a host function has no derivative"},
    {"<ct", "custom_vjp_call", always, "the product needs a forward derivative, and there is none"},
    {"<ct", "while", always, "a loop of unknown length has a forward derivative only"},
    {"<ct", "reduce_window", always, "the derivative of a general windowed reduction goes forward only"},
    // Derivatives rejected with a TypeError: complex numbers have no order.
    {"jvp", "clamp", takes_complex, "the derivative compares, and complex numbers do not"},
    {"<ct", "clamp", takes_complex, "the derivative compares, and complex numbers do not"},
    {"jvp", "reduce_window_max", takes_complex, "the derivative compares, and complex numbers do not"},
    {"<ct", "reduce_window_max", takes_complex, "the derivative compares, and complex numbers do not"},
    {"jvp", "reduce_window_min", takes_complex, "the derivative compares, and complex numbers do not"},
    {"<ct", "reduce_window_min", takes_complex, "the derivative compares, and complex numbers do not"},
    // Texts that express less than a program.
    {"read(write", "sharding_constraint", always,
     "a text names axes of a mesh, not devices: a reader keeps the values"},
    // Batching by a loop, as required by the vmap_method or the effect.
    {"size", "pure_callback", always, "lane by lane"},
    {"size", "io_callback", always, "lane by lane"},
    {"size", "debug_callback", always, "lane by lane"},
    // Batching that draws different numbers.
    {"vmap", "random_split", takes_rbg, "rbg draws the whole batch from the first key"},
    {"vmap", "random_fold_in", takes_rbg, "rbg draws the whole batch from the first key"},
    {"vmap", "random_bits", takes_rbg, "rbg draws the whole batch from the first key"},
    {"vmap", "random_gamma", takes_rbg, "rbg draws the whole batch from the first key"},
    {"vmap", "rng_bit_generator", always, "the bits of the whole batch come from the first state"},
    // Generated code fuses products with sums: a difference of two infinities may become infinite minus finite.
    {"compiled = eager at hard", "mul", takes_complex, "fused products overflow later"},
    {"compiled = eager at hard", "integer_pow", takes_complex, "fused products overflow later"},
    {"compiled = eager at hard", "reduce_prod", takes_complex, "fused products overflow later"},
    {"compiled = eager at hard", "cumprod", takes_complex, "fused products overflow later"},
    {"compiled = eager at hard", "dot_general", takes_complex, "fused products overflow later"},
    {"compiled = eager at hard", "rem", takes_scale,
     "the least value of float8_e8m0fnu is a denormal of float32: zero"},
    {"compiled = eager at hard", "pow", takes_scale,
     "the least value of float8_e8m0fnu is a denormal of float32: zero"},
    {"compiled = eager at hard", "expm1", takes_scale,
     "the least value of float8_e8m0fnu is a denormal of float32: zero"},
    {"compiled = eager at hard", "tanh", takes_scale,
     "the least value of float8_e8m0fnu is a denormal of float32: zero"},
    {"compiled = eager at hard", "sin", takes_scale,
     "the least value of float8_e8m0fnu is a denormal of float32: zero"},
    {"compiled = eager at hard", "tan", takes_scale,
     "the least value of float8_e8m0fnu is a denormal of float32: zero"},
    {"compiled = eager at hard", "cholesky_update", always, "fused products leave what rounded ones cancel"},
    {"compiled = eager at hard", "conv_general_dilated", always, "padding is multiplied, as in jax: 0 * inf"},
    // Compositions whose steps overflow, or compute 0 * NaN, where one rounded operation does not.
    {"vmap = loop", "batch_norm_training", takes_half, "the composition rounds each step to 16 bits"},
    {"vmap = loop", "batch_norm_inference", takes_half, "the composition rounds each step to 16 bits"},
    {"vmap = loop", "batch_norm_grad", takes_half, "the composition rounds each step to 16 bits"},
    {"lowered = eager", "multiply_add", takes_half, "the composition rounds the product to 16 bits too"},
    {"lowered = eager at hard", "ragged_dot_general", always, "other groups are multiplied by zero: 0 * NaN"},
    {"lowered = eager at hard", "cumlogsumexp", takes_complex, "(inf + i y) - (inf + i y) in the composition"},
    {"lowered = eager at hard", "cumprod", takes_complex, "(1 + 0i) * (inf + i y)"},
    {"lowered = eager at hard", "lu_pivots_to_permutation", always, "pivots out of range mean nothing"},
    {"lowered = eager at hard", "approx_top_k", always, "where NaN goes is not specified"},
};

inline const Exception* exception_for(std::string_view property, const Call& call) {
  for (const Exception& exception : exceptions) {
    if (property.starts_with(exception.property) && call.primitive.is(exception.primitive) && exception.covers(call))
      return &exception;
  }
  return nullptr;
}

// Calls that an existing rule rejects. jax 0.10.2 rejects them too, unless stated otherwise.
struct Refusal {
  std::string_view primitive;
  std::string_view text;  // part of the message
};
inline constexpr Refusal refusals[] = {
    {"reduce", "batching over initial values"},
    {"reduce_window", "batching over initial values"},
    {"reduce_window_max", "window dilation"},
    {"reduce_window_min", "window dilation"},
    {"ragged_dot_general", "where the ragged dimension is noncontracting"},
    {"lu", "LAPACK has no routine for"},
    {"tridiagonal_solve", "LAPACK has no routine for"},
    {"pure_callback", "host callbacks"},  // jax passes the address of a host function to its own process
    {"io_callback", "host callbacks"},
    {"debug_callback", "host callbacks"},
    {"new_ref", "no lowering to StableHLO"},  // jax discharges refs to values before lowering
    {"get", "no lowering to StableHLO"},
    {"swap", "no lowering to StableHLO"},
    {"addupdate", "no lowering to StableHLO"},
    {"freeze", "no lowering to StableHLO"},
    {"get", "the reverse derivative of a loop that reads or writes a ref"},  // jax can
};

// True if the primitive lacks the rule, which missing_rules_test.cpp compares with jax, or the refusal is known.
inline bool is_known_refusal(const Call& call, std::string_view message) {
  if (message.find(concat("for '", call.primitive.name(), "' not implemented")) != std::string_view::npos) return true;
  return std::any_of(std::begin(refusals), std::end(refusals), [&](const Refusal& refusal) {
    return call.primitive.is(refusal.primitive) && message.find(refusal.text) != std::string_view::npos;
  });
}

// False for operands with respect to which the derivative is not defined.
inline bool has_tangent(const Call& call, std::size_t operand) {
  if (!is_inexact(call.sample.inputs[operand].dtype)) return false;
  if (call.primitive.is("polygamma")) return operand != 0;
  if (call.primitive.is("regularized_incomplete_beta")) return operand == 2;
  // The initial values are the second half.
  if (call.primitive.is("reduce") || call.primitive.is("reduce_window")) return operand < call.sample.inputs.size() / 2;
  return true;
}

}  // namespace capibara::properties
