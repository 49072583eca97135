// Finds plugins: named by the environment, or inside Python's package folders, as jax does.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include <capibara/error.h>

#include "backends/pjrt/plugin.h"

namespace capibara::pjrt {

namespace {

namespace fs = std::filesystem;

std::mutex folders_mutex;

std::vector<std::string>& added_folders() {
  static std::vector<std::string> folders;
  return folders;
}

std::string platform_of(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  for (const auto& [part, platform] :
       {std::pair{"cuda", "cuda"}, {"rocm", "rocm"}, {"tpu", "tpu"}, {"cpu", "xla_cpu"}}) {
    if (name.find(part) != std::string::npos) return platform;
  }
  return fs::path(path).stem().string();
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Adds the package folders of the interpreter `prefix`/bin/python3: those of its own version, and Debian's for all
// versions.
void add_prefix(const fs::path& prefix, std::vector<std::string>& folders) {
  std::error_code error;
  const std::string program = fs::canonical(prefix / "bin" / "python3", error).filename().string();  // python3.11
  if (error || program.rfind("python3.", 0) != 0) return;
  for (const char* library : {"lib", "lib64"}) {
    for (const char* kind : {"site-packages", "dist-packages"})
      folders.push_back((prefix / library / program / kind).string());
  }
  if (prefix != "/usr") return;
  folders.push_back("/usr/local/lib/" + program + "/dist-packages");
  folders.push_back("/usr/lib/python3/dist-packages");
}

// The package folders of one interpreter: the one running this process, or else the one that `python3` would start.
std::vector<std::string> package_folders() {
  std::vector<std::string> folders;
  {
    std::lock_guard lock(folders_mutex);
    folders = added_folders();
  }
  std::error_code error;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string prefix = variable(name); folders.empty() && !prefix.empty()) add_prefix(prefix, folders);
  }
  for (const std::string& folder : split(variable("PATH"), ':')) {
    if (folders.empty() && fs::path(folder).is_absolute() && fs::exists(fs::path(folder) / "python3", error)) {
      add_prefix(fs::path(folder).parent_path(), folders);
    }
  }
  for (const std::string& folder : split(variable("PYTHONPATH"), ':')) folders.push_back(folder);
  std::vector<std::string> distinct;
  for (const std::string& folder : folders) {
    if (std::find(distinct.begin(), distinct.end(), folder) == distinct.end() && fs::is_directory(folder, error))
      distinct.push_back(folder);
  }
  return distinct;
}

void add_libraries(const fs::path& folder, const std::string& why, std::vector<Candidate>& found) {
  std::error_code error;
  std::vector<std::string> paths;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".so") paths.push_back(it->path().string());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    const std::string name = fs::path(path).filename().string();
    const bool named =
        name.find("plugin") != std::string::npos || name.find("pjrt") != std::string::npos || name == "libtpu.so";
    if (!named) continue;  // other libraries of the package
    found.push_back({platform_of(path), path, why});
  }
}

int rank_of(const Candidate& candidate) {
  if (candidate.why == "CAPIBARA_PLUGIN") return 0;
  if (candidate.platform == "cuda" || candidate.platform == "rocm") return 1;
  if (candidate.platform == "tpu") return 2;
  return candidate.platform == "xla_cpu" ? 4 : 3;
}

}  // namespace

void add_package_folders(const std::vector<std::string>& folders) {
  std::lock_guard lock(folders_mutex);
  added_folders().insert(added_folders().end(), folders.begin(), folders.end());
}

Search search() {
  Search result;
  std::error_code error;
  for (const char* name : {"CAPIBARA_PLUGIN", "TPU_LIBRARY_PATH"}) {
    const std::string path = variable(name);
    if (path.empty()) {
      result.looked.push_back(concat(name, ": not set"));
    } else if (!fs::exists(path, error)) {
      result.looked.push_back(concat(name, ": there is no file ", path));
    } else {
      result.looked.push_back(concat(name, ": ", path));
      result.found.push_back({name == std::string("TPU_LIBRARY_PATH") ? "tpu" : platform_of(path), path, name});
    }
  }
  for (const std::string& folder : package_folders()) {
    const std::size_t before = result.found.size();
    for (const char* inside : {"jax_plugins", "xla_plugins"}) {
      for (fs::directory_iterator it(fs::path(folder) / inside, error), end; !error && it != end; it.increment(error)) {
        if (it->is_directory(error)) add_libraries(it->path(), folder, result.found);
      }
    }
    add_libraries(fs::path(folder) / "libtpu", folder, result.found);
    result.looked.push_back(concat(folder, ": ",
                                   result.found.size() == before ? "no jax_plugins, xla_plugins or libtpu with a plugin"
                                                                 : concat(result.found.size() - before, " found")));
  }
  std::stable_sort(result.found.begin(), result.found.end(),
                   [](const Candidate& a, const Candidate& b) { return rank_of(a) < rank_of(b); });
  return result;
}

Candidate choose(const std::string& platform) {
  const Search result = search();
  for (const Candidate& candidate : result.found) {
    const bool gpu = candidate.platform == "cuda" || candidate.platform == "rocm";
    if (platform == "pjrt" || platform == candidate.platform || (platform == "gpu" && gpu)) return candidate;
  }
  std::string looked;
  for (const std::string& line : result.looked) looked += "\n  " + line;
  for (const Candidate& candidate : result.found)
    looked += concat("\n  (", candidate.path, " is for '", candidate.platform, "')");
  throw RuntimeError(
      concat("Unable to initialize backend '", platform, "': no PJRT plugin for it was found. Looked at:", looked,
             "\nHint: install jax-cuda13-pjrt, libtpu or xla-cpu-pjrt, or name the file in CAPIBARA_PLUGIN."));
}

}  // namespace capibara::pjrt
