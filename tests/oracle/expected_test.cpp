// The reader of expected files: what it accepts and rejects, and how it compares.
#include "oracle/expected.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <set>

namespace capibara::oracle {
namespace {

TEST(Expected, ReadsEveryTransformRecord) {
  std::size_t records = 0, jaxprs = 0;
  std::set<std::string> bodies, stacks;
  read_records(recording("transforms.expected"), [&](const Record& record) {
    ++records;
    jaxprs += record.texts.count("jaxpr");
    bodies.insert(record.name.substr(0, record.name.find('/')));
    stacks.insert(record.name.substr(record.name.find('/') + 1));
    EXPECT_FALSE(record.all("input").empty()) << record.name;
    EXPECT_TRUE(record.field("error") || record.field("limitation") || !record.all("output").empty()) << record.name;
  });
  EXPECT_GE(bodies.size(), 14u);
  EXPECT_GE(stacks.size(), 15u);
  EXPECT_EQ(records, bodies.size() * stacks.size());
  EXPECT_GT(jaxprs, 700u);
}

TEST(Expected, ReadsValuesTypesAndTexts) {
  std::string path = testing::TempDir() + "case.expected";
  {
    std::ofstream file(path);
    file << "# a comment\nrecord one/two\nfield note two words\narray input float32[2] weak 0000803f000000c0\n"
            "array input bool[0] strong -\ntext body 2\n# kept\n\nend\n";
  }
  std::vector<Record> records = read_records(path);
  std::remove(path.c_str());
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].name, "one/two");
  EXPECT_EQ(records[0].field("note"), "two words");
  EXPECT_EQ(records[0].texts.at("body"), "# kept\n");
  std::vector<ExpectedArray> inputs = records[0].all("input");
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_TRUE(inputs[0].weak_type);
  EXPECT_EQ(inputs[0].to_array().to_vector<float>(), (std::vector<float>{1, -2}));
  EXPECT_EQ(inputs[1].shape, Shape{0});
}

TEST(Expected, DifferenceNamesTheFirstElement) {
  ExpectedArray want{DType::float32, {2}, false, {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}};
  EXPECT_FALSE(difference(array<float>({1, 2}), want));
  EXPECT_FALSE(difference(array<float>({1, 2.00001f}), want));
  EXPECT_TRUE(difference(array<float>({1, 2.00001f}), want, Tolerance::ulp(4)));
  EXPECT_FALSE(difference(array<float>({1, std::nextafter(2.0f, 3.0f)}), want, Tolerance::ulp(1)));
  EXPECT_NE(difference(array<float>({1, 3}), want)->find("flat index 1"), std::string::npos);
  EXPECT_TRUE(difference(array<float>({1, 2, 3}), want));
}

}  // namespace
}  // namespace capibara::oracle
