// A training run that only saves: `train FOLDER KEEP sync|async` continues from the newest step forever, `check FOLDER`
// restores every step; `save FOLDER STEP` saves one step, `large FOLDER STEP MIB` one with an array of that size, and
// `sum FOLDER STEP` prints the sum of its words.
#include <capibara/checkpoint.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

using namespace capibara;
using Params = std::map<std::string, Array>;

namespace {

// The contents of a step: one array that never changes, two that depend on the step number.
Params params_of(int64_t step) {
  std::vector<float> moving(50'000), frozen(20'000);
  for (std::size_t i = 0; i < moving.size(); ++i) moving[i] = static_cast<float>(i) * 0.5F + static_cast<float>(step);
  for (std::size_t i = 0; i < frozen.size(); ++i) frozen[i] = static_cast<float>(i);
  return {{"frozen", array<float>(frozen)},
          {"moving", array<float>(moving)},
          {"step", array<int>({static_cast<int>(step)})}};
}

int train(const std::string& folder, int64_t keep, bool async) {
  Checkpointer saver(folder, {.max_to_keep = keep, .async = async, .chunk_bytes = 64 << 10});
  for (int64_t step = saver.latest_step().value_or(0) + 1;; ++step) {
    saver.save(step, {{"params", checkpoint_tree(params_of(step))}}, concat("{\"step\": ", step, "}"));
    // After an asynchronous save only the previous step is known to be committed.
    std::printf("%lld\n", static_cast<long long>(async ? step - 1 : step));
    std::fflush(stdout);
  }
}

int check(const std::string& folder) {
  const Checkpointer saver(folder);
  for (const int64_t step : saver.steps()) {
    const Params expected = params_of(step);
    RestoreOptions options;
    options.step = step;
    options.like["params"] = checkpoint_tree(expected);
    const Checkpoint back = saver.restore(options);
    std::size_t i = 0;
    for (const auto& [name, value] : expected) {
      const auto bytes = static_cast<std::size_t>(value.size() * storage_size(value.dtype()));
      if (std::memcmp(back.items.at("params").leaves[i++].raw_data(), value.raw_data(), bytes) != 0) {
        std::printf("step %lld: %s differs\n", static_cast<long long>(step), name.c_str());
        return 1;
      }
    }
  }
  std::printf("%lld\n", static_cast<long long>(saver.latest_step().value_or(0)));
  return 0;
}

std::vector<int> words_of(int64_t mebibytes) {
  std::vector<int> words(static_cast<std::size_t>(mebibytes) << 18);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<int>(i * 2654435761U);
  return words;
}

int save(const std::string& folder, int64_t step, const Params& params) {
  Checkpointer saver(folder, {.chunk_bytes = 1 << 20});
  saver.save(step, {{"params", checkpoint_tree(params)}});
  std::printf("saved %lld\n", static_cast<long long>(step));
  return 0;
}

int sum(const std::string& folder, int64_t step) {
  RestoreOptions options;
  options.step = step;
  const Checkpoint checkpoint = Checkpointer(folder).restore(options);
  unsigned total = 0;
  for (const int word : checkpoint.items.at("params").leaves[0].to_vector<int>()) total += static_cast<unsigned>(word);
  std::printf("%u\n", total);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    const std::string verb = count > 2 ? words[1] : "";
    if (verb == "train" && count == 5)
      return train(words[2], std::stoll(words[3]), std::strcmp(words[4], "async") == 0);
    if (verb == "check") return check(words[2]);
    if (verb == "save" && count == 4) return save(words[2], std::stoll(words[3]), params_of(std::stoll(words[3])));
    if (verb == "large" && count == 5)
      return save(words[2], std::stoll(words[3]), {{"w", array<int>(words_of(std::stoll(words[4])))}});
    if (verb == "sum" && count == 4) return sum(words[2], std::stoll(words[3]));
    std::fprintf(stderr,
                 "expected train FOLDER KEEP sync|async, check FOLDER, save FOLDER STEP, large FOLDER STEP MIB or sum "
                 "FOLDER STEP\n");
    return 2;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
