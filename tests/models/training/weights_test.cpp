// Models with quantized matrices: any model multiplies with them without dequantizing one, and files store them.
#include <capibara/capibara.h>
#include <capibara/safetensors.h>
#include <capibara/training/generate.h>
#include <capibara/training/weights.h>
#include <gtest/gtest.h>

#include <filesystem>

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
