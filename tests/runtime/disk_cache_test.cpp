// The disk cache: what was stored is found by other processes, damaged files are absent, the folder stays bounded.
#include "runtime/disk_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include <unistd.h>

namespace capibara {
namespace {

namespace fs = std::filesystem;

class DiskCacheTest : public testing::Test {
 protected:
  DiskCacheTest() : folder_(fs::temp_directory_path() / ("capibara_cache_" + std::to_string(getpid()))) { fs::remove_all(folder_); }
  ~DiskCacheTest() override { fs::remove_all(folder_); }

  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) sum += entry.file_size();
    return sum;
  }

  fs::path folder_;
};

TEST_F(DiskCacheTest, FindsWhatAnotherInstanceStored) {
  DiskCache(folder_, 1 << 20).store(digest("key"), "content");
  EXPECT_EQ(DiskCache(folder_, 1 << 20).find(digest("key")), "content");
  EXPECT_EQ(DiskCache(folder_, 1 << 20).find(digest("other key")), std::nullopt);
}

TEST_F(DiskCacheTest, TakesADamagedFileForAbsentAndRemovesIt) {
  DiskCache cache(folder_, 1 << 20);
  const std::string content(1000, 'x');
  const fs::path file = folder_ / digest("key").hex();
  for (int64_t damaged : {0, 9, 20, 500, -1}) {
    cache.store(digest("key"), content);
    if (damaged < 0) {
      fs::resize_file(file, 600);
    } else {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekp(damaged);
      stream.put('?');
    }
    EXPECT_EQ(cache.find(digest("key")), std::nullopt) << "damaged at " << damaged;
    EXPECT_FALSE(fs::exists(file));
  }
}

TEST_F(DiskCacheTest, DropsTheOldestFilesAboveItsLimit) {
  DiskCache cache(folder_, 64 * 1024);
  for (int i = 0; i < 200; ++i) cache.store(digest("key " + std::to_string(i)), std::string(1000, 'x'));
  EXPECT_LE(bytes(), 64 * 1024 + 8 * 1024);
  EXPECT_EQ(cache.find(digest("key 0")), std::nullopt);
  EXPECT_TRUE(cache.find(digest("key 199")).has_value());
}

TEST_F(DiskCacheTest, ServesManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this] {
      DiskCache cache(folder_, 1 << 20);
      for (int i = 0; i < 50; ++i) {
        const std::string key = std::to_string(i % 10);
        if (std::optional<std::string> found = cache.find(digest(key))) EXPECT_EQ(*found, "content of " + key);
        cache.store(digest(key), "content of " + key);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(DiskCacheTest, IsSilentWithoutAFolder) {
  DiskCache nowhere("", 1 << 20), forbidden("/proc/capibara", 1 << 20);
  for (DiskCache* cache : {&nowhere, &forbidden}) {
    cache->store(digest("key"), "content");
    EXPECT_EQ(cache->find(digest("key")), std::nullopt);
  }
}

TEST(Digest, TellsTextsApart) {
  EXPECT_EQ(digest("a"), digest("a"));
  EXPECT_NE(digest("a"), digest("b"));
  EXPECT_NE(digest(""), digest(std::string(1, '\0')));
  EXPECT_NE(digest("12345678"), digest(std::string("12345678\0", 9)));
  EXPECT_EQ(digest("a").hex().size(), 32u);
}

}  // namespace
}  // namespace capibara
