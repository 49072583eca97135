// The state space dual: which of its calls go to CUDA kernels.
#include <capibara/capibara.h>
#include <gtest/gtest.h>

#include "backends/pjrt/prepare.h"

namespace capibara::kernels {
namespace {

namespace jnp = jax::numpy;

struct Extent {
  int64_t length, dim, states;
};

std::string gradient_text(const Extent& e, DType dtype, bool cuda_kernels) {
  auto ones = [&](Shape shape) { return jnp::ones(std::move(shape), {.dtype = dtype}); };
  const Array x = ones({2, e.length, 4, e.dim}), dt = ones({2, e.length, 4}), B = ones({2, e.length, 2, e.states});
  const Program program = jax::make_jaxpr([](const Array& x, const Array& dt, const Array& B) {
    const Array A = jnp::ones({4});
    return jax::grad<0, 1>([&](const Array& p, const Array& q) { return jnp::sum(ssd(x, p, A, q, B).first); })(dt, B);
  })(x, dt, B);
  return pjrt::prepare(program, {}, {.cuda_kernels = cuda_kernels, .cusolver = {}}).text;
}

TEST(SsdCuda, GoesOutAsCallsOfItsKernels) {
  for (const int64_t states : {32, 64, 128}) {
    const std::string with = gradient_text({200, 64, states}, DType::bfloat16, true);
    EXPECT_NE(with.find("@capibara_ssd("), std::string::npos) << with;
    EXPECT_NE(with.find("@capibara_ssd_grad("), std::string::npos) << with;
  }
  EXPECT_EQ(gradient_text({200, 64, 128}, DType::bfloat16, false).find("@capibara_"), std::string::npos);
}

TEST(SsdCuda, LeavesWhatDoesNotFit) {
  EXPECT_EQ(gradient_text({200, 64, 128}, DType::float32, true).find("@capibara_"), std::string::npos);
  EXPECT_EQ(gradient_text({200, 64, 16}, DType::bfloat16, true).find("@capibara_"), std::string::npos);
  EXPECT_EQ(gradient_text({200, 32, 128}, DType::bfloat16, true).find("@capibara_"), std::string::npos);
  EXPECT_EQ(gradient_text({40, 64, 128}, DType::bfloat16, true).find("@capibara_"), std::string::npos);
}

}  // namespace
}  // namespace capibara::kernels
