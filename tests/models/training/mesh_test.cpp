// Training over meshes: every axis gives the losses of one device, placements follow the table, and wrong meshes are
// rejected by name.
#include <capibara/training.h>

#include <gtest/gtest.h>

#include <capibara/config.h>
#include <capibara/transforms.h>

#include <filesystem>

namespace capibara::training {
namespace {

namespace lax = jax::lax;

Config with_eight_devices() {
  Config settings = config();
  settings.num_cpu_devices = 8;
  return settings;
}

LanguageModelConfig small_model(const std::string& layer = "attention+mlp", int64_t layers = 4) {
  LanguageModelConfig config;
  config.vocabulary = 64;
  config.width = 32;
  config.layers.assign(static_cast<std::size_t>(layers), layer);
  config.heads = 4;
  config.key_heads = 2;
  config.hidden = 64;
  config.experts = 4;
  return config;
}

TrainerConfig small_training(const std::string& mesh = "") {
  TrainerConfig config;
  config.steps = 8;
  config.batch = 8;
  config.length = 16;
  config.warmup = 2;
  config.learning_rate = 1e-2;
  config.mesh = training_mesh_from_text(mesh);
  return config;
}

Array batch_of(int64_t number, int64_t rows = 8, int64_t length = 16) {
  std::vector<int32_t> tokens;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i <= length; ++i)
      tokens.push_back(static_cast<int32_t>((number * 5 + row * 11 + i * (1 + row % 3)) % 64));
  }
  return array<int32_t>(tokens, Shape{rows, length + 1});
}

std::vector<double> losses_of(Trainer& trainer, int64_t steps, int64_t first = 0) {
  std::vector<double> losses;
  for (int64_t step = first; step < first + steps; ++step)
    losses.push_back(trainer.step(batch_of(step, trainer.config().batch * trainer.config().accumulate)).loss);
  return losses;
}

std::vector<double> losses_of(const LanguageModelConfig& model, const TrainerConfig& config, int64_t steps = 4) {
  Trainer trainer{LanguageModel(model), config};
  return losses_of(trainer, steps);
}

void expect_near(const std::vector<double>& got, const std::vector<double>& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance) << "step " << i;
}

template <class Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

class TrainingMeshes : public testing::Test {
 protected:
  ConfigScope devices_{with_eight_devices()};
};

TEST_F(TrainingMeshes, GiveTheLossesOfOneDevice) {
  struct Case {
    const char* mesh;
    const char* layer;
  };
  const Case cases[] = {{"data=8", "attention+mlp"},
                        {"fsdp=8", "attention+mlp"},
                        {"data=2,fsdp=2,tensor=2", "attention+mlp"},
                        {"expert=4,data=2", "attention+moe"},
                        {"sequence=4,data=2", "attention+mlp"},
                        {"stages=4,data=2", "attention+mlp"}};
  std::map<std::string, std::vector<double>> alone;
  for (const Case& one : cases) {
    SCOPED_TRACE(one.mesh);
    const LanguageModelConfig model = small_model(one.layer);
    if (!alone.count(one.layer)) alone[one.layer] = losses_of(model, small_training());
    Trainer trainer{LanguageModel(model), small_training(one.mesh)};
    expect_near(losses_of(trainer, 4), alone[one.layer], 2e-5);
    // Placements are unchanged after training, and match the plan.
    for (const auto& [name, array] : trainer.parameters()) {
      const std::optional<NamedSharding> placed = jax::placement(array);
      ASSERT_TRUE(placed) << name;
      EXPECT_EQ(placed->shard_shape(array.shape()),
                (NamedSharding{"", placed->devices, trainer.sharding()->mesh, trainer.sharding()->at(name).spec, ""})
                    .shard_shape(array.shape()))
          << name;
    }
    const Parameters gradients = trainer.gradient({batch_of(9)});
    const MeshBytes planned = trainer.planned_bytes(), held = trainer.held_bytes(gradients);
    EXPECT_EQ(held.parameters, planned.parameters);
    EXPECT_EQ(held.optimizer, planned.optimizer);
    EXPECT_EQ(held.gradients, planned.gradients);
  }
}

TEST_F(TrainingMeshes, AccumulateRoundAndClipAsOneDeviceDoes) {
  TrainerConfig config = small_training();
  config.accumulate = 2;
  config.max_norm = 0.5;
  const std::vector<double> wanted = losses_of(small_model(), config, 3);
  config.mesh = training_mesh_from_text("data=2,fsdp=4");
  expect_near(losses_of(small_model(), config, 3), wanted, 2e-5);
  config.compute = DType::bfloat16;
  const std::vector<double> narrow = losses_of(small_model(), config, 3);
  config.mesh = {};
  expect_near(narrow, losses_of(small_model(), config, 3), 5e-2);
}

TEST_F(TrainingMeshes, EveryOptimizerKeepsItsStateInParts) {
  for (const char* name : {"sgd", "momentum", "adam", "lion", "adafactor", "muon"}) {
    SCOPED_TRACE(name);
    TrainerConfig config = small_training();
    config.optimizer = name;
    const std::vector<double> wanted = losses_of(small_model("attention+mlp", 1), config, 2);
    config.mesh = training_mesh_from_text("fsdp=4,tensor=2");
    Trainer trainer{LanguageModel(small_model("attention+mlp", 1)), config};
    expect_near(losses_of(trainer, 2), wanted, 5e-5);
    EXPECT_EQ(trainer.held_bytes().optimizer, trainer.planned_bytes().optimizer);
  }
}

TEST_F(TrainingMeshes, CheckpointsResumeOnAnotherMesh) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "capibara_mesh_resume";
  std::filesystem::remove_all(folder);
  const std::vector<double> whole = losses_of(small_model(), small_training(), 6);
  TrainerConfig config = small_training("data=2,fsdp=4");
  config.folder = folder.string();
  {
    Trainer first{LanguageModel(small_model()), config};
    expect_near(losses_of(first, 3), {whole.begin(), whole.begin() + 3}, 2e-5);
    first.save();
  }
  for (const char* mesh : {"fsdp=2,tensor=2", "stages=2,data=4", ""}) {
    SCOPED_TRACE(mesh);
    config.mesh = training_mesh_from_text(mesh);
    Trainer second{LanguageModel(small_model()), config};
    ASSERT_TRUE(second.resume());
    EXPECT_EQ(second.steps_done(), 3);
    expect_near(losses_of(second, 3, 3), {whole.begin() + 3, whole.end()}, 5e-5);
  }
  std::filesystem::remove_all(folder);
}

TEST_F(TrainingMeshes, RefuseWhatTheyCannotDo) {
  struct Wrong {
    std::string mesh;
    std::function<void(LanguageModelConfig&, TrainerConfig&)> change;
    std::string expected;
  };
  auto nothing = [](LanguageModelConfig&, TrainerConfig&) {};
  const Wrong cases[] = {
      {"data=16", nothing, "the mesh data=16 needs 16 devices, there are 8; on CPUs JAX_NUM_CPU_DEVICES says how many"},
      {"expert=2", nothing,
       "would do nothing: no parameter of 'LanguageModel' has a dimension of experts that it divides, expert=2"},
      {"tensor=7", nothing,
       "no parameter of 'LanguageModel' has a dimension of heads, hidden units or vocabulary that it divides, "
       "tensor=7"},
      {"fsdp=7", nothing, "has a dimension that it divides, fsdp=7"},
      {"data=8", [](LanguageModelConfig&, TrainerConfig& t) { t.batch = 12; },
       "into 8 parts (data x fsdp), which do not divide batch=12"},
      {"sequence=3", nothing, "splits sequences into 3 parts, which do not divide length=16"},
      {"sequence=2", [](LanguageModelConfig& m, TrainerConfig&) { m.layers = {"mamba"}; },
       "'LanguageModel' has no attention, sequence=2"},
      {"sequence=2,stages=2", nothing, "has stages and sequence"},
      {"stages=3", nothing, "has 3 stages, which do not divide the 4 layers of 'LanguageModel'"},
      {"stages=2", [](LanguageModelConfig& m, TrainerConfig&) { m.layers[1] = "mamba"; }, "layer 1 has "},
      {"stages=2,microbatches=3", nothing, "a batch of 8, which microbatches=3 does not divide"},
      {"data=2,microbatches=2", nothing, "microbatches are of a pipeline, which needs stages of 2 or more"}};
  for (const Wrong& one : cases) {
    SCOPED_TRACE(one.mesh);
    const std::string message = message_of([&] {
      LanguageModelConfig model = small_model();
      TrainerConfig config = small_training(one.mesh);
      one.change(model, config);
      Trainer trainer{LanguageModel(model), config};
      trainer.step(batch_of(0, config.batch));
    });
    EXPECT_NE(message.find(one.expected), std::string::npos) << message;
  }
  for (const char* text : {"data", "data=", "data=0", "data=-1", "data=2;fsdp=4", "rows=2", "data=2,data=2", "=2",
                           "data=1.5", "data=2,"}) {
    EXPECT_NE(message_of([&] {
                training_mesh_from_text(text);
              }).find("mesh: expected axes with their devices, as data=2,fsdp=4"),
              std::string::npos)
        << text;
  }
}

// A user's model without layers.
struct Regression {
  Parameters init(const Array& key) const { return {{"weight", jax::random::normal(key, {.shape = {8, 4}})}}; }
  Array loss(const Parameters& p, const Array& x, const Array& y) const {
    const Array error = lax::dot(x, p.at("weight")) - y;
    return lax::reduce_sum(error * error, {.axes = {0, 1}}) / 32.0;
  }
};

TEST_F(TrainingMeshes, TakeAnyModel) {
  const Array x = lax::reshape(lax::iota(DType::float32, 64), {8, 8}) / 64.0f, y = lax::full({8, 4}, 1.0f);
  auto run = [&](const char* mesh) {
    TrainerConfig config = small_training(mesh);
    Trainer trainer{AnyModel(Regression()), config};
    std::vector<double> losses;
    for (int i = 0; i < 4; ++i) losses.push_back(trainer.step(Arrays{x, y}).loss);
    return losses;
  };
  expect_near(run("data=2,fsdp=4"), run(""), 1e-6);
  EXPECT_NE(message_of([&] { run("stages=2"); }).find("has stages, and "), std::string::npos);
  EXPECT_NE(message_of([&] { run("sequence=2"); }).find("computes nothing over sequence=2"), std::string::npos);
}

TEST_F(TrainingMeshes, TablesSayWhatStaysWhole) {
  LanguageModelConfig config = small_model();
  config.vocabulary = 65;
  const ShardingTable table =
      shard_by_axes(AnyModel(LanguageModel(config)), make_mesh(training_mesh_from_text("fsdp=4,tensor=2")));
  const ParameterSharding& embedding = table.at("embedding");
  EXPECT_EQ(embedding.spec.dims, (std::vector<AxisList>{{}, {"fsdp"}}));
  EXPECT_NE(embedding.why.find("vocab of 65 stays whole, tensor=2 does not divide it"), std::string::npos)
      << embedding.why;
  EXPECT_EQ(embedding.bytes, 65 * 32 / 4 * 4);
  EXPECT_EQ(table.at("layers.0.mlp.down.weight").spec.dims.size(), 2U);
  int64_t sum = 0;
  for (const ParameterSharding& parameter : table.parameters) sum += parameter.bytes;
  EXPECT_EQ(table.bytes(), sum);
  EXPECT_NE(table.text().find("bytes/device"), std::string::npos);
  EXPECT_NE(message_of([&] { table.at("nothing"); }).find("there is no parameter 'nothing'"), std::string::npos);
}

TEST_F(TrainingMeshes, StrategiesSplitByNames) {
  const ParameterTypes types = {{"layers/0/q/kernel", {{8, 8}, DType::float32}},
                                {"layers/0/out/kernel", {{8, 8}, DType::float32}},
                                {"experts/up", {{4, 8, 6}, DType::float32}},
                                {"norm", {{7}, DType::float32}}};
  const Mesh mesh{{"data", "model", "expert"}, {2, 2, 2}, {}};
  auto spec = [&](const char* strategy, const char* name) {
    return shard_by_rules(types, mesh, sharding_strategy(strategy)).at(name).spec.dims;
  };
  using Dims = std::vector<AxisList>;
  EXPECT_EQ(spec("megatron", "layers/0/q/kernel"), (Dims{{}, {"model"}}));
  EXPECT_EQ(spec("megatron", "layers/0/out/kernel"), (Dims{{"model"}, {}}));
  EXPECT_EQ(spec("expert", "experts/up"), (Dims{{"expert"}, {}, {}}));
  EXPECT_EQ(spec("fsdp", "experts/up"), (Dims{{}, {"data"}, {}}));
  EXPECT_EQ(spec("fsdp", "norm"), (Dims{{}}));
  EXPECT_NE(
      message_of([&] { sharding_strategy("zero"); }).find("strategy must be one of fsdp, megatron, expert, got 'zero'"),
      std::string::npos);
  EXPECT_NE(message_of([&] {
              shard_by_rules(types, mesh, {{"(", {}, "", ""}});
            }).find("pattern is a regular expression, got '('"),
            std::string::npos);
}

}  // namespace
}  // namespace capibara::training
