// Attention on a plugin against the reference backend: values and gradients under its options, dropout with the same
// bits.
#include <functional>

#include "on_plugin.h"

namespace capibara::pjrt {
namespace {

namespace jnp = jax::numpy;
using kernels::FlashAttentionOptions;

struct Sizes {
  int64_t batch, heads, groups, queries, keys, size;
};
using Function = std::function<Array(const Array& q, const Array& k, const Array& v, const Array& pairs)>;

// Query, key, value, cotangent, and one number per query-key pair.
Arrays operands(const Sizes& s) {
  const Shape shapes[] = {{s.batch, s.heads, s.queries, s.size},
                          {s.batch, s.groups, s.keys, s.size},
                          {s.batch, s.groups, s.keys, s.size},
                          {s.batch, s.heads, s.queries, s.size},
                          {1, s.heads, s.queries, s.keys}};
  Arrays all;
  for (const Shape& shape : shapes) {
    all.push_back(jax::random::normal(jax::random::key(static_cast<int64_t>(all.size())), {.shape = shape}));
  }
  return all;
}

using AttentionSlow = OnPlugin;

void expect_same(const Arrays& got, const Arrays& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto a = got[i].to_vector<double>(), b = want[i].to_vector<double>();
    double largest = 1e-3, difference = 0;
    for (std::size_t e = 0; e < a.size(); ++e) {
      largest = std::max(largest, std::abs(b[e]));
      difference = std::max(difference, std::isnan(a[e]) ? 1e9 : std::abs(a[e] - b[e]));
    }
    EXPECT_LE(difference, tolerance * largest) << "result " << i;
  }
}

// The result of attention and its cotangents, in float32.
Program with_gradient(const Function& attention, DType dtype, const Arrays& in) {
  return jax::make_jaxpr([&](const Array& q, const Array& k, const Array& v, const Array& slope, const Array& pairs) {
    auto [y, pull] = jax::vjp(attention, q.astype(dtype), k.astype(dtype), v.astype(dtype), pairs.astype(dtype));
    auto [dq, dk, dv, dpairs] = pull(slope.astype(dtype));
    const auto wide = [](const Array& x) { return x.astype(DType::float32); };
    return std::tuple(wide(y), wide(dq), wide(dk), wide(dv), wide(dpairs));
  })(in[0], in[1], in[2], in[3], in[4]);
}

TEST_F(AttentionSlow, IsThatOfTheReferenceBackend) {
  const Array key = jax::random::key(11);
  const auto flash = [&](const FlashAttentionOptions& options, bool mask, bool bias) -> Function {
    return [=](const Array& q, const Array& k, const Array& v, const Array& pairs) {
      FlashAttentionOptions all = options;
      if (mask) all.attention_mask = pairs.astype(DType::float32) > Array(-1.0f);
      if (bias) all.bias = pairs;
      if (all.dropout_rate > 0) all.dropout_key = key;
      return kernels::flash_attention(q, k, v, all);
    };
  };
  const auto sparse = [](const Array& q, const Array& k, const Array& v, const Array&) {
    return kernels::sparse_attention(q, k, v, {.sparsity_pattern = "bigbird", .block_size = 64, .causal = true});
  };
  const FlashAttentionOptions windowed{.dropout_rate = 0.5, .window = std::pair<int64_t, int64_t>(20, 9), .sinks = 3};
  struct Case {
    Sizes sizes;
    DType dtype;
    Function attention;
  };
  for (const Case& one : {Case{{2, 4, 2, 72, 80, 64}, DType::bfloat16, flash({.causal = true}, false, false)},
                          {{1, 4, 2, 70, 96, 40}, DType::bfloat16, flash({.dropout_rate = 0.25}, true, true)},
                          // A bias shared by two entries of a batch, and one shared by three.
                          {{2, 4, 2, 200, 200, 64}, DType::bfloat16, flash({.causal = true}, false, true)},
                          {{3, 2, 2, 70, 136, 40}, DType::bfloat16, flash({}, true, true)},
                          {{1, 2, 1, 90, 100, 36}, DType::float32, flash(windowed, false, true)},
                          {{2, 4, 1, 1, 600, 16}, DType::float16, flash({.query_offset = 500}, false, false)},
                          {{1, 2, 2, 256, 256, 16}, DType::bfloat16, sparse}}) {
    const Arrays in = operands(one.sizes);
    const Program program = with_gradient(one.attention, one.dtype, in);
    const double tolerance = one.dtype == DType::float32 ? 1e-4 : 3e-2;
    expect_same(default_backend().compile(program)->execute(in, {}), on_reference(program, in), tolerance);
  }
}

}  // namespace
}  // namespace capibara::pjrt
