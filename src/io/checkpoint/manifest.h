// The manifest of a step: what it holds, and the checksums of all its files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <capibara/tree.h>

#include "io/files/json.h"

namespace capibara {

inline constexpr char manifest_file[] = "capibara.json";

// A childless node of a tree: a leaf, or None and empty containers, which have no array.
struct TreeEntry {
  KeyPath path;
  TreeDef::Kind kind;
};
std::vector<TreeEntry> tree_entries(const TreeDef& tree);  // in the order of the leaves

std::string key_text(const TreeKey& key);  // as written in names: w, 0
// The name of an array within its item, which is also its folder's: layers.0.w; "value" if the item is one
// array.
std::string array_name(const KeyPath& path);
// The names of all leaves. Raises ValueError if two arrays have the same name, or one is not valid for a folder.
std::vector<std::string> array_names(const std::string& item, const TreeDef& tree);
void check_item_name(const std::string& item);
bool is_safe_path(std::string_view path);  // true if a relative path stays in its folder

struct ManifestArray {
  ArrayType type;
  std::vector<uint32_t> checksums;  // of its chunks
};

struct ManifestItem {
  TreeDef structure;
  std::vector<ManifestArray> arrays;  // of the leaves
};

struct ManifestFile {
  uint64_t bytes = 0;
  uint32_t checksum = 0;
};

struct Manifest {
  int64_t step = 0;
  std::map<std::string, ManifestItem> items;
  std::map<std::string, ManifestFile> files;  // all but those of the elements, by path in the step's folder

  std::string text() const;
  // Raises CorruptCheckpointError that names the file.
  static Manifest parse(std::string_view text, const std::string& file);
};

// Static values in a tree are not saved: they come back as None.
Json structure_json(const TreeDef& tree);
TreeDef structure_from_json(const Json& json, const std::string& file);

std::string checksum_text(uint32_t checksum);  // eight hexadecimal digits

}  // namespace capibara
