// Printed arrays and scalars against the text of the installed jax and numpy (make_format_cases.py).
#include "core/array/format.h"

#include <gtest/gtest.h>

#include <cmath>

#include "case_file.h"

namespace capibara {
namespace {

std::string unescape(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      result += text[i];
    } else {
      const char c = text[++i];
      result += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
  }
  return result;
}

struct Case {
  DType dtype;
  std::vector<std::int64_t> shape;
  bool weak;
  std::vector<std::uint64_t> words;  // the data, aligned for any element
  std::string repr, str, literal;
};

Case parse(const std::vector<std::string>& row) {
  Case result{*dtype_from_name(row[0]), {}, row[2] == "1", {}, unescape(row[4]), unescape(row[5]), row[6]};
  std::istringstream shape(row[1]);
  for (std::string length; std::getline(shape, length, ',');) result.shape.push_back(std::stoll(length));
  result.words.resize(row[3].size() / 16 + 2);
  auto* bytes = reinterpret_cast<unsigned char*>(result.words.data());
  for (std::size_t i = 0; i + 1 < row[3].size(); i += 2) {
    bytes[i / 2] = static_cast<unsigned char>(std::stoi(row[3].substr(i, 2), nullptr, 16));
  }
  return result;
}

TEST(Format, EqualsJaxAndNumpy) {
  const auto rows = testing::read_rows("format_cases.tsv");
  EXPECT_GT(rows.size(), 300u);
  for (const auto& row : rows) {
    const Case c = parse(row);
    EXPECT_EQ(array_repr(c.dtype, c.shape, c.words.data(), c.weak), c.repr);
    EXPECT_EQ(array_str(c.dtype, c.shape, c.words.data()), c.str) << row[0];
    if (c.literal != "-") {
      EXPECT_EQ(format_scalar(c.dtype, c.words.data()), c.literal) << row[0];
    }
  }
}

TEST(Format, SummaryFollowsItsOptions) {
  const std::int32_t values[] = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::int64_t shape[] = {8};
  EXPECT_EQ(format_array(DType::int32, shape, values, {.threshold = 5, .edgeitems = 1}), "[0 ... 7]");
  EXPECT_EQ(format_array(DType::int32, shape, values, {.linewidth = 8, .separator = ", "}),
            "[0, 1,\n 2, 3,\n 4, 5,\n 6, 7]");
}

TEST(Format, PythonFloats) {
  EXPECT_EQ(python_float(1), "1.0");
  EXPECT_EQ(python_float(1e16), "1e+16");
  EXPECT_EQ(python_float(1e22), "1e+22");
  EXPECT_EQ(python_float(123456789012345680.0), "1.2345678901234568e+17");
  EXPECT_EQ(python_float(0.0001), "0.0001");
  EXPECT_EQ(python_float(-1e-5), "-1e-05");
  EXPECT_EQ(python_float(-0.0), "-0.0");
  EXPECT_EQ(python_float(NAN), "nan");
}

TEST(Format, ShapesAreTuples) {
  EXPECT_EQ(shape_tuple({}), "()");
  const std::int64_t shape[] = {2, 3};
  EXPECT_EQ(shape_tuple(std::span(shape, 1)), "(2,)");
  EXPECT_EQ(shape_tuple(shape), "(2, 3)");
}

}  // namespace
}  // namespace capibara
