// Spiking neurons: their spikes, derivatives and batches, the kernel of the CPU backend, and the text of its CUDA
// calls.
#include <capibara/capibara.h>

#include <gtest/gtest.h>

#include "backends/backend.h"
#include "backends/kernel_cases.h"
#include "backends/pjrt/prepare.h"

namespace capibara::kernels {
namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;

TEST(SpikingNeuron, SpikesAtTheThresholdAndResets) {
  const Array x = array<float>({0.5f, 0.5f, 0.25f, 1.0f}, Shape{4, 1});
  const SpikingResult hard = spiking_neuron(x, {.threshold = 0.75, .leak_rate = 0.5});
  EXPECT_EQ(hard.spikes.to_vector<float>(), (std::vector<float>{0, 1, 0, 1}));
  EXPECT_EQ(hard.potential.to_vector<float>(), std::vector<float>{0});
  // 0.5; 0.75 - 0.75 = 0; 0.25; 1.125 - 0.75
  const SpikingResult soft = spiking_neuron(x, {.threshold = 0.75, .leak_rate = 0.5, .reset = "soft"});
  EXPECT_EQ(soft.spikes.to_vector<float>(), (std::vector<float>{0, 1, 0, 1}));
  EXPECT_EQ(soft.potential.to_vector<float>(), std::vector<float>{0.375f});
  // 0.5, 0.75, 0.625, 1.3125
  const SpikingResult none = spiking_neuron(x, {.threshold = 0.75, .leak_rate = 0.5, .reset = "none"});
  EXPECT_EQ(none.spikes.to_vector<float>(), (std::vector<float>{0, 1, 0, 1}));
  EXPECT_EQ(none.potential.to_vector<float>(), std::vector<float>{1.3125f});
}

// By hand, with the rectangle of height 1 around the threshold: d(spikes)/d(charge) = 1 where |charge - 0.75| < 0.5.
TEST(SpikingNeuron, HasTheSurrogatesDerivative) {
  const Array x = array<float>({0.5f, 0.5f}, Shape{2, 1});
  auto gradient = [&](const char* reset, bool detach) {
    return jax::grad<0>([&](const Array& a) {
             return jnp::sum(spiking_neuron(a, {.threshold = 0.75,
                                                .leak_rate = 0.5,
                                                .reset = reset,
                                                .surrogate = "rectangle",
                                                .detach_reset = detach})
                                 .spikes);
           })(x)
        .to_vector<float>();
  };
  // Charges are 0.5 and 0.75, so both surrogate derivatives are 1; the first charge contributes to the second 0.5 times
  // the derivative of its reset: 1, or 1 - 0.75 (soft), or 1 + (0 - 0.5) * 1 (hard), if the reset is not detached.
  EXPECT_EQ(gradient("none", false), (std::vector<float>{1.5f, 1}));
  EXPECT_EQ(gradient("soft", true), (std::vector<float>{1.5f, 1}));
  EXPECT_EQ(gradient("soft", false), (std::vector<float>{1.125f, 1}));
  EXPECT_EQ(gradient("hard", true), (std::vector<float>{1.5f, 1}));
  EXPECT_EQ(gradient("hard", false), (std::vector<float>{1.25f, 1}));
}

TEST(SpikingNeuron, StaysOneEquation) {
  const Array x = jnp::ones({5, 4, 8});
  auto loss = [](const Array& a) { return jnp::sum(spiking_neuron(a).spikes); };
  const std::string text =
      jax::make_jaxpr(jax::vmap(jax::grad<0>(loss), {.in_axes = {1}, .out_axes = 1}))(x).to_string();
  EXPECT_NE(text.find("= spiking_neuron_grad["), std::string::npos) << text;
  EXPECT_EQ(text.find("scan["), std::string::npos) << text;
}

TEST(SpikingNeuron, RefusesOtherOptionsByName) {
  EXPECT_THROW(spiking_neuron(jnp::ones({2, 3}), {.reset = "other"}), ValueError);
  EXPECT_THROW(spiking_neuron(jnp::ones({2, 3}), {.surrogate = "other"}), ValueError);
  EXPECT_THROW(spiking_neuron(jnp::ones({2, 3}), {.leak_rate = -1}), ValueError);
  EXPECT_THROW(spiking_neuron(jnp::ones({2, 3}), {.initial_potential = jnp::ones({2})}), TypeError);
}

// ---- the CPU backend ---------------------------------------------------------------------------------------------

using SpikingNeuronKernel = cpu::KernelTest;

ConfigScope wide_scope() {
  Config settings = config();
  settings.enable_x64 = true;
  return ConfigScope(settings);
}

Attrs attrs_of(const char* reset, const char* surrogate, bool detach) {
  return {{"threshold", 0.75}, {"leak_rate", 0.3},       {"reset", reset},        {"reset_value", -0.1},
          {"slope", 1.5},      {"surrogate", surrogate}, {"detach_reset", detach}};
}

const Shape kernel_shapes[] = {{1, 1}, {5, 7}, {3, 2, 40}, {40, 600}, {2000, 3}};

TEST_F(SpikingNeuronKernel, ForwardIsTheComposition) {
  const ConfigScope scope = wide_scope();
  for (DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::float16}) {
    const DType state = dtype == DType::float64 ? dtype : DType::float32;
    for (const Shape& shape : kernel_shapes) {
      const ArrayType x = cpu::type_of(dtype, shape), v = cpu::type_of(state, Shape(shape.begin() + 1, shape.end()));
      for (const char* reset : {"hard", "soft", "none"})
        check_kernel({"spiking_neuron", {x, v}, attrs_of(reset, "atan", false), {}, {1e-5, 1e-5}});
    }
  }
}

TEST_F(SpikingNeuronKernel, BackwardIsTheComposition) {
  const ConfigScope scope = wide_scope();
  for (DType dtype : {DType::float32, DType::float64, DType::bfloat16}) {
    const DType state = dtype == DType::float64 ? dtype : DType::float32;
    for (const Shape& shape : kernel_shapes) {
      const ArrayType x = cpu::type_of(dtype, shape), v = cpu::type_of(state, Shape(shape.begin() + 1, shape.end()));
      for (const char* reset : {"hard", "soft", "none"}) {
        for (const char* surrogate : {"atan", "sigmoid", "fast_sigmoid", "triangle", "rectangle", "straight_through"}) {
          if (shape[0] > 100 && surrogate[0] != 'a') continue;
          const double unit = cpu::epsilon_of(dtype);
          check_kernel({"spiking_neuron_grad",
                        {x, v, x, v},
                        attrs_of(reset, surrogate, surrogate[0] == 't'),
                        {},
                        {1e-4 + 2 * unit, 1e-4 + 2 * unit}});
        }
      }
    }
  }
}

// ---- CUDA --------------------------------------------------------------------------------------------------------

std::string gradient_text(const Shape& shape, DType dtype, bool cuda_kernels) {
  const Program program = jax::make_jaxpr([](const Array& a) {
    return jax::grad<0>([](const Array& b) { return jnp::sum(spiking_neuron(b).spikes * b); })(a);
  })(jnp::ones(shape, {.dtype = dtype}));
  return pjrt::prepare(program, {}, {.cuda_kernels = cuda_kernels, .cusolver = {}}).text;
}

TEST(SpikingNeuronCuda, GoesOutAsCallsOfItsKernels) {
  for (DType dtype : {DType::float32, DType::bfloat16}) {
    const std::string with = gradient_text({64, 16}, dtype, true);
    EXPECT_NE(with.find("@capibara_spiking_neuron("), std::string::npos) << with;
    EXPECT_NE(with.find("@capibara_spiking_neuron_grad("), std::string::npos) << with;
  }
  EXPECT_EQ(gradient_text({64, 16}, DType::float32, false).find("@capibara_"), std::string::npos);
}

TEST(SpikingNeuronCuda, LeavesWhatDoesNotFit) {
  EXPECT_EQ(gradient_text({64, 16}, DType::float16, true).find("@capibara_"), std::string::npos);
  EXPECT_EQ(gradient_text({64, 0}, DType::float32, true).find("@capibara_"), std::string::npos);
}

}  // namespace
}  // namespace capibara::kernels
