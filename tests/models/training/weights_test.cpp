// Models with quantized matrices: any model multiplies with them without dequantizing one, and files store them.
#include <capibara/capibara.h>
#include <capibara/safetensors.h>
#include <capibara/training/generate.h>
#include <capibara/training/weights.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

namespace capibara::training {
namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;

Array drawn(int64_t seed, Shape shape) {
  return jax::random::normal(jax::random::key(seed), {.shape = std::move(shape)});
}

std::string message(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was raised";
}

// Matrices on the left, on the right, transposed, inside jit, and one that is read directly.
AnyModel several() {
  ModelParts parts;
  parts.name = "several";
  parts.parameters = {
      {"up", drawn(1, {64, 96})}, {"down", drawn(2, {96, 64})}, {"left", drawn(3, {64, 10})}, {"bias", drawn(4, {96})}};
  parts.apply = [](const Parameters& p, const Arrays& batch) {
    const Array hidden = jnp::tanh(jnp::matmul(batch[0], p.at("up")) + p.at("bias"));
    const auto inner = jax::jit([](const Array& x, const Array& w) { return jnp::matmul(x, w); });
    const Array out = inner(hidden, p.at("down"));
    const Array back = jnp::matmul(jnp::matmul(out, jnp::transpose(p.at("down"))), p.at("down"));
    const Array left = jnp::matmul(jnp::transpose(p.at("left")), jnp::transpose(back));  // [10, rows]
    return jnp::sum(left) + jnp::sum(back) * jnp::sum(p.at("left"));
  };
  return AnyModel(parts);
}

TEST(QuantizeModel, ComputesWithWhatTheCodesStandFor) {
  const AnyModel model = several();
  const Array x = drawn(9, {3, 64});
  const QuantizeModelOptions options = {.vectors = {.entries = 32, .stages = 2}};  // `left` has 160 vectors
  for (const char* format : {"int8", "int4", "vq"}) {
    const AnyModel made = quantize_model(model, format, options);
    const Parameters& stored = made.parts().parameters;
    EXPECT_EQ(stored.count("up"), 0U);
    EXPECT_EQ(stored.at("bias").dtype(), DType::float32);
    EXPECT_LT(parameter_bytes(stored), parameter_bytes(model.parts().parameters) * (*format == 'v'     ? 0.25
                                                                                    : format[3] == '8' ? 0.3
                                                                                                       : 0.17));
    Parameters widened = model.parts().parameters;
    for (const char* name : {"up", "down", "left"})
      widened[name] = kernels::dequantize(*find_codes(stored, name, widened[name].shape(0)));
    const double want = model.apply(widened, {x}).item<float>(), got = made.apply(stored, {x}).item<float>();
    EXPECT_NEAR(got, want, 1e-4 * std::abs(want)) << format;
  }
}

TEST(QuantizeModel, WidensNoMatrixThatIsOnlyMultipliedBy) {
  ModelParts parts = several().parts();
  parts.apply = [](const Parameters& p, const Arrays& batch) {
    return jnp::matmul(jnp::tanh(jnp::matmul(batch[0], p.at("up"))), p.at("down"));
  };
  parts.parameters.erase("left");
  const AnyModel made = quantize_model(AnyModel(parts), "int4");
  const auto apply = [&](const Parameters& p, const Array& x) { return made.apply(p, {x}); };
  const std::string text = jax::make_jaxpr(apply)(made.parts().parameters, drawn(1, {2, 64})).to_string();
  EXPECT_NE(text.find("quantized_matmul"), std::string::npos) << text;
  EXPECT_EQ(text.find("f32[64,96]"), std::string::npos) << text;
  EXPECT_EQ(text.find("f32[96,64]"), std::string::npos) << text;
}

TEST(QuantizeModel, RefusesWhatItCannotKeepAsCodes) {
  ModelParts parts = several().parts();
  EXPECT_NE(message([&] { quantize_model(AnyModel(parts), "int5"); }).find("(argument 'format'), got 'int5'"),
            std::string::npos);
  parts.parameters["up"] = lax::full({64, 96}, NAN);
  EXPECT_NE(message([&] { quantize_model(AnyModel(parts)); }).find("parameter 'up': quantize: expected finite values"),
            std::string::npos);
  parts.parameters = {{"bias", drawn(4, {96})}};
  EXPECT_NE(message([&] { quantize_model(AnyModel(parts)); }).find("has no matrix to quantize"), std::string::npos);
  const AnyModel untrained = LanguageModel({.vocabulary = 32, .width = 16});
  EXPECT_NE(message([&] { quantize_model(untrained); }).find("no parameters yet"), std::string::npos);
}

// Two layers whose activations are known: x of magnitude up to 2, then its ReLU times a matrix.
AnyModel two_layers() {
  ModelParts parts;
  parts.name = "two layers";
  parts.parameters = {{"first", drawn(1, {64, 96})}, {"second", drawn(2, {96, 5})}, {"unused", drawn(3, {8, 8})}};
  parts.apply = [](const Parameters& p, const Arrays& batch) {
    return jnp::matmul(jnp::maximum(jnp::matmul(batch[0], p.at("first")), lax::full({}, 0.0F)), p.at("second"));
  };
  return AnyModel(parts);
}

CalibrationLoader loader_of(std::vector<Array> batches) {
  auto next = std::make_shared<std::size_t>(0);
  return [next, batches = std::move(batches)]() -> std::optional<Arrays> {
    if (*next == batches.size()) return std::nullopt;
    return Arrays{batches[(*next)++]};
  };
}

TEST(QuantizeActivations, CalibratesByTheLargestMagnitudeOrAPercentile) {
  const AnyModel model = quantize_model(two_layers());
  const Parameters& codes = model.parts().parameters;
  const std::vector<Array> batches = {drawn(4, {7, 64}), drawn(5, {7, 64}), 100.0 * drawn(6, {7, 64})};
  const Array first = kernels::dequantize(*find_codes(codes, "first", 64));
  std::vector<float> xs, hidden;  // of two batches
  for (std::size_t i = 0; i < 2; ++i) {
    for (float value : batches[i].to_vector<float>()) xs.push_back(std::abs(value));
    for (float value : jnp::matmul(batches[i], first).to_vector<float>()) hidden.push_back(std::max(value, 0.0F));
  }
  std::sort(xs.begin(), xs.end());
  std::sort(hidden.begin(), hidden.end());
  const AnyModel made = quantize_activations(model, loader_of(batches), {.batches = 2});
  const Parameters& stored = made.parts().parameters;
  EXPECT_FLOAT_EQ(stored.at("first.input_scale").to_vector<float>()[0], xs.back() / 127);
  EXPECT_NEAR(stored.at("second.input_scale").to_vector<float>()[0], hidden.back() / 127, 1e-5 * hidden.back());
  EXPECT_EQ(stored.count("unused.input_scale"), 0U);
  const Parameters most = activation_scales(model, codes, loader_of(batches), {.batches = 2, .percentile = 99});
  const auto at = [](const std::vector<float>& sorted) {
    return sorted[static_cast<std::size_t>(std::ceil(0.99 * static_cast<double>(sorted.size()))) - 1] / 127;
  };
  for (const auto& [name, sorted] : {std::pair{"first", &xs}, std::pair{"second", &hidden}}) {
    const float got = most.at(concat(name, ".input_scale")).to_vector<float>()[0];
    EXPECT_GE(got, at(*sorted) * 0.999F) << name;
    EXPECT_LE(got, at(*sorted) * (1 + 1.0F / 128) * 1.001F) << name;
  }
  // What the scales stand for, and the function of the model.
  kernels::QuantizedMatrix one = *find_codes(stored, "first", 64), two = *find_codes(stored, "second", 96);
  const Array inner = jnp::maximum(kernels::quantized_matmul(batches[0], one), lax::full({}, 0.0F));
  const std::vector<float> want = kernels::quantized_matmul(inner, two).to_vector<float>(),
                           got = made.apply(stored, {batches[0]}).to_vector<float>(),
                           whole = model.apply(codes, {batches[0]}).to_vector<float>();
  double lost = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 1e-3 * std::abs(want[i]) + 1e-3);
    lost += (got[i] - whole[i]) * (got[i] - whole[i]);
    size += whole[i] * whole[i];
  }
  EXPECT_GT(lost, 0);  // it rounds
  EXPECT_LT(std::sqrt(lost / size), 0.02);
}

TEST(QuantizeActivations, TakesLanguageModelsWithExpertsAndFilesKeepTheScales) {
  const LanguageModel language({.vocabulary = 40,
                                .width = 32,
                                .layers = {"attention+mlp", "attention+moe"},
                                .heads = 2,
                                .key_heads = 2,
                                .hidden = 40,
                                .experts = 2});
  ModelParts parts = language.parts();
  parts.parameters = language.init(jax::random::key(1));
  const AnyModel model = quantize_model(AnyModel(parts));
  const Array tokens = array<int32_t>({1, 2, 3, 4}, Shape{1, 4});
  const AnyModel made = quantize_activations(model, loader_of({tokens}), {.batches = 1, .function = "apply"});
  const AnyModel rows = quantize_activations(model);
  int matrices = 0;
  for (const auto& [name, array] : model.parts().parameters) {
    if (!name.ends_with(".codes")) continue;
    const std::string scale = name.substr(0, name.size() - 6) + ".input_scale";
    ASSERT_EQ(made.parts().parameters.count(scale), 1U) << scale;
    EXPECT_EQ(rows.parts().parameters.at(scale).shape(), Shape{0});
    ++matrices;
  }
  EXPECT_EQ(matrices,
            10);  // two of each attention, two of the MLP, three of the experts, and the embedding as the head
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "scales.safetensors";
  for (const AnyModel* one : {&made, &rows}) {
    const Parameters stored = one->parts().parameters;
    save_weights(path.string(), stored);
    const Parameters read = load_weights(path.string());
    const std::vector<float> exact = model.apply(stored, {tokens}).to_vector<float>(),
                             got = one->apply(read, {tokens}).to_vector<float>();
    EXPECT_EQ(one->apply(stored, {tokens}).to_vector<float>(), got);
    EXPECT_EQ(exact, got);  // the scales are parameters: the same function reads them
    const std::vector<float> plain = model.apply(model.parts().parameters, {tokens}).to_vector<float>();
    EXPECT_NE(plain, got);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], plain[i], 0.05 + 0.05 * std::abs(plain[i]));
    const std::vector<int32_t> prompt = {3, 4};
    EXPECT_EQ(Generator(language, read, 16).generate(prompt, {.max_new_tokens = 5}).size(), 5U);
  }
  Parameters wrong = made.parts().parameters;
  wrong["embedding.input_scale"] = array<float>({-1.0F});
  save_weights(path.string(), wrong);
  EXPECT_NE(message([&] { load_weights(path.string()); }).find("'embedding.input_scale' is -1, expected a positive"),
            std::string::npos);
}

TEST(QuantizeActivations, RefusesLoadersAndModelsThatItCannotUse) {
  const AnyModel model = quantize_model(two_layers());
  const auto refused = [&](const CalibrationLoader& loader, const ActivationOptions& options) {
    return message([&] { quantize_activations(model, loader, options); });
  };
  const Array x = drawn(4, {3, 64});
  EXPECT_EQ(refused(loader_of({}), {}),
            "quantize_activations: expected 16 batches (argument 'loader'), got 0: the loader is empty");
  EXPECT_EQ(
      refused(loader_of({x, x, x}), {.batches = 4}),
      "quantize_activations: expected 4 batches (argument 'loader'), got 3 before the loader ended; 'batches' sets "
      "their number");
  const std::string bad = refused(loader_of({x, x * NAN}), {.batches = 2});
  EXPECT_NE(bad.find("batch 1 of the loader"), std::string::npos) << bad;
  EXPECT_NE(bad.find("expected finite activations, what the matrix 'first' multiplies has nan"), std::string::npos)
      << bad;
  EXPECT_NE(refused(loader_of({x}), {.percentile = 0}).find("(argument 'percentile'), got 0"), std::string::npos);
  EXPECT_NE(refused(loader_of({x}), {.batches = 0}).find("(argument 'batches'), got 0"), std::string::npos);
  EXPECT_NE(refused(loader_of({x}), {.function = "evaluate"}).find("'loss' or 'apply'"), std::string::npos);
  EXPECT_NE(refused(loader_of({x}), {.function = "loss"}).find("two layers has no loss"), std::string::npos);
  EXPECT_NE(message([&] { quantize_activations(two_layers()); }).find("expected a model with int8 codes"),
            std::string::npos);
  const AnyModel four = quantize_model(two_layers(), "int4");
  EXPECT_NE(message([&] { quantize_activations(four); }).find("none among 6 parameters"), std::string::npos);
}

TEST(QuantizeModel, TakesLanguageModelsAndFilesKeepThem) {
  const LanguageModel language(
      {.vocabulary = 40, .width = 32, .layers = {"attention+mlp"}, .heads = 2, .key_heads = 2, .hidden = 40});
  ModelParts parts = language.parts();
  parts.parameters = language.init(jax::random::key(1));
  const AnyModel made = quantize_model(AnyModel(parts), "int4");
  const Parameters stored = made.parts().parameters, same = convert_weights(parts.parameters, "int4");
  ASSERT_EQ(stored.size(), same.size());
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "codes.safetensors";
  save_weights(path.string(), stored);
  const Parameters read = load_weights(path.string());
  for (const auto& [name, array] : stored) {
    ASSERT_EQ(to_string(read.at(name).type()), to_string(array.type())) << name;
    EXPECT_EQ(read.at(name).to_vector<double>(), array.to_vector<double>()) << name;
  }
  const Array tokens = array<int32_t>({1, 2, 3}, Shape{1, 3});
  EXPECT_EQ(made.apply(read, {tokens}).to_vector<float>(), language.apply(stored, tokens).to_vector<float>());
  const std::vector<int32_t> prompt = {3, 4};
  EXPECT_EQ(Generator(language, read, 16).generate(prompt, {.max_new_tokens = 5}),
            Generator(language, same, 16).generate(prompt, {.max_new_tokens = 5}));
  Parameters wrong = read;
  wrong["layers.0.mlp.down.weight.codes"] = lax::full({3, 32}, 0, DType::uint8);
  EXPECT_NE(message([&] { Generator(language, wrong, 16); }).find("does not fit the model's config"),
            std::string::npos);
}

}  // namespace
}  // namespace capibara::training
