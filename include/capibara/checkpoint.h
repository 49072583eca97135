// Checkpoints: trees of arrays saved step by step in a folder, so that a process killed at any moment finds its newest
// step whole.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <capibara/error.h>
#include <capibara/tree.h>

namespace capibara {

// A checkpoint that cannot be written or read: no such step, a full disk, a folder that may not be written.
class CheckpointError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

// Files that do not hold what was saved; names the array, the file and the chunk.
class CorruptCheckpointError : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

// A tree of arrays taken apart.
struct CheckpointTree {
  TreeDef structure;
  Arrays leaves;
};

// The trees of one step by name: {"params", ...}, {"opt_state", ...}.
using CheckpointItems = std::map<std::string, CheckpointTree>;

// Takes a tree apart, to be saved or to say what a restored one is like.
template <class T>
CheckpointTree checkpoint_tree(const T& tree) {
  auto [leaves, structure] = jax::tree::flatten(tree);
  return {std::move(structure), std::move(leaves)};
}

// Puts a tree of a restored step together again; its structure is that of T.
template <class T>
T checkpoint_value(const CheckpointTree& tree) {
  return jax::tree::unflatten<T>(tree.structure, tree.leaves);
}

// How steps are saved.
struct CheckpointOptions {
  int64_t max_to_keep = 0;        // how many of the newest steps stay; 0: all
  bool async = false;             // save returns at once; a thread of low priority writes
  bool link_unchanged = true;     // arrays that the step before holds too are hard links to its files
  int64_t chunk_bytes = 4 << 20;  // of the parts of an array that have a checksum each; at most
};

// What a restore does where files are damaged: raise, or take the newest older step that is whole, with a warning.
enum class OnCorruption { error, previous };

// What is restored, and as what.
struct RestoreOptions {
  std::optional<int64_t> step;  // the newest where none is given
  CheckpointItems like;  // structure, shapes and dtypes to expect; items that are not here come as they were saved
  std::vector<std::string> only;  // items and arrays to read ("params", "params.layer.w"); all where empty
  OnCorruption on_corruption = OnCorruption::error;
};

// One step as it was saved. Records come back as dictionaries of their fields where `like` does not say otherwise.
struct Checkpoint {
  int64_t step = 0;
  CheckpointItems items;
  std::string metadata;  // JSON
};

// What a step holds, read without its elements.
struct CheckpointArrayInfo {
  std::string name;  // "params.layer.w"
  ArrayType type;
  int64_t bytes = 0;
  int64_t chunks = 0;
};

// A box of an array of a step.
struct CheckpointPart {
  std::string array;  // "params.layer.w"
  Shape start, size;
};

// Reads the folder of one step, of capibara or of Orbax (zarr or OCDBT); `only` as in RestoreOptions.
Checkpoint read_checkpoint(const std::string& folder, const std::vector<std::string>& only = {});

// Saves steps into a folder, one subfolder each, in the layout of Orbax over zarr v3. A step appears under its number
// when all of it has reached the disk, or not at all. The folder may be in an object store: gs://BUCKET/FOLDER.
class Checkpointer {
 public:
  // Makes the folder where it does not exist.
  explicit Checkpointer(std::string folder, CheckpointOptions options = {});
  // Waits for the save on its way; its error is lost, so call wait before.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // Saves the trees and a JSON object under a step that the folder does not hold yet. It holds the arrays' memory until
  // it is written and copies nothing that the host can read; an asynchronous one waits for the save before it, and
  // raises its error.
  void save(int64_t step, CheckpointItems items, const std::string& metadata = "{}");
  // Returns when everything is saved, and raises the error of an asynchronous save once.
  void wait();
  // Whether a save is on its way.
  bool saving() const;

  // The steps that are saved whole, in ascending order.
  std::vector<int64_t> steps() const;
  // The newest of them.
  std::optional<int64_t> latest_step() const;
  // Reads a step, checking every checksum; waits for saves on their way.
  Checkpoint restore(const RestoreOptions& options = {}) const;
  // Reads one item of a step into a tree like the given one.
  template <class T>
  T restore(const std::string& item, const T& like, std::optional<int64_t> step = std::nullopt) const {
    RestoreOptions options;
    options.step = step;
    options.like[item] = checkpoint_tree(like);
    options.only = {item};
    return checkpoint_value<T>(restore(options).items.at(item));
  }
  // Reads boxes of arrays of a step that capibara saved: only the chunks that they touch, each with its checksum.
  Arrays read_parts(int64_t step, const std::vector<CheckpointPart>& parts) const;
  // What the arrays of a step are called, and their types.
  std::vector<CheckpointArrayInfo> arrays(int64_t step) const;
  // Removes a step.
  void remove(int64_t step);

  const std::string& folder() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace capibara
