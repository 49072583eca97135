// Attention figures to compare with JAX's: rates of the forward pass and with the gradient by cuDNN and by our own
// kernels, temporaries, and values against the definition.
#pragma once

#include "attention_cases.h"
#include "backends/pjrt/backend.h"
#include "backends/pjrt/calls/cudnn.h"

namespace attention_figures {

// Reports the rate of a compiled program, and its temporaries.
template <class C, class F>
void time_program(const std::string& word, const std::string& name, double operations, const C& compiled, F&& call) {
  report(("attention" + word + "_" + name).c_str(), operations * 1e-12 / timed(small ? 2 : 5, call), "TFLOP/s");
  if (const auto use = compiled.memory_analysis()) {
    report(("attention" + word + "_temp_" + name).c_str(), static_cast<double>(use->temp) * 1e-6, "MB");
  }
}

template <class F>
void time_both(const std::string& name, double operations, bool gradient, const F& call, const Arrays& in) {
  const auto forward = jax::jit(call).lower(in[0], in[1], in[2]).compile();
  time_program("", name, operations, forward, [&] { return forward(in[0], in[1], in[2]); });
  if (!gradient) return;
  const auto both = with_gradient(call).lower(in[0], in[1], in[2], in[3]).compile();
  time_program("_grad", name, 3.5 * operations, both, [&] { return std::get<1>(both(in[0], in[1], in[2], in[3])); });
}

inline void time_case(const Case& one) {
  Options options = one.options();
  const Arrays in = {one.query(1), one.key(2), one.key(3), one.query(4)};
  const auto call = [options](const Array& a, const Array& b, const Array& c) { return fused(a, b, c, options); };
  if (!one.bias) return time_both(one.name, one.operations(), one.gradient, call, in);
  // The gradient of the bias is also a result: cuDNN's call does not return it.
  const auto both = jax::jit([options](const Array& q, const Array& k, const Array& v, const Array& d, const Array& b) {
    const auto biased = [options](const Array& x, const Array& y, const Array& z, const Array& w) {
      Options own = options;
      own.bias = w;
      return fused(x, y, z, own);
    };
    return std::get<1>(jax::vjp(biased, q, k, v, b))(d);
  });
  const Array bias = *one.given_bias();
  const auto compiled = both.lower(in[0], in[1], in[2], in[3], bias).compile();
  time_program("_grad", one.name, 3.5 * one.operations(), compiled,
               [&] { return std::get<0>(compiled(in[0], in[1], in[2], in[3], bias)); });
}

// A quarter of the blocks of 64 x 64, at random.
inline void time_sparse(const std::string& name, int64_t heads, int64_t length, int64_t size) {
  const Array drawn = normal_bf16(5, {1, heads, length / 64, length / 64});
  const Array blocks = drawn < Array(-0.6745f).astype(DType::bfloat16);
  const auto call = [blocks](const Array& q, const Array& k, const Array& v) {
    return capibara::kernels::sparse_attention(q, k, v, {.blocks = blocks, .block_size = 64});
  };
  Arrays in;
  for (int64_t seed = 1; seed <= 4; ++seed) in.push_back(normal_bf16(seed, {1, heads, length, size}));
  const double pairs = static_cast<double>(length) * static_cast<double>(length) * 0.25;
  time_both(name, 4 * static_cast<double>(heads * size) * pairs, true, call, in);
}

inline void run() {
  if (capibara::config().platform == "cuda") {  // 0: these figures are from other kernels
    const int64_t capability = capibara::pjrt::cudnn_capability(capibara::pjrt::client("cuda"));
    report("attention_cudnn", static_cast<double>(capability), "capability");
  }
  for (const Case& one : {Case{"causal_d64", 2, 320, 4, 4, 64, true, 0, false, true},
                          {"grouped", 1, 384, 8, 2, 128, true, 0, false, true},
                          {"window", 1, 512, 4, 4, 128, true, 100, false, true},
                          {"bias", 2, 256, 4, 4, 128, false, 0, true, true},
                          {"causal_d256", 1, 256, 2, 2, 256, true, 0, false, true}}) {
    check_case(one);
  }
  if (small) return time_case({"small", 1, 64, 2, 2, 16, true, 0, false, true});
  time_case({"causal_s1024", 16, 1024, 16, 16, 128, true, 0, false, true});
  time_case({"causal_s8192", 2, 8192, 16, 16, 128, true, 0, false, true});
  time_case({"full_s8192", 2, 8192, 16, 16, 128, false, 0, false, true});
  time_case({"causal_s8192_d64", 2, 8192, 32, 32, 64, true, 0, false, true});
  time_case({"grouped_s8192", 2, 8192, 32, 8, 128, true, 0, false, true});
  time_case({"dropout_s8192", 2, 8192, 16, 16, 128, true, 0, false, true, 0.1});
  time_case({"mask_s8192", 2, 8192, 16, 16, 128, false, 0, false, true, 0, true});
  time_case({"bias_s8192", 2, 8192, 16, 16, 128, true, 0, true, true});
  time_sparse("sparse25_s16384", 16, 16384, 128);
}

}  // namespace attention_figures
