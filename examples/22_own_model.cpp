// A custom model: a class with init, apply and loss is trained; if it has layers, groups of them are checkpointed.
#include <capibara/capibara.h>

#include <cstdio>
#include <string>

namespace jax = capibara::jax;
namespace jnp = capibara::jax::numpy;
namespace training = capibara::training;
using capibara::AnyModel;
using capibara::Array;
using capibara::Arrays;
using capibara::Parameters;

struct Tower {
  int64_t width = 16;

  Parameters init(const Array& key) const {
    Parameters p;
    for (int64_t i = 0; i < layer_count(); ++i) {
      p[layer_prefix(i) + "w"] = 0.2 * jax::random::normal(jax::random::fold_in(key, i), {.shape = {width, width}});
    }
    p["out"] = jnp::zeros({width, 1});
    return p;
  }
  Array apply(const Parameters& p, const Array& x) const {
    Arrays carry = start(p, {x});
    for (int64_t i = 0; i < layer_count(); ++i) carry = run_layer(p, i, carry);
    return output(p, carry);
  }
  Array loss(const Parameters& p, const Array& x, const Array& y) const {
    return jnp::mean(jnp::square(apply(p, x) - y));
  }

  // The rest is needed only for checkpointing, sharding or plans.
  int64_t layer_count() const { return 8; }
  std::string layer_prefix(int64_t layer) const { return "layers." + std::to_string(layer) + "."; }
  Arrays start(const Parameters&, const Arrays& batch) const { return {batch[0]}; }
  Arrays run_layer(const Parameters& p, int64_t layer, const Arrays& carry) const {
    return {carry[0] + jnp::sin(jnp::exp(jnp::tanh(jnp::matmul(carry[0], p.at(layer_prefix(layer) + "w")))))};
  }
  Array output(const Parameters& p, const Arrays& carry) const { return jnp::matmul(carry[0], p.at("out")); }
  Array finish(const Parameters& p, const Arrays& carry, const Arrays& batch) const {
    return jnp::mean(jnp::square(output(p, carry) - batch[1]));
  }
};

// Bytes of temporaries in the compiled gradient.
int64_t temporary_bytes(const AnyModel& model, const Parameters& p, const Arrays& batch) {
  auto gradient =
      jax::jit(jax::grad([model](const Parameters& at, const Arrays& arrays) { return model.loss(at, arrays); }));
  return gradient.lower(p, batch).compile().memory_analysis()->temp;
}

int main() {
  auto batch_of = [](int64_t number) {
    const Array x = jax::random::normal(jax::random::key(number), {.shape = {256, 16}});
    return Arrays{x, jnp::sum(x, {.axis = 1, .keepdims = true})};
  };
  const AnyModel model = Tower();
  std::printf("%ld parameters in %ld layers\n", static_cast<long>(model.parameter_count()),
              static_cast<long>(model.layers()->count));
  training::TrainerConfig config;
  config.steps = 40, config.warmup = 4, config.learning_rate = 1e-2;
  training::Trainer trainer(model, config);
  trainer.train(batch_of, [](const training::StepReport& report) {
    if (report.step % 10 == 0) std::printf("step %ld loss %.3f\n", static_cast<long>(report.step), report.loss);
  });

  const Arrays batch = batch_of(0);
  const int64_t whole = temporary_bytes(model, trainer.parameters(), batch);
  for (int64_t every : {1, 2, 8}) {
    const AnyModel checkpointed = capibara::enable_gradient_checkpointing(model, every);
    const double share =
        static_cast<double>(temporary_bytes(checkpointed, trainer.parameters(), batch)) / static_cast<double>(whole);
    std::printf("groups of %ld: %s\n", static_cast<long>(every), share < 0.75 ? "less memory" : "no less memory");
  }
  try {  // a model without layers is refused
    capibara::enable_gradient_checkpointing(
        AnyModel::of(Parameters{{"w", jnp::zeros({2})}},
                     [](const Parameters& p, const Array& x) { return jnp::sum(p.at("w") * x); }),
        2);
  } catch (const capibara::ValueError&) {
    std::printf("a function has no layers\n");
  }
}
