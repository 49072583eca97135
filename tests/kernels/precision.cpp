// Sets full matmul precision to compare compositions with kernels: by default a GPU rounds matmul operands to TF32.
#include <capibara/config.h>
#include <gtest/gtest.h>

namespace {

class Float32Products : public testing::Environment {
  void SetUp() override {
    if (capibara::config().platform == "cuda") {
      capibara::jax::config::update("jax_default_matmul_precision", std::string("highest"));
    }
  }
};

[[maybe_unused]] const auto* const float32_products = testing::AddGlobalTestEnvironment(new Float32Products);

}  // namespace
