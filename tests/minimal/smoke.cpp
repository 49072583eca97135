// A minimal end-to-end test of the library, with public headers and only the standard library.
#include <capibara/capibara.h>
#include <capibara/checkpoint.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

using capibara::Array;
namespace jax = capibara::jax;
namespace lax = capibara::jax::lax;

namespace {

int failures = 0;

void expect(bool holds, const char* claim) {
  if (holds) return;
  ++failures;
  std::printf("not so: %s\n", claim);
}

Array energy(const Array& x) { return lax::reduce_sum(x * x * x, {.axes = {0}}); }

bool equal(const Array& array, const std::vector<float>& expected) { return array.to_vector<float>() == expected; }

}  // namespace

int main() {
  Array x = capibara::array<float>({1, 2, 3});
  expect(equal(x + 1, {2, 3, 4}), "a number is added to every element");
  expect(energy(x).item<float>() == 36, "eager evaluation gives 1 + 8 + 27");
  expect(jax::jit(energy)(x).item<float>() == 36, "jit gives the eager value");
  expect(equal(jax::grad(energy)(x), {3, 12, 27}), "the derivative of x^3 is 3 x^2");
  expect(equal(jax::jit(jax::grad(energy))(x), {3, 12, 27}), "jit and grad nest");

  std::string folder = (std::filesystem::temp_directory_path() / "capibara_smoke_XXXXXX").string();
  if (::mkdtemp(folder.data())) {
    using Params = std::map<std::string, Array>;
    capibara::Checkpointer checkpointer(folder);
    checkpointer.save(1, {{"params", capibara::checkpoint_tree(Params{{"x", x}})}});
    expect(equal(checkpointer.restore("params", Params{{"x", x + 1}}).at("x"), {1, 2, 3}), "a checkpoint comes back");
    std::filesystem::remove_all(folder);
  }

  Array rows = capibara::array<float>({1, 2, 3, 4, 5, 6}, capibara::Shape{2, 3});
  expect(equal(jax::vmap(energy)(rows), {36, 405}), "vmap maps over the rows");
  expect(jax::vmap(jax::grad(energy))(rows).shape() == capibara::Shape{2, 3}, "vmap of grad keeps the shape");

  std::string text = jax::jit(energy).lower(x).as_text();
  expect(text.find("stablehlo.multiply") != std::string::npos, "the lowered text holds a multiplication");

  bool refused = false;
  try {
    lax::add(x, rows);
  } catch (const capibara::Error& error) {
    refused = std::string(error.what()).find("add") != std::string::npos;
  }
  expect(refused, "unequal shapes are refused in the name of the operation");

  if (failures == 0) std::puts("all as expected");
  return failures == 0 ? 0 : 1;
}
