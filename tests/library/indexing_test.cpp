// Indexing of arrays: jax's answers to random index expressions, and the traced forms and errors.
#include <capibara/indexing.h>
#include <capibara/lax.h>

#include "data/recordings.h"
#include "program/trace/trace.h"
#include "transforms/flat.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace capibara {
namespace {

namespace lax = jax::lax;

// ---- the case file: see make_indexing_cases.py for its format ----------------------------------------------------

std::vector<std::string> split_text(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  std::string part;
  while (std::getline(stream, part, separator)) parts.push_back(part);
  return parts;
}

Shape parse_shape(const std::string& text) {
  Shape shape;
  for (const std::string& size : split_text(text, 'x')) shape.push_back(std::stoll(size));
  return shape;
}

template <class T = int32_t>
Array parse_array(const std::string& text) {
  std::size_t colon = text.find(':');
  std::vector<T> values;
  for (const std::string& value : split_text(text.substr(colon + 1), ','))
    values.push_back(static_cast<T>(std::stoll(value)));
  return array<T>(values, parse_shape(text.substr(0, colon)));
}

std::optional<int64_t> bound(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(std::stoll(text));
}

Index parse_entry(const std::string& text) {
  std::string rest = text.substr(1);
  switch (text[0]) {
    case 'i':
      return std::stoll(rest);
    case 'e':
      return ellipsis;
    case 'n':
      return newaxis;
    case 'a':
      return parse_array(rest);
    case 'm':
      return parse_array<bool>(rest);
    default: {
      std::vector<std::string> bounds = split_text(rest + ":", ':');
      bounds.resize(3);
      return Slice{bound(bounds[0]), bound(bounds[1]), bound(bounds[2])};
    }
  }
}

std::string trimmed(const std::string& text) {
  std::size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

Array run_case(const std::string& operation, const std::string& mode, const Array& x, const std::vector<Index>& entries,
               const std::string& values) {
  std::string how = mode == "-" ? "" : mode;
  IndexUpdate at(x, entries);
  if (operation == "get") return at.get({.mode = how});
  Array y = parse_array(values);
  UpdateOptions options{.mode = how};
  if (operation == "set") return at.set(y, options);
  if (operation == "add") return at.add(y, options);
  if (operation == "subtract") return at.subtract(y, options);
  if (operation == "multiply") return at.multiply(y, options);
  return operation == "min" ? at.min(y, options) : at.max(y, options);
}

TEST(Indexing, AnswersAsJaxOnRandomExpressions) {
  std::ifstream file(oracle::recording("indexing_cases.txt"));
  ASSERT_TRUE(file.good());
  std::string line;
  int cases = 0;
  while (std::getline(file, line)) {
    SCOPED_TRACE(line);
    std::vector<std::string> fields = split_text(line, '|');
    ASSERT_EQ(fields.size(), 5u);
    std::vector<std::string> head = split_text(trimmed(fields[0]), ' ');
    Shape shape = parse_shape(trimmed(fields[1]));
    std::vector<Index> entries;
    for (const std::string& entry : split_text(trimmed(fields[2]), ' ')) entries.push_back(parse_entry(entry));
    std::vector<int32_t> counted(static_cast<std::size_t>(element_count(shape)));
    for (std::size_t i = 0; i < counted.size(); ++i) counted[i] = static_cast<int32_t>(i + 1);
    Array x = array<int32_t>(counted, shape);
    std::string want = trimmed(fields[4]);
    ++cases;
    if (want == "error") {
      EXPECT_THROW(run_case(head[0], head[1], x, entries, trimmed(fields[3])), Error);
      continue;
    }
    Array expected = parse_array(want);
    Array got = run_case(head[0], head[1], x, entries, trimmed(fields[3]));
    EXPECT_EQ(got.shape(), expected.shape());
    EXPECT_EQ(got.to_vector<int>(), expected.to_vector<int>());
    // The same under tracing, where only the index expression is known.
    FlatFunction f = [&](std::span<const Array> in) -> Arrays {
      return {run_case(head[0], head[1], in[0], entries, trimmed(fields[3]))};
    };
    Program program = stage(f, std::vector<ArrayType>{x.type()}, "f").program;
    verify(program);
    EXPECT_EQ(evaluate_program(program, Arrays{x})[0].to_vector<int>(), expected.to_vector<int>());
    if (program.equations().size() > 0 && cases % 5 == 0) {
      Program lowered = lower(program);
      verify(lowered);
      EXPECT_EQ(evaluate_program(lowered, Arrays{x})[0].to_vector<int>(), expected.to_vector<int>());
    }
  }
  EXPECT_GE(cases, 900);
}

// ---- traced forms ------------------------------------------------------------------------------------------------

std::string names_of(const FlatFunction& f, const std::vector<ArrayType>& types) {
  std::string names;
  Program program = stage(f, types, "f").program;
  for (const Equation& equation : program.equations()) names += (names.empty() ? "" : " ") + equation.primitive.name();
  return names;
}

ArrayType type_of(Shape shape, DType dtype = DType::float32) {
  ArrayType type;
  type.shape = std::move(shape);
  type.dtype = dtype;
  return type;
}

TEST(Indexing, PrefersSliceThenDynamicSliceThenGather) {
  ArrayType x = type_of({4, 5}), i = type_of({}, DType::int32), list = type_of({2}, DType::int32);
  using In = std::span<const Array>;
  EXPECT_EQ(names_of([](In in) -> Arrays { return {in[0]()}; }, {x}), "");
  EXPECT_EQ(names_of([](In in) -> Arrays { return {in[0](1)}; }, {x}), "slice squeeze");
  EXPECT_EQ(names_of([](In in) -> Arrays { return {in[0](slice({}, {}, -1))}; }, {x}), "rev");
  EXPECT_EQ(names_of([](In in) -> Arrays { return {in[0](slice(), in[1])}; }, {x, i}),
            "lt add select_n lt add select_n dynamic_slice squeeze");
  EXPECT_EQ(names_of([](In in) -> Arrays { return {in[0](in[1])}; }, {x, list}),
            "lt add select_n broadcast_in_dim gather");
  EXPECT_EQ(names_of([](In in) -> Arrays { return {in[0].at(1).set(2.0)}; }, {x}),
            "broadcast_in_dim broadcast_in_dim scatter");
}

TEST(Indexing, EquationCountDoesNotDependOnTheBatchSize) {
  for (int64_t size : {2, 200}) {
    std::vector<ArrayType> types{type_of({size, 4}), type_of({size, 3}, DType::int32)};
    std::string names = names_of(
        [&](std::span<const Array> in) {
          FlatFunction f = [](std::span<const Array> row) -> Arrays { return {row[0].at(row[1]).add(1.0)}; };
          return vmap_flat(f, in, std::vector<int64_t>{0, 0}, std::vector<int64_t>{0}, {"", size});
        },
        types);
    EXPECT_EQ(names, "lt add select_n broadcast_in_dim broadcast_in_dim broadcast_in_dim scatter-add");
  }
}

TEST(Indexing, OutOfBoundsReadsClampAndWritesDrop) {
  Array x = array<float>({1, 2, 3});
  EXPECT_EQ(x(array<int>({5, -7})).to_vector<float>(), (std::vector<float>{3, 1}));
  EXPECT_EQ(x(9).item<float>(), 3);
  EXPECT_EQ(x.at(9).set(0.0).to_vector<float>(), (std::vector<float>{1, 2, 3}));
  EXPECT_TRUE(std::isnan(x.at(9).get({.mode = "fill"}).item<float>()));
  EXPECT_EQ(x.at(-1).get({.wrap_negative_indices = false}).item<float>(), 1);
}

TEST(Indexing, DivideAndPowerCombineRepeats) {
  Array x = array<float>({8, 2, 3}), i = array<int>({0, 0, 1});
  EXPECT_EQ(x.at(i).divide(2.0).to_vector<float>(), (std::vector<float>{2, 1, 3}));
  EXPECT_EQ(x.at(1).power(3.0).to_vector<float>(), (std::vector<float>{8, 8, 3}));
  EXPECT_EQ(array<int>({2, 3}).at(1).power(4).to_vector<int>(), (std::vector<int>{2, 81}));
}

TEST(Indexing, ValuesTakeTheArraysType) {
  Array x = array<int>({1, 2, 3});
  Array y = x.at(0).set(1.75);
  EXPECT_EQ(y.dtype(), DType::int32);
  EXPECT_EQ(y.to_vector<int>(), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(lax::full({2}, 1.0, DType::bfloat16).at(0).add(2.0).dtype(), DType::bfloat16);
}

TEST(Indexing, SixteenDimensions) {
  Shape shape(16, 1);
  shape[15] = 3;
  Array x = array<float>({1, 2, 3}, shape);
  EXPECT_EQ(x(ellipsis, 1).shape(), Shape(15, 1));
  EXPECT_EQ(x(ellipsis, array<int>({2, 0})).flatten().to_vector<float>(), (std::vector<float>{3, 1}));
}

TEST(Indexing, ErrorsSayWhatIsWrong) {
  Array x = array<float>({1, 2, 3});
  EXPECT_THROW(x(0, 0), IndexError);
  EXPECT_THROW(x(ellipsis, ellipsis), IndexError);
  EXPECT_THROW(x(slice({}, {}, 0)), ValueError);
  EXPECT_THROW(x(array<float>({1})), TypeError);
  EXPECT_THROW(x(array<bool>({true, false})), IndexError);
  EXPECT_THROW(x.at(0).get({.mode = "wrap"}), ValueError);
  EXPECT_THROW(x.at(slice(2)).set(array<float>({1, 2, 3})), ValueError);
  EXPECT_THROW(array<float>(std::vector<float>{})(0), IndexError);
  FlatFunction masked = [](std::span<const Array> in) -> Arrays { return {in[0](in[1])}; };
  EXPECT_THROW(stage(masked, std::vector<ArrayType>{type_of({3}), type_of({3}, DType::bool_)}, "f"),
               NonConcreteBooleanIndexError);
}

}  // namespace
}  // namespace capibara
