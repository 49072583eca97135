// A training run that is saved in the background, resumes after a crash, and detects a damaged file.
#include <capibara/capibara.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>

using capibara::Array;
using Params = std::map<std::string, Array>;
namespace jax = capibara::jax;
namespace jnp = capibara::jax::numpy;

int main() {
  std::string folder = std::filesystem::temp_directory_path() / "capibara_checkpoints_XXXXXX";
  folder = ::mkdtemp(folder.data());

  Array x = capibara::array<float>({0, 1, 2, 3}), y = 2 * x + 1;
  auto loss = [&](const Params& p) { return jnp::mean(jnp::square(p.at("w") * x + p.at("b") - y)); };
  auto step = jax::jit([&](const Params& p) {
    Params gradient = jax::grad(loss)(p);
    return jax::tree::map([](Array value, Array slope) { return value - 0.1f * slope; }, p, gradient);
  });

  // save returns at once: a thread keeps the arrays alive and writes them while training continues.
  Params params{{"w", capibara::array<float>({0}, capibara::Shape{})},
                {"b", capibara::array<float>({0}, capibara::Shape{})}};
  const Params like = params;
  {
    capibara::Checkpointer checkpointer(folder, {.max_to_keep = 2, .async = true});
    for (int i = 1; i <= 60; ++i) {
      params = step(params);
      if (i % 20 == 0) checkpointer.save(i, {{"params", capibara::checkpoint_tree(params)}}, R"({"optimizer": "sgd"})");
    }
    checkpointer.wait();
  }  // the process ends here

  capibara::Checkpointer checkpointer(folder);
  std::cout << "saved:";
  for (long long saved : checkpointer.steps()) std::cout << " " << saved;
  const Params restored = checkpointer.restore("params", like);
  std::cout << "\nrestored bit by bit: " << (jnp::array_equal(restored.at("w"), params.at("w")) ? "True" : "False")
            << "\n";

  // Overwrite one byte of an array's file.
  const std::string file = folder + "/60/params/w/c";
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).put('\x7f');
  try {
    checkpointer.restore("params", like);
  } catch (const capibara::CorruptCheckpointError& error) {
    const std::string text = error.what();
    std::cout << "refused: " << text.substr(0, text.find(", file")) << "\n";
  }

  capibara::RestoreOptions options;
  options.step = 40;
  options.like["params"] = capibara::checkpoint_tree(like);
  Params resumed = capibara::checkpoint_value<Params>(checkpointer.restore(options).items.at("params"));
  for (int i = 41; i <= 60; ++i) resumed = step(resumed);
  std::cout << "the same after going on from step 40: "
            << (jnp::array_equal(resumed.at("w"), params.at("w")) ? "True" : "False") << "\n";
  std::filesystem::remove_all(folder);
}
