// A mixture of experts: each device has one expert and some tokens; all_to_all sends them to their experts and back.
#include <capibara/capibara.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

using capibara::Array;
using capibara::Arrays;
using capibara::PartitionSpec;
namespace jax = capibara::jax;
namespace jnp = capibara::jax::numpy;
namespace lax = capibara::jax::lax;

constexpr int experts = 8;

// For each token, its expert (one-hot) and the weight of that expert.
std::pair<Array, Array> routed(const Array& router, const Array& x) {
  const Array gates = jax::nn::softmax(jnp::matmul(x, router));
  const Array chosen = jax::nn::one_hot(jnp::argmax(gates, {.axis = -1}), experts);
  return {chosen, jnp::sum(gates * chosen, {.axis = -1, .keepdims = true})};
}

Array loss_on_one(const Array& router, const Array& up, const Array& down, const Array& x, const Array& y) {
  const auto [chosen, weight] = routed(router, x);
  const Array hidden = jnp::tanh(jnp::einsum("td,edf->tef", {x, up}));
  const Array out = jnp::einsum("te,ted->td", {chosen, jnp::einsum("tef,efd->ted", {hidden, down})});
  return jnp::mean(jnp::square(weight * out - y));
}

Array loss(const Array& router, const Array& up, const Array& down, const Array& x, const Array& y) {
  const auto [chosen, weight] = routed(router, x);
  // Each expert has a row of slots for the tokens of this device: as many as there are tokens, so none is dropped.
  const Array order = jnp::cumsum(chosen, {.axis = 0}) - 1.0f;
  const Array slot = jnp::sum(order * chosen, {.axis = -1});
  const Array places = jax::nn::one_hot(slot.astype(capibara::DType::int32), x.shape(0));
  const Array sent = jnp::einsum("te,ts->tes", {chosen, places});
  const Array arrived = lax::all_to_all(jnp::einsum("tes,td->esd", {sent, x}), "expert", 0, 0, {.tiled = true});
  const Array computed = jnp::matmul(jnp::tanh(jnp::matmul(arrived, up(0))), down(0));
  const Array back = lax::all_to_all(computed, "expert", 0, 0, {.tiled = true});
  const Array out = weight * jnp::einsum("tes,esd->td", {sent, back});
  return lax::pmean(jnp::mean(jnp::square(out - y)), {"expert"});
}

Arrays step(const Arrays& in) {
  const auto [value, grads] = jax::value_and_grad<0, 1, 2>(loss)(in[0], in[1], in[2], in[3], in[4]);
  const auto& [d_router, d_up, d_down] = grads;
  return {value, in[0] - 0.5f * d_router, in[1] - 0.5f * d_up, in[2] - 0.5f * d_down};
}

int main() {
  jax::config::update("jax_num_cpu_devices", experts);
  const Array keys = jax::random::split(jax::random::key(3), 5);
  const Array x = jax::random::normal(keys(0), {.shape = {128, 8}});
  const Array y = jnp::sin(jnp::matmul(x, jax::random::normal(keys(1), {.shape = {8, 8}})));
  Array router = jax::random::normal(keys(2), {.shape = {8, experts}});
  Array up = jax::random::normal(keys(3), {.shape = {experts, 8, 16}}) / 3.0f;
  Array down = jax::random::normal(keys(4), {.shape = {experts, 16, 8}}) / 4.0f;

  const PartitionSpec whole, split{{{"expert"}}};
  auto mapped = jax::shard_map(step, {.mesh = jax::make_sharding({{"expert"}, {experts}, {}}, {}),
                                      .in_specs = {whole, split, split, split, split},
                                      .out_specs = {whole, whole, split, split}});
  auto train = jax::jit([mapped](const Arrays& in) { return mapped(in); });

  float worst = 0;
  for (int i = 0; i < 5; ++i) {
    const float expected = loss_on_one(router, up, down, x, y).item<float>();
    const Arrays out = train(Arrays{router, up, down, x, y});
    router = out[1], up = out[2], down = out[3];
    worst = std::max(worst, std::abs(out[0].item<float>() - expected));
    std::printf("step %d: loss %.4f\n", i, out[0].item<float>());
  }
  std::printf("8 devices have the loss of one: %s\n", worst < 1e-5f ? "yes" : "no");
}
