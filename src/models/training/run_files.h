// The files of a training run: each written whole, listed with its checksum in manifest.json, and verified when read.
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

// The text of a run: how many files, their bytes, and a checksum over the records of all.
struct TextRecord {
  int64_t files = 0;
  ByteRecord all;

  void add(const ByteRecord& file);
  friend bool operator==(const TextRecord&, const TextRecord&) = default;
};
// Of the text at a path, a file or a folder; gs:// by the store's own checksums.
TextRecord text_record(const std::string& path);

namespace run_file {
inline constexpr char config[] = "config.json", tokenizer[] = "tokenizer.txt", tokens[] = "tokens.bin",
                      losses[] = "losses.txt", curve[] = "loss.svg", manifest[] = "manifest.json", lock[] = "run.lock",
                      checkpoints[] = "checkpoints";
}  // namespace run_file
// Whether a run makes files of this name.
bool is_run_file(const std::string& name);

// What a run's folder says of itself. A file that is replaced has two records, the one before and the one after, so
// that a process killed between the two writes leaves files that the manifest knows.
struct RunManifest {
  std::string made_by;  // the command: train, demo
  TextRecord text;
  std::map<std::string, std::vector<ByteRecord>> files;

  // None where there is no manifest.json; ValueError where it is damaged.
  static std::optional<RunManifest> read(const std::string& folder);
  void write(const std::string& folder) const;
  bool knows(const std::string& name, const ByteRecord& record) const;
};

std::string in_folder(const std::string& folder, const std::string& name);
std::string read_whole(const std::string& path);
// Replaces a file, whole or not at all; on the disk when it returns. ValueError says why it could not.
void write_whole(const std::string& path, std::string_view text);
// Replaces a file of the run and its record.
void write_run_file(const std::string& folder, const std::string& name, std::string_view text);

// What is wrong with a file of the run, in words: nothing where it is as it was written, or was never written. A run of
// an older version, which has no manifest, is not looked at.
std::optional<std::string> damage_of(const std::string& folder, const std::string& name);
// ValueError where a file is damaged.
void require_undamaged(const std::string& folder, const std::string& name);

}  // namespace capibara::training
