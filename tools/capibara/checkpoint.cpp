// capibara checkpoint: lists, inspects, verifies and compares the steps in a folder.
#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>

#include <capibara/checkpoint.h>
#include <capibara/safetensors.h>

#include "command.h"
#include "io/checkpoint/step.h"

namespace capibara::command {

namespace {

std::optional<int64_t> given_step(const Arguments& arguments) {
  if (!arguments.has("step")) return std::nullopt;
  const std::string text = arguments.text("step", "");
  int64_t step = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), step);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || step < 0)
    throw UsageError{concat("--step needs a number, got '", text, "'")};
  return step;
}

// The command only reads: a missing folder is an error and is not created.
std::vector<int64_t> steps_of(const std::string& folder) {
  const std::vector<int64_t> steps = committed_steps(folder);
  if (steps.empty()) throw CheckpointError(concat("checkpoint: no step is saved in ", folder));
  return steps;
}

std::string size_text(int64_t bytes) {
  char text[32];
  double value = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  std::snprintf(text, sizeof text, value < 10 && unit[0] != 'B' ? "%.1f %s" : "%.0f %s", value, unit);
  return text;
}

int64_t total_bytes(const std::vector<CheckpointArrayInfo>& arrays) {
  int64_t total = 0;
  for (const CheckpointArrayInfo& array : arrays) total += array.bytes;
  return total;
}

int list_steps(const std::string& folder) {
  for (const int64_t step : steps_of(folder)) {
    try {
      const std::vector<CheckpointArrayInfo> arrays = step_arrays(folder, step);
      std::printf("%10lld  %5zu arrays  %10s\n", static_cast<long long>(step), arrays.size(),
                  size_text(total_bytes(arrays)).c_str());
    } catch (const Error& error) {
      std::printf("%10lld  %s\n", static_cast<long long>(step), error.what());
    }
  }
  return 0;
}

int show_step(const std::string& folder, std::optional<int64_t> step) {
  const int64_t chosen = step.value_or(steps_of(folder).back());
  const std::vector<CheckpointArrayInfo> arrays = step_arrays(folder, chosen);
  std::printf("step %lld: %zu arrays, %s\n", static_cast<long long>(chosen), arrays.size(),
              size_text(total_bytes(arrays)).c_str());
  for (const CheckpointArrayInfo& array : arrays) {
    std::printf("  %-40s %-24s %10s\n", array.name.c_str(), to_string(array.type).c_str(),
                size_text(array.bytes).c_str());
  }
  return 0;
}

// Reads everything; a damaged step does not hide the others.
int verify_steps(const std::string& folder, std::optional<int64_t> only) {
  int damaged = 0;
  for (const int64_t step : only ? std::vector<int64_t>{*only} : steps_of(folder)) {
    try {
      const Checkpoint checkpoint = read_step(folder, step, {});
      std::size_t arrays = 0;
      for (const auto& [name, item] : checkpoint.items) arrays += item.leaves.size();
      std::printf("step %lld: %zu arrays are whole%s\n", static_cast<long long>(step), arrays,
                  has_manifest(step_folder(folder, step)) ? "" : " judging by their files (no manifest)");
    } catch (const Error& error) {
      std::printf("step %lld: DAMAGED: %s\n", static_cast<long long>(step), error.what());
      ++damaged;
    }
  }
  return damaged > 0 ? 1 : 0;
}

std::map<std::string, Array> arrays_by_name(const Checkpoint& checkpoint) {
  std::map<std::string, Array> result;
  for (const auto& [name, item] : checkpoint.items) {
    const std::vector<KeyPath> paths = item.structure.paths();
    for (std::size_t i = 0; i < paths.size(); ++i) result[name + "." + array_name(paths[i])] = item.leaves[i];
  }
  return result;
}

// Reads the folder of one step, or the newest step of a folder of steps.
Checkpoint read_any(const std::string& folder, std::optional<int64_t> step) {
  if (!has_manifest(folder) && !is_orbax_folder(folder))
    return read_step(folder, step.value_or(steps_of(folder).back()), {});
  return read_checkpoint(folder);
}

bool same_bytes(const Array& a, const Array& b) {
  return std::memcmp(a.raw_data(), b.raw_data(), static_cast<std::size_t>(a.size() * storage_size(a.dtype()))) == 0;
}

int diff_steps(const std::string& first, const std::string& second) {
  const std::map<std::string, Array> before = arrays_by_name(read_any(first, std::nullopt)),
                                     after = arrays_by_name(read_any(second, std::nullopt));
  std::size_t equal = 0, different = 0;
  for (const auto& [name, array] : before) {
    const auto it = after.find(name);
    if (it == after.end()) {
      std::printf("- %s %s\n", name.c_str(), to_string(array.type()).c_str());
    } else if (it->second.shape() != array.shape() || it->second.dtype() != array.dtype()) {
      std::printf("! %s %s -> %s\n", name.c_str(), to_string(array.type()).c_str(),
                  to_string(it->second.type()).c_str());
    } else if (array.size() > 0 && !same_bytes(array, it->second)) {
      double largest = 0;
      if (is_floating(array.dtype()) || is_integer(array.dtype())) {
        const std::vector<double> a = array.to_vector<double>(), b = it->second.to_vector<double>();
        for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, a[i] > b[i] ? a[i] - b[i] : b[i] - a[i]);
      }
      std::printf("~ %s %s, largest difference %g\n", name.c_str(), to_string(array.type()).c_str(), largest);
    } else {
      ++equal;
      continue;
    }
    ++different;
  }
  for (const auto& [name, array] : after) {
    if (before.contains(name)) continue;
    std::printf("+ %s %s\n", name.c_str(), to_string(array.type()).c_str());
    ++different;
  }
  std::printf("%zu arrays are equal, %zu differ\n", equal, different);
  return different > 0 ? 1 : 0;
}

bool is_safetensors(const std::string& path) { return path.ends_with(".safetensors"); }

// A safetensors file as a step with one item; names with dots stay array names.
Checkpoint read_safetensors(const std::string& path) {
  Checkpoint checkpoint;
  const std::map<std::string, Array> arrays = load_safetensors(path);
  checkpoint.items["params"] = checkpoint_tree(arrays);
  return checkpoint;
}

int convert_step(const std::string& from, const std::string& to, std::optional<int64_t> step) {
  Checkpoint checkpoint = is_safetensors(from) ? read_safetensors(from) : read_any(from, step);
  if (is_safetensors(to)) {
    const std::map<std::string, Array> arrays = arrays_by_name(checkpoint);
    save_safetensors(to, arrays, {{"step", std::to_string(checkpoint.step)}});
    std::printf("saved %zu arrays in %s\n", arrays.size(), to.c_str());
    return 0;
  }
  Checkpointer(to).save(step.value_or(checkpoint.step), std::move(checkpoint.items), checkpoint.metadata);
  std::printf("saved step %lld in %s\n", static_cast<long long>(step.value_or(checkpoint.step)), to.c_str());
  return 0;
}

}  // namespace

int checkpoint(const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.words;
  const std::string verb = words.empty() ? "" : words[0];
  const bool two = verb == "diff" || verb == "convert";
  if (verb != "list" && verb != "show" && verb != "verify" && !two) {
    throw UsageError{concat("expected list, show, verify, diff or convert, got '", verb, "'")};
  }
  if (words.size() != (two ? 3U : 2U)) throw UsageError{concat(verb, " needs ", two ? "two folders" : "a folder")};
  if (verb == "list") return list_steps(words[1]);
  if (verb == "show") return show_step(words[1], given_step(arguments));
  if (verb == "verify") return verify_steps(words[1], given_step(arguments));
  if (verb == "diff") return diff_steps(words[1], words[2]);
  return convert_step(words[1], words[2], given_step(arguments));
}

}  // namespace capibara::command
