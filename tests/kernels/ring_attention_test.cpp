// Attention over a sequence split over devices, and matmuls over devices: the values of one device.
#include <capibara/kernels/attention.h>
#include <capibara/kernels/dense.h>

#include <gtest/gtest.h>

#include <capibara/config.h>
#include <capibara/explicit.h>
#include <capibara/jit.h>
#include <capibara/numpy.h>
#include <capibara/placement.h>
#include <capibara/random.h>
#include <capibara/transforms.h>

namespace capibara::kernels {
namespace {

namespace jnp = jax::numpy;

Config with_eight_devices() {
  Config settings = config();
  settings.num_cpu_devices = 8;
  return settings;
}

class Ring : public testing::Test {
 protected:
  ConfigScope devices_{with_eight_devices()};
  Mesh mesh_{{"data", "sequence"}, {2, 4}, {}};
  NamedSharding rows_ = jax::make_sharding(mesh_, PartitionSpec{{{"data"}, {}, {"sequence"}, {}}});

  static Array draw(int64_t seed, Shape shape) {
    return jax::random::normal(jax::random::key(seed), {.shape = std::move(shape)});
  }
  Array q_ = draw(0, {2, 4, 16, 8}), k_ = draw(1, {2, 2, 16, 8}), v_ = draw(2, {2, 2, 16, 8});
};

double difference(const Array& a, const Array& b) { return jnp::max(jnp::abs(a - b)).item<double>(); }

TEST_F(Ring, HasTheValuesOfOneDevice) {
  for (const bool causal : {false, true}) {
    const Array whole = flash_attention(q_, k_, v_, {.causal = causal});
    const Array split = flash_attention(jax::device_put(q_, rows_), jax::device_put(k_, rows_),
                                        jax::device_put(v_, rows_), {.causal = causal, .sequence_parallel = true});
    EXPECT_LT(difference(whole, split), 1e-5);
    EXPECT_EQ(jax::placement(split)->shard_shape(split.shape()), (Shape{1, 4, 4, 8}));
  }
}

TEST_F(Ring, HasTheDerivativesOfOneDeviceUnderJit) {
  const jax::Scope scope = jax::set_mesh(mesh_);
  auto gradients = [&](bool ring) {
    auto loss = [ring](const Array& q, const Array& k, const Array& v) {
      return jnp::sum(jnp::sin(flash_attention(q, k, v, {.causal = true, .sequence_parallel = ring})));
    };
    return jax::jit(jax::grad<0, 1, 2>(loss))(q_, k_, v_);
  };
  const auto [dq, dk, dv] = gradients(true);
  const auto [plain_dq, plain_dk, plain_dv] = gradients(false);
  EXPECT_LT(difference(dq, plain_dq), 1e-5);
  EXPECT_LT(difference(dk, plain_dk), 1e-5);
  EXPECT_LT(difference(dv, plain_dv), 1e-5);
}

TEST_F(Ring, ProductsAreAddedByTheMesh) {
  const Array a = draw(3, {6, 32}), b = draw(4, {32, 5});
  auto product = [](const Array& x, const Array& y) { return adaptive_matmul(x, y, {.tpu_strategy = "collective"}); };
  const jax::Scope scope = jax::set_mesh(mesh_);
  EXPECT_LT(difference(jax::jit(product)(a, b), jnp::matmul(a, b)), 1e-4);
  EXPECT_NE(jax::make_jaxpr(product)(a, b).to_string().find("psum"), std::string::npos);
}

TEST_F(Ring, RefusesWhatItCannotDo) {
  auto message = [&](const FlashAttentionOptions& options, const Array& key) -> std::string {
    try {
      flash_attention(jax::device_put(q_, rows_), key, jax::device_put(v_, rows_), options);
    } catch (const ValueError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_NE(message({.sequence_parallel = true}, k_).find("the sequence of the key to be split over 'sequence'"),
            std::string::npos);
  EXPECT_NE(message({.sequence_axis = "sequence"}, k_).find("sequence_axis is of sequence_parallel, which is off"),
            std::string::npos);
  EXPECT_NE(
      message({.sequence_parallel = true, .query_offset = 2}, jax::device_put(k_, rows_)).find("query_offset=0, got 2"),
      std::string::npos);
}

}  // namespace
}  // namespace capibara::kernels
