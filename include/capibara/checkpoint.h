// Checkpoints: trees of arrays saved step by step in a folder, so that a process killed at any moment leaves its newest
// step intact.
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

// A checkpoint that cannot be written or read: no such step, a full disk, a folder without write permission.
class CheckpointError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

// Files whose contents are not what was saved; names the array, the file and the chunk.
class CorruptCheckpointError : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

// A flattened tree of arrays.
struct CheckpointTree {
  TreeDef structure;
  Arrays leaves;
};

// The trees of one step by name: {"params", ...}, {"opt_state", ...}.
using CheckpointItems = std::map<std::string, CheckpointTree>;

// Flattens a tree, to save it or to describe the tree to restore.
template <class T>
CheckpointTree checkpoint_tree(const T& tree) {
  auto [leaves, structure] = jax::tree::flatten(tree);
  return {std::move(structure), std::move(leaves)};
}

// Rebuilds a tree of a restored step; its structure is that of T.
template <class T>
T checkpoint_value(const CheckpointTree& tree) {
  return jax::tree::unflatten<T>(tree.structure, tree.leaves);
}

// Options for saving steps.
struct CheckpointOptions {
  int64_t max_to_keep = 0;        // how many of the newest steps to keep; 0: all
  bool async = false;             // save returns at once; a thread of low priority writes
  bool link_unchanged = true;     // arrays unchanged since the previous step become hard links to its files
  int64_t chunk_bytes = 4 << 20;  // maximum size of the parts of an array that each have a checksum
};

// How a restore handles damaged files: raise, or fall back to the newest older intact step, with a warning.
enum class OnCorruption { error, previous };

// Which step and items to restore, and with which types.
struct RestoreOptions {
  std::optional<int64_t> step;  // the newest if absent
  CheckpointItems like;  // structure, shapes and dtypes to expect; items that are not listed are returned as saved
  std::vector<std::string> only;  // items and arrays to read ("params", "params.layer.w"); empty: all
  OnCorruption on_corruption = OnCorruption::error;
};

// One step as it was saved. Records come back as dictionaries of their fields unless `like` says otherwise.
struct Checkpoint {
  int64_t step = 0;
  CheckpointItems items;
  std::string metadata;  // JSON
};

// The contents of a step without its elements.
struct CheckpointArrayInfo {
  std::string name;  // "params.layer.w"
  ArrayType type;
  int64_t bytes = 0;
  int64_t chunks = 0;
};

// A slice (box) of an array of a step.
struct CheckpointPart {
  std::string array;  // "params.layer.w"
  Shape start, size;
};

// Reads the folder of one step, written by capibara or by Orbax (zarr or OCDBT); `only` as in RestoreOptions.
Checkpoint read_checkpoint(const std::string& folder, const std::vector<std::string>& only = {});

// Saves steps into a folder, one subfolder each, in Orbax's layout over zarr v3. A step appears under its number only
// once all of it has reached the disk. The folder may be in an object store: gs://BUCKET/FOLDER.
class Checkpointer {
 public:
  // Creates the folder if it does not exist.
  explicit Checkpointer(std::string folder, CheckpointOptions options = {});
  // Waits for a pending save; its error is lost, so call wait before.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // Saves the trees and a JSON object under a step that the folder does not hold yet. The arrays' memory is kept alive
  // until it is written, and nothing that the host can read is copied; an asynchronous save first waits for the
  // previous one and raises its error.
  void save(int64_t step, CheckpointItems items, const std::string& metadata = "{}");
  // Returns when everything is saved, and raises the error of an asynchronous save once.
  void wait();
  // True if a save is pending.
  bool saving() const;

  // The steps that are saved completely, in ascending order.
  std::vector<int64_t> steps() const;
  // The newest of them.
  std::optional<int64_t> latest_step() const;
  // Reads a step, verifying every checksum; waits for pending saves.
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
  // Reads boxes of arrays of a step saved by capibara: only the chunks that they overlap, each with its checksum.
  Arrays read_parts(int64_t step, const std::vector<CheckpointPart>& parts) const;
  // The names of a step's arrays, and their types.
  std::vector<CheckpointArrayInfo> arrays(int64_t step) const;
  // Removes a step.
  void remove(int64_t step);

  const std::string& folder() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace capibara
