// Tokenizers, token files, and batches determined by their number.
#include <capibara/training/data.h>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace capibara::training {
namespace {

namespace fs = std::filesystem;

class DataTest : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / (std::string("capibara_") + info->test_suite_name() + "_" + info->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

std::string every_byte() {
  std::string text;
  for (int byte = 0; byte < 256; ++byte) text += static_cast<char>(byte);
  return text;
}

const std::string sentence = "the heron and the hen and the other heron ate the other hen's bread. ";

using TokenizerTest = DataTest;
using LoaderTest = DataTest;

TEST_F(TokenizerTest, RoundTripsEveryByteAndMixedText) {
  std::string training;
  for (int i = 0; i < 20; ++i) training += sentence;
  const Tokenizer tokenizer = Tokenizer::train(training, 300);
  EXPECT_GT(tokenizer.vocabulary(), 256);
  for (const std::string& text :
       {every_byte(), training, std::string(), std::string("na\xc3\xafve \xe2\x82\xac 12 345\t\r\n\n  x")}) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
  EXPECT_LT(tokenizer.encode(training).size(), training.size() / 2);
}

// The definition: all pairs within words are recounted before each merge.
Tokenizer::Merges merges_by_definition(const std::string& text, std::size_t count) {
  std::vector<std::vector<int32_t>> words;
  for (std::string_view word : split_words(text)) {
    words.emplace_back();
    for (char c : word) words.back().push_back(static_cast<unsigned char>(c));
  }
  Tokenizer::Merges merges;
  while (merges.size() < count) {
    std::map<std::pair<int32_t, int32_t>, int64_t> counts;
    for (const auto& word : words) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
    }
    std::pair<int32_t, int32_t> best;
    int64_t most = 1;
    for (const auto& [pair, times] : counts) {
      if (times > most) best = pair, most = times;  // a map's order: ties to the lower tokens
    }
    if (most < 2) break;
    const auto token = static_cast<int32_t>(256 + merges.size());
    merges.push_back(best);
    for (auto& word : words) {
      std::vector<int32_t> next;
      for (std::size_t i = 0; i < word.size(); ++i) {
        const bool pair = i + 1 < word.size() && word[i] == best.first && word[i + 1] == best.second;
        next.push_back(pair ? token : word[i]);
        i += pair;
      }
      word = std::move(next);
    }
  }
  return merges;
}

TEST_F(TokenizerTest, MergesAreThoseOfCountingAllPairsAnew) {
  std::string training;
  for (int i = 0; i < 5; ++i) training += sentence + std::to_string(i * i) + "\n";
  EXPECT_EQ(Tokenizer::train(training, 290).merges(), merges_by_definition(training, 34));
}

TEST_F(TokenizerTest, AFileHoldsAllOfIt) {
  const Tokenizer tokenizer = Tokenizer::train(sentence + sentence, 280);
  tokenizer.save(path("tokenizer.txt"));
  EXPECT_EQ(Tokenizer::load(path("tokenizer.txt")).merges(), tokenizer.merges());
}

TEST_F(TokenizerTest, RefusesWhatItCannotRead) {
  const std::vector<int32_t> unknown = {5, 999};
  EXPECT_THROW(Tokenizer().decode(unknown), ValueError);
  EXPECT_THROW(Tokenizer(Tokenizer::Merges{{300, 1}}), ValueError);
  EXPECT_THROW(Tokenizer::load(path("missing.txt")), std::exception);
  EXPECT_THROW(Tokenizer::load(write("bad.txt", "not a tokenizer\n")), ValueError);
  // Forty lines, each twice as long as the previous one: a terabyte of text.
  std::string doubling = "capibara tokenizer 1\n97 97\n";
  for (int i = 0; i < 39; ++i) doubling += concat(256 + i, " ", 256 + i, "\n");
  EXPECT_THROW(Tokenizer::load(write("doubling.txt", doubling)), ValueError);
}

TEST_F(TokenizerTest, WhatIsTrainedCanBeLoaded) {
  const std::string line = std::string(300'000, 'a') + "\n";  // its tokens would exceed the maximum length in a file
  const Tokenizer tokenizer = Tokenizer::train(line + line, 400);
  tokenizer.save(path("long.txt"));
  EXPECT_EQ(Tokenizer::load(path("long.txt")).merges(), tokenizer.merges());
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(line)), line);
}

TEST_F(LoaderTest, AStartInTheMiddleGivesTheSameBatches) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += sentence;
  const int width = write_tokens({write("text.txt", text)}, Tokenizer(), path("tokens.bin"));
  const TokenFile tokens(path("tokens.bin"), width);
  ASSERT_EQ(tokens.size(), static_cast<int64_t>(text.size()));
  const LoaderOptions options = {.batch = 3, .length = 16, .seed = 7};
  Loader whole(tokens, options);
  std::vector<std::vector<int32_t>> batches;
  for (int i = 0; i < 60; ++i) batches.push_back(whole.next().to_vector<int32_t>());  // more than one epoch
  for (int64_t start : {1, 17, 59}) {
    Loader resumed(tokens, options, start);
    EXPECT_EQ(resumed.next().to_vector<int32_t>(), batches[static_cast<std::size_t>(start)]) << start;
    EXPECT_EQ(resumed.position(), start + 1);
  }
  EXPECT_EQ(whole.batch(23).to_vector<int32_t>(), batches[23]);
}

TEST_F(LoaderTest, APassReadsEveryWindowOnceAndNothingElse) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i);
  const int width = write_tokens({write("text.bin", text)}, Tokenizer(), path("tokens.bin"));
  const LoaderOptions options = {.batch = 1, .length = 10, .first = 20, .last = 120, .seed = 3};
  Loader loader(TokenFile(path("tokens.bin"), width), options);
  std::set<int32_t> starts;
  for (int64_t i = 0; i < loader.windows(); ++i) {
    const std::vector<int32_t> row = loader.next().to_vector<int32_t>();
    ASSERT_EQ(row.size(), 11u);
    for (std::size_t k = 0; k < row.size(); ++k) EXPECT_EQ(row[k], row[0] + static_cast<int32_t>(k));
    EXPECT_GE(row.front(), 20);
    EXPECT_LT(row.back(), 120);
    starts.insert(row[0]);
  }
  EXPECT_EQ(static_cast<int64_t>(starts.size()), loader.windows());
}

TEST_F(LoaderTest, TextThatIsTooShortIsRefused) {
  const int width = write_tokens({write("short.txt", "abc")}, Tokenizer(), path("tokens.bin"));
  EXPECT_THROW(Loader(TokenFile(path("tokens.bin"), width), {.batch = 1, .length = 16}), ValueError);
}

TEST(Bigram, OfTwoLettersIsCountedByHand) {
  // After 'a' came b, b; after 'b' came a: one added to each of 256 counts.
  const double bits = bigram_bits_per_byte("abab", "ab");
  EXPECT_NEAR(bits, -std::log2(3.0 / 258), 1e-12);
}

}  // namespace
}  // namespace capibara::training
