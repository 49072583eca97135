// The disk cache: other processes find stored entries, damaged files count as absent, the folder stays bounded.
#include "core/runtime/disk_cache.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <capibara/error.h>

namespace capibara {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t limit = 1 << 20;

void write(const fs::path& file, const std::string& text) { std::ofstream(file, std::ios::binary) << text; }
std::string read(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The exit status of a child process: 0 if its work returned true.
int in_child(const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

class DiskCacheTest : public testing::Test {
 protected:
  DiskCacheTest() : folder_(fs::temp_directory_path() / ("capibara_cache_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
  }
  ~DiskCacheTest() override { fs::remove_all(folder_); }

  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) sum += entry.file_size();
    return sum;
  }
  fs::path file_of(const std::string& key) const { return folder_ / (digest(key).hex() + ".capibara"); }
  std::string refusal_of(const fs::path& folder) const { return DiskCache(folder, limit).refusal(); }

  fs::path folder_;
};

TEST_F(DiskCacheTest, FindsWhatAnotherInstanceStored) {
  DiskCache(folder_, limit).store(digest("key"), "content");
  EXPECT_EQ(DiskCache(folder_, limit).find(digest("key")), "content");
  EXPECT_EQ(DiskCache(folder_, limit).find(digest("other key")), std::nullopt);
}

TEST_F(DiskCacheTest, TakesADamagedFileForAbsentAndRemovesIt) {
  DiskCache cache(folder_, limit);
  const std::string content(1000, 'x');
  const fs::path file = file_of("key");
  for (int64_t damaged : {9, 20, 60, 500, -1, -2}) {
    cache.store(digest("key"), content);
    if (damaged == -1) {
      fs::resize_file(file, 600);
    } else if (damaged == -2) {
      write(file, std::string(600, '\0'));
    } else {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekp(damaged);
      stream.put('?');
    }
    EXPECT_EQ(cache.find(digest("key")), std::nullopt) << "damaged at " << damaged;
    EXPECT_FALSE(fs::exists(file)) << "damaged at " << damaged;
  }
}

TEST_F(DiskCacheTest, GivesNoEntryUnderAnothersKey) {
  DiskCache cache(folder_, limit);
  cache.store(digest("exp(x) + x"), "the code of a sum");
  cache.store(digest("exp(x) - x"), "the code of a difference");
  fs::copy_file(file_of("exp(x) - x"), file_of("exp(x) + x"), fs::copy_options::overwrite_existing);
  EXPECT_EQ(cache.find(digest("exp(x) + x")), std::nullopt);
  EXPECT_EQ(cache.find(digest("exp(x) - x")), "the code of a difference");
}

TEST_F(DiskCacheTest, DropsTheOldestFilesAboveItsLimit) {
  DiskCache cache(folder_, 64 * 1024);
  for (int i = 0; i < 200; ++i) cache.store(digest("key " + std::to_string(i)), std::string(1000, 'x'));
  EXPECT_LE(bytes(), 64 * 1024 + 8 * 1024);
  EXPECT_EQ(cache.find(digest("key 0")), std::nullopt);
  EXPECT_TRUE(cache.find(digest("key 199")).has_value());
}

TEST_F(DiskCacheTest, LeavesForeignFilesAlone) {
  fs::create_directory(folder_);
  chmod(folder_.c_str(), 0700);
  const std::string mine(60000, 'm');
  const fs::path plain = folder_ / "thesis.txt", hex = folder_ / digest("thesis").hex(), taken = file_of("taken");
  for (const fs::path& file : {plain, hex, taken}) {
    write(file, mine);
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(1000));
  }
  DiskCache cache(folder_, 64 * 1024);
  cache.store(digest("taken"), "content");
  EXPECT_EQ(cache.find(digest("taken")), std::nullopt);
  for (int i = 0; i < 100; ++i) cache.store(digest("key " + std::to_string(i)), std::string(2000, 'x'));
  for (const fs::path& file : {plain, hex, taken}) EXPECT_EQ(read(file), mine) << file;
}

TEST_F(DiskCacheTest, FollowsNoLinks) {
  DiskCache cache(folder_, limit);
  const fs::path outside = folder_.string() + "_outside";
  write(outside, cache_entry(digest("key"), "content"));
  fs::create_symlink(outside, file_of("key"));
  EXPECT_EQ(cache.find(digest("key")), std::nullopt);
  cache.store(digest("key"), "other");
  EXPECT_EQ(read(outside), cache_entry(digest("key"), "content"));
  fs::remove(outside);
}

TEST_F(DiskCacheTest, RefusesAFolderThatOthersMayReachOrALink) {
  EXPECT_EQ(refusal_of(folder_), "");
  struct stat status {};
  stat(folder_.c_str(), &status);
  EXPECT_EQ(status.st_mode & 0777, 0700u) << "the folder that the cache makes";
  for (const mode_t mode : {0777, 0770, 0702, 0755, 01777}) {
    chmod(folder_.c_str(), mode);
    EXPECT_NE(refusal_of(folder_).find("expected 0700"), std::string::npos) << mode;
    EXPECT_EQ(DiskCache(folder_, limit).folder(), "");
  }
  chmod(folder_.c_str(), 0700);
  const fs::path link = folder_.string() + "_link";
  fs::create_directory_symlink(folder_, link);
  EXPECT_NE(refusal_of(link).find("it is a link"), std::string::npos);
  EXPECT_NE(refusal_of(link / "").find("it is a link"), std::string::npos);
  fs::remove(link);
  write(link, "a file");
  EXPECT_NE(refusal_of(link), "");
  fs::remove(link);
}

TEST_F(DiskCacheTest, SharesNothingBetweenTwoUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
  constexpr uid_t nobody = 65534;
  const fs::path shared = folder_, theirs = folder_ / "theirs";
  fs::create_directory(shared);
  chmod(shared.c_str(), 0777);
  const fs::path ours = shared / "ours";
  DiskCache(ours, limit).store(digest("key"), "content");
  EXPECT_EQ(in_child([&] {
              if (setgid(nobody) != 0 || setuid(nobody) != 0) return false;
              DiskCache foreign(ours, limit);
              const bool refused =
                  foreign.folder().empty() && !foreign.refusal().empty() && !foreign.find(digest("key"));
              DiskCache own(theirs, limit);
              own.store(digest("key"), "planted");
              return refused && own.find(digest("key")) == "planted";
            }),
            0);
  EXPECT_NE(refusal_of(theirs).find("belongs to user 65534"), std::string::npos);
  EXPECT_EQ(DiskCache(theirs, limit).find(digest("key")), std::nullopt);
  // Another user's file in our folder, as left by someone who once had write access.
  fs::rename(theirs / file_of("key").filename(), ours / file_of("key").filename());
  EXPECT_EQ(DiskCache(ours, limit).find(digest("key")), std::nullopt);
}

TEST_F(DiskCacheTest, SurvivesAWriterThatIsKilled) {
  const std::string content(200000, 'x');
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      DiskCache cache(folder_, limit * 64);
      for (int i = 0;; ++i) cache.store(digest("key " + std::to_string(i % 3)), content);
    }
    usleep(static_cast<useconds_t>(1000 + 700 * round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    DiskCache cache(folder_, limit * 64);
    for (int i = 0; i < 3; ++i) {
      const std::optional<std::string> found = cache.find(digest("key " + std::to_string(i)));
      EXPECT_EQ(found.value_or(content), content);
    }
  }
  // Such a writer's leftovers are removed when they are old.
  const fs::path left = folder_ / (std::string(32, 'a') + ".capibara-part"),
                 young = folder_ / (std::string(32, 'b') + ".capibara-part");
  for (const fs::path& file : {left, young}) write(file, cache_entry(digest("key"), "content").substr(0, 50));
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(2));
  DiskCache(folder_, limit * 64).store(digest("key"), "content");
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(young));
}

// Entries that do not fit are skipped, leave nothing behind, and do not harm the others.
bool survives_a_full_disk(const fs::path& folder) {
  DiskCache cache(folder, limit * 64);
  cache.store(digest("small"), "content");
  cache.store(digest("large"), std::string(1 << 20, 'x'));
  const auto files = std::distance(fs::directory_iterator(folder), fs::directory_iterator());
  return cache.find(digest("small")) == "content" && !cache.find(digest("large")) && files == 1;
}

TEST_F(DiskCacheTest, SurvivesALimitOnTheSizeOfFiles) {
  EXPECT_EQ(in_child([&] {
              std::signal(SIGXFSZ, SIG_IGN);
              const rlimit size{100000, 100000};
              return setrlimit(RLIMIT_FSIZE, &size) == 0 && survives_a_full_disk(folder_);
            }),
            0);
}

TEST_F(DiskCacheTest, SurvivesAFullDisk) {
  fs::create_directory(folder_);
  if (mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=256k,mode=0700") != 0)
    GTEST_SKIP() << "a small disk cannot be mounted here";
  EXPECT_TRUE(survives_a_full_disk(folder_));
  umount(folder_.c_str());
}

TEST_F(DiskCacheTest, ServesManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this] {
      DiskCache cache(folder_, limit);
      for (int i = 0; i < 50; ++i) {
        const std::string key = std::to_string(i % 10);
        EXPECT_EQ(cache.find(digest(key)).value_or("content of " + key), "content of " + key);
        cache.store(digest(key), "content of " + key);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(DiskCacheTest, MovesToAnotherFolderAndIsOffWhereThatIsRefused) {
  DiskCache cache("", limit);
  cache.store(digest("key"), "content");
  EXPECT_EQ(cache.find(digest("key")), std::nullopt);
  cache.move_to(folder_, limit);
  EXPECT_EQ(cache.folder(), folder_.string());
  cache.store(digest("key"), "content");
  EXPECT_EQ(cache.find(digest("key")), "content");
  EXPECT_THROW(cache.move_to("/proc/capibara", limit), ValueError);
  EXPECT_EQ(cache.find(digest("key")), std::nullopt);
  cache.move_to("");
  EXPECT_EQ(cache.refusal(), "");
}

TEST_F(DiskCacheTest, IsSilentWithoutAFolder) {
  DiskCache nowhere("", limit), forbidden("/proc/capibara", limit);
  for (DiskCache* cache : {&nowhere, &forbidden}) {
    cache->store(digest("key"), "content");
    EXPECT_EQ(cache->find(digest("key")), std::nullopt);
  }
}

}  // namespace
}  // namespace capibara
