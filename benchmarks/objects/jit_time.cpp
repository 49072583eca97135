// Times an exported function that this library compiles in process, for objects.py to print next to an object's time.
//
//   jit_time FILE.exported < inputs     stdin: for each input its size in bytes and its data. Prints nanoseconds.
#include <capibara/exported.h>

#include <chrono>
#include <cstdio>
#include <vector>

using namespace capibara;

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  const jax::Exported exported = jax::load_exported(argv[1]);
  Arrays inputs;
  for (const ArrayType& type : exported.program().input_types()) {
    int64_t bytes = 0;
    if (std::fread(&bytes, sizeof bytes, 1, stdin) != 1) return 1;
    std::vector<char> data(static_cast<std::size_t>(bytes) + 1);
    if (bytes > 0 && std::fread(data.data(), static_cast<std::size_t>(bytes), 1, stdin) != 1) return 1;
    inputs.push_back(Array::from_host(type.dtype, type.shape, data.data()));
  }
  const jax::ProgramFunction function(exported.program());
  const auto call = [&] {
    for (const Array& output : function(inputs)) output.block_until_ready();
  };
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto elapsed = [&](auto start) { return std::chrono::duration<double, std::nano>(now() - start).count(); };
  call();
  auto start = now();
  call();
  const double second = elapsed(start);
  const int64_t calls = second > 1e7 ? 1 : static_cast<int64_t>(1e7 / (second / 4 + 20));
  double least = 1e300;
  for (int round = 0; round < 9; ++round) {
    start = now();
    for (int64_t i = 0; i < calls; ++i) call();
    least = std::min(least, elapsed(start) / static_cast<double>(calls));
  }
  std::printf("%.1f\n", least);
  return 0;
}
