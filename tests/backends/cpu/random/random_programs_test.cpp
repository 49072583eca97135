// Random programs of 5 to 60 operations give the same results on the cpu backend as on the reference backend.
//
// CAPIBARA_RANDOM_PROGRAMS sets how many programs are tried (500), CAPIBARA_RANDOM_FIRST the first seed (1): a failure
// prints its seed, the smallest program found that shows it, and the two results.
#include "backends/cpu/random/random_programs.h"

#include "backends/backend.h"
#include "backends/cpu/execution/compiler.h"
#include "core/array/element.h"
#include "core/runtime/thread_pool.h"
#include "program/trace/stage.h"

#include <capibara/config.h>
#include <capibara/lax.h>

#include <gtest/gtest.h>

#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

namespace capibara::random_programs {
namespace {

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

Arrays run_on(const std::string& name, const Program& program, std::span<const Array> inputs) {
  return backend(name).compile(program)->execute(inputs, std::vector<bool>(inputs.size(), false));
}
Arrays run_on_reference(const Program& program, std::span<const Array> inputs) {
  return run_on("reference", program, inputs);
}
Arrays run_on_cpu(const Program& program, std::span<const Array> inputs) { return run_on("cpu", program, inputs); }

// True if both numbers are NaN, or their bytes are equal. The compiler chooses which of two NaN a sum keeps, and on
// x86_64 its choice differed between four rows of a matrix and one.
bool same_number(DType dtype, const std::byte* a, const std::byte* b, int64_t i) {
  const double x = load_as<double>(dtype, a, i), y = load_as<double>(dtype, b, i);
  const auto size = static_cast<std::size_t>(storage_size(dtype));
  return (x != x && y != y) || std::memcmp(a + i * storage_size(dtype), b + i * storage_size(dtype), size) == 0;
}

// Empty if all bytes are equal, except for NaN.
std::string other_bytes(const Arrays& got, const Arrays& want) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const DType dtype = got[i].dtype();
    const int64_t parts = got[i].size() * (is_complex(dtype) ? 2 : 1);
    const auto bytes = static_cast<std::size_t>(got[i].size() * storage_size(dtype));
    const std::byte *a = got[i].raw_data(), *b = want[i].raw_data();
    if (std::memcmp(a, b, bytes) == 0) continue;
    if (!is_inexact(dtype)) return concat("output ", i);
    for (int64_t part = 0; part < parts; ++part) {
      if (!same_number(real_dtype(dtype), a, b, part)) return concat("output ", i, " at ", part);
    }
  }
  return "";
}

// Copies of the arrays in memory of their own, at an offset of `elements` in the allocation.
Arrays copies(const Arrays& arrays, int64_t elements) {
  Arrays result;
  for (const Array& array : arrays) {
    const auto bytes = static_cast<std::size_t>(array.size() * storage_size(array.dtype()));
    const auto before = static_cast<std::size_t>(elements * storage_size(array.dtype()));
    Buffer whole = Buffer::allocate(bytes + before);
    std::memcpy(whole.mutable_data() + before, array.raw_data(), bytes);
    std::byte* data = whole.mutable_data() + before;
    result.push_back(Array::from_buffer(array.type(), elements == 0 ? whole : Buffer::borrow(data, bytes, [whole] {})));
  }
  return result;
}

// A program with one fault: one primitive is replaced by another.
Program confused(const Program& program, const std::string& from, const std::string& to);
Attr confused(const Attr& attr, const std::string& from, const std::string& to) {
  if (const auto* program = attr.get_if<std::shared_ptr<const Program>>()) return Attr(confused(**program, from, to));
  if (const auto* list = attr.get_if<std::shared_ptr<const Attr::List>>()) {
    Attr::List copy;
    for (const Attr& entry : **list) copy.push_back(confused(entry, from, to));
    return Attr(std::move(copy));
  }
  return attr;
}
Program confused(const Program& program, const std::string& from, const std::string& to) {
  Program::Body body = program.body();
  for (Equation& equation : body.equations) {
    if (equation.primitive.is(from)) equation.primitive = primitive(to);
    std::vector<Attrs::Entry> entries;
    for (const auto& [name, attr] : equation.attrs.entries()) entries.emplace_back(name, confused(attr, from, to));
    equation.attrs = Attrs(std::move(entries));
  }
  return Program(std::move(body));
}

void count_names(const Program& program, std::map<std::string, int>& counts, int depth);
void count_names(const Attr& attr, std::map<std::string, int>& counts, int depth) {
  if (const auto* program = attr.get_if<std::shared_ptr<const Program>>()) count_names(**program, counts, depth);
  if (const auto* list = attr.get_if<std::shared_ptr<const Attr::List>>()) {
    for (const Attr& entry : **list) count_names(entry, counts, depth);
  }
}
void count_names(const Program& program, std::map<std::string, int>& counts, int depth) {
  for (const Equation& equation : program.equations()) {
    ++counts[equation.primitive.name()];
    for (Var output : equation.outputs) {
      if (!output.dropped()) ++counts["dtype " + to_string(program.type(output).dtype)];
    }
    const bool loop = equation.primitive.is("scan") || equation.primitive.is("while");
    if (loop) ++counts[concat("loop ", depth + 1, " deep")];
    for (const auto& [name, attr] : equation.attrs.entries()) count_names(attr, counts, depth + (loop ? 1 : 0));
  }
}

TEST(RandomPrograms, FollowFromTheirSeed) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    RandomProgram first = make_random_program(seed), second = make_random_program(seed);
    EXPECT_TRUE(first.program == second.program) << describe(first);
    EXPECT_EQ(first.tolerances, second.tolerances);
    verify(first.program);
    EXPECT_EQ(difference(second, run_on_reference, run_on_reference), "") << describe(first);
  }
}

TEST(RandomPrograms, HoldEveryKindOfOperation) {
  std::map<std::string, int> counts;
  int equations = 0;
  const int programs = 500;
  for (uint64_t seed = 1; seed <= programs; ++seed) {
    Program program = make_random_program(seed).program;
    count_names(program, counts, 0);
    equations += equation_count(program);
  }
  EXPECT_GT(equations, programs * 15);
  for (const char* name : {"add",
                           "sub",
                           "mul",
                           "div",
                           "rem",
                           "max",
                           "min",
                           "pow",
                           "atan2",
                           "exp",
                           "log",
                           "tanh",
                           "logistic",
                           "sin",
                           "erf_inv",
                           "lgamma",
                           "sqrt",
                           "rsqrt",
                           "floor",
                           "round",
                           "sign",
                           "clamp",
                           "select_n",
                           "eq",
                           "lt",
                           "and",
                           "or",
                           "xor",
                           "not",
                           "shift_left",
                           "population_count",
                           "convert_element_type",
                           "bitcast_convert_type",
                           "broadcast_in_dim",
                           "reshape",
                           "transpose",
                           "slice",
                           "rev",
                           "pad",
                           "concatenate",
                           "squeeze",
                           "dynamic_slice",
                           "dynamic_update_slice",
                           "gather",
                           "scatter",
                           "scatter-add",
                           "iota",
                           "reduce_sum",
                           "reduce_max",
                           "reduce_min",
                           "reduce_prod",
                           "reduce_and",
                           "reduce_or",
                           "argmax",
                           "argmin",
                           "cumsum",
                           "cumprod",
                           "cummax",
                           "cumlogsumexp",
                           "sort",
                           "top_k",
                           "dot_general",
                           "conv_general_dilated",
                           "reduce_window_sum",
                           "scan",
                           "while",
                           "cond",
                           "jit",
                           "complex",
                           "loop 1 deep",
                           "loop 2 deep",
                           "dtype bool",
                           "dtype int8",
                           "dtype int16",
                           "dtype int32",
                           "dtype int64",
                           "dtype uint8",
                           "dtype uint16",
                           "dtype uint32",
                           "dtype uint64",
                           "dtype float16",
                           "dtype bfloat16",
                           "dtype float32",
                           "dtype float64",
                           "dtype complex64",
                           "dtype float8_e4m3fn",
                           "dtype float8_e5m2"}) {
    EXPECT_GT(counts[name], 0) << name;
  }
}

// Tests the harness: a fault is found, and the failing program is reduced to the faulty operation.
TEST(RandomPrograms, ShowAFaultInOneOperation) {
  const std::pair<const char*, const char*> faults[] = {
      {"max", "min"},   {"mul", "add"},       {"reduce_max", "reduce_min"},
      {"exp", "log1p"}, {"cummax", "cummin"}, {"floor", "ceil"}};
  for (const auto& [from, to] : faults) {
    Runner faulty = [from = std::string(from), to = std::string(to)](const Program& program,
                                                                     std::span<const Array> inputs) {
      return run_on_reference(confused(program, from, to), inputs);
    };
    bool found = false;
    for (uint64_t seed = 1; seed <= 300 && !found; ++seed) {
      RandomProgram program = make_random_program(seed);
      if (difference(program, run_on_reference, faulty).empty()) continue;
      found = true;
      RandomProgram small = shrink(program, run_on_reference, faulty);
      EXPECT_FALSE(difference(small, run_on_reference, faulty).empty());
      EXPECT_LE(equation_count(small.program), 4) << from << "\n" << describe(small);
      EXPECT_NE(small.program.to_string().find(from), std::string::npos) << from << "\n" << describe(small);
    }
    EXPECT_TRUE(found) << from;
  }
}

// A failure found by random programs, reduced.
TEST(RandomPrograms, FoundThatSumsOfNothingReadNothing) {
  const ArrayType type{{127, 0}, DType::float32, false, false, {}};
  Program program = stage(
                        [](std::span<const Array> in) {
                          return Arrays{jax::lax::reduce_sum(jax::lax::expand_dims(in[0], {1}), {{2}})};
                        },
                        std::span(&type, 1), "f")
                        .program;
  if (!cpu::has_compiler()) GTEST_SKIP() << "no code generator";
  const RandomProgram found{0, program, {array_of(type, {})}, {0}};
  EXPECT_EQ(difference(found, run_on_reference, run_on_cpu), "");
}

// ---- the cpu backend ------------------------------------------------------------------------------------------------

volatile uint64_t running_seed = 0;

// A crash in generated code kills the process: prints at least which program it was.
extern "C" void say_seed(int signal) {
  char text[64];
  const int length = std::snprintf(text, sizeof text, "\nrandom programs: signal %d, seed %llu\n", signal,
                                   static_cast<unsigned long long>(running_seed));
  [[maybe_unused]] const auto written = write(2, text, static_cast<std::size_t>(length));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

TEST(RandomPrograms, CpuAgreesWithReferenceSlow) {
  if (!cpu::has_compiler()) GTEST_SKIP() << "no code generator";
  setenv("CAPIBARA_CACHE", "off", 0);  // compiles every program, and keeps the user's cache folder untouched
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) std::signal(signal, say_seed);
  const uint64_t first = setting("CAPIBARA_RANDOM_FIRST", 1), count = setting("CAPIBARA_RANDOM_PROGRAMS", 500);
  const int threads = thread_count();
  int failed = 0, outputs = 0, exact = 0;
  for (uint64_t seed = first; seed < first + count && failed < 20; ++seed) {
    running_seed = seed;
    RandomProgram program = make_random_program(seed);
    std::string text;
    try {
      Arrays want = run_on_reference(program.program, program.inputs);
      std::shared_ptr<Executable> executable = backend("cpu").compile(program.program);
      const std::vector<bool> donated(program.inputs.size(), false);
      set_thread_count(1);
      Arrays got = executable->execute(program.inputs, donated);
      text = difference(got, want, program.tolerances);
      for (int count : {1, 2, 4}) {
        if (!text.empty()) break;
        set_thread_count(count);
        std::string other = other_bytes(executable->execute(program.inputs, donated), got);
        if (!other.empty()) text = concat("another result in a second run with ", count, " threads: ", other);
      }
      if (text.empty()) {
        std::string other = other_bytes(executable->execute(copies(program.inputs, 1), donated), got);
        if (!other.empty()) text = concat("another result of inputs that start in the middle of a word: ", other);
      }
      if (text.empty()) {
        const std::vector<bool> all(program.inputs.size(), true);
        std::string other = other_bytes(executable->execute(copies(program.inputs, 0), all), got);
        if (!other.empty()) text = concat("another result where inputs are donated: ", other);
      }
    } catch (const std::exception& error) {
      text = concat("it throws: ", error.what());
    }
    for (double tolerance : program.tolerances) ++outputs, exact += tolerance == 0;
    if (seed > first && (seed - first) % 1000 == 0) {
      std::printf("%llu random programs so far: %d failed\n", static_cast<unsigned long long>(seed - first), failed);
      std::fflush(stdout);
    }
    if (text.empty()) continue;
    ++failed;
    try {
      RandomProgram small = shrink(program, run_on_reference, run_on_cpu);
      ADD_FAILURE() << "seed " << seed << ": " << text
                    << "\nsmallest: " << difference(small, run_on_reference, run_on_cpu) << "\n"
                    << describe(small);
    } catch (const std::exception& error) {  // the reference backend cannot run it
      ADD_FAILURE() << "seed " << seed << ": " << text << "\nnot made smaller: " << error.what() << "\n"
                    << describe(program);
    }
  }
  set_thread_count(threads);
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) std::signal(signal, SIG_DFL);
  std::printf("%llu random programs: %d failed; %d outputs, %d of them bit by bit\n",
              static_cast<unsigned long long>(count), failed, outputs, exact);
}

}  // namespace
}  // namespace capibara::random_programs
