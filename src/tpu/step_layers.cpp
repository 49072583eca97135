// Layers of the training steps that plans compile: attention with an MLP or experts, and mixers similar to Mamba-2.
#include <capibara/control.h>
#include <capibara/error.h>
#include <capibara/kernels.h>
#include <capibara/lax.h>
#include <capibara/nn.h>
#include <capibara/numpy.h>
#include <capibara/transforms.h>

#include <cmath>
#include <numeric>

#include "tpu/step_program.h"

namespace capibara::tpu {

namespace jnp = jax::numpy;
namespace lax = jax::lax;
namespace nn = jax::nn;

namespace {

constexpr int64_t kChunk = 256;    // of mamba
constexpr int64_t kConvolved = 4;  // number of tokens in mamba's convolution
constexpr double kSlots = 1.25;    // of experts, relative to their average number of tokens

Array narrow(const Array& x) { return x.astype(DType::bfloat16); }
Array wide(const Array& x) { return x.astype(DType::float32); }

Array rotary(const Array& x) {  // [batch, sequence, heads, size]
  const int64_t length = x.shape(1), size = x.shape(3), half = size / 2;
  const Array position = wide(jnp::arange(length)), number = wide(jnp::arange(half));
  const Array angles = jnp::expand_dims(position, -1) * jnp::exp(number * static_cast<float>(-std::log(1e4) / half));
  const Array sine = jnp::expand_dims(jnp::sin(angles), 1), cosine = jnp::expand_dims(jnp::cos(angles), 1);
  const Array left = wide(lax::slice_in_dim(x, 0, half, 1, 3)), right = wide(lax::slice_in_dim(x, half, size, 1, 3));
  return narrow(jnp::concatenate({left * cosine - right * sine, right * cosine + left * sine}, {.axis = -1}));
}

Array attention(const Architecture& model, const StepMesh& mesh, const Array& x, const Weights& weights) {
  const int64_t batch = x.shape(0), length = x.shape(1);
  auto projected = [&](const char* name) {
    const Array y = jax::checkpoint_name(jnp::matmul(x, narrow(weights.at(name))), "qkv");
    return y.reshape({batch, length, -1, model.head_size});
  };
  Array query, key, value;
  {
    StepLine line("attention/projections");
    query = projected("query"), key = projected("key"), value = projected("value");
  }
  {
    StepLine line("attention/rotary");
    query = mesh.constrained(jnp::moveaxis(rotary(query), 1, 2), "bt..");
    key = mesh.constrained(jnp::moveaxis(rotary(key), 1, 2), "bt..");
    value = mesh.constrained(jnp::moveaxis(value, 1, 2), "bt..");
  }
  Array mixed;
  {
    StepLine line("attention/blocks");
    mixed = kernels::flash_attention(query, key, value, {.causal = true});
  }
  StepLine line("attention/output");
  mixed = jnp::moveaxis(mixed, 1, 2).reshape({batch, length, model.heads * model.head_size});
  return jax::checkpoint_name(jnp::matmul(mixed, narrow(weights.at("attention_out"))), "projection");
}

Array activated(const Architecture& model, const Array& up, const Array& gate) {
  return model.gated ? nn::silu(gate) * up : nn::gelu(up);
}

Array mlp(const Architecture& model, const Array& x, const Weights& weights) {
  Array up, gate;
  {
    StepLine line("mlp/up");
    up = jax::checkpoint_name(jnp::matmul(x, narrow(weights.at("up"))), "products");
    if (model.gated) gate = jax::checkpoint_name(jnp::matmul(x, narrow(weights.at("gate"))), "products");
  }
  StepLine line("mlp/down");
  return jnp::matmul(activated(model, up, gate), narrow(weights.at("down")));
}

// Every expert computes every token.
Array all_experts(const Architecture& model, const Array& x, const Weights& weights) {
  StepLine line("experts/all");
  const Array shares = nn::softmax(wide(jnp::matmul(x, narrow(weights.at("router")))));
  auto hidden = [&](const char* name) {
    return jax::checkpoint_name(jnp::einsum("btd,edf->btef", {x, narrow(weights.at(name))}), "products");
  };
  const Array up = hidden("up"), gate = model.gated ? hidden("gate") : Array();
  const Array weighed = activated(model, up, gate) * jnp::expand_dims(narrow(shares), -1);
  return jnp::einsum("btef,efd->btd", {weighed, narrow(weights.at("down"))});
}

// The top experts of each token compute it, as far as they have slots; a sequence is a group.
Array some_experts(const Architecture& model, const StepMesh& mesh, const Array& x, const Weights& weights) {
  const int64_t batch = x.shape(0), length = x.shape(1), experts = model.experts, active = model.active;
  const double share = kSlots * static_cast<double>(active * length) / static_cast<double>(experts);
  const int64_t slots = static_cast<int64_t>(std::ceil(share));
  Array dispatch, combine;
  {
    StepLine line("experts/dispatch");
    const auto [shares, chosen] = lax::top_k(nn::softmax(wide(jnp::matmul(x, narrow(weights.at("router"))))), active);
    const Array choices = jnp::moveaxis(nn::one_hot(chosen, experts, {.dtype = DType::float32}), 2, 1);
    const Array flat = choices.reshape({batch, active * length, experts});
    const Array places = jnp::sum((jnp::cumsum(flat, {.axis = 1}) - flat) * flat, {.axis = -1});
    const Array places_int = places.astype(DType::int32).reshape({batch, active, length});
    const Array slot = nn::one_hot(places_int, slots, {.dtype = DType::bfloat16});  // zero beyond the last slot
    dispatch = mesh.constrained(jnp::einsum("bkte,bktc->btec", {narrow(choices), slot}), "b...");
    const Array weighed = narrow(choices) * jnp::expand_dims(jnp::moveaxis(narrow(shares), 2, 1), -1);
    combine = mesh.constrained(jnp::einsum("bkte,bktc->btec", {weighed, slot}), "b...");
  }
  Array own, up, gate;
  {
    StepLine line("experts/up");
    own = mesh.constrained(jnp::einsum("btec,btd->ebcd", {dispatch, x}), "eb..");
    up = jax::checkpoint_name(jnp::einsum("ebcd,edf->ebcf", {own, narrow(weights.at("up"))}), "products");
    if (model.gated)
      gate = jax::checkpoint_name(jnp::einsum("ebcd,edf->ebcf", {own, narrow(weights.at("gate"))}), "products");
  }
  StepLine line("experts/down");
  const Array out = jnp::einsum("ebcf,efd->ebcd", {activated(model, up, gate), narrow(weights.at("down"))});
  return jnp::einsum("btec,ebcd->btd", {combine, mesh.constrained(out, "eb..")});
}

// The state of a chunk of tokens is carried to the next; inside a chunk, matmuls. The backward pass keeps
// the states between chunks and recomputes each chunk.
Array chunked_states(const Array& values, const Array& decay, const Array& keys, const Array& queries) {
  const int64_t batch = values.shape(0), length = values.shape(1), heads = values.shape(2), size = values.shape(3);
  const int64_t chunk = std::gcd(kChunk, length), state_size = keys.shape(2);
  auto cut = [&](const Array& x) {
    capibara::Shape shape{batch, length / chunk, chunk};
    for (int64_t i = 2; i < x.ndim(); ++i) shape.push_back(x.shape(i));
    return jnp::moveaxis(x.reshape(shape), 1, 0);
  };
  auto one = [&](const Array& state, const Arrays& in) {
    StepLine line("mamba/chunk");
    const Array v = in[0], sums = jnp::cumsum(in[1], {.axis = 1}), k = in[2], q = in[3];
    const Array last = lax::slice_in_dim(sums, chunk - 1, chunk, 1, 1);
    const Array rows = jnp::moveaxis(sums, 1, 2);  // [batch, heads, chunk]
    const Array apart = jnp::expand_dims(rows, -1) - jnp::expand_dims(rows, -2);
    const Array lower = jnp::tril(jnp::ones({chunk, chunk}, {.dtype = DType::float32}));
    const Array decays = jnp::exp(jnp::minimum(apart, Array(0.0f))) * lower;
    const Array scores = wide(jnp::einsum("bin,bjn->bij", {q, k}));
    const Array inside = jnp::einsum("bhij,bjhp->bihp", {narrow(decays * jnp::expand_dims(scores, 1)), v});
    const Array reached =
        jnp::einsum("bin,bhpn->bihp", {q, narrow(state)}) * narrow(jnp::expand_dims(jnp::exp(sums), -1));
    const Array added = jnp::einsum("bjn,bjhp->bhpn", {k, v * narrow(jnp::expand_dims(jnp::exp(last - sums), -1))});
    const Array left = jnp::expand_dims(jnp::moveaxis(jnp::exp(last), 1, 2), -1);
    return std::pair<Array, Array>(state * left + wide(added), inside + reached);
  };
  auto kept = jax::checkpoint(one, {.prevent_cse = false, .name = "chunk"});
  const Array start = jnp::zeros({batch, heads, size, state_size}, {.dtype = DType::float32});
  const Arrays chunks{cut(values), cut(decay), cut(keys), cut(queries)};
  const Array mixed = lax::scan(kept, start, chunks).second;
  return jnp::moveaxis(mixed, 0, 1).reshape({batch, length, heads, size});
}

Array mamba(const Architecture& model, const StepMesh& mesh, const Array& x, const Weights& weights) {
  const int64_t batch = x.shape(0), length = x.shape(1), hidden = model.hidden, state = model.state;
  auto projected = [&](const char* name) {
    return jax::checkpoint_name(jnp::matmul(x, narrow(weights.at(name))), "products");
  };
  Array gate, steps, mixed;
  {
    StepLine line("mamba/projections");
    gate = projected("gate");
    mixed = jnp::concatenate({projected("values"), projected("keys"), projected("queries")}, {.axis = -1});
    steps = jax::nn::softplus(wide(jnp::matmul(x, narrow(weights.at("steps")))) + weights.at("step_bias"));
  }
  {
    StepLine line("mamba/convolution");
    Array sum;
    for (int64_t back = 0; back < kConvolved; ++back) {
      const Array tap =
          jnp::take(narrow(weights.at("convolution")), Array(static_cast<int>(kConvolved - 1 - back)), {.axis = 0});
      const Array moved = lax::pad(mixed, Array(0).astype(DType::bfloat16), {{0, 0, 0}, {back, -back, 0}, {0, 0, 0}});
      sum = sum.defined() ? sum + moved * tap : moved * tap;
    }
    mixed = nn::silu(sum);
  }
  const Array values =
      mesh.constrained(lax::slice_in_dim(mixed, 0, hidden, 1, 2).reshape({batch, length, model.heads, -1}), "b.t.");
  const Array keys = lax::slice_in_dim(mixed, hidden, hidden + state, 1, 2);
  const Array queries = lax::slice_in_dim(mixed, hidden + state, hidden + 2 * state, 1, 2);
  const Array rate = -jnp::exp(weights.at("rate"));
  const Array y = chunked_states(values * narrow(jnp::expand_dims(steps, -1)), steps * rate, keys, queries) +
                  values * narrow(jnp::expand_dims(weights.at("skip"), -1));
  StepLine line("mamba/output");
  const Array gated = rms_norm(y.reshape({batch, length, hidden}) * nn::silu(gate), weights.at("gated_norm"));
  return jax::checkpoint_name(jnp::matmul(gated, narrow(weights.at("mixer_out"))), "products");
}

}  // namespace

Array rms_norm(const Array& x, const Array& scale) {
  const Array x32 = wide(x);
  return narrow(x32 * lax::rsqrt(jnp::mean(jnp::square(x32), {.axis = -1, .keepdims = true}) + 1e-5f) * scale);
}

std::vector<StepParameter> layer_weights(const Architecture& model, const StepMesh& mesh) {
  std::vector<StepParameter> all;
  auto add = [&](const char* name, const capibara::Shape& shape, const char* letters) {
    all.push_back({name, shape, mesh.spec(letters, shape)});
  };
  const int64_t d = model.width, f = model.hidden, s = model.state, h = model.heads;
  add("norm1", {d}, ".");
  if (model.kind == "mamba") {
    add("gate", {d, f}, "gt");
    add("values", {d, f}, "gt");
    add("keys", {d, s}, "g.");
    add("queries", {d, s}, "g.");
    add("steps", {d, h}, "g.");
    add("convolution", {kConvolved, f + 2 * s}, "..");
    for (const char* name : {"step_bias", "rate", "skip"}) add(name, {h}, ".");
    add("gated_norm", {f}, ".");
    add("mixer_out", {f, d}, "tg");
    return all;
  }
  const int64_t attended = h * model.head_size, shared = model.kv_heads * model.head_size;
  add("query", {d, attended}, "gt");
  add("key", {d, shared}, "gt");
  add("value", {d, shared}, "gt");
  add("attention_out", {attended, d}, "tg");
  add("norm2", {d}, ".");
  if (model.experts > 0) {
    const int64_t e = model.experts;
    add("router", {d, e}, "g.");
    if (model.gated) add("gate", {e, d, f}, "eft");
    add("up", {e, d, f}, "eft");
    add("down", {e, f, d}, "etf");
    return all;
  }
  if (model.gated) add("gate", {d, f}, "gt");
  add("up", {d, f}, "gt");
  add("down", {f, d}, "tg");
  return all;
}

Array apply_layer(const Architecture& model, const StepMesh& mesh, const Array& x, const Weights& weights) {
  auto normed = [&](const Array& y, const char* name) {
    StepLine line("norm");
    return rms_norm(y, weights.at(name));
  };
  if (model.kind == "mamba") {
    const Array y = mamba(model, mesh, normed(x, "norm1"), weights);
    StepLine line("residual");
    return mesh.constrained(x + y, "b.t");
  }
  const Array mixed = attention(model, mesh, normed(x, "norm1"), weights);
  Array y;
  {
    StepLine line("residual/attention");
    y = mesh.constrained(x + mixed, "b.t");
  }
  const Array in = normed(y, "norm2");
  const Array out = model.kind == "moe"         ? some_experts(model, mesh, in, weights)
                    : model.kind == "moe_dense" ? all_experts(model, in, weights)
                                                : mlp(model, in, weights);
  StepLine line("residual/mlp");
  return mesh.constrained(y + out, "b.t");
}

}  // namespace capibara::tpu
