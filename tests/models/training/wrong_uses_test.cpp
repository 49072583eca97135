// Wrong uses of models, meshes, trainers and loaders: each error has the expected and the actual value.
#include <capibara/lax.h>
#include <capibara/numpy.h>
#include <capibara/random.h>
#include <capibara/training.h>

#include <gtest/gtest.h>

#include <capibara/config.h>

#include <filesystem>
#include <fstream>
#include <limits>

namespace capibara::training {
namespace {

namespace fs = std::filesystem;
namespace jnp = jax::numpy;
namespace lax = jax::lax;

constexpr std::size_t uses_of_each = 10;

struct WrongUse {
  std::function<void()> use;
  std::vector<const char*> words;  // of the message: argument, expected value, actual value
};
using WrongUses = std::vector<WrongUse>;

struct Line {
  Parameters init(const Array&) const { return {{"bias", lax::full({1}, 0.0f)}, {"weight", lax::full({3, 1}, 1.0f)}}; }
  Array apply(const Parameters& p, const Array& x) const { return jnp::matmul(x, p.at("weight")) + p.at("bias"); }
  Array loss(const Parameters& p, const Array& x, const Array& y) const {
    return jnp::mean(jnp::square(apply(p, x) - y));
  }
  std::string name() const { return "line"; }
};

struct Tower {
  Parameters init(const Array&) const {
    Parameters parameters;
    for (int64_t i = 0; i < 4; ++i) parameters[concat("layers.", i, ".w")] = lax::full({3, 3}, 0.1f);
    return parameters;
  }
  Array loss(const Parameters& p, const Arrays& batch) const {
    Arrays carry = start(p, batch);
    for (int64_t i = 0; i < 4; ++i) carry = run_layer(p, i, carry);
    return finish(p, carry, batch);
  }
  int64_t layer_count() const { return 4; }
  std::string layer_prefix(int64_t layer) const { return concat("layers.", layer, "."); }
  Arrays start(const Parameters&, const Arrays& batch) const { return {batch[0]}; }
  Arrays run_layer(const Parameters& p, int64_t layer, const Arrays& carry) const {
    return {jnp::tanh(jnp::matmul(carry[0], p.at(concat("layers.", layer, ".w"))))};
  }
  Array finish(const Parameters&, const Arrays& carry, const Arrays&) const { return jnp::mean(jnp::square(carry[0])); }
  std::string name() const { return "tower"; }
};

Array x_of(int64_t rows = 4) { return lax::full({rows, 3}, 1.0f); }
Array y_of(int64_t rows = 4) { return lax::full({rows, 1}, 1.0f); }

TrainerConfig settings() {
  TrainerConfig config;
  config.steps = 4;
  config.batch = 4;
  config.length = 8;
  return config;
}

LanguageModelConfig small() {
  LanguageModelConfig config;
  config.vocabulary = 32;
  config.width = 16;
  config.heads = config.key_heads = 2;
  config.hidden = 16;
  config.layers = {"attention+mlp"};
  return config;
}

template <class Change>
std::function<void()> trainer_with(Change change) {
  return [change] {
    TrainerConfig config = settings();
    change(config);
    Trainer{AnyModel(Line()), config};
  };
}

template <class Change>
std::function<void()> model_with(Change change) {
  return [change] {
    LanguageModelConfig config = small();
    change(config);
    LanguageModel{config};
  };
}

template <class Change>
std::function<void()> parts_with(Change change) {
  return [change] {
    ModelParts parts = AnyModel(Tower()).parts();
    change(parts);
    AnyModel{parts};
  };
}

Config with_eight_devices() {
  Config settings = config();
  settings.num_cpu_devices = 8;
  return settings;
}

class WrongUsesOf : public testing::Test {
 protected:
  ConfigScope devices_{with_eight_devices()};
};

void expect_named(const WrongUses& uses) {
  EXPECT_GE(uses.size(), uses_of_each);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    std::string text;
    try {
      uses[i].use();
    } catch (const Error& error) {
      text = error.what();
    }
    EXPECT_FALSE(text.empty()) << "use " << i << " raises nothing";
    for (const char* word : uses[i].words) {
      EXPECT_NE(text.find(word), std::string::npos) << "use " << i << ": no '" << word << "' in: " << text;
    }
  }
}

// ---- models ------------------------------------------------------------------------------------------------------

TEST_F(WrongUsesOf, PartsOfModels) {
  expect_named(
      {{[] { AnyModel{ModelParts{}}; }, {"no parameters", "init"}},
       {parts_with([](ModelParts& p) { p.init = {}; }), {"'tower'", "neither init nor given parameters"}},
       {parts_with([](ModelParts& p) { p.layers->count = 0; }), {"at least one layer", "got 0"}},
       {parts_with([](ModelParts& p) { p.layers->start = {}; }), {"start, run and finish", "start is missing"}},
       {parts_with([](ModelParts& p) { p.layers->run = {}; }), {"start, run and finish", "run is missing"}},
       {parts_with([](ModelParts& p) { p.layers->finish = {}; }), {"start, run and finish", "finish is missing"}},
       {parts_with([](ModelParts& p) { p.layers->prefixes.pop_back(); }), {"4 layers", "3 prefixes"}},
       {parts_with([](ModelParts& p) { p.layers->prefixes[1] = "blocks."; }), {"'blocks.'", "'layers.0.w'"}},
       {parts_with([](ModelParts& p) {
          p.logical_axes = LogicalAxes{{{"wrong", {"embed"}}}};
        }),
        {"logical axes", "'wrong'", "not a parameter"}},
       {parts_with([](ModelParts& p) {
          p.logical_axes = LogicalAxes{{{"layers.0.w", {"embed"}}}};
        }),
        {"'layers.0.w'", "float32[3,3]", "1 logical axes", "one is needed for each dimension"}}});
}

TEST_F(WrongUsesOf, FunctionsOfModels) {
  const AnyModel line = AnyModel(Line()), tower = AnyModel(Tower());
  const Parameters p = line.init(jax::random::key(0));
  const LanguageModel language(small());
  const Array tokens = lax::full({2, 5}, 1, DType::int32);
  expect_named(
      {{[&] { line.loss(p, {x_of()}); }, {"expected a batch of 2 arrays", "'batch'", "got 1"}},
       {[&] { line.loss(p, {}); }, {"expected a batch of 2 arrays", "'batch'", "got 0"}},
       {[&] { line.apply(p, {}); }, {"AnyModel.apply", "expected a batch of 1 array", "got 0"}},
       {[&] { tower.apply(tower.init(jax::random::key(0)), {x_of()}); }, {"AnyModel.apply", "'tower' has no apply"}},
       {[&] {
          line.loss({{"weight", p.at("weight")}}, {x_of(), y_of()});
        },
        {"'bias' is missing", "'parameters'"}},
       {[&] {
          AnyModel::of(p, [](const Parameters& q, const Array& x) {
            return jnp::matmul(x, q.at("weight"));
          }).loss(p, {x_of()});
        },
        {"floating scalar", "got float32[4,1]"}},
       {[&] {
          AnyModel::of(p, [](const Parameters&, const Array&) {
            return lax::full({}, 1, DType::int32);
          }).loss(p, {x_of()});
        },
        {"floating scalar", "got int32[]"}},
       {[&] { language.apply(language.init(jax::random::key(0)), x_of()); },
        {"integers [batch, length]", "'tokens'", "got float32[4,3]"}},
       {[&] { language.loss(language.init(jax::random::key(0)), lax::full({5}, 1, DType::int32)); },
        {"integers [batch, length + 1]", "'tokens'", "got int32[5]"}},
       {[&] {
          language.cross_entropy(language.init(jax::random::key(0)), lax::full({5, 1}, 1, DType::int32));
        },
        {"LanguageModel.cross_entropy", "integers [batch, length + 1]", "got int32[5,1]"}},
       {[&] {
          AnyModel(language).loss(language.init(jax::random::key(0)), {tokens, tokens});
        },
        {"one array of tokens", "'batch'", "got 2 arrays"}},
       {[&] { language.loss(p, tokens); }, {"'embedding' is missing", "2 names"}}});
}

TEST_F(WrongUsesOf, LanguageModels) {
  using C = LanguageModelConfig;
  expect_named(
      {{model_with([](C& c) { c.vocabulary = 0; }), {"vocabulary must be positive", "got 0"}},
       {model_with([](C& c) { c.width = -16; }), {"width must be positive", "got -16"}},
       {model_with([](C& c) {
          c.width = 18;
          c.heads = 4;
        }),
        {"width 18", "even multiple of heads 4"}},
       {model_with([](C& c) {
          c.heads = 4;
          c.key_heads = 3;
        }),
        {"heads 4", "multiple of key_heads 3"}},
       {model_with([](C& c) { c.experts_per_token = 9; }), {"between 1 and experts = 4", "got 9"}},
       {model_with([](C& c) { c.taps = 1; }), {"taps must be at least 2", "got 1"}},
       {model_with([](C& c) { c.norm = "batch"; }), {"norm is 'rms' or 'layer'", "got 'batch'"}},
       {model_with([](C& c) { c.positions = "none"; }), {"positions is 'rotary' or 'learned'", "got 'none'"}},
       {model_with([](C& c) { c.activation = "relu"; }), {"activation is 'silu' or 'gelu'", "got 'relu'"}},
       {model_with([](C& c) { c.layers = {}; }), {"layers", "at least one layer"}},
       {model_with([](C& c) { c.layers = {"attention+conv"}; }), {"'+mlp' or '+moe'", "got 'attention+conv'"}},
       {model_with([](C& c) { c.checkpoint_policy = "some"; }), {"checkpoint_policy is one of", "got 'some'"}}});
}

TEST_F(WrongUsesOf, GradientCheckpointing) {
  const AnyModel line = AnyModel(Line()), tower = AnyModel(Tower());
  const LanguageModel language(small());
  expect_named(
      {{[&] { enable_gradient_checkpointing(line, 1, "minimal"); }, {"'line' has no layers", "'model'", "layer_count"}},
       {[&] { enable_gradient_checkpointing(tower, 0, "minimal"); },
        {"checkpoint_every_n_layers", "at least 1", "got 0"}},
       {[&] { enable_gradient_checkpointing(tower, -2, "minimal"); }, {"checkpoint_every_n_layers", "got -2"}},
       {[&] { enable_gradient_checkpointing(tower, 1, "some"); }, {"checkpoint_policy", "minimal", "got 'some'"}},
       {[&] { enable_gradient_checkpointing(tower, 1, ""); }, {"checkpoint_policy", "minimal", "got ''"}},
       {[&] { enable_gradient_checkpointing(tower, 1, "Minimal"); }, {"checkpoint_policy", "got 'Minimal'"}},
       {[&] { enable_gradient_checkpointing(language, -1); }, {"checkpoint_every_n_layers", "negative", "got -1"}},
       {[&] { enable_gradient_checkpointing(language, 1, "some"); }, {"checkpoint_policy", "minimal", "got 'some'"}},
       {[&] { enable_gradient_checkpointing(AnyModel(language), 0, "minimal"); }, {"at least 1", "got 0"}},
       {[&] { enable_gradient_checkpointing(AnyModel(language), 1, "all"); }, {"checkpoint_policy", "got 'all'"}}});
}

// ---- meshes ------------------------------------------------------------------------------------------------------

TEST_F(WrongUsesOf, MeshesAsText) {
  WrongUses uses;
  for (const char* text : {"data", "data=", "data=0", "data=-1", "data=2;fsdp=4", "rows=2", "data=2,data=2", "=2",
                           "data=1.5", "data=2,", "data=99999999999", "2"}) {
    uses.push_back({[=] { training_mesh_from_text(text); },
                    {"expected axes with their devices, as data=2,fsdp=4", "of data, fsdp, expert", "got '"}});
  }
  expect_named(uses);
}

TEST_F(WrongUsesOf, Meshes) {
  auto made = [](auto change) {
    return [change] {
      TrainingMesh mesh;
      change(mesh);
      make_mesh(mesh);
    };
  };
  using M = TrainingMesh;
  expect_named({{made([](M& m) { m.data = 0; }), {"data is a number of devices", "got 0"}},
                {made([](M& m) { m.fsdp = -1; }), {"fsdp is a number of devices", "got -1"}},
                {made([](M& m) { m.expert = 0; }), {"expert is a number of devices", "got 0"}},
                {made([](M& m) { m.sequence = -4; }), {"sequence is a number of devices", "got -4"}},
                {made([](M& m) { m.stages = 0; }), {"stages is a number of devices", "got 0"}},
                {made([](M& m) { m.tensor = 0; }), {"tensor is a number of devices", "got 0"}},
                {made([](M& m) { m.microbatches = -1; }), {"microbatches must not be negative", "got -1"}},
                {made([](M& m) { m.microbatches = 2; }), {"stages of 2 or more", "microbatches=2 with stages=1"}},
                {[] { sharding_strategy("some"); }, {"strategy must be one of fsdp, megatron, expert", "got 'some'"}},
                {[] {
                   shard_by_rules({}, {}, {{"(", {}, "", ""}});
                 },
                 {"regular expression", "got '('"}},
                {[] { shard_by_rules({}, {}, {}).at("w"); }, {"no parameter 'w'", "among 0"}}});
}

TEST_F(WrongUsesOf, Pipelines) {
  const AnyModel line = AnyModel(Line()), tower = AnyModel(Tower());
  const Parameters p = tower.init(jax::random::key(0));
  const NamedSharding two = jax::make_sharding(make_mesh(training_mesh_from_text("stages=2")), {});
  const NamedSharding three = jax::make_sharding(make_mesh(training_mesh_from_text("stages=3")), {});
  auto changed = [](auto change) {
    ModelParts parts = AnyModel(Tower()).parts();
    change(parts);
    return AnyModel(parts);
  };
  const AnyModel unnamed = changed([](ModelParts& parts) { parts.layers->prefixes.clear(); });
  const AnyModel mixed = changed([](ModelParts& parts) {
    parts.layers->run = [](const Parameters& q, int64_t layer, const Arrays& carry) {
      const Array y = jnp::matmul(carry[0], q.at(concat("layers.", layer, ".w")));
      return Arrays{layer == 1 ? y : jnp::tanh(y)};
    };
  });
  const AnyModel widening = changed([](ModelParts& parts) { parts.types["layers.1.v"] = parts.types["layers.1.w"]; });
  Parameters wider = p;
  wider["layers.1.v"] = wider["layers.1.w"];
  expect_named(
      {{[&] {
          pipeline_loss(line, line.init(jax::random::key(0)), {x_of(), y_of()}, two);
        },
        {"line has no layers"}},
       {[&] { pipeline_loss(tower, p, {x_of()}, two, {.axis = "data"}); }, {"a mesh with the axis 'data'", "got "}},
       {[&] { pipeline_loss(tower, p, {}, two); }, {"a batch whose first dimension counts examples"}},
       {[&] { pipeline_loss(tower, p, {lax::full({}, 1.0f)}, two); },
        {"a batch whose first dimension counts examples"}},
       {[&] { pipeline_loss(tower, p, {x_of(6)}, three); }, {"4 layers", "stages=3 does not divide"}},
       {[&] { pipeline_loss(tower, p, {x_of(3)}, two); },
        {"a batch of 3", "stages=2", "name a number of microbatches"}},
       {[&] { pipeline_loss(tower, p, {x_of()}, two, {.microbatches = 3}); }, {"batch of 4", "microbatches=3"}},
       {[&] { pipeline_loss(unnamed, p, {x_of()}, two); }, {"which parameters are of which layer", "prefixes"}},
       {[&] { pipeline_loss(mixed, p, {x_of()}, two); }, {"compute different things", "layer 1"}},
       {[&] { pipeline_loss(widening, wider, {x_of()}, two); },
        {"other parameters", "layer 1 has v", "layer 0 has w"}}});
}

// ---- trainers ----------------------------------------------------------------------------------------------------

TEST_F(WrongUsesOf, TrainerSettings) {
  using C = TrainerConfig;
  expect_named({{trainer_with([](C& c) { c.steps = 0; }), {"steps must be positive", "got 0"}},
                {trainer_with([](C& c) { c.batch = -1; }), {"batch must be positive", "got -1"}},
                {trainer_with([](C& c) { c.length = 0; }), {"length must be positive", "got 0"}},
                {trainer_with([](C& c) { c.accumulate = 0; }), {"accumulate must be positive", "got 0"}},
                {trainer_with([](C& c) { c.checkpoint_every = 0; }), {"checkpoint_every must be positive", "got 0"}},
                {trainer_with([](C& c) { c.keep = 0; }), {"keep must be positive", "got 0"}},
                {trainer_with([](C& c) { c.num_workers = 0; }), {"num_workers must be positive", "got 0"}},
                {trainer_with([](C& c) { c.optimizer = "best"; }), {"optimizer is one of", "adamw", "got 'best'"}},
                {trainer_with([](C& c) { c.learning_rate = -1; }), {"learning_rate", "0 or more", "got -1"}},
                {trainer_with([](C& c) { c.warmup = -3; }), {"warmup", "0 or more", "got -3"}},
                {trainer_with([](C& c) { c.weight_decay = std::nan(""); }), {"weight_decay", "0 or more", "nan"}},
                {trainer_with([](C& c) { c.compute = DType::float16; }), {"float32 or bfloat16", "got float16"}},
                {trainer_with([](C& c) { c.mesh.data = 16; }), {"data=16 needs 16 devices", "there are 8"}}});
}

TEST_F(WrongUsesOf, StepsEvaluationsAndGradients) {
  const Array tokens = lax::full({4, 9}, 1, DType::int32);
  auto of_line = [](Arrays batch) { return [batch] { Trainer(AnyModel(Line()), settings()).step(batch); }; };
  auto of_language = [](Arrays batch) {
    return [batch] { Trainer(AnyModel(LanguageModel(small())), settings()).step(batch); };
  };
  expect_named(
      {{of_line({}), {"Trainer.step", "no arrays", "'batch'"}},
       {of_line({x_of()}), {"expected a batch of 2 arrays", "got 1"}},
       {of_line({x_of(), y_of(), y_of()}), {"expected a batch of 2 arrays", "got 3"}},
       {[] { Trainer(AnyModel(Line()), settings()).evaluate(Arrays()); }, {"Trainer.evaluate", "no arrays"}},
       {[] { Trainer(AnyModel(Line()), settings()).gradient(Arrays()); }, {"Trainer.gradient", "no arrays"}},
       {of_language({lax::full({4, 8}, 1, DType::int32)}), {"expected int32[4,9]", "'tokens'", "got int32[4,8]"}},
       {of_language({x_of()}), {"expected int32[4,9]", "'tokens'", "got float32[4,3]"}},
       {of_language({tokens, tokens}), {"expected int32[4,9]", "1 more array"}},
       {[] {
          TrainerConfig config = settings();
          config.accumulate = 3;
          Trainer(AnyModel(Line()), config).step(Arrays{x_of(), y_of()});
        },
        {"accumulate = 3 must divide", "array 0", "float32[4,3]"}},
       {[] {
          TrainerConfig config = settings();
          config.mesh.data = 8;
          Trainer(AnyModel(Line()), config).step(Arrays{x_of(), y_of()});
        },
        {"data=8 splits batches into 8 parts", "array 0", "float32[4,3]"}}});
}

TEST_F(WrongUsesOf, ParametersOfATrainer) {
  auto set = [](Parameters parameters) {
    return [parameters] { Trainer(AnyModel(Line()), settings()).set_parameters(parameters); };
  };
  const Array weight = lax::full({3, 1}, 1.0f), bias = lax::full({1}, 0.0f);
  expect_named({{set({}), {"'bias' is missing", "0 names"}},
                {set({{"weight", weight}}), {"'bias' is missing", "1 names"}},
                {set({{"bias", bias}}), {"'weight' is missing"}},
                {set({{"bias", bias}, {"weights", weight}}), {"'weight' is missing", "nearest is 'weights'"}},
                {set({{"bias", bias}, {"weight", weight}, {"c", bias}}), {"expected 2 arrays", "got 3"}},
                {set({{"bias", weight}, {"weight", weight}}), {"'bias' must be float32[1]", "got float32[3,1]"}},
                {set({{"bias", bias}, {"weight", bias}}), {"'weight' must be float32[3,1]", "got float32[1]"}},
                {set({{"bias", lax::full({1}, 0, DType::int32)}, {"weight", weight}}), {"float32[1]", "got int32[1]"}},
                {set({{"bias", lax::full({1}, 0.0, DType::bfloat16)}, {"weight", weight}}), {"got bfloat16[1]"}},
                {set({{"bias", lax::full({}, 0.0f)}, {"weight", weight}}), {"float32[1]", "got float32[]"}}});
}

TEST_F(WrongUsesOf, BytesOfGradients) {
  auto held = [](Parameters gradients) {
    return [gradients] { Trainer(AnyModel(Line()), settings()).held_bytes(gradients); };
  };
  const Array weight = lax::full({3, 1}, 1.0f), bias = lax::full({1}, 0.0f);
  expect_named({{held({{"weight", weight}}), {"'bias' is missing", "1 names"}},
                {held({{"bias", bias}}), {"'weight' is missing"}},
                {held({{"c", bias}}), {"'bias' is missing", "1 names"}},
                {held({{"bias", bias}, {"weights", weight}}), {"'weight' is missing", "nearest is 'weights'"}},
                {held({{"bias", bias}, {"weight", weight}, {"c", bias}}), {"held_bytes", "expected 2 arrays", "got 3"}},
                {held({{"bias", weight}, {"weight", weight}}), {"'bias' must be float32[1]", "got float32[3,1]"}},
                {held({{"bias", bias}, {"weight", bias}}), {"'weight' must be float32[3,1]", "got float32[1]"}},
                {held({{"bias", lax::full({1}, 0, DType::int32)}, {"weight", weight}}), {"float32[1]", "got int32[1]"}},
                {held({{"bias", lax::full({1}, 0.0, DType::bfloat16)}, {"weight", weight}}), {"got bfloat16[1]"}},
                {held({{"bias", lax::full({}, 0.0f)}, {"weight", weight}}), {"float32[1]", "got float32[]"}}});
}

TEST_F(WrongUsesOf, Generators) {
  const LanguageModel model(small());
  const Parameters parameters = model.init(jax::random::key(0));
  auto made = [=](Parameters of, int64_t capacity) {
    return [=] { Generator(model, of, capacity).generate(std::vector<int32_t>{1}, {.max_new_tokens = 1}); };
  };
  auto generate = [=](std::vector<int32_t> prompt, GenerateOptions options = {}) {
    return [=] { Generator(model, parameters, 8).generate(prompt, options); };
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_named({{made(parameters, 0), {"capacity", "at least 2", "got 0"}},
                {made(parameters, -8), {"capacity", "at least 2", "got -8"}},
                {made({}, 8), {"is missing", "0 names"}},
                {generate({}), {"prompt", "at least one token"}},
                {generate({32}), {"token 32", "vocabulary of 32"}},
                {generate({-1}), {"token -1", "vocabulary of 32"}},
                {generate(std::vector<int32_t>(8, 1)), {"prompt of 8 tokens", "capacity of 8"}},
                {generate({1}, {.max_new_tokens = -1}), {"expected 0 or more", "'max_new_tokens'", "got -1"}},
                {generate({1}, {.temperature = -0.5}), {"expected 0 or more", "'temperature'", "got -0.5"}},
                {generate({1}, {.temperature = nan}), {"expected 0 or more", "'temperature'", "nan"}},
                {generate({1}, {.top_k = -2}), {"expected 0 or more", "'top_k'", "got -2"}}});
}

// ---- batches -----------------------------------------------------------------------------------------------------

TEST_F(WrongUsesOf, BatchLoaders) {
  auto loader = [](BatchLoaderOptions options, int64_t next = 0) {
    return [=] { BatchLoader(array_examples({x_of()}), options, next); };
  };
  auto stream = [] { return std::optional<Arrays>(); };
  expect_named({{loader({.batch = 0}), {"batch must be positive", "got 0"}},
                {loader({.num_workers = -1}), {"num_workers must be positive", "got -1"}},
                {loader({.prefetch = 0}), {"prefetch must be positive", "got 0"}},
                {loader({}, -1), {"first batch must not be negative", "got -1"}},
                {[] { BatchLoader(Examples{}, {}); }, {"at least one example", "got 0"}},
                {[=] { BatchLoader(stream, {.num_workers = 2}); }, {"read by one worker", "got num_workers=2"}},
                {[=] { BatchLoader(stream, {}).batch(0); }, {"BatchLoader.batch", "no batches by number"}},
                {[] { BatchLoader(array_examples({x_of()}), {}).batch(-1); }, {"must not be negative", "got -1"}},
                {[] { array_examples({}); }, {"at least one array", "got none"}},
                {[] {
                   array_examples({x_of(), y_of(3)});
                 },
                 {"same number of rows", "got float32[3,1]"}},
                {[] { array_examples({lax::full({}, 1.0f)}); }, {"number of rows", "got float32[]"}},
                {[] { npy_examples({"no_such_file.npy"}); }, {"no_such_file.npy", "cannot be opened"}}});
}

TEST_F(WrongUsesOf, LoadersOfTokens) {
  const fs::path text = fs::temp_directory_path() / concat("capibara_wrong_uses_", ::getpid());
  std::ofstream(text) << std::string(100, 'a');
  const std::string path = text.string() + ".bin";
  const int width = write_tokens({text.string()}, Tokenizer(), path);
  auto loader = [&](LoaderOptions options, int64_t next = 0) {
    return [=] { Loader(TokenFile(path, width), options, next); };
  };
  expect_named(
      {{loader({.batch = 0, .length = 4}), {"batch must be positive", "got 0"}},
       {loader({.batch = -2, .length = 4}), {"batch must be positive", "got -2"}},
       {loader({.batch = 1, .length = 0}), {"length must be positive", "got 0"}},
       {loader({.batch = 1, .length = 4, .num_workers = 0}), {"num_workers must be positive", "got 0"}},
       {loader({.batch = 1, .length = 4}, -1), {"next", "must not be negative", "got -1"}},
       {loader({.batch = 1, .length = 4, .first = -1}), {"between 0 and 100", "got -1"}},
       {loader({.batch = 1, .length = 4, .last = 101}), {"between 0 and 100", "101"}},
       {loader({.batch = 1, .length = 4, .first = 50, .last = 40}), {"between 0 and 100", "50 and 40"}},
       {loader({.batch = 1, .length = 100}), {"100 tokens", "window of 100 + 1"}},
       {[&] { Loader(TokenFile(path, width), {.batch = 1, .length = 4}).batch(-1); }, {"negative", "got -1"}}});
  fs::remove(text);
  fs::remove(path);
}

}  // namespace
}  // namespace capibara::training
