// The files of a training run: each written atomically, listed with its checksum in manifest.json, verified on read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capibara::training {

// Length and CRC-32C of bytes.
struct ByteRecord {
  uint64_t bytes = 0;
  uint32_t checksum = 0;

  friend bool operator==(const ByteRecord&, const ByteRecord&) = default;
};
ByteRecord record_of(std::string_view bytes);

// The text of a run: the number of files, their bytes, and a checksum over all records.
struct TextRecord {
  int64_t files = 0;
  ByteRecord all;

  void add(const ByteRecord& file);
  friend bool operator==(const TextRecord&, const TextRecord&) = default;
};
// For the text at a path, a file or a folder; gs:// by the store's own checksums.
TextRecord text_record(const std::string& path);

namespace run_file {
inline constexpr char config[] = "config.json", tokenizer[] = "tokenizer.txt", tokens[] = "tokens.bin",
                      losses[] = "losses.txt", curve[] = "loss.svg", manifest[] = "manifest.json", lock[] = "run.lock",
                      checkpoints[] = "checkpoints";
}  // namespace run_file
// True if runs make files of this name.
bool is_run_file(const std::string& name);

// The manifest of a run's folder. A file being replaced has two records, the old and the new, so
// that a process killed between the two writes leaves files that match the manifest.
struct RunManifest {
  std::string made_by;  // the command: train, demo
  TextRecord text;
  std::map<std::string, std::vector<ByteRecord>> files;

  // Absent if there is no manifest.json; ValueError if it is damaged.
  static std::optional<RunManifest> read(const std::string& folder);
  void write(const std::string& folder) const;
  bool knows(const std::string& name, const ByteRecord& record) const;
};

std::string in_folder(const std::string& folder, const std::string& name);
std::string read_whole(const std::string& path);
// Replaces a file atomically; it is on disk on return. ValueError gives the reason of a failure.
void write_whole(const std::string& path, std::string_view text);
// Replaces a file of the run and its record.
void write_run_file(const std::string& folder, const std::string& name, std::string_view text);

// The damage of a file of the run, as text: absent if it is as written, or was never written. A run of
// an older version, without a manifest, is not checked.
std::optional<std::string> damage_of(const std::string& folder, const std::string& name);
// ValueError if a file is damaged.
void require_undamaged(const std::string& folder, const std::string& name);

}  // namespace capibara::training
