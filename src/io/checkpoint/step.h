// One step of a checkpoint folder: written to a temporary folder and committed, or read.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <capibara/checkpoint.h>

#include "io/checkpoint/manifest.h"

namespace capibara {

// An array whose memory is held while it waits to be written: donating or deleting it elsewhere does not affect these
// bytes.
struct HeldArray {
  std::string name;
  ArrayType type;
  Buffer buffer;
};

struct HeldItem {
  TreeDef structure;
  std::vector<HeldArray> arrays;
};

struct SaveJob {
  int64_t step = 0;
  std::map<std::string, HeldItem> items;
  Json metadata;
  int64_t begun_ns = 0;  // since 1970
};

// Checks names and metadata, and holds the arrays.
SaveJob make_save_job(int64_t step, CheckpointItems items, const std::string& metadata);

// Writes and commits a step. `before` is the manifest of a step whose files may be linked, with its folder.
struct EarlierStep {
  std::string folder;
  Manifest manifest;
  // Hashes of the data files in an object store, which are not read back for comparison.
  std::map<std::string, std::size_t> hashes = {};
};
// Returns what was written, for the next step.
EarlierStep write_step(const std::string& folder, const SaveJob& job, const CheckpointOptions& options,
                       const EarlierStep* before);

// How long a save is written at idle priority before it is raised to the program's; for tests.
void set_checkpoint_patience(std::chrono::milliseconds patience);

// The steps' folders by number, and those of unfinished saves and removals.
std::vector<int64_t> committed_steps(const std::string& folder);
bool is_committed(const std::string& step_folder);
void remove_leftovers(const std::string& folder);
void remove_step(const std::string& folder, int64_t step);
std::string step_folder(const std::string& folder, int64_t step);

Manifest read_manifest(const std::string& step_folder);  // raises
bool has_manifest(const std::string& step_folder);
Checkpoint read_step(const std::string& folder, int64_t step, const RestoreOptions& options);
Arrays read_step_parts(const std::string& folder, int64_t step, const std::vector<CheckpointPart>& parts);
// The same for a folder that Orbax has written; `only` as in RestoreOptions.
bool is_orbax_folder(const std::string& folder);
Checkpoint read_orbax(const std::string& folder, const std::vector<std::string>& only);
std::vector<CheckpointArrayInfo> step_arrays(const std::string& folder, int64_t step);

// The files that Orbax reads next to the arrays: the tree and the shardings of an item, and the description of a step.
std::string orbax_tree_metadata(const TreeDef& structure);
std::string orbax_shardings(const std::vector<std::string>& names);
std::string orbax_step_metadata(const SaveJob& job, int64_t committed_ns);

}  // namespace capibara
