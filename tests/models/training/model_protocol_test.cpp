// The model protocol: classes, functions and language models as one kind of value, trained, checkpointed or rejected.
#include <capibara/lax.h>
#include <capibara/numpy.h>
#include <capibara/random.h>
#include <capibara/training.h>
#include <capibara/transforms.h>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

namespace capibara::training {
namespace {

namespace fs = std::filesystem;
namespace jnp = jax::numpy;
namespace lax = jax::lax;

// y = x w + b with parameters in a struct.
struct LineParameters {
  Array weight, bias;
};
CAPIBARA_TREE(LineParameters, weight, bias)

struct Line {
  LineParameters init(const Array& key) const {
    return {jax::random::normal(key, {.shape = {3, 1}}), lax::full({1}, 0.0f)};
  }
  Array apply(const LineParameters& p, const Array& x) const { return jnp::matmul(x, p.weight) + p.bias; }
  Array loss(const LineParameters& p, const Array& x, const Array& y) const {
    return jnp::mean(jnp::square(apply(p, x) - y));
  }
};

// A stack of layers tanh(x w), whose loss is the mean square of the result.
struct Tower {
  int64_t count = 4, width = 8;

  Parameters init(const Array& key) const {
    Parameters parameters;
    for (int64_t i = 0; i < count; ++i) {
      const Array drawn = jax::random::normal(jax::random::fold_in(key, i), {.shape = {width, width}});
      parameters[concat("layers.", i, ".w")] = drawn / std::sqrt(static_cast<double>(width));
    }
    parameters["out"] = lax::full({width}, 0.5f);
    return parameters;
  }
  Array apply(const Parameters& p, const Arrays& batch) const {
    Arrays carry = start(p, batch);
    for (int64_t i = 0; i < count; ++i) carry = run_layer(p, i, carry);
    return output(p, carry);
  }
  Array loss(const Parameters& p, const Arrays& batch) const { return jnp::mean(jnp::square(apply(p, batch))); }
  int64_t layer_count() const { return count; }
  std::string layer_prefix(int64_t layer) const { return concat("layers.", layer, "."); }
  Arrays start(const Parameters&, const Arrays& batch) const { return {batch[0]}; }
  Arrays run_layer(const Parameters& p, int64_t layer, const Arrays& carry) const {
    // Several values of the activations' size, only the last of which the next layer needs.
    const Array h = jnp::tanh(jnp::matmul(carry[0], p.at(concat("layers.", layer, ".w"))));
    return {jnp::sin(jnp::exp(h * jnp::cos(h))) + h};
  }
  Array output(const Parameters& p, const Arrays& carry) const { return carry[0] * p.at("out"); }
  Array finish(const Parameters& p, const Arrays& carry, const Arrays&) const {
    return jnp::mean(jnp::square(output(p, carry)));
  }
  std::map<std::string, std::vector<std::string>> logical_axes() const { return {{"layers.0.w", {"embed", "mlp"}}}; }
  ModelSizes sizes() const { return {.layers = count, .width = width}; }
  std::string name() const { return "tower"; }
};

Array example_x() { return array<float>({1, 2, 3, -1, 0, 2, 0.5, 1, -2, 3, 1, 1}, Shape{4, 3}); }
Array example_y() { return array<float>({1, -1, 2, 0}, Shape{4, 1}); }

TrainerConfig sgd(int64_t steps = 8) {
  TrainerConfig config;
  config.steps = steps;
  config.optimizer = "sgd";
  config.learning_rate = 0.01;
  config.warmup = 1;
  config.max_norm = 0;
  config.spike_factor = 0;
  return config;
}

ArrayType floats(Shape shape) { return ArrayType().with_shape(std::move(shape)); }

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(ModelProtocol, NamesTheLeavesOfAStructAndPassesThemBack) {
  const AnyModel model = Line();
  ASSERT_EQ(model.types().size(), 2U);
  EXPECT_EQ(model.types().at("weight").shape, (Shape{3, 1}));
  const Parameters p = model.init(jax::random::key(1));
  const LineParameters same = Line().init(jax::random::key(1));
  EXPECT_EQ(model.loss(p, {example_x(), example_y()}).item<float>(),
            Line().loss(same, example_x(), example_y()).item<float>());
  EXPECT_EQ(model.apply(p, {example_x(), example_y()}).shape(), (Shape{4, 1}));
  EXPECT_NE(model.target<Line>(), nullptr);
  EXPECT_EQ(model.target<Tower>(), nullptr);
}

// The steps of plain gradient descent, by hand.
TEST(ModelProtocol, TheTrainerTakesTheStepsOfAPlainLoop) {
  const TrainerConfig config = sgd();
  Trainer trainer(Line(), config);
  Line line;
  LineParameters p = line.init(jax::random::key(0));
  for (int64_t step = 0; step < 5; ++step) {
    const double rate = trainer.learning_rate();
    auto [loss, gradient] =
        jax::value_and_grad([&](const LineParameters& at) { return line.loss(at, example_x(), example_y()); })(p);
    EXPECT_NEAR(trainer.step({example_x(), example_y()}).loss, loss.item<double>(), 1e-6 * loss.item<double>());
    p = jax::tree::map([&](const Array& a, const Array& g) { return a - rate * g; }, p, gradient);
  }
  const std::vector<float> expected = p.weight.to_vector<float>();
  const std::vector<float> got = trainer.parameters().at("weight").to_vector<float>();
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5);
}

TEST(ModelProtocol, AFunctionWithATreeAndAClassWithGivenParametersTrainAlike) {
  Line line;
  const LineParameters start = line.init(jax::random::key(0));
  const AnyModel function = AnyModel::of(
      start, [line](const LineParameters& p, const Array& x, const Array& y) { return line.loss(p, x, y); });
  Trainer by_class(AnyModel(line, start), sgd()), by_function(function, sgd()), by_init(line, sgd());
  for (int64_t step = 0; step < 3; ++step) {
    const double loss = by_init.step({example_x(), example_y()}).loss;
    EXPECT_EQ(by_class.step({example_x(), example_y()}).loss, loss);
    EXPECT_EQ(by_function.step({example_x(), example_y()}).loss, loss);
  }
  EXPECT_NE(message_of([&] { function.apply(function.init(Array()), {example_x()}); }).find("has no apply"),
            std::string::npos);
}

TEST(ModelProtocol, TheStepIsTracedOnce) {
  int calls = 0;
  Line line;
  Trainer trainer(AnyModel::of(line.init(jax::random::key(0)),
                               [&calls, line](const LineParameters& p, const Array& x, const Array& y) {
                                 ++calls;
                                 return line.loss(p, x, y);
                               }),
                  sgd());
  trainer.step({example_x(), example_y()});
  const int traced = calls;
  for (int step = 0; step < 3; ++step) trainer.step({example_x(), example_y()});
  EXPECT_EQ(calls, traced);
}

TEST(ModelProtocol, AccumulatedPartsOfABatchAreTheWholeOfIt) {
  TrainerConfig parts = sgd();
  parts.accumulate = 2;
  Trainer whole(Line(), sgd()), split(Line(), parts);
  for (int64_t step = 0; step < 4; ++step) {
    const double loss = whole.step({example_x(), example_y()}).loss;
    EXPECT_NEAR(split.step({example_x(), example_y()}).loss, loss, 1e-5 * loss);
  }
  parts.accumulate = 3;
  Trainer uneven(Line(), parts);
  const std::string text = message_of([&] { uneven.step({example_x(), example_y()}); });
  EXPECT_NE(text.find("accumulate = 3 must divide"), std::string::npos) << text;
  EXPECT_NE(text.find("float32[4,3]"), std::string::npos) << text;
}

TEST(ModelProtocol, TrainsInBfloat16WithFloat32Parameters) {
  TrainerConfig config = sgd();
  config.compute = DType::bfloat16;
  Trainer mixed(Line(), config), exact(Line(), sgd());
  const double first = mixed.step({example_x(), example_y()}).loss, loss = exact.step({example_x(), example_y()}).loss;
  EXPECT_NEAR(first, loss, 0.02 * loss);
  EXPECT_NE(first, loss);
  EXPECT_EQ(mixed.parameters().at("weight").dtype(), DType::float32);
}

TEST(ModelProtocol, AModelOfItsOwnResumesBitForBit) {
  const std::string folder = (fs::temp_directory_path() / "capibara_protocol_resume").string();
  fs::remove_all(folder);
  TrainerConfig config = sgd(6);
  auto batch_of = [](int64_t number) { return Arrays{example_x() * static_cast<double>(number + 1), example_y()}; };
  std::vector<double> whole, parts;
  auto note_in = [](std::vector<double>& losses) {
    return [&](const StepReport& report) { losses.push_back(report.loss); };
  };
  Trainer(Tower{.width = 3}, config).train(batch_of, note_in(whole));
  config.folder = folder;
  config.checkpoint_every = 1;
  std::atomic<bool> stop = false;
  Trainer first(Tower{.width = 3}, config);
  EXPECT_FALSE(first.train(
      batch_of,
      [&](const StepReport& report) {
        parts.push_back(report.loss);
        stop = report.step == 2;  // the step running at that time is the last one
      },
      &stop));
  Trainer second(Tower{.width = 3}, config);
  ASSERT_TRUE(second.resume());
  EXPECT_EQ(second.steps_done(), 3);
  EXPECT_TRUE(second.train(batch_of, note_in(parts)));
  EXPECT_EQ(parts, whole);
  fs::remove_all(folder);
}

TEST(ModelProtocol, LanguageModelsTrainThroughTheProtocolAsByThemselves) {
  LanguageModelConfig config;
  config.vocabulary = 32;
  config.width = 16;
  config.layers = {"attention+mlp", "attention+moe", "mamba"};
  config.heads = config.key_heads = 2;
  config.hidden = 24;
  config.experts = 2;
  config.experts_per_token = 1;
  config.state = 4;
  const LanguageModel language(config);
  const AnyModel model = language;
  const Parameters p = language.init(jax::random::key(0));
  std::vector<int32_t> values;
  for (int32_t i = 0; i < 18; ++i) values.push_back(i * 7 % 32);
  const Array tokens = array<int32_t>(values, Shape{2, 9});
  EXPECT_EQ(model.loss(p, {tokens}).item<float>(), language.loss(p, tokens).item<float>());
  EXPECT_EQ(model.evaluate(p, {tokens}).item<float>(), language.cross_entropy(p, tokens).item<float>());
  const ModelLayers& layers = *model.layers();
  Arrays carry = layers.start(p, {tokens});
  for (int64_t i = 0; i < layers.count; ++i) carry = layers.run(p, i, carry);
  EXPECT_NEAR(layers.finish(p, carry, {tokens}).item<float>(), language.loss(p, tokens).item<float>(), 1e-6);
  const LogicalAxes axes = model.logical_axes();
  EXPECT_FALSE(axes.inferred);
  EXPECT_EQ(axes.of.size(), p.size());
  EXPECT_EQ(axes.of.at("layers.1.moe.down"), (std::vector<std::string>{"expert", "mlp", "embed"}));
  EXPECT_EQ(axes.of.at("layers.0.attention.out.weight"), (std::vector<std::string>{"heads", "embed"}));
  for (const auto& [name, of] : axes.of) EXPECT_EQ(of.size(), p.at(name).shape().size()) << name;
  EXPECT_EQ(model.sizes().vocabulary, 32);
  EXPECT_TRUE(model.sizes().inferred);  // one layer is Mamba, which plans treat as attention
}

// Bytes of temporaries in the compiled gradient.
int64_t temporary_bytes(const AnyModel& model, const Parameters& p, const Arrays& batch) {
  auto gradient =
      jax::jit(jax::grad([model](const Parameters& at, const Arrays& arrays) { return model.loss(at, arrays); }));
  const auto memory = gradient.lower(p, batch).compile().memory_analysis();
  return memory ? memory->temp : -1;
}

TEST(ModelProtocol, CheckpointingLowersTheMemoryOfTheGradientByTheSizeOfItsGroups) {
  const Tower tower{.count = 12, .width = 64};
  const AnyModel model = tower;
  const Parameters p = model.init(jax::random::key(0));
  const Arrays batch = {jax::random::normal(jax::random::key(1), {.shape = {1024, 64}})};
  auto gradient_of = [&](const AnyModel& of) {
    return jax::grad([of](const Parameters& at, const Arrays& arrays) { return of.loss(at, arrays); })(p, batch);
  };
  const Parameters expected = gradient_of(model);
  std::map<int64_t, int64_t> bytes;
  bytes[0] = temporary_bytes(model, p, batch);
  for (int64_t every : {1, 3, 4, 12}) {
    const AnyModel checkpointed = capibara::enable_gradient_checkpointing(model, every);
    for (const auto& [name, gradient] : gradient_of(checkpointed)) {
      EXPECT_TRUE(jnp::allclose(gradient, expected.at(name), {.rtol = 1e-4, .atol = 1e-6})) << name;
    }
    bytes[every] = temporary_bytes(checkpointed, p, batch);
  }
  // Twelve layers: the inputs of all groups and the values of one group are kept.
  EXPECT_LT(bytes[1], bytes[0] * 2 / 3) << bytes[0];
  EXPECT_LT(bytes[3], bytes[0] * 2 / 3);
  EXPECT_LT(bytes[3], bytes[12]);
  EXPECT_LT(bytes[4], bytes[12]);
}

TEST(ModelProtocol, CheckpointingRefusesWhatHasNoLayers) {
  const std::string text = message_of([] { capibara::enable_gradient_checkpointing(Line(), 2); });
  EXPECT_NE(text.find("enable_gradient_checkpointing: the model 'model' has no layers (argument 'model')"),
            std::string::npos)
      << text;
  EXPECT_NE(message_of([] { capibara::enable_gradient_checkpointing(Tower(), 0); }).find("must be at least 1, got 0"),
            std::string::npos);
  EXPECT_NE(message_of([] {
              capibara::enable_gradient_checkpointing(Tower(), 1, "some");
            }).find("checkpoint_policy is one of everything"),
            std::string::npos);
}

TEST(ModelProtocol, WhatIsInferredSaysSo) {
  const LogicalAxes axes = infer_logical_axes({{"blocks.0.attn.q_proj.kernel", floats({8, 16})},
                                               {"blocks.0.mlp.down.kernel", floats({32, 8})},
                                               {"blocks.0.mlp.down.bias", floats({8})},
                                               {"mystery", floats({3, 3})}});
  EXPECT_TRUE(axes.inferred);
  EXPECT_EQ(axes.of.at("blocks.0.attn.q_proj.kernel"), (std::vector<std::string>{"embed", "heads"}));
  EXPECT_EQ(axes.of.at("blocks.0.mlp.down.kernel"), (std::vector<std::string>{"mlp", "embed"}));
  EXPECT_EQ(axes.of.at("mystery"), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(axes.assumptions.back(), "1 matrices whose names say nothing have no logical axes");
  const ModelSizes sizes =
      infer_sizes({{"embed", floats({100, 8})}, {"up", floats({8, 32})}, {"down", floats({32, 8})}});
  EXPECT_TRUE(sizes.inferred);
  EXPECT_EQ(sizes.width, 8);
  EXPECT_EQ(sizes.hidden, 32);
  EXPECT_EQ(sizes.vocabulary, 100);
  EXPECT_EQ(sizes.assumptions[1], "width 8: the most frequent side of its matrices");
  EXPECT_FALSE(AnyModel(Tower()).sizes().inferred);
}

TEST(ModelProtocol, TheTrainerNamesWhatIsNotFiniteFirst) {
  TrainerConfig config = sgd();
  config.max_bad_steps = 1;
  Trainer trainer(Tower{.width = 3}, config);
  const std::string text = message_of([&] {
    for (int i = 0; i < 3; ++i) trainer.step({lax::full({4, 3}, NAN)});
  });
  EXPECT_NE(text.find("is in the carry before the first layer"), std::string::npos) << text;

  ModelParts parts = AnyModel(Tower{.width = 3}).parts();
  parts.layers->run = [](const Parameters&, int64_t layer, const Arrays& carry) {
    return Arrays{layer == 2 ? lax::log(-1.0 - carry[0] * carry[0]) : carry[0]};
  };
  const AnyModel model(parts);
  Parameters p = model.init(jax::random::key(0));
  EXPECT_EQ(model.first_bad_value(p, {lax::full({4, 3}, 1.0f)}), "layer 2");
  p["layers.1.w"] = lax::full({3, 3}, INFINITY);
  EXPECT_EQ(model.first_bad_value(p, {lax::full({4, 3}, 1.0f)}), "parameter layers.1.w");
}

struct WrongUse {
  const char* name;
  std::function<void()> use;
  std::vector<const char*> words;
};

TEST(ModelProtocol, WrongUsesAreNamed) {
  const Arrays batch = {example_x(), example_y()};
  ModelParts nothing;
  ModelParts layered = AnyModel(Tower()).parts();
  const std::vector<WrongUse> uses = {
      {"no parameters", [&] { AnyModel{nothing}; }, {"AnyModel", "no parameters", "init"}},
      {"layers without run",
       [&] {
         ModelParts parts = layered;
         parts.layers->run = {};
         AnyModel{parts};
       },
       {"'tower'", "run is missing"}},
      {"too few prefixes",
       [&] {
         ModelParts parts = layered;
         parts.layers->prefixes.pop_back();
         AnyModel{parts};
       },
       {"4 layers and 3 prefixes"}},
      {"unknown prefix",
       [&] {
         ModelParts parts = layered;
         parts.layers->prefixes[0] = "blocks.";
         AnyModel{parts};
       },
       {"begins with the prefix 'blocks.'"}},
      {"axes of no parameter",
       [&] {
         ModelParts parts = layered;
         parts.logical_axes->of["wrong"] = {"embed"};
         AnyModel{parts};
       },
       {"'wrong'", "not a parameter"}},
      {"too few axes",
       [&] {
         ModelParts parts = layered;
         parts.logical_axes->of["out"] = {};
         AnyModel{parts};
       },
       {"'out'", "has 0 logical axes", "float32[8]"}},
      {"a batch of three",
       [&] {
         Trainer(Line(), sgd()).step({example_x(), example_y(), example_y()});
       },
       {"expected a batch of 2 arrays", "got 3"}},
      {"an empty batch", [&] { Trainer(Line(), sgd()).step(Arrays()); }, {"Trainer.step", "no arrays"}},
      {"integer parameters",
       [&] {
         Trainer(AnyModel::of(Parameters{{"n", lax::full({2}, 1, DType::int32)}},
                              [](const Parameters& p, const Array&) { return jnp::sum(p.at("n")); }),
                 sgd());
       },
       {"'n' is int32[2]", "gradients"}},
      {"a loss that is no scalar",
       [&] {
         Trainer(AnyModel::of(Parameters{{"w", lax::full({2}, 1.0f)}},
                              [](const Parameters& p, const Array& x) { return p.at("w") * x; }),
                 sgd())
             .step(lax::full({2}, 1.0f));
       },
       {"must be a floating scalar", "float32[2]"}},
      {"a model without a loss",
       [&] {
         ModelParts parts = layered;
         parts.loss = {};
         Trainer(AnyModel(parts), sgd());
       },
       {"'tower' has no loss"}},
      {"tokens for another model",
       [&] {
         Trainer trainer(Line(), sgd());
         const std::string path = (fs::temp_directory_path() / "capibara_protocol_tokens").string();
         Tokenizer tokenizer;
         std::FILE* file = std::fopen(path.c_str(), "w");
         std::fputs("some text", file);
         std::fclose(file);
         const int width = write_tokens({path}, tokenizer, path + ".bin");
         trainer.train(TokenFile(path + ".bin", width), LoaderOptions{});
       },
       {"is not a LanguageModel", "argument 'tokens'"}},
      {"other parameters",
       [&] {
         Trainer(Line(), sgd()).set_parameters({{"weight", lax::full({3, 2}, 0.0f)}, {"bias", lax::full({1}, 0.0f)}});
       },
       {"Trainer.set_parameters", "'weight' must be float32[3,1]", "float32[3,2]"}},
      {"missing parameters",
       [&] {
         AnyModel(Line()).loss({{"weight", lax::full({3, 1}, 0.0f)}}, batch);
       },
       {"'bias' is missing"}},
  };
  for (const WrongUse& use : uses) {
    const std::string text = message_of(use.use);
    EXPECT_FALSE(text.empty()) << use.name;
    for (const char* word : use.words) EXPECT_NE(text.find(word), std::string::npos) << use.name << ": " << text;
  }
}

TEST(ModelProtocol, ATrainerWhoseLossRaisesMayBeUsedAgain) {
  Trainer trainer(Line(), sgd());
  EXPECT_NE(message_of([&] { trainer.step({example_x()}); }), "");
  EXPECT_TRUE(std::isfinite(trainer.step({example_x(), example_y()}).loss));
}

}  // namespace
}  // namespace capibara::training
