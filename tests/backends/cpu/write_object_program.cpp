// Writes a compiled function as f.o and f.h into a folder, for test_object_code.py to run from C.
#include <capibara/capibara.h>

#include <cstdio>
#include <string>
#include <utility>

using capibara::Array;
namespace jax = capibara::jax;
namespace lax = capibara::jax::lax;

struct Params {
  Array w, b;
};
CAPIBARA_TREE(Params, w, b)

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  const std::string folder = argv[1];
  const Params params{capibara::array<float>({{1, 2}, {3, 4}, {5, 6}}), capibara::array<float>({7, 8})};
  const Array x = capibara::array<float>({{1, 0, 2}, {0, 1, 3}});
  const auto predict = [](Params p, Array unread, Array given) {
    const Array y = lax::tanh(lax::dot(given, p.w) + p.b);
    return std::pair(lax::mul(y, y), lax::neg(y));
  };
  const jax::ObjectCode code = jax::compile_object(jax::jit(predict).lower(params, x, x), {.name = "f"});
  code.write(folder + "/f.o", folder + "/f.h");
  std::printf("%s %zu\n", code.name.c_str(), code.object.size());
  const Array table = lax::reshape(lax::iota(capibara::DType::float32, 600), {300, 2});
  const auto embedded = jax::jit([table](Array given) { return lax::dot(given, table); });
  const jax::ObjectCode apart = jax::compile_object(embedded.lower(lax::iota(capibara::DType::float32, 300)),
                                                    {.name = "g", .external_weights = true});
  apart.write(folder + "/g.o", folder + "/g.h", folder + "/g.bin");
  try {
    apart.write(folder + "/g.o", folder + "/g.h");
  } catch (const capibara::ValueError& error) {
    std::printf("%s\n", error.what());
  }
  return 0;
}
