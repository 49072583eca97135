// Named models: a graph of connections, compiled for given shapes into a program, evaluated and differentiated.
#include <capibara/models.h>

#include <iostream>

using capibara::Array;
using namespace capibara::models;

int main() {
  // Connections by name, and from the canonical output to the canonical input.
  Model model;
  model |= make("Linear", {{"dimension", 3}}).connect({{"input", "x"}, {"output", "h"}});
  model += make("Tanh");
  model += make("Linear", {{"dimension", 1}}).connect({{"output", "y"}});
  for (const auto& [key, shape] : model.shapes()) {
    if (key[0] != '$') std::cout << key << " " << shape << "\n";
  }

  CompiledModel compiled = compile(model, {}, {.shapes = {{"x", "2, 2"}}});
  std::cout << compiled.text() << "parameters " << compiled.parameter_count() << "\n";

  ValueMap params = {{"weight_0", capibara::array<float>({{0.5f, -0.5f}, {0.25f, 0.75f}, {1, 0}})},
                     {"bias_0", capibara::array<float>({0, 0.5f, -0.5f})},
                     {"weight_1", capibara::array<float>({{1, -1, 0.5f}})},
                     {"bias_1", capibara::array<float>({0.125f})}};
  ValueMap data = {{"x", capibara::array<float>({{1, 2}, {3, -1}})}};
  std::cout << "y " << compiled.evaluate(params, data).at("y").array() << "\n";
  Evaluation both = compiled.evaluate(params, data, {{"y", capibara::array<float>({{1.0f}, {1.0f}})}});
  std::cout << "gradient " << both.gradients.at("bias_0").array() << "\n";

  // A name that does not exist is an error.
  try {
    model |= make("Relu").connect({{"inptu", "y"}});
  } catch (const KeyError& error) {
    std::cout << error.what() << "\n";
  }
}
