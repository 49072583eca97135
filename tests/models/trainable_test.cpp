// Compiled named models through the model protocol: the steps of a plain loop, axes of the mesh, and errors.
#include <capibara/models.h>
#include <capibara/numpy.h>
#include <capibara/random.h>
#include <capibara/training/trainer.h>
#include <capibara/transforms.h>

#include <gtest/gtest.h>

#include <functional>

namespace capibara::models {

namespace {

namespace jnp = jax::numpy;

CompiledModel line(const Backend& backend = {}) {
  Model model;
  model |= make("Linear", {{"dimension", 1}}).connect({{"input", "x"}, {"output", "prediction"}});
  TrainModel train(model);
  train.add_loss(make("SquaredError"), {make("Mean")}, {{"input", "prediction"}, {"target", "y"}});
  return compile(train.model(), backend, {.shapes = {{"x", "4, 3"}, {"y", "4, 1"}}, .data_keys = {"x", "y"}});
}

Arrays batch() {
  return {array<float>({1, 2, 3, -1, 0, 2, 0.5, 1, -2, 3, 1, 1}, Shape{4, 3}),
          array<float>({1, -1, 2, 0}, Shape{4, 1})};
}

training::TrainerConfig sgd() {
  training::TrainerConfig config;
  config.steps = 8;
  config.optimizer = "sgd";
  config.learning_rate = 0.01;
  config.warmup = 1;
  config.max_norm = 0;
  return config;
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST(Trainable, TakesTheStepsOfAPlainLoop) {
  const AnyModel model = trainable(line(), {.batch = {"x", "y"}});
  ASSERT_EQ(model.types().size(), 2U);
  training::Trainer trainer(model, sgd());
  Parameters p;
  for (const auto& [name, value] : trainer.parameters()) p[name] = value + 0.0;
  const std::string weight =
      model.types().begin()->second.shape.size() == 2 ? model.types().begin()->first : model.types().rbegin()->first;
  const std::string bias =
      weight == model.types().begin()->first ? model.types().rbegin()->first : model.types().begin()->first;
  for (int step = 0; step < 5; ++step) {
    const double rate = trainer.learning_rate();
    auto plain = [&](const Parameters& at, const Arrays& arrays) {
      const Array prediction = jnp::matmul(arrays[0], jnp::transpose(at.at(weight))) + at.at(bias);
      return jnp::mean(jnp::square(prediction - arrays[1]));
    };
    auto [loss, gradient] = jax::value_and_grad(plain)(p, batch());
    EXPECT_NEAR(trainer.step(batch()).loss, loss.item<double>(), 1e-5 * loss.item<double>());
    p = jax::tree::map([&](const Array& a, const Array& g) { return a - rate * g; }, p, gradient);
  }
}

TEST(Trainable, ALossOfOnesOwnAndGivenParameters) {
  const CompiledModel compiled = line();
  const auto shapes = compiled.get_shapes();
  ValueMap parameters;
  for (const std::string& key : compiled.trainable_keys()) {
    Shape shape;
    for (const auto& size : *shapes.at(key)) shape.push_back(*size);
    parameters[key] = jnp::zeros(shape);
  }
  const AnyModel model = trainable(
      compiled, {.batch = {"x", "y"},
                 .loss_of = [](const ValueMap& outputs,
                               const Arrays& arrays) { return jnp::sum(outputs.at("prediction").array() + arrays[2]); },
                 .parameters = parameters});
  Arrays three = batch();
  three.push_back(array<float>({1, 2, 3, 4}, Shape{4, 1}));
  EXPECT_FLOAT_EQ(model.loss(model.init(jax::random::key(0)), three).item<float>(), 10);
}

TEST(Trainable, AxesAreThoseThatProposedShardingsSplit) {
  const LogicalAxes axes = trainable(line({.device_mesh = {2, 3}}), {}).logical_axes();
  EXPECT_FALSE(axes.inferred);
  bool split = false;
  for (const auto& [name, of] : axes.of) {
    for (const std::string& axis : of) split = split || axis == "mesh1";
  }
  EXPECT_TRUE(split);
}

TEST(Trainable, WrongKeysAreNamed) {
  EXPECT_NE(message_of([] {
              trainable(line(), {.batch = {"x", "z"}});
            }).find("'z' (option 'batch') is none of"),
            std::string::npos);
  EXPECT_NE(message_of([] { trainable(line(), {.batch = {"x"}}); }).find("the data key 'y' is missing"),
            std::string::npos);
  EXPECT_NE(message_of([] { trainable(line(), {.output = "wrong"}); }).find("'wrong' (option 'output')"),
            std::string::npos);
  const AnyModel model = trainable(line(), {});
  EXPECT_NE(message_of([&] { model.loss(model.init(jax::random::key(0)), {batch()[0]}); }).find("a batch of 2 arrays"),
            std::string::npos);
  EXPECT_NE(message_of([] { trainable(line(), {.loss = "wrong"}); }).find("'wrong' (option 'loss')"),
            std::string::npos);
}

}  // namespace capibara::models
