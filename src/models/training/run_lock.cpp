// The lock of a training run's folder, by flock on run.lock.
#include "models/training/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include <capibara/error.h>
#include <capibara/training/run.h>

#include "core/runtime/warning.h"
#include "models/training/run_files.h"

namespace capibara::training {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view signature = "capibara run: ";

std::string own_description() {
  char host[256] = "unknown host", since[64] = "";
  gethostname(host, sizeof host - 1);
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return concat("process ", getpid(), " on ", host, ", since ", since);
}

// The holder named in run.lock; empty if the file is not ours.
std::string described_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  if (!std::getline(file, line) || !line.starts_with(signature)) return {};
  return line.substr(signature.size());
}

// The state of a start that is about to write its name.
bool is_only_an_empty_lock(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename() != run_file::lock || entry.file_size(error) != 0) return false;
  }
  return true;
}

// Files that a start makes before config.json, and may leave behind if it is killed.
bool is_of_a_start(const std::string& name) {
  for (const char* known : {run_file::lock, run_file::tokenizer, run_file::tokens, run_file::manifest}) {
    if (name == known || name == std::string(known) + ".partial") return true;
  }
  return name == std::string(run_file::config) + ".partial";
}

}  // namespace

bool holds_run(const std::string& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return false;
  if (!fs::is_directory(folder, error)) {
    throw ValueError(concat("train: ", folder, " is a file, not a folder; name another by --folder"));
  }
  std::string strange;
  int others = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (is_of_a_start(name)) continue;
    if (strange.empty() || name < strange) strange = name;
    ++others;
  }
  if (others == 0 && fs::is_empty(folder)) return false;
  const bool marked = !described_in(in_folder(folder, run_file::lock)).empty();
  std::string reason;
  if (fs::exists(in_folder(folder, run_file::config))) {
    if (marked) return true;
    const std::string path = in_folder(folder, run_file::config);  // of a version without locks, or of another program
    try {
      run_config_from_json(read_whole(path), path);
      return true;
    } catch (const ValueError& wrong) {
      reason = concat("its config.json is not that of one: ", wrong.what());
    }
  } else if (others == 0 && (marked || is_only_an_empty_lock(folder))) {
    return false;
  } else {
    reason = strange.empty() ? "it has no config.json"
                             : concat("it has '", strange, "'", others > 1 ? concat(" and ", others - 1, " more") : "",
                                      " and no config.json");
  }
  throw ValueError(concat("train: ", folder, " is not empty and holds no training run: ", reason,
                          "; nothing was changed. Name an empty folder, or one that does not exist, by --folder"));
}

namespace {

std::vector<std::string> make_folders(const std::string& folder) {
  std::vector<std::string> made;
  fs::path path;
  for (const fs::path& part : fs::path(folder)) {
    path /= part;
    std::error_code error;
    if (!fs::exists(path, error) && ::mkdir(path.c_str(), 0777) == 0) made.push_back(path.string());
  }
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw ValueError(concat("train: the folder ", folder, " cannot be made: ", std::strerror(errno)));
  return made;
}

bool is_same_file(int descriptor, const std::string& path) {
  struct stat held {
  }, named{};
  return ::fstat(descriptor, &held) == 0 && ::stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

}  // namespace

RunLock::RunLock(const std::string& folder) : folder_(folder) {
  holds_run(folder);
  made_ = make_folders(folder);
  try {
    take();
  } catch (...) {
    remove_made_folders();
    throw;
  }
}

void RunLock::take() {
  const std::string path = in_folder(folder_, run_file::lock);
  for (;;) {
    file_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!file_) throw ValueError(concat("train: ", path, " cannot be written: ", std::strerror(errno)));
    if (::flock(file_.number(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) {
        warn(concat("train: the file system of ", folder_, " has no locks (", std::strerror(errno),
                    "): see to it that no other training uses this folder"),
             WarningKind::runtime);
        break;
      }
      std::string holder;
      for (int i = 0; i < 50 && (holder = described_in(path)).empty(); ++i)  // it may be about to write its name
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      throw ValueError(concat("train: ", folder_, " is in use by ", holder.empty() ? "another process" : holder,
                              "; wait for it, stop it, or name another folder"));
    }
    if (is_same_file(file_.number(), path)) break;  // else the previous holder has removed it: try again
  }
  const std::string text = concat(signature, own_description(), "\n");
  if (::ftruncate(file_.number(), 0) != 0 ||
      ::pwrite(file_.number(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    const int reason = errno;
    ::unlink(path.c_str());
    throw ValueError(concat("train: ", path, " cannot be written: ", std::strerror(reason)));
  }
}

RunLock::~RunLock() {
  if (fs::exists(in_folder(folder_, run_file::config))) return;
  for (const char* name : {run_file::tokenizer, run_file::tokens, run_file::manifest, run_file::config}) {
    ::unlink((in_folder(folder_, name) + ".partial").c_str());
    ::unlink(in_folder(folder_, name).c_str());
  }
  ::unlink(in_folder(folder_, run_file::lock).c_str());
  remove_made_folders();
}

// Removes only empty ones.
void RunLock::remove_made_folders() const {
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) ::rmdir(folder->c_str());
}

}  // namespace capibara::training
