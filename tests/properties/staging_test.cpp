// Staging: a primitive's results do not change when it is staged, lowered, or written to StableHLO and read back.
#include "properties/property.h"

#include "backends/reference/kernels.h"
#include "program/trace/stage.h"

namespace capibara::properties {
namespace {

Program staged(const Call& call) { return stage(call.function(), call.sample.inputs, "f").program; }

class PrintTallies : public testing::Environment {
  void TearDown() override { Tally::print_all(); }
};
[[maybe_unused]] const testing::Environment* const print_tallies = testing::AddGlobalTestEnvironment(new PrintTallies);

class Staging : public Property {};

TEST_P(Staging, KeepsValues) {
  for (Points points : {Points::plain, hard_points(primitive(GetParam()))}) {
    for_each_call(points == Points::plain ? "staged = eager" : "staged = eager at hard points", GetParam(),
                  [&](const Call& call) {
                    Program program = staged(call);
                    verify(program);
                    Arrays inputs = Values(seed_of(call)).operands(call.sample, points);
                    Arrays eager = call.function()(inputs);
                    return difference(reference::interpret(program, inputs), eager, 0);
                  });
  }
}

// The bytes of keys as the uint32 words that a lowered program takes.
Arrays as_words(const Arrays& arrays) {
  Arrays words;
  for (const Array& array : arrays) {
    if (!is_key(array.dtype())) {
      words.push_back(array);
      continue;
    }
    ArrayType type = array.type().with_dtype(DType::uint32);
    type.shape.push_back(key_words(array.dtype()));
    words.push_back(Array::from_buffer(type, array.buffer()));
  }
  return words;
}

TEST_P(Staging, LoweringKeepsValues) {
  for (Points points : {Points::plain, hard_points(primitive(GetParam()))}) {
    for_each_call(
        points == Points::plain ? "lowered = eager" : "lowered = eager at hard points", GetParam(),
        [&](const Call& call) -> std::string {
          // Each step of a composition rounds, so some cannot reach the ends of narrow ranges.
          if (points != Points::plain && call.takes([](DType dtype) { return is_floating(dtype) && bits(dtype) < 16; }))
            return not_applicable;
          Program lowered = lower(staged(call));
          verify(lowered);
          for (const Equation& equation : lowered.equations()) {
            if (equation.primitive->stablehlo.empty())
              return concat("lowered to ", equation.primitive.name(), ", which StableHLO has not");
          }
          Arrays inputs = Values(seed_of(call)).operands(call.sample, points);
          Arrays eager = call.function()(inputs);
          return difference(reference::interpret(lowered, as_words(inputs)), as_words(eager), 64);
        });
  }
}

TEST_P(Staging, TextKeepsTheProgram) {
  for_each_call("read(write(p)) = lower(p)", GetParam(), [&](const Call& call) -> std::string {
    Program program = staged(call);
    std::string text = to_stablehlo(program);
    Program read = from_stablehlo(text);
    verify(read);
    if (std::string again = to_stablehlo(read); again != text)
      return concat("write(read(text)) is another text:\n", text, "\n---\n", again);
    Program want = strengthened(lower(program));
    if (strengthened(read) == want) return "";
    return concat("read\n", read.to_string(), "\nwant\n", want.to_string());
  });
}

INSTANTIATE_TEST_SUITE_P(Catalog, Staging, testing::ValuesIn(primitive_names()), test_name);

}  // namespace
}  // namespace capibara::properties
