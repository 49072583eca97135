// Ring attention: the sequence is split over devices; keys and values travel around a ring while queries stay.
#include <capibara/capibara.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <utility>

using capibara::Array;
using capibara::Arrays;
using capibara::PartitionSpec;
namespace jax = capibara::jax;
namespace jnp = capibara::jax::numpy;
namespace lax = capibara::jax::lax;
using Attention = std::function<Array(const Array& q, const Array& k, const Array& v)>;

constexpr int devices = 8, length = 64, dim = 8;

// True where a key's position is not after the query's.
Array not_after(const Array& queries, const Array& keys) {
  return jnp::expand_dims(queries, 1) >= jnp::expand_dims(keys, 0);
}

Array whole_attention(const Array& q, const Array& k, const Array& v) {
  const Array causal = not_after(jnp::arange(length), jnp::arange(length));
  return jnp::matmul(jax::nn::softmax(jnp::where(causal, jnp::matmul(q, jnp::transpose(k)), -1e30f)), v);
}

Array ring_attention(const Array& q, Array k, Array v) {
  const int rows = int(q.shape(0));
  const Array me = lax::axis_index("ring");
  Array weighted = jnp::zeros_like(q), total = jnp::sum(weighted, {.axis = -1, .keepdims = true});
  Array largest = total - 1e30f;
  std::vector<std::pair<int64_t, int64_t>> to_next;
  for (int i = 0; i < devices; ++i) to_next.emplace_back(i, (i + 1) % devices);
  for (int distance = 0; distance < devices; ++distance) {
    // After `distance` steps around the ring, a device has the keys and values of the device that far behind it.
    const Array first = jnp::remainder(me - distance, devices) * rows;
    const Array causal = not_after(me * rows + jnp::arange(rows), first + jnp::arange(rows));
    const Array scores = jnp::where(causal, jnp::matmul(q, jnp::transpose(k)), -1e30f);
    const Array grown = jnp::maximum(largest, jnp::max(scores, {.axis = -1, .keepdims = true}));
    const Array shares = jnp::where(causal, jnp::exp(scores - grown), 0.0f), kept = jnp::exp(largest - grown);
    total = total * kept + jnp::sum(shares, {.axis = -1, .keepdims = true});
    weighted = weighted * kept + jnp::matmul(shares, v);
    largest = grown;
    if (distance + 1 == devices) break;
    k = lax::ppermute(k, "ring", to_next);
    v = lax::ppermute(v, "ring", to_next);
  }
  return weighted / total;
}

Array loss(const Arrays& weights, const Array& x, const Array& y, const Attention& attention) {
  const Array q = jnp::matmul(x, weights[0]), k = jnp::matmul(x, weights[1]), v = jnp::matmul(x, weights[2]);
  return jnp::mean(jnp::square(attention(q, k, v) - y));
}

Arrays step(const Arrays& in) {
  const Arrays weights(in.begin(), in.begin() + 3);
  auto of_all = [&](const Arrays& ws) { return lax::pmean(loss(ws, in[3], in[4], ring_attention), {"ring"}); };
  const auto [value, grads] = jax::value_and_grad(of_all)(weights);
  Arrays out{value};
  for (std::size_t i = 0; i < weights.size(); ++i) out.push_back(weights[i] - 0.5f * grads[i]);
  return out;
}

int main() {
  jax::config::update("jax_num_cpu_devices", devices);
  const Array keys = jax::random::split(jax::random::key(4), 5);
  const Array x = jax::random::normal(keys(0), {.shape = {length, dim}});
  const Array y = jnp::sin(jax::random::normal(keys(1), {.shape = {length, dim}}));
  Arrays weights;
  for (int i = 2; i < 5; ++i) weights.push_back(jax::random::normal(keys(i), {.shape = {dim, dim}}) / 3.0f);

  const PartitionSpec whole, rows{{{"ring"}}};
  auto mapped = jax::shard_map(step, {.mesh = jax::make_sharding({{"ring"}, {devices}, {}}, {}),
                                      .in_specs = {whole, whole, whole, rows, rows},
                                      .out_specs = {whole, whole, whole, whole}});
  auto train = jax::jit([mapped](const Arrays& in) { return mapped(in); });

  float worst = 0;
  for (int i = 0; i < 5; ++i) {
    const float expected = loss(weights, x, y, whole_attention).item<float>();
    Arrays in = weights;
    in.insert(in.end(), {x, y});
    const Arrays out = train(in);
    weights.assign(out.begin() + 1, out.end());
    worst = std::max(worst, std::abs(out[0].item<float>() - expected));
    std::printf("step %d: loss %.4f\n", i, out[0].item<float>());
  }
  std::printf("8 devices have the loss of one: %s\n", worst < 1e-5f ? "yes" : "no");
}
