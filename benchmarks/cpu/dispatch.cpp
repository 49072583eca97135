// The overhead of a call: compiled functions of small arrays, lists and nested structures, and eager
// operations.
#include <capibara/capibara.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

using namespace capibara;

struct Layer {
  Array weight, bias;
};
CAPIBARA_TREE(Layer, weight, bias)
struct Model {
  std::vector<Layer> layers;
  std::map<std::string, Array> scales;
};
CAPIBARA_TREE(Model, layers, scales)

namespace {

// The minimum of many short runs, which excludes the machine's other work.
template <class Call>
void report(const char* what, const Call& call) {
  using Clock = std::chrono::steady_clock;
  constexpr int repeats = 300, calls = 200;
  for (int i = 0; i < calls; ++i) call();
  double least = 1e9;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    least = std::min(least, std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / calls);
  }
  std::printf("%-44s %8.3f us\n", what, least);
}

}  // namespace

int main() {
  const Array x = array<float>({1, 2, 3, 4});
  const auto add_one = jax::jit([](Array a) { return a + 1; });
  report("jit, one array", [&] { add_one(x); });
  const auto sum = jax::jit([](Array a, Array b) { return a + b; });
  report("jit, two arrays", [&] { sum(x, x); });
  const auto compiled = add_one.lower(x).compile();
  report("compiled, one array", [&] { compiled(x); });
  const std::vector<Array> twenty(20, x);
  const auto each = jax::jit([](std::vector<Array> all) {
    for (Array& one : all) one = one * 2;
    return all;
  });
  report("jit, a list of 20 in, 20 out", [&] { each(twenty); });
  const Model model{{{x, x}, {x, x}, {x, x}}, {{"first", x}, {"second", x}}};
  const auto scaled = jax::jit([](Model m, Array factor) {
    for (Layer& layer : m.layers) layer = {layer.weight * factor, layer.bias * factor};
    for (auto& [name, scale] : m.scales) scale = scale + factor;
    return m;
  });
  report("jit, structs of 8 arrays and one, 8 out", [&] { scaled(model, x); });
  const auto donating = jax::jit([](Array a) { return a + 1; }, {.donate_argnums = {0}});
  Array carry = x + 0;
  report("jit, one donated array", [&] { carry = donating(carry); });
  report("eager add", [&] { x + x; });
  return 0;
}
