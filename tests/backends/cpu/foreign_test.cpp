// Code for AVX2 and NEON gives the results of the reference backend: under qemu-user on the other architecture.
//
// Needs a C compiler for the target and, if it is not this machine, its emulator: x86_64-linux-gnu-gcc and
// qemu-x86_64, or aarch64-linux-gnu-gcc and qemu-aarch64. qemu-user has no AVX-512: tests emit code for it, but do
// not run it if the machine lacks it.
#include "backends/backend.h"
#include "backends/cpu/driver/lower.h"
#include "backends/cpu/generated_code.h"
#include "backends/cpu/random/random_programs.h"
#include "backends/cpu/small_programs.h"
#include "compiler/optimise/pipeline.h"
#include "core/array/source_folder.h"

#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace capibara::cpu {
namespace {

struct Machine {
  Target target;
  std::string c_compiler, emulator, options;  // empty emulator: runs on this machine
};

Machine avx2() {
  const Target target{"x86_64-unknown-linux-gnu",
                      "x86-64",
                      {"+sse4.2", "+popcnt", "+avx", "+avx2", "+fma", "+f16c", "+bmi", "+bmi2", "+lzcnt"},
                      32};
#ifdef __x86_64__
  return {target, "cc", "", ""};
#else
  return {target, "x86_64-linux-gnu-gcc", "qemu-x86_64", " -cpu max -L /usr/x86_64-linux-gnu "};
#endif
}

bool starts(const std::string& command) { return std::system((command + " > /dev/null 2>&1").c_str()) == 0; }

void write_number(std::ostream& out, int64_t value) { out.write(reinterpret_cast<const char*>(&value), sizeof value); }

// Links object code into a separate program and runs it; removes the folder at the end.
class ForeignRunner {
 public:
  explicit ForeignRunner(Machine machine) : machine_(std::move(machine)) {
    char name[] = "/tmp/capibara-foreign-XXXXXX";
    if (char* made = mkdtemp(name)) folder_ = made;
    const std::string source = folder_of(__FILE__) + "foreign_runner.c";
    usable_ = !folder_.empty() && std::filesystem::exists(source) &&
              starts(concat(machine_.c_compiler, " -O1 -c ", source, " -o ", folder_, "/runner.o"));
    if (!machine_.emulator.empty()) {
      usable_ = usable_ && starts(machine_.emulator + " --version");
      return;
    }
#ifdef __x86_64__
    // Under ./run emulate cc is the host's compiler, outside the emulator; the other tests run such code there.
    usable_ = usable_ && starts("cc -dumpmachine | grep x86_64") && __builtin_cpu_supports("avx2") &&
              __builtin_cpu_supports("fma");
#endif
  }
  ~ForeignRunner() {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  bool usable() const { return usable_; }
  std::string needs() const {
    return concat("needs ", machine_.c_compiler, " and ",
                  machine_.emulator.empty() ? "a processor with AVX2" : machine_.emulator);
  }

  Arrays run(const Lowered& lowered, const Types& types, std::span<const Array> inputs) const {
    write(folder_ + "/program.o", compiler().object_code(lowered.module, machine_.target));
    std::ostringstream data;
    write_number(data,
                 static_cast<int64_t>(inputs.size() + lowered.constants.size() + lowered.output_bytes.size() + 1));
    for (const Array& input : inputs) write_array(data, input);
    for (const Array& constant : lowered.constants) write_array(data, constant);
    for (int64_t bytes : lowered.output_bytes) write_space(data, bytes, true);
    write_space(data, lowered.arena_bytes, false);
    write(folder_ + "/input", data.str());
    const std::string at = folder_ + "/";
    const std::string link = concat(machine_.c_compiler, " ", at, "runner.o ", at, "program.o -lm -o ", at, "program");
    if (std::system(link.c_str()) != 0) throw RuntimeError("cannot link: " + link);
    const int status = std::system(
        concat(machine_.emulator, machine_.options, at, "program < ", at, "input > ", at, "output").c_str());
    if (status != 0) throw RuntimeError(concat("the program ended with status ", status));
    std::ifstream output(at + "output", std::ios::binary);
    std::vector<Buffer> results;
    for (int64_t bytes : lowered.output_bytes) {
      results.push_back(Buffer::allocate(static_cast<std::size_t>(bytes)));
      output.read(reinterpret_cast<char*>(results.back().mutable_data()), bytes);
    }
    Arrays arrays;
    for (std::size_t i = 0; i < types.size(); ++i) {
      const Lowered::Output& place = lowered.outputs[i];
      const auto index = static_cast<std::size_t>(place.index);
      const Buffer buffer = place.from == Lowered::Output::From::driver     ? results[index]
                            : place.from == Lowered::Output::From::input    ? inputs[index].buffer()
                            : place.from == Lowered::Output::From::constant ? lowered.constants[index].buffer()
                                                                            : arrays[index].buffer();
      arrays.push_back(Array::from_buffer(types[i], buffer));
    }
    return arrays;
  }

 private:
  static void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  static void write_array(std::ostream& out, const Array& array) {
    const int64_t bytes = array.size() * static_cast<int64_t>(storage_size(array.dtype()));
    write_number(out, bytes);
    write_number(out, 0);
    out.write(reinterpret_cast<const char*>(array.raw_data()), bytes);
  }
  static void write_space(std::ostream& out, int64_t bytes, bool output) {
    write_number(out, bytes);
    write_number(out, output);
    out << std::string(static_cast<std::size_t>(bytes), '\x7f');
  }

  Machine machine_;
  std::string folder_;
  bool usable_ = false;
};

// Random programs that call no host kernels, so all their work is in generated code.
void expect_random_programs_agree(const ForeignRunner& runner, int programs) {
  int tried = 0;
  for (uint64_t seed = 1; seed <= 400 && tried < programs; ++seed) {
    const random_programs::RandomProgram random = random_programs::make_random_program(seed);
    const Lowered lowered = lower_to_loops(optimise(random.program));
    if (!lowered.kernels.empty()) continue;
    int64_t elements = 0;
    for (const Array& input : random.inputs) elements += input.size();
    if (elements > 200000) continue;
    ++tried;
    const random_programs::Runner reference = [](const Program& program, std::span<const Array> inputs) {
      return backend("reference").compile(program)->execute(inputs, std::vector<bool>(inputs.size(), false));
    };
    const random_programs::Runner foreign = [&](const Program& program, std::span<const Array> inputs) {
      return runner.run(lowered, program.output_types(), inputs);
    };
    EXPECT_EQ(random_programs::difference(random, reference, foreign), "") << random_programs::describe(random);
  }
  EXPECT_GE(tried, programs / 2);
}

// Chains long enough that functions are compiled once and called, with vectors as arguments.
void expect_shared_functions_agree(const ForeignRunner& runner) {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Arrays inputs = {values({1003}, dtype, 3)};
    const Program program = program_of(
        [](std::span<const Array> given) {
          Array x = given[0];
          for (int k = 0; k < 40; ++k) {
            const Array sine = jax::lax::sin(x);
            x = sine + jax::lax::tanh(jax::lax::exp(sine) * 0.25f);
          }
          return Arrays{x};
        },
        inputs);
    const Lowered lowered = lower_to_loops(optimise(program));
    std::size_t formulas = 0;
    for (const Function& function : lowered.module.functions) formulas += function.formulas.size();
    EXPECT_GE(formulas, 3u) << "the chain calls no shared functions";
    const Arrays got = runner.run(lowered, program.output_types(), inputs);
    EXPECT_EQ(random_programs::difference(got, executed("reference", program, inputs),
                                          {dtype == DType::float32 ? 1e-4 : 1e-12}),
              "");
  }
}

TEST(ForeignTargets, Avx2AgreesWithReferenceSlow) {
  NEEDS_COMPILER();
  const ForeignRunner runner(avx2());
  if (!runner.usable()) GTEST_SKIP() << runner.needs();
  expect_shared_functions_agree(runner);
  expect_random_programs_agree(runner, 60);
}

#ifndef __aarch64__  // there all tests run such code
Machine neon() {
  return {{"aarch64-unknown-linux-gnu", "generic", {"+neon"}, 16},
          "aarch64-linux-gnu-gcc",
          "qemu-aarch64",
          " -cpu max -L /usr/aarch64-linux-gnu "};
}

TEST(ForeignTargets, NeonAgreesWithReferenceSlow) {
  NEEDS_COMPILER();
  const ForeignRunner runner(neon());
  if (!runner.usable()) GTEST_SKIP() << runner.needs();
  expect_shared_functions_agree(runner);
  expect_random_programs_agree(runner, 30);
}
#endif

}  // namespace
}  // namespace capibara::cpu
