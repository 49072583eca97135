// Transform programs against jax: every body under every stack of transforms, values and program text.
#include "transforms/bodies.h"

#include <fstream>

namespace capibara::transform_programs {
namespace {

// ---- the comparison ------------------------------------------------------------------------------------------------

// Differences allowed in every text: jax prints some dimensions as NumPy integers, and so breaks lines elsewhere; the
// host function of a callback has another name.
std::string plain(std::string text) {
  if (std::size_t at = text.find("callback=host"); at != std::string::npos) text.replace(at, 13, "callback=...");
  for (std::size_t at; (at = text.find("np.int64(")) != std::string::npos;) {
    text.erase(text.find(')', at), 1);
    text.erase(at, 9);
  }
  std::string joined;
  for (char c : text) {
    bool space = c == ' ' || c == '\n';
    if (space && (joined.empty() || joined.back() == ' ' || joined.back() == '[' || joined.back() == '{')) continue;
    if (c == ']' && joined.back() == ' ') joined.pop_back();
    joined += space ? ' ' : c;
  }
  return joined;
}

// The programs whose text may differ, with the reason.
const std::map<std::string, std::string>& text_differences() {
  static const auto all = [] {
    std::map<std::string, std::string> reasons;
    std::ifstream file("tests/transforms/text_differences.txt");
    if (!file) throw capibara::ValueError("tests/transforms/text_differences.txt is missing");
    for (std::string line; std::getline(file, line);) {
      if (!line.empty() && line[0] != '#') reasons[line.substr(0, line.find(' '))] = line.substr(line.find(' ') + 1);
    }
    return reasons;
  }();
  return all;
}

class Programs : public testing::TestWithParam<std::string> {};

TEST_P(Programs, ValuesEqualJaxUnderEveryStackOfTransforms) {
  for_each_stack(GetParam(), [](const Case& one) {
    Arrays outputs = jax::jit(one.function)(one.inputs);
    if (one.record.field("error")) ADD_FAILURE() << "no error, expected " << *one.record.field("error");
    if (one.record.field("error") || one.record.field("limitation")) return;
    auto expected = one.record.all("output");
    ASSERT_EQ(outputs.size(), expected.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      auto difference = oracle::difference(outputs[i], expected[i]);
      EXPECT_FALSE(difference) << "output " << i << ": " << difference.value_or("");
    }
  });
}

TEST_P(Programs, TextEqualsJaxUnderEveryStackOfTransforms) {
  for_each_stack(GetParam(), [](const Case& one) {
    if (!one.record.texts.contains("jaxpr")) return;
    std::string got = jax::make_jaxpr(one.function)(one.inputs).to_string();
    const std::string& expected = one.record.texts.at("jaxpr");
    bool listed = text_differences().contains(one.record.name);
    if (plain(got) == plain(expected)) {
      EXPECT_FALSE(listed) << "the texts are equal: remove the line from text_differences.txt";
    } else if (!listed) {
      EXPECT_EQ(got, expected);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Bodies, Programs, testing::ValuesIn(body_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace capibara::transform_programs
