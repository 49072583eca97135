// New tensors, embeddings and attention.
#include "models/named/catalog.h"

#include <capibara/lax.h>
#include <capibara/nn.h>
#include <capibara/numpy.h>
#include <capibara/random.h>

#include <cmath>
#include <limits>

namespace capibara::models {

namespace jnp = jax::numpy;

namespace {

DType dtype_or(const Operands& c, DType otherwise) {
  const Value& dtype = c["dtype"];
  return dtype.given() && !dtype.is_none() ? dtype.dtype() : otherwise;
}

Value identity_matrix(const Operands& c) {
  jnp::EyeOptions options;
  if (!c["M"].is_none()) options.M = c["M"].integer();
  options.dtype = dtype_or(c, c.dtype());
  return jnp::eye(c["N"].integer(), options);
}

Value arange(const Operands& c) {
  bool whole = !c["start"].is<double>() && !c["stop"].is<double>() && !c["step"].is<double>();
  DType dtype = dtype_or(c, whole ? DType::int32 : c.dtype());
  double start = c["start"].number(), stop = c["stop"].number(), step = c["step"].number();
  if (step == 0) throw ValueError("Arange: step cannot be 0");
  int64_t count = std::max<int64_t>(0, static_cast<int64_t>(std::ceil((stop - start) / step)));
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(start + step * static_cast<double>(i));
  return jnp::asarray(array<double>(numbers)).astype(dtype);
}

Array key_of_seed(const Operands& c) {
  const Value& key = c["key"];
  if (key.is_array()) return key.array();
  return jax::random::key(key.integer());
}

// softmax(query key^T scale + bias) value over the last two dimensions.
Value attention(const Operands& c) {
  Array query = c.array("query"), key = c.array("key"), value = c.array("value");
  const Value& dropout = c["dropout_p"];
  if (dropout.is_number() && dropout.number() != 0.0) {
    throw ValueError(concat("ScaledDotProduct: dropout_p is 0.0 or nothing, got ", dropout.number()));
  }
  const Value& scale = c["scale"];
  Array factor = scale.is_none() ? Array(1.0 / std::sqrt(static_cast<double>(query.shape(-1)))) : c.array("scale");
  Array weights = jnp::matmul(query, jnp::swapaxes(key, -2, -1)) * factor;
  Array hidden = Array(-std::numeric_limits<double>::infinity());
  if (c["is_causal"].boolean()) {
    Array seen = jnp::tril(jnp::ones({query.shape(-2), key.shape(-2)}, {.dtype = DType::bool_}));
    weights = jnp::where(seen, weights, hidden);
  }
  if (c["attn_mask"].given()) {
    Array mask = c.array("attn_mask");
    weights = mask.dtype() == DType::bool_ ? jnp::where(mask, weights, hidden) : weights + mask;
  }
  Array shares = jax::nn::softmax(weights, {.axis = -1});
  return jnp::matmul(shares, value);
}

std::string attention_keys(const Arguments& a) {
  if (a.flag("use_attn_mask") && a.flag("is_causal")) {
    throw ValueError(
        "models: ScaledDotProduct: is_causal=True and use_attn_mask=True exclude each other; give is_causal=False");
  }
  return concat("query[N, V..., L, E], key[N, V..., S, E], value[N, V..., S, D]",
                a.flag("use_attn_mask") ? ", attn_mask[?]" : "",
                ", dropout_p=0.0, is_causal=True, scale=None -> output[N, V..., L, D]");
}

Value positional_encoding(const Operands& c) {
  Array input = c.array("input");
  int64_t dim = c["hidden_dim"].integer(), length = input.shape(-2);
  std::vector<double> table;
  for (int64_t position = 0; position < length; ++position) {
    for (int64_t i = 0; i < dim; ++i) {
      double angle =
          static_cast<double>(position) * std::pow(10000.0, -static_cast<double>(i / 2 * 2) / static_cast<double>(dim));
      table.push_back(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  Array waves = array<double>(table, Shape{length, dim}).astype(input.dtype());
  return input + waves;
}

std::string embedding_keys(const Arguments& a) {
  auto size = [&](const char* name, const char* otherwise) {
    return a.given(name) ? concat(a[name].integer()) : std::string(otherwise);
  };
  std::string count = size("num_embeddings", "C"), dim = size("dim", "D");
  return concat("input[V...]!i, weight[", count, ", ", dim, "]* -> output[V..., ", dim, "]");
}

}  // namespace

Records creation_records() {
  return {
      {"Eye", "N, M=None, dtype=None", "N, M=None, dtype=None -> output[?]", "Ones on the diagonal.", identity_matrix},
      {"EyeComplement", "N, M=None, dtype=None", "N, M=None, dtype=None -> output[?]", "Ones off the diagonal.",
       [](const Operands& c) -> Value { return Array(1.0) - identity_matrix(c).array(); }},
      {"Ones", "shape, dtype=None", "shape, dtype=None -> output[?]", "Ones.",
       [](const Operands& c) -> Value {
         return jnp::ones(Shape(c["shape"].integers()), {.dtype = dtype_or(c, c.dtype())});
       }},
      {"Arange", "start=0, stop, step=1, dtype=None", "start=0, stop, step=1, dtype=None -> output[?]",
       "Numbers at equal steps.", arange},
      {"PrimitiveRandn", "shape, key, dtype=None", "shape, key, dtype=None -> output[?]", "Standard normal numbers.",
       [](const Operands& c) -> Value {
         return jax::random::normal(key_of_seed(c),
                                    {.shape = Shape(c["shape"].integers()), .dtype = dtype_or(c, c.dtype())});
       }},
      {"PrimitiveRandInt", "shape, key, low, high, dtype=None", "shape, key, low, high, dtype=None -> output[?]",
       "Random integers from low to below high.",
       [](const Operands& c) -> Value {
         Array low = c.array("low");
         return jax::random::randint(key_of_seed(c), Shape(c["shape"].integers()), low, c.array("high"),
                                     {.dtype = dtype_or(c, DType::int32)});
       }},
      {"Randn", "shape, key, dtype=None", "shape, key, dtype=None -> output[?]", "Standard normal numbers.",
       [](const Operands& c) -> Value {
         return jax::random::normal(key_of_seed(c),
                                    {.shape = Shape(c["shape"].integers()), .dtype = dtype_or(c, c.dtype())});
       }},
      {"RandInt", "shape, key, low, high, dtype=None", "shape, key, low, high, dtype=None -> output[?]",
       "Random integers from low to below high.",
       [](const Operands& c) -> Value {
         Array low = c.array("low");
         return jax::random::randint(key_of_seed(c), Shape(c["shape"].integers()), low, c.array("high"),
                                     {.dtype = dtype_or(c, DType::int32)});
       }},
      {"Embedding",
       "num_embeddings=None, dim=None, input, weight",
       "",
       "Rows of weight, by number.",
       [](const Operands& c) -> Value {
         Array rows = c.array("input"), weight = c.array("weight");
         return jnp::take(weight, rows, {.axis = 0});
       },
       {},
       nullptr,
       embedding_keys},
      {"ScaledDotProduct",
       "is_causal=True, scale=None, dropout_p=0.0, use_attn_mask=False, query, key, value, attn_mask",
       "",
       "Attention: softmax(query key^T scale) value.",
       attention,
       {},
       nullptr,
       attention_keys},
      {"PositionalEncoding", "hidden_dim, max_len=5000, input",
       "input[V..., L, D], hidden_dim, max_len=5000 -> output[V..., L, D]", "Sines and cosines of positions, added.",
       positional_encoding},
  };
}

}  // namespace capibara::models
