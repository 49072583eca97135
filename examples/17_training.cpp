// A small language model with attention, Mamba and experts learns a rhyme; then an optimizer alone minimizes a bowl.
#include <capibara/capibara.h>

#include <cstdio>
#include <string>

namespace jax = capibara::jax;
namespace training = capibara::training;
namespace optimizers = capibara::optimizers;
using capibara::Array;

int main() {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "one two, buckle my shoe; three four, knock at the door. ";
  const training::Tokenizer tokenizer = training::Tokenizer::train(text, 280);
  const std::vector<int32_t> tokens = tokenizer.encode(text);
  std::printf("%zu bytes, %zu tokens of %ld kinds\n", text.size(), tokens.size(),
              static_cast<long>(tokenizer.vocabulary()));

  training::LanguageModelConfig shape;
  shape.vocabulary = 280, shape.width = 32, shape.hidden = 48;
  shape.layers = {"attention+mlp", "mamba", "attention+moe"};
  const training::LanguageModel model(shape);
  training::TrainerConfig config;
  config.steps = 40, config.batch = 4, config.length = 24, config.warmup = 4, config.learning_rate = 1e-2;
  training::Trainer trainer(model, config);
  std::printf("%ld parameters\n", static_cast<long>(model.parameter_count()));
  for (int step = 0; step < 40; ++step) {
    std::vector<int32_t> rows;
    for (int row = 0; row < 4; ++row) {
      const int start = (37 * step + 11 * row) % static_cast<int>(tokens.size() - 25);
      rows.insert(rows.end(), tokens.begin() + start, tokens.begin() + start + 25);
    }
    const training::StepReport report = trainer.step(capibara::array<int32_t>(rows, capibara::Shape{4, 25}));
    if (report.step % 10 == 0) std::printf("step %ld loss %.2f\n", static_cast<long>(report.step), report.loss);
  }
  const std::vector<int32_t> prompt = tokenizer.encode("one two,");
  for (const char* kind :
       {"float32", "bfloat16", "int8", "int4"}) {  // storage type of the weights while generating text
    const training::Parameters weights = training::convert_weights(trainer.parameters(), kind);
    int64_t bytes = 0;
    for (const auto& [name, weight] : weights) bytes += weight.size() * capibara::storage_size(weight.dtype());
    const training::Generator generator(model, weights, 64);
    std::printf("%s, %ld bytes: one two,%s\n", kind, static_cast<long>(bytes),
                tokenizer.decode(generator.generate(prompt, {.max_new_tokens = 20})).c_str());
  }

  const optimizers::Optimizer adam = optimizers::adam(optimizers::cosine_decay_schedule(0.5, 30));
  auto bowl = [](const Array& x) { return jax::numpy::sum(x * x); };
  Array x = capibara::array<float>({3.0f, -4.0f});
  optimizers::OptimizerState state = adam.init(x);
  for (int step = 0; step < 30; ++step) {
    auto [updates, next] = adam.update(jax::grad(bowl)(x), state, x);
    x = optimizers::apply_updates(x, updates);
    state = next;
  }
  std::printf("bowl %.3f\n", bowl(x).item<double>());
}
