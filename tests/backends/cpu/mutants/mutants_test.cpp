// Every recognizer applies to its samples, and the programs around them keep their values.
//
// CAPIBARA_MUTANTS sets how many mutants of each recognizer run (20; "all": 200), CAPIBARA_MUTANTS_FIRST the first seed
// (1). A failure prints its seed and the smallest program that shows it.
#include "backends/cpu/mutants/mutants.h"

#include "backends/backend.h"
#include "backends/cpu/generated_code.h"
#include "program/trace/stage.h"

#include <capibara/config.h>
#include <capibara/lax.h>

#include <unistd.h>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace capibara::mutants {

void PrintTo(const Recognizer& recognizer, std::ostream* out) { *out << recognizer.name; }

namespace {

constexpr uint64_t usual = 20, all = 200;

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  if (!text) return otherwise;
  return std::string(text) == "all" ? all : std::strtoull(text, nullptr, 10);
}

char running[160];  // the current mutant, for when generated code crashes

extern "C" void say_mutant(int signal) {
  char text[256];
  const int length = std::snprintf(text, sizeof text, "\nmutants: signal %d, %s\n", signal, running);
  [[maybe_unused]] const auto written = write(2, text, static_cast<std::size_t>(length));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

class SignalsNamed {
 public:
  SignalsNamed() { set(say_mutant); }
  ~SignalsNamed() { set(SIG_DFL); }

 private:
  static void set(void (*handler)(int)) {
    for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) std::signal(signal, handler);
  }
};

void expect_unchanged(const Recognizer& recognizer) {
  for (const Sample& sample : recognizer.samples) {
    std::snprintf(running, sizeof running, "%s, sample '%s'", recognizer.name.c_str(), sample.name.c_str());
    const Mutant mutant = unchanged(sample, 1);
    const Program& written = mutant.written;
    EXPECT_TRUE(recognizer.applies(written)) << recognizer.name << " does not apply to '" << sample.name << "':\n"
                                             << written;
    const Comparison result = compare(mutant);
    EXPECT_EQ(result.text, "") << recognizer.name << ", sample '" << sample.name << "'\n" << written;
    EXPECT_TRUE(result.informative) << recognizer.name << ", sample '" << sample.name << "'";
  }
}

// The smallest program found that still differs, as text.
std::string smallest(const Mutant& mutant) {
  if (mutant.tried.identity() != mutant.trusted.identity())
    return mutant.tried.to_string() + "\nin place of\n" + mutant.trusted.to_string();
  const random_programs::Runner trusted = [](const Program& program, std::span<const Array> inputs) {
    return backend("reference").compile(program)->execute(inputs, std::vector<bool>(inputs.size(), false));
  };
  const random_programs::Runner tried = [&](const Program& program, std::span<const Array> inputs) -> Arrays {
    Mutant candidate{mutant.seed, "", program, program, program, Arrays(inputs.begin(), inputs.end()), mutant.donated};
    candidate.donated.resize(inputs.size(), false);
    if (compare(candidate).text.empty()) return trusted(program, inputs);
    throw std::runtime_error("differs");
  };
  try {
    const random_programs::RandomProgram whole{mutant.seed, mutant.tried, mutant.inputs,
                                               std::vector<double>(mutant.tried.outputs().size(), 0)};
    return random_programs::describe(random_programs::shrink(whole, trusted, tried));
  } catch (const std::exception&) {
    return mutant.tried.to_string();
  } catch (const Unfit&) {
    return mutant.tried.to_string();
  }
}

void expect_mutants(const Recognizer& recognizer) {
  const uint64_t first = setting("CAPIBARA_MUTANTS_FIRST", 1);
  const uint64_t count = setting("CAPIBARA_MUTANTS", recognizer.costly ? usual / 5 : usual);
  uint64_t run = 0, recognised = 0, failed = 0;
  for (uint64_t seed = first; run < count && seed < first + 4 * count + 20 && failed < 5; ++seed) {
    const Sample& sample = recognizer.samples[seed % recognizer.samples.size()];
    std::snprintf(running, sizeof running, "%s, sample '%s', seed %llu", recognizer.name.c_str(), sample.name.c_str(),
                  static_cast<unsigned long long>(seed));
    Mutant mutant;
    Comparison result;
    try {
      mutant = make_mutant(sample, seed);
      result = compare(mutant);
    } catch (const Unfit&) {
      continue;
    }
    const bool empty = result.text.empty() && !result.informative;
    // With empty arrays a mutant shows only that the program runs; that is enough for some of them.
    if (empty && run % 4 != 0) continue;
    ++run;
    try {
      recognised += recognizer.applies(mutant.written);
    } catch (const std::exception&) {
      // The comparison has reported it.
    }
    if (result.text.empty()) continue;
    ++failed;
    ADD_FAILURE() << recognizer.name << ", sample '" << sample.name << "', seed " << seed << ": " << mutant.changes
                  << "\n"
                  << result.text << "\n"
                  << smallest(mutant);
  }
  EXPECT_GE(run, count) << recognizer.name << ": too few changes lead to programs";
  std::printf("%-36s %4llu mutants, %4llu of them recognised, %llu differ\n", recognizer.name.c_str(),
              static_cast<unsigned long long>(run), static_cast<unsigned long long>(recognised),
              static_cast<unsigned long long>(failed));
  std::fflush(stdout);
}

std::vector<Recognizer> recognizers() {
  std::vector<Recognizer> found;
  for (auto list :
       {optimiser_recognizers, kernel_recognizers, region_recognizers, nest_recognizers, memory_recognizers}) {
    for (Recognizer& each : list()) found.push_back(std::move(each));
  }
  return found;
}

// Joins the words to a test name.
std::string test_name(const Recognizer& recognizer) {
  std::string name;
  bool begins = true;
  for (char c : recognizer.name) {
    if (std::isalnum(static_cast<unsigned char>(c))) name += begins ? static_cast<char>(std::toupper(c)) : c;
    begins = !std::isalnum(static_cast<unsigned char>(c));
  }
  return name;
}

class Mutants : public testing::TestWithParam<Recognizer> {};

TEST_P(Mutants, KeepTheirValuesSlow) {
  NEEDS_COMPILER();
  setenv("CAPIBARA_CACHE", "off", 0);  // compiles every program, and keeps the user's cache folder untouched
  const SignalsNamed signals;
  expect_unchanged(GetParam());
  expect_mutants(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Of, Mutants, testing::ValuesIn(recognizers()),
                         [](const auto& info) { return test_name(info.param); });

// Tests the harness: a rewrite that lacks a condition is detected.
TEST(MutantsAreSharp, ADifferenceIsSeen) {
  NEEDS_COMPILER();
  const Sample sample{"sum",
                      {4, 5},
                      [](const Ints& n) {
                        return std::vector<Input>{floats({n[0], n[1]}), floats({n[0], n[1]})};
                      },
                      [](std::span<const Array> x) { return Arrays{jax::lax::add(x[0], jax::lax::exp(x[1]))}; }};
  const Sample other{"difference", sample.sizes, sample.inputs, [](std::span<const Array> x) {
                       return Arrays{jax::lax::sub(x[0], jax::lax::exp(jax::lax::neg(x[1])))};
                     }};
  Mutant mutant = unchanged(sample, 3);
  EXPECT_EQ(compare(mutant).text, "");
  mutant.tried = unchanged(other, 3).tried;
  EXPECT_NE(compare(mutant).text, "");
}

// A rewrite that lacks its condition: x - x is 0, unless x is NaN or infinite.
Program without_differences(const Program& program) {
  const FlatFunction rewritten = [&](std::span<const Array> inputs) {
    Arrays values(static_cast<std::size_t>(program.var_count()));
    auto at = [&](auto id) -> Array& { return values[static_cast<std::size_t>(id)]; };
    auto value_of = [&](Atom atom) { return atom.is_literal() ? program.literal(atom) : at(atom.code); };
    for (std::size_t i = 0; i < inputs.size(); ++i) at(program.invars()[i].id) = inputs[i];
    for (const Equation& equation : program.equations()) {
      Arrays operands;
      for (Atom input : equation.inputs) operands.push_back(value_of(input));
      const bool matches = equation.primitive.is("sub") && equation.inputs[0] == equation.inputs[1];
      const Arrays outputs = matches ? Arrays{jax::lax::zeros_like(operands[0])}
                                     : capibara::bind(equation.primitive, operands, equation.attrs);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (!equation.outputs[i].dropped()) at(equation.outputs[i].id) = outputs[i];
      }
    }
    Arrays results;
    for (Atom output : program.outputs()) results.push_back(value_of(output));
    return results;
  };
  return stage(rewritten, program.input_types(), "f").program;
}

TEST(MutantsAreSharp, ARewriteWithoutItsConditionIsFound) {
  NEEDS_COMPILER();
  const Sample sample{"difference",
                      {4, 5},
                      [](const Ints& n) {
                        return std::vector<Input>{floats({n[0], n[1]})};
                      },
                      [](std::span<const Array> x) { return Arrays{jax::lax::sub(x[0], x[0])}; },
                      [](const Program& program) { return std::pair(without_differences(program), program); }};
  EXPECT_EQ(compare(unchanged(sample, 1)).text, "");
  int found = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    try {
      found += !compare(make_mutant(sample, seed)).text.empty();
    } catch (const Unfit&) {
    }
  }
  EXPECT_GE(found, 3);
}

}  // namespace
}  // namespace capibara::mutants
