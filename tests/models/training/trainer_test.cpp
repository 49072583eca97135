// The trainer: steps that resume exactly, damaged checkpoints, and bad steps that are named.
#include <capibara/training.h>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

namespace capibara::training {
namespace {

namespace fs = std::filesystem;
namespace lax = jax::lax;

LanguageModelConfig small_config() {
  LanguageModelConfig config;
  config.vocabulary = 64;
  config.width = 16;
  config.layers = {"attention+mlp", "mamba", "attention+moe"};
  config.heads = config.key_heads = 2;
  config.hidden = 24;
  config.experts = 2;
  config.experts_per_token = 1;
  config.state = 4;
  return config;
}

TrainerConfig small_training(const std::string& folder = "") {
  TrainerConfig config;
  config.folder = folder;
  config.steps = 8;
  config.batch = 2;
  config.length = 8;
  config.warmup = 2;
  return config;
}

// Batch number n of a text of increasing numbers.
Array batch_of(int64_t number) {
  std::vector<int32_t> tokens;
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t i = 0; i < 9; ++i) tokens.push_back(static_cast<int32_t>((number * 5 + row * 11 + i) % 64));
  }
  return array<int32_t>(tokens, Shape{2, 9});
}

std::string fresh_folder(const char* name) {
  const fs::path folder = fs::temp_directory_path() / (std::string("capibara_trainer_") + name);
  fs::remove_all(folder);
  return folder.string();
}

TEST(Trainer, ResumesFromItsCheckpointBitForBit) {
  const std::string folder = fresh_folder("resume");
  const LanguageModel model(small_config());
  std::vector<double> losses;
  {
    Trainer whole(model, small_training());
    for (int64_t step = 0; step < 6; ++step) losses.push_back(whole.step(batch_of(step)).loss);
  }
  {
    Trainer first(model, small_training(folder));
    EXPECT_FALSE(first.resume());
    for (int64_t step = 0; step < 3; ++step)
      EXPECT_EQ(first.step(batch_of(step)).loss, losses[static_cast<std::size_t>(step)]);
    first.save();
  }
  Trainer second(model, small_training(folder));
  ASSERT_TRUE(second.resume());
  EXPECT_EQ(second.steps_done(), 3);
  for (int64_t step = 3; step < 6; ++step)
    EXPECT_EQ(second.step(batch_of(step)).loss, losses[static_cast<std::size_t>(step)]);
  fs::remove_all(folder);
}

TEST(Trainer, TakesTheStepBeforeWhereTheNewestIsDamaged) {
  const std::string folder = fresh_folder("damaged");
  const LanguageModel model(small_config());
  Trainer trainer(model, small_training(folder));
  for (int64_t step = 0; step < 2; ++step) {
    trainer.step(batch_of(step));
    trainer.save();
  }
  fs::path newest;
  for (const auto& entry : fs::directory_iterator(folder)) newest = std::max(newest, entry.path());
  for (const auto& entry : fs::recursive_directory_iterator(newest)) {
    if (entry.is_regular_file() && entry.file_size() > 200) fs::resize_file(entry.path(), entry.file_size() / 2);
  }
  Trainer again(model, small_training(folder));
  ASSERT_TRUE(again.resume());
  EXPECT_EQ(again.steps_done(), 1);
  fs::remove_all(folder);
}

TEST(Trainer, NamesTheParameterThatIsNotANumberAndChangesNothing) {
  const LanguageModel model(small_config());
  TrainerConfig config = small_training();
  config.max_bad_steps = 2;
  Trainer trainer(model, config);
  Parameters parameters;
  for (const auto& [name, value] : trainer.parameters()) parameters[name] = lax::copy(value);
  const std::string bad = "layers.1.mamba.out.weight";
  parameters[bad] = lax::full_like(parameters[bad], NAN);
  trainer.set_parameters(parameters);
  EXPECT_TRUE(trainer.step(batch_of(0)).skipped);
  std::string text;
  try {
    for (int64_t step = 1; step < 4; ++step) trainer.step(batch_of(step));
  } catch (const std::exception& error) {
    text = error.what();
  }
  EXPECT_NE(text.find(bad), std::string::npos) << text;
}

TEST(Trainer, NamesTheLayerWhoseResultIsNotFinite) {
  const LanguageModel model(small_config());
  Parameters parameters = model.init(jax::random::key(0));
  parameters["layers.0.mlp.down.weight"] = lax::full_like(parameters["layers.0.mlp.down.weight"], 3e38);
  EXPECT_EQ(model.first_bad_layer(parameters, batch_of(0)), "layers.0.mlp");
}

}  // namespace
}  // namespace capibara::training
