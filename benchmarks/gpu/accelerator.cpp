// Speed on an accelerator through its PJRT plugin: one line of JSON for each figure, as jax_peer.py prints them for
// JAX.
//
//     accelerator PLATFORM [--small] [NAME...]     (PLATFORM: cuda, tpu, xla_cpu)
#include <capibara/capibara.h>
#include <capibara/kernels.h>
#include <capibara/placement.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "attention.h"
#include "measure.h"

using namespace capibara;
namespace jnp = capibara::jax::numpy;
namespace lax = capibara::jax::lax;

struct Block {
  Array scale1, bias1, qkv, qkv_bias, out, out_bias, scale2, bias2, up, up_bias, down, down_bias;
};
CAPIBARA_TREE(Block, scale1, bias1, qkv, qkv_bias, out, out_bias, scale2, bias2, up, up_bias, down, down_bias)

struct Gpt {
  Array tokens, positions, scale, bias;
  std::vector<Block> blocks;
};
CAPIBARA_TREE(Gpt, tokens, positions, scale, bias, blocks)

namespace {

using namespace measure;

const Clock::time_point process_start = Clock::now();

// ---- the figures --------------------------------------------------------------------------------------------------

void first_result() {
  const Array y = jax::jit([](const Array& x) { return x + 1; })(array<float>({1, 2, 3}));
  y.to_vector<float>();
  report("first_result", seconds_since(process_start), "s");
}

void matmul() {
  for (int64_t n : small ? std::vector<int64_t>{256} : std::vector<int64_t>{4096, 8192}) {
    const auto f = jax::jit([](const Array& a, const Array& b) { return jnp::matmul(a, b); });
    const Array a = normal_bf16(0, {n, n});
    const double seconds = timed(small ? 3 : 20, [&] { return f(a, a); });
    report(concat("matmul_bf16_", n).c_str(), 2.0 * static_cast<double>(n * n * n) / seconds * 1e-12, "TFLOP/s");
  }
}

void dispatch() {
  const auto f = jax::jit([](const Array& x) { return x + 1; });
  const Array x = jnp::ones({8});
  report("dispatch_sync", timed(1, [&] { return f(x); }) * 1e6, "us");
  const int rounds = small ? 50 : 1000;
  std::vector<double> alone;
  for (int i = 0; i < rounds; ++i) {
    const auto start = Clock::now();
    f(x).block_until_ready();
    alone.push_back(seconds_since(start));
  }
  report("dispatch_sync_median", median(alone) * 1e6, "us");
  report("dispatch_async", timed(rounds, [&] { return f(x); }) * 1e6, "us");
  const auto many = jax::jit([](const std::vector<Array>& xs) {
    std::vector<Array> out;
    for (const Array& one : xs) out.push_back(one + 1);
    return out;
  });
  std::vector<Array> xs;
  for (int i = 0; i < 20; ++i) xs.push_back(jnp::ones({8}) * i);
  std::vector<double> together;
  many(xs)[0].block_until_ready();
  for (int i = 0; i < rounds; ++i) {
    const auto start = Clock::now();
    const std::vector<Array> ys = many(xs);
    for (const Array& y : ys) y.block_until_ready();
    together.push_back(seconds_since(start));
  }
  report("dispatch_20_sync", median(together) * 1e6, "us");
  report("dispatch_20_async", timed(rounds, [&] { return many(xs)[0]; }) * 1e6, "us");
}

// Programs of many milliseconds: how soon their calls return. One is a loop of many kernels, one a few large matmuls.
void long_program() {
  const int64_t n = small ? 512 : 8192;
  auto step = [](const Array& v) { return jnp::tanh(jnp::matmul(v, v)); };
  const auto loop = jax::jit([step](const Array& x) {
    return lax::fori_loop(
        0, 40, [step](const Array&, const Array& v) { return step(v); }, x);
  });
  const auto products = jax::jit([step](const Array& x) { return step(step(step(step(x)))); });
  auto time = [](const std::string& name, const auto& f, const Array& x) {
    f(x).block_until_ready();
    std::vector<double> returned, ended;
    for (int i = 0; i < 9; ++i) {
      const auto start = Clock::now();
      const Array y = f(x);
      returned.push_back(seconds_since(start));
      y.block_until_ready();
      ended.push_back(seconds_since(start));
    }
    report((name + "_returns").c_str(), median(returned) * 1e6, "us");
    report((name + "_ends").c_str(), median(ended) * 1e3, "ms");
  };
  time("long_loop", loop, (jnp::ones({n, n}) * 0.01).astype(DType::bfloat16));
  time("long_products", products, (jnp::ones({2 * n, 2 * n}) * 0.01).astype(DType::bfloat16));
}

void layer_norm() {
  for (const auto& [rows, columns] :
       small ? std::vector<std::pair<int64_t, int64_t>>{{64, 256}}
             : std::vector<std::pair<int64_t, int64_t>>{{32768, 768}, {16384, 4096}, {65536, 4096}}) {
    const Array x = normal_bf16(1, {rows, columns});
    const Array dy = normal_bf16(2, {rows, columns});
    const Array scale = jnp::ones({columns}).astype(DType::bfloat16),
                bias = jnp::zeros({columns}).astype(DType::bfloat16);
    const double bytes = static_cast<double>(rows * columns) * 2;
    const int calls = small ? 3 : 50;
    const auto copy = jax::jit([](const Array& v) { return -v; });
    report(concat("copy_", rows, "x", columns).c_str(), 2 * bytes / timed(calls, [&] { return copy(x); }) * 1e-9,
           "GB/s");
    const auto forward =
        jax::jit([](const Array& v, const Array& s, const Array& b) { return kernels::layer_norm(v, s, b); });
    report(concat("layer_norm_", rows, "x", columns).c_str(),
           2 * bytes / timed(calls, [&] { return forward(x, scale, bias); }) * 1e-9, "GB/s");
    const auto both = jax::jit([](const Array& v, const Array& s, const Array& b, const Array& d) {
      auto [y, pull] = jax::vjp(
          [](const Array& p, const Array& q, const Array& r) { return kernels::layer_norm(p, q, r); }, v, s, b);
      auto [dx, ds, db] = pull(d);
      return std::tuple(y, dx, ds, db);
    });
    // Forward and backward together: x read, y written; then dy and x read, dx written.
    report(concat("layer_norm_grad_", rows, "x", columns).c_str(),
           5 * bytes / timed(calls, [&] { return std::get<1>(both(x, scale, bias, dy)); }) * 1e-9, "GB/s");
    // The difference from the composition.
    const auto plain = jax::jit([](const Array& v, const Array& s, const Array& b, const Array& d) {
      auto [y, pull] = jax::vjp(
          [](const Array& p, const Array& q, const Array& r) {
            const Array wide = p.astype(DType::float32),
                        centered = wide - jnp::mean(wide, {.axis = -1, .keepdims = true});
            const Array normal =
                centered * lax::rsqrt(jnp::mean(centered * centered, {.axis = -1, .keepdims = true}) + 1e-5);
            return (normal * q.astype(DType::float32) + r.astype(DType::float32)).astype(p.dtype());
          },
          v, s, b);
      auto [dx, ds, db] = pull(d);
      return std::tuple(y, dx, ds, db);
    });
    const auto got = both(x, scale, bias, dy), want = plain(x, scale, bias, dy);
    const double most =
        std::max({difference(std::get<0>(got), std::get<0>(want)), difference(std::get<1>(got), std::get<1>(want)),
                  difference(std::get<2>(got), std::get<2>(want)), difference(std::get<3>(got), std::get<3>(want))});
    report(concat("layer_norm_error_", rows, "x", columns).c_str(), most, "of the largest");
  }
}

// Mamba's scan: milliseconds of the forward pass, and of forward and backward pass; its error against a plain loop.
void selective_scan() {
  const int64_t batch = small ? 2 : 8, length = small ? 96 : 4096, dim = small ? 48 : 2048, state = 16;
  const Array u = normal_bf16(1, {batch, length, dim}), delta = normal_bf16(2, {batch, length, dim});
  const Array B = normal_bf16(3, {batch, length, state}), C = normal_bf16(4, {batch, length, state}),
              dy = normal_bf16(5, {batch, length, dim}), z = normal_bf16(6, {batch, length, dim});
  const Array A = -jnp::exp(jax::random::normal(jax::random::key(7), {.shape = {dim, state}}));
  const auto run = [](bool fused, const Array& v, const Array& d, const Array& a, const Array& b, const Array& c,
                      const Array& g) {
    const kernels::MambaOptions options{{.z = g, .delta_softplus = true}, d, fused};
    return kernels::mamba_ssm_kernel(v, a, b, c, options);
  };
  const auto forward = jax::jit([&](const Array& v, const Array& d, const Array& a, const Array& b, const Array& c,
                                    const Array& g) { return run(true, v, d, a, b, c, g); });
  const int calls = small ? 2 : 20;
  report("selective_scan", 1e3 * timed(calls, [&] { return forward(u, delta, A, B, C, z); }), "ms");
  auto gradients = [&](bool fused) {
    return jax::jit([&run, fused](const Array& v, const Array& d, const Array& a, const Array& b, const Array& c,
                                  const Array& g, const Array& t) {
      auto [y, pull] = jax::vjp([&](const Array& p, const Array& q, const Array& r, const Array& m, const Array& n,
                                    const Array& o) { return run(fused, p, q, r, m, n, o); },
                                v, d, a, b, c, g);
      return std::tuple_cat(std::tuple(y), pull(t));
    });
  };
  const auto both = gradients(true);
  report("selective_scan_grad", 1e3 * timed(calls, [&] { return std::get<1>(both(u, delta, A, B, C, z, dy)); }), "ms");
  auto part = [&](const Array& x) { return lax::slice_in_dim(x, 0, std::min<int64_t>(length, 200), 1, 1); };
  const auto got = both(part(u), part(delta), A, part(B), part(C), part(z), part(dy));
  const auto want = gradients(false)(part(u), part(delta), A, part(B), part(C), part(z), part(dy));
  double most = 0;
  auto compare = [&](const Array& a, const Array& b) {
    const Array wide = b.astype(DType::float32);
    most =
        std::max(most, (jnp::max(jnp::abs(a.astype(DType::float32) - wide)) / jnp::max(jnp::abs(wide))).item<double>());
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) { (compare(std::get<I>(got), std::get<I>(want)), ...); }
  (std::make_index_sequence<7>{});
  report("selective_scan_error", most, "of the largest");
}

// ---- GPT-2, 124 million parameters --------------------------------------------------------------------------------

struct Sizes {
  int64_t layers, heads, width, length, batch, vocabulary;
};

Array normalized(const Array& x, const Array& scale, const Array& bias) {
  const Array wide = x.astype(DType::float32), centered = wide - jnp::mean(wide, {.axis = -1, .keepdims = true});
  const Array normal = centered * lax::rsqrt(jnp::mean(centered * centered, {.axis = -1, .keepdims = true}) + 1e-5);
  return (normal * scale + bias).astype(x.dtype());
}

Array attention(const Block& block, const Array& x, const Sizes& sizes) {
  const int64_t head = sizes.width / sizes.heads;
  const DType half = x.dtype();
  const Array all = jnp::einsum("btd,de->bte", {x, block.qkv.astype(half)}) + block.qkv_bias.astype(half);
  const Array heads = all.reshape({sizes.batch, sizes.length, 3, sizes.heads, head});
  const auto part = [&](int64_t i) { return lax::index_in_dim(heads, i, 2, false); };
  const Array q = part(0), k = part(1), v = part(2);
  const Array scores =
      jnp::einsum("bqhd,bkhd->bhqk", {q, k}).astype(DType::float32) * (1 / std::sqrt(static_cast<double>(head)));
  const Array mask = lax::iota(DType::int32, sizes.length).reshape({-1, 1}) >= lax::iota(DType::int32, sizes.length);
  const Array weights = jax::nn::softmax(jnp::where(mask, scores, Array(-1e30f)), {.axis = -1}).astype(half);
  const Array mixed = jnp::einsum("bhqk,bkhd->bqhd", {weights, v}).reshape({sizes.batch, sizes.length, sizes.width});
  return jnp::einsum("btd,de->bte", {mixed, block.out.astype(half)}) + block.out_bias.astype(half);
}

Array loss(const Gpt& model, const Array& tokens, const Array& targets, const Sizes& sizes) {
  const DType half = DType::bfloat16;
  Array x =
      (jnp::take(model.tokens, tokens, {.axis = 0, .mode = "clip", .fill_value = {}}) + model.positions).astype(half);
  for (const Block& block : model.blocks) {
    x = x + attention(block, normalized(x, block.scale1, block.bias1), sizes);
    const Array inner = jnp::einsum("btd,de->bte", {normalized(x, block.scale2, block.bias2), block.up.astype(half)}) +
                        block.up_bias.astype(half);
    x = x + jnp::einsum("btd,de->bte", {jax::nn::gelu(inner), block.down.astype(half)}) + block.down_bias.astype(half);
  }
  const Array logits = jnp::einsum("btd,vd->btv", {normalized(x, model.scale, model.bias), model.tokens.astype(half)})
                           .astype(DType::float32);
  const Array picked =
      jnp::take_along_axis(logits, jnp::expand_dims(targets, -1),
                           {.axis = -1, .mode = "clip", .fill_value = {}, .wrap_negative_indices = {}});
  return jnp::mean(jax::nn::logsumexp(logits, {.axis = -1}) - jnp::squeeze(picked, -1));
}

Gpt initial(const Sizes& sizes) {
  int64_t seed = 0;
  auto weight = [&](Shape shape) {
    return jax::random::normal(jax::random::key(seed++), {.shape = std::move(shape)}) * 0.02;
  };
  const int64_t d = sizes.width;
  Gpt model{weight({sizes.vocabulary, d}), weight({sizes.length, d}), jnp::ones({d}), jnp::zeros({d}), {}};
  for (int64_t i = 0; i < sizes.layers; ++i) {
    model.blocks.push_back({jnp::ones({d}), jnp::zeros({d}), weight({d, 3 * d}), jnp::zeros({3 * d}), weight({d, d}),
                            jnp::zeros({d}), jnp::ones({d}), jnp::zeros({d}), weight({d, 4 * d}), jnp::zeros({4 * d}),
                            weight({4 * d, d}), jnp::zeros({d})});
  }
  return model;
}

void gpt2() {
  const Sizes sizes = small ? Sizes{2, 2, 32, 16, 2, 101} : Sizes{12, 12, 768, 1024, 32, 50257};
  const auto step = jax::jit(
      [sizes](const Gpt& model, const Gpt& momentum, const Array& tokens, const Array& targets) {
        auto [value, gradient] =
            jax::value_and_grad([&](const Gpt& m) { return loss(m, tokens, targets, sizes); })(model);
        const Gpt velocity =
            jax::tree::map([](const Array& m, const Array& g) { return 0.9 * m + g; }, momentum, gradient);
        const Gpt next = jax::tree::map([](const Array& p, const Array& v) { return p - 1e-3 * v; }, model, velocity);
        return std::tuple(next, velocity, value);
      },
      {.donate_argnums = {0, 1}, .name = "gpt2_step"});
  Gpt model = jax::jit([sizes] { return initial(sizes); })();
  Gpt momentum = jax::jit(
      [](const Gpt& like) { return jax::tree::map([](const Array& p) { return jnp::zeros_like(p); }, like); })(model);
  const Array tokens = jax::random::randint(jax::random::key(5), Shape{sizes.batch, sizes.length}, 0, sizes.vocabulary);
  const Array targets = jnp::roll(tokens, -1, 1);
  const auto compiling = Clock::now();
  Array value;
  std::tie(model, momentum, value) = step(model, momentum, tokens, targets);
  const double first = value.item<double>();
  report("gpt2_first_step", seconds_since(compiling), "s");
  report("gpt2_first_loss", first, "nats");
  std::vector<double> rounds;
  for (int round = 0; round < (small ? 3 : 7); ++round) {
    const auto start = Clock::now();
    const int steps = small ? 2 : 5;
    for (int i = 0; i < steps; ++i) std::tie(model, momentum, value) = step(model, momentum, tokens, targets);
    value.block_until_ready();
    rounds.push_back(seconds_since(start) / steps);
  }
  report("gpt2_step", median(rounds) * 1e3, "ms");
  report("gpt2_last_loss", value.item<double>(), "nats");
}

// Copies of a large array: to the device, and of a result back to the host.
void transfer() {
  const int64_t count = small ? 1 << 16 : 1 << 26;
  const double bytes = 4.0 * static_cast<double>(count);
  const std::vector<float> values(static_cast<std::size_t>(count), 1.5f);
  const auto f = jax::jit([](const Array& x) { return x + 1; });
  std::vector<double> to, back;
  for (int round = 0; round < 5; ++round) {
    const Array fresh = Array::from_host(DType::float32, {count}, values.data());
    auto start = Clock::now();
    jax::device_put(fresh, jax::devices()[0]).block_until_ready();
    to.push_back(seconds_since(start));
    const Array result = f(fresh);
    result.block_until_ready();
    start = Clock::now();
    if (reinterpret_cast<const float*>(result.raw_data())[count - 1] != 2.5f)
      throw ValueError("transfer: a copy has other values");
    back.push_back(seconds_since(start));
  }
  report("copy_to_device", bytes / median(to) * 1e-9, "GB/s");
  report("copy_to_host", bytes / median(back) * 1e-9, "GB/s");
}

// Decompositions of one large matrix, and how accurately their factors reconstruct it.
void linear_algebra() {
  const int64_t n = small ? 64 : 2048;
  const int calls = small ? 1 : 3;
  const Array a = jax::random::normal(jax::random::key(0), {.shape = {n, n}});
  const Array symmetric = a + jnp::transpose(a), wide = lax::slice_in_dim(a, 0, n / 2);
  const jnp::ProductOptions exact{"highest", std::nullopt};
  const auto lu = jax::jit([](const Array& x) { return std::get<0>(lax::linalg::lu(x)); });
  const auto qr = jax::jit([exact](const Array& x) {
    const auto [q, r] = jnp::linalg::qr(x);
    return jnp::matmul(q, r, exact);
  });
  const auto eigh = jax::jit([exact](const Array& x) {
    const auto [w, v] = jnp::linalg::eigh(x);
    return jnp::matmul(v * w, jnp::transpose(v), exact);
  });
  const auto svd = jax::jit([exact](const Array& x) {
    const auto [u, s, vh] = jnp::linalg::svd(x, {false, false, std::nullopt});
    return jnp::matmul(u * s, vh, exact);
  });
  report("lu_f32", timed(calls, [&] { return lu(a); }) * 1e3, "ms");
  report("qr_f32", timed(calls, [&] { return qr(a); }) * 1e3, "ms");
  report("eigh_f32", timed(calls, [&] { return eigh(symmetric); }) * 1e3, "ms");
  report("svd_wide_f32", timed(calls, [&] { return svd(wide); }) * 1e3, "ms");
  report("qr_error", difference(qr(a), a), "of the largest");
  report("eigh_error", difference(eigh(symmetric), symmetric), "of the largest");
  report("svd_error", difference(svd(wide), wide), "of the largest");
}

struct Figure {
  const char* name;
  void (*run)();
};
constexpr Figure figures[] = {{"first", first_result},
                              {"matmul", matmul},
                              {"dispatch", dispatch},
                              {"long", long_program},
                              {"layer_norm", layer_norm},
                              {"attention", attention_figures::run},
                              {"selective_scan", selective_scan},
                              {"linear_algebra", linear_algebra},
                              {"transfer", transfer},
                              {"gpt2", gpt2}};

}  // namespace

int main(int count, char** values) {
  if (count < 2) {
    std::fprintf(stderr, "usage: accelerator PLATFORM [--small] [NAME...]\n");
    return 2;
  }
  std::vector<std::string> names;
  for (int i = 2; i < count; ++i) {
    if (std::strcmp(values[i], "--small") == 0)
      small = true;
    else
      names.push_back(values[i]);
  }
  int status = 0;
  for (const Figure& figure : figures) {
    if (!names.empty() && std::find(names.begin(), names.end(), figure.name) == names.end()) continue;
    try {
      jax::config::update("jax_platforms", std::string(values[1]));
      figure.run();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", figure.name, error.what());
      status = 1;
    }
  }
  return status;
}
