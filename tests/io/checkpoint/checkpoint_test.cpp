// Checkpoints on disk: saved arrays are restored bit by bit, and damage is detected.
#include <gtest/gtest.h>

#include <capibara/checkpoint.h>

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

#include "core/runtime/background.h"
#include "core/runtime/counters.h"
#include "io/checkpoint/step.h"

namespace capibara {
namespace {

namespace files = std::filesystem;

class CheckpointFolder : public testing::Test {
 protected:
  CheckpointFolder() {
    std::string pattern = testing::TempDir() + "capibara_checkpoint_XXXXXX";
    folder = ::mkdtemp(pattern.data());
  }
  ~CheckpointFolder() override { files::remove_all(folder); }

  std::string folder;
};
using Checkpoints = CheckpointFolder;

using Params = std::map<std::string, Array>;

Array counted(DType dtype, Shape shape, int seed = 0) {
  ArrayType type;
  type.dtype = dtype;
  type.shape = shape;
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(element_count(shape) * storage_size(dtype)));
  std::byte* bytes = buffer.mutable_data();
  const int mask = is_bool(dtype) ? 1 : is_sub_byte(dtype) ? (1 << (bits(dtype) - 1)) - 1 : 0x3F;
  for (std::size_t i = 0; i < buffer.size(); ++i)
    bytes[i] =
        static_cast<std::byte>((i * 7 + i / 251 + static_cast<std::size_t>(seed)) & static_cast<std::size_t>(mask));
  return Array::from_buffer(type, std::move(buffer));
}

void expect_same(const Array& got, const Array& expected) {
  ASSERT_EQ(to_string(got.type()), to_string(expected.type()));
  EXPECT_EQ(got.weak_type(), expected.weak_type());
  const auto bytes = static_cast<std::size_t>(expected.size() * storage_size(expected.dtype()));
  EXPECT_TRUE(bytes == 0 || std::memcmp(got.raw_data(), expected.raw_data(), bytes) == 0);
}

TEST_F(Checkpoints, RestoreEveryDtypeAndShape) {
  std::vector<Array> arrays;
  for (const DTypeRow& row : dtype_table) {
    if (row.dtype == DType::float0 || row.dtype == DType::token) continue;
    for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{7}, Shape{5, 3, 11}})
      arrays.push_back(counted(row.dtype, shape, static_cast<int>(arrays.size())));
  }
  arrays.push_back(Array(2.5));  // weakly typed
  for (const int64_t chunk_bytes : {64, 1 << 20}) {
    Checkpointer saver(folder, {.chunk_bytes = chunk_bytes});
    saver.save(chunk_bytes, {{"all", checkpoint_tree(arrays)}});
    const std::vector<Array> back = saver.restore("all", arrays, chunk_bytes);
    ASSERT_EQ(back.size(), arrays.size());
    for (std::size_t i = 0; i < arrays.size(); ++i) expect_same(back[i], arrays[i]);
  }
}

TEST_F(Checkpoints, RestoreLargeArraysBesideManySmallOnes) {
  std::vector<Array> arrays{counted(DType::float32, {1 << 24}, 1)};  // read by all threads, chunk by chunk
  for (int i = 0; i < 40; ++i) arrays.push_back(counted(DType::int16, {i * 1000, 3}, i));
  arrays.push_back(counted(DType::uint8, {(1 << 26) + 5}, 2));
  Checkpointer saver(folder, {.chunk_bytes = 1 << 22});
  saver.save(1, {{"all", checkpoint_tree(arrays)}});
  saver.wait();
  const std::vector<Array> back = saver.restore("all", arrays, 1);
  for (std::size_t i = 0; i < arrays.size(); ++i) expect_same(back[i], arrays[i]);
  const Checkpoint whole = saver.restore({.step = 1});
  ASSERT_EQ(whole.items.at("all").leaves.size(), arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) expect_same(whole.items.at("all").leaves[i], arrays[i]);
}

// The number of threads of this process with idle scheduling priority.
int idle_threads() {
  int found = 0;
  for (const auto& entry : files::directory_iterator("/proc/self/task"))
    found += ::sched_getscheduler(static_cast<pid_t>(std::stol(entry.path().filename()))) == SCHED_IDLE;
  return found;
}

// True if the condition holds at `times` consecutive checks, within half a minute.
bool comes_to_hold(int times, const std::function<bool()>& holds) {
  for (int i = 0, row = 0; i < 30'000; ++i) {
    row = holds() ? row + 1 : 0;
    if (row == times) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

TEST_F(Checkpoints, AreWrittenWithMorePriorityOnceTheyTakeLong) {
  for (const bool patient : {true, false}) {
    set_checkpoint_patience(std::chrono::milliseconds(patient ? 600'000 : 10));
    std::atomic<bool> filled{false};
    const auto completion = std::make_shared<Completion>("slow");
    const Buffer buffer = Buffer::pending(64, completion);  // its save takes until this is filled
    auto* const memory = const_cast<std::byte*>(buffer.address());
    run_in_background(completion, [&filled, memory](const std::atomic<int32_t>&) {
      while (!filled) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::memset(memory, 7, 64);
    });
    ArrayType type;
    type.dtype = DType::uint8;
    type.shape = {64};
    const std::vector<Array> arrays{Array::from_buffer(type, buffer)};
    Checkpointer saver(folder + (patient ? "/a" : "/b"), {.async = true});
    saver.save(1, {{"all", checkpoint_tree(arrays)}});
    if (patient)
      EXPECT_TRUE(comes_to_hold(1, [] { return idle_threads() == 1; }));
    else
      EXPECT_TRUE(comes_to_hold(300, [] { return idle_threads() == 0; }));
    filled = true;
    saver.wait();
    expect_same(saver.restore("all", arrays, 1)[0], arrays[0]);
  }
  set_checkpoint_patience(std::chrono::seconds(10));
}

// A box of an array, copied element by element.
Array box_of(const Array& whole, const Shape& start, const Shape& size) {
  ArrayType type = whole.type();
  type.shape = size;
  const auto width = static_cast<std::size_t>(storage_size(type.dtype));
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(element_count(size)) * width);
  Shape at(size.size(), 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(element_count(size)); ++i) {
    auto rest = static_cast<int64_t>(i);
    for (std::size_t d = size.size(); d-- > 0; rest /= size[d]) at[d] = rest % size[d];
    int64_t from = 0;
    for (std::size_t d = 0; d < size.size(); ++d) from = from * whole.shape()[d] + start[d] + at[d];
    std::memcpy(buffer.mutable_data() + i * width, whole.raw_data() + static_cast<std::size_t>(from) * width, width);
  }
  return Array::from_buffer(type, std::move(buffer));
}

TEST_F(Checkpoints, PartsOfArraysAreReadFromTheirChunks) {
  const Params params{{"cube", counted(DType::float32, {12, 10, 9}, 3)},
                      {"long", counted(DType::int8, {1 << 20}, 5)},
                      {"flat", counted(DType::bfloat16, {64, 33}, 7)}};
  Checkpointer saver(folder, {.chunk_bytes = 400});
  saver.save(1, {{"p", checkpoint_tree(params)}});
  uint32_t seed = 1;
  auto draw = [&](int64_t below) { return (seed = seed * 1103515245 + 12345, (seed >> 8 & 0xFFFF) % below); };
  for (int i = 0; i < 40; ++i) {
    for (const auto& [name, whole] : params) {
      Shape start, size;
      for (const int64_t extent : whole.shape()) {
        start.push_back(draw(std::min<int64_t>(extent, 60'000)));
        size.push_back(draw(std::min<int64_t>(extent - start.back(), 3000) + 1));
      }
      expect_same(saver.read_parts(1, {{"p." + name, start, size}}).at(0), box_of(whole, start, size));
    }
  }
  Checkpointer coarse(folder, {.chunk_bytes = 64 << 10});
  coarse.save(2, {{"p", checkpoint_tree(params)}});
  auto bytes_of = [&](const CheckpointPart& part) {
    const uint64_t before = process_counters.checkpoint_read_bytes;
    coarse.read_parts(2, {part});
    return process_counters.checkpoint_read_bytes - before;
  };
  const uint64_t nothing = bytes_of({"p.long", {0}, {0}});  // the manifest, the description, the index
  EXPECT_EQ(bytes_of({"p.long", {200'000}, {100}}) - nothing, (64 << 10) + 4U + 16U * 16U + 4U);
  EXPECT_EQ(bytes_of({"p.long", {0}, {1 << 20}}) - nothing, (1U << 20) + 16U * 4U + 16U * 16U + 4U);
  EXPECT_THROW(coarse.read_parts(2, {{"p.long", {1 << 20}, {1}}}), ValueError);
  EXPECT_THROW(coarse.read_parts(2, {{"p.long", {0, 0}, {1, 1}}}), ValueError);
  EXPECT_THROW(coarse.read_parts(2, {{"p.other", {0}, {1}}}), ValueError);
  EXPECT_THROW(coarse.read_parts(3, {{"p.long", {0}, {1}}}), CheckpointError);
}

TEST_F(Checkpoints, KeepTheNewestSteps) {
  Checkpointer saver(folder, {.max_to_keep = 2, .async = true});
  for (const int step : {1, 5, 9, 12})
    saver.save(step, {{"p", checkpoint_tree(Params{{"w", Array(step)}})}}, R"({"loss": 0.5})");
  saver.wait();
  EXPECT_EQ(saver.steps(), (std::vector<int64_t>{9, 12}));
  const Checkpoint back = saver.restore();
  EXPECT_EQ(back.step, 12);
  EXPECT_EQ(back.metadata, R"({"loss": 0.5})");
  EXPECT_EQ(back.items.at("p").leaves[0].item<int>(), 12);
  EXPECT_EQ(back.items.at("p").structure.to_string(), "PyTreeDef({'w': *})");
}

TEST_F(Checkpoints, KeepFoldersWithANumberForANameThatTheyHaveNotWritten) {
  const std::filesystem::path photos = std::filesystem::path(folder) / "2";
  std::filesystem::create_directories(photos);
  std::ofstream(photos / "photo.jpg") << "mine";
  Checkpointer saver(folder, {.max_to_keep = 1});
  for (const int step : {1, 5, 9}) saver.save(step, {{"p", checkpoint_tree(Params{{"w", Array(step)}})}});
  EXPECT_TRUE(std::filesystem::exists(photos / "photo.jpg"));
  EXPECT_EQ(saver.steps(), (std::vector<int64_t>{2, 9}));
}

TEST_F(Checkpoints, HoldMemoryThatIsDeletedMeanwhile) {
  Checkpointer saver(folder, {.async = true});
  const Array original = counted(DType::float32, {1000, 1000}), kept = counted(DType::float32, {1000, 1000});
  saver.save(1, {{"p", checkpoint_tree(Params{{"w", original}})}});
  EXPECT_FALSE(original.buffer().take().defined());  // its memory must not be reused
  original.delete_buffers();
  saver.wait();
  expect_same(saver.restore().items.at("p").leaves[0], kept);
}

TEST_F(Checkpoints, LinkArraysThatDidNotChange) {
  Checkpointer saver(folder);
  const Array frozen = counted(DType::float32, {1000});
  for (const int step : {1, 2, 3})
    saver.save(step, {{"p", checkpoint_tree(Params{{"frozen", frozen}, {"w", Array(step)}})}});
  EXPECT_EQ(files::hard_link_count(folder + "/3/p/frozen/c.0"), 3U);
  EXPECT_EQ(files::hard_link_count(folder + "/3/p/w/c"), 1U);
  saver.remove(1);
  saver.remove(2);
  expect_same(saver.restore().items.at("p").leaves[0], frozen);
}

TEST_F(Checkpoints, RestoreWhatOnlyNames) {
  Checkpointer saver(folder);
  std::map<std::string, Params> layers = {{"a", {{"w", Array(1)}, {"b", Array(2)}}}, {"c", {{"w", Array(3)}}}};
  saver.save(1, {{"params", checkpoint_tree(layers)}, {"opt", checkpoint_tree(Params{{"m", Array(4)}})}});
  RestoreOptions options;
  options.only = {"params.a.w", "opt"};
  const Checkpoint back = saver.restore(options);
  EXPECT_EQ(back.items.at("params").structure.to_string(), "PyTreeDef({'a': {'w': *}})");
  EXPECT_EQ(back.items.at("opt").leaves.size(), 1U);
  options.only = {"params.a.v"};
  EXPECT_THROW(saver.restore(options), ValueError);
}

TEST_F(Checkpoints, RefuseATreeUnlikeTheSavedOne) {
  Checkpointer saver(folder);
  saver.save(1, {{"p", checkpoint_tree(Params{{"w", counted(DType::float32, {2, 3})}})}});
  auto message = [&](const Params& like) {
    try {
      saver.restore("p", like);
    } catch (const ValueError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message({{"w", counted(DType::float32, {3, 2})}}),
            "checkpoint restore: array p['w']: expected float32[3,2] (argument 'like'), got float32[2,3]");
  EXPECT_NE(message({{"v", Array(1)}}).find("holds no array p['v']"), std::string::npos);
  EXPECT_NE(message({}).find("holds an array 'p.w' that 'like' does not have"), std::string::npos);
}

TEST_F(Checkpoints, RefuseWhatCannotBeSaved) {
  Checkpointer saver(folder);
  const CheckpointTree one = checkpoint_tree(Params{{"w", Array(1)}});
  EXPECT_THROW(saver.save(-1, {{"p", one}}), ValueError);
  EXPECT_THROW(saver.save(1, {}), ValueError);
  EXPECT_THROW(saver.save(1, {{"../p", one}}), ValueError);
  EXPECT_THROW(saver.save(1, {{"p", one}}, "[1]"), ValueError);
  EXPECT_THROW(saver.save(1, {{"p", checkpoint_tree(Params{{"../../w", Array(1)}})}}), ValueError);
  EXPECT_THROW(saver.save(1, {{"p", checkpoint_tree(Params{{"w", Array()}})}}), TypeError);
  EXPECT_TRUE(saver.steps().empty());
  saver.save(1, {{"p", one}});
  EXPECT_THROW(saver.save(1, {{"p", one}}), ValueError);
  EXPECT_THROW(Checkpointer("s3://bucket/run"), ValueError);
  EXPECT_THROW(Checkpointer("gs:/bucket/run"), ValueError);  // a path that has lost a slash
  EXPECT_THROW(saver.restore({.step = 7}), CheckpointError);
}

// Damages every file of a step; the step before stays intact.
class DamagedCheckpoints : public CheckpointFolder {
 protected:
  DamagedCheckpoints() : saver(folder, {.link_unchanged = false, .chunk_bytes = 256}) {
    for (const int step : {1, 2}) {
      const Params params{{"v", counted(DType::float32, {16, 8}, step)},
                          {"w", counted(DType::float32, {16, 8}, step + 2)},
                          {"n", Array(step)}};
      saver.save(step, {{"p", checkpoint_tree(params)}});
    }
  }
  std::vector<std::string> step_files() const {
    std::vector<std::string> found;
    for (const auto& entry : files::recursive_directory_iterator(folder + "/2")) {
      if (entry.is_regular_file()) found.push_back(entry.path());
    }
    return found;
  }
  std::string message() const {
    try {
      saver.restore();
    } catch (const CorruptCheckpointError& error) {
      RestoreOptions previous;
      previous.on_corruption = OnCorruption::previous;
      testing::internal::CaptureStderr();
      EXPECT_EQ(saver.restore(previous).step, 1);
      EXPECT_NE(testing::internal::GetCapturedStderr().find("step 2 is damaged, taking step 1"), std::string::npos);
      return error.what();
    }
    return "no error";
  }

  Checkpointer saver;
};

std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
void set_file(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

TEST_F(DamagedCheckpoints, AreFoundAfterAnyFlippedBit) {
  unsigned random = 1;
  for (const std::string& path : step_files()) {
    const std::string bytes = file_bytes(path);
    for (int i = 0; i < 40; ++i) {
      random = random * 1664525 + 1013904223;
      std::string flipped = bytes;
      flipped[random / 8 % bytes.size()] ^= static_cast<char>(1 << (random >> 28) % 8);
      set_file(path, flipped);
      const std::string text = message();
      const std::string name = path.find("/p/v/") != std::string::npos   ? "array p.v"
                               : path.find("/p/w/") != std::string::npos ? "array p.w"
                                                                         : "/2/";
      EXPECT_NE(text.find(name), std::string::npos) << path << ": " << text;
      EXPECT_NE(text.find(path), std::string::npos) << path << ": " << text;
      EXPECT_TRUE(!path.ends_with("c.0.0") || text.find("chunk ") != std::string::npos) << text;
    }
    set_file(path, bytes);
  }
  EXPECT_EQ(saver.restore().step, 2);
}

TEST_F(DamagedCheckpoints, AreFoundWhereFilesAreShorterLongerOrMissing) {
  for (const std::string& path : step_files()) {
    const std::string bytes = file_bytes(path);
    for (const std::string& other :
         {bytes.substr(0, bytes.size() / 2), bytes.substr(0, bytes.size() - 1), bytes + "x", std::string()}) {
      set_file(path, other);
      EXPECT_NE(message(), "no error") << path;
    }
    files::remove(path);
    EXPECT_NE(message().find("missing"), std::string::npos) << path;
    set_file(path, bytes);
  }
}

TEST_F(DamagedCheckpoints, AreFoundWhereFilesAreSwapped) {
  const std::string v = folder + "/2/p/v/c.0.0", w = folder + "/2/p/w/c.0.0";
  files::rename(v, folder + "/held");
  files::rename(w, v);
  files::rename(folder + "/held", w);
  const std::string found = message();  // several threads read arrays, so either error may be first
  const bool names_v = found.find("array p.v, file " + v + ", chunk 0 of") != std::string::npos;
  const bool names_w = found.find("array p.w, file " + w + ", chunk 0 of") != std::string::npos;
  EXPECT_TRUE(names_v || names_w) << found;
  // The files of another step of the same run.
  files::copy_file(folder + "/1/p/v/c.0.0", v, files::copy_options::overwrite_existing);
  files::copy_file(folder + "/1/p/w/c.0.0", w, files::copy_options::overwrite_existing);
  EXPECT_NE(message().find("array p.v"), std::string::npos);
}

}  // namespace
}  // namespace capibara
