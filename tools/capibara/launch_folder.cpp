// Folders of launches in /dev/shm: a held lock means that the job is alive, in whichever container.
#include "launch_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include <capibara/error.h>

namespace capibara::command {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view folder_prefix = "capibara-launch-";
constexpr char lock_name[] = "lock";
// Files that Open MPI creates in its session folder: sessions, shared-memory segments, windows.
constexpr std::string_view mpi_prefixes[] = {"ompi.",  "openmpi-sessions-", "prte.",
                                             "pmix",   "vader_segment.",    "sm_segment.",
                                             "osc_sm", "osc_rdma",          "shared_window"};

bool is_made_by_mpi(const std::string& name) {
  for (const std::string_view prefix : mpi_prefixes) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

// Needs the folder's lock. Removes MPI's files; the lock and the folder too, unless it holds anything else.
void remove_folder(const std::string& folder) {
  std::error_code ignored;
  bool strange = false;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (is_made_by_mpi(name))
      fs::remove_all(entry.path(), ignored);  // does not follow links
    else
      strange |= name != lock_name;
  }
  if (strange) return;
  ::unlink((folder + "/" + lock_name).c_str());
  ::rmdir(folder.c_str());
}

// Removes a folder of this user whose lock no process holds. One without a lock is not ours, or is being created.
void remove_if_abandoned(const std::string& folder) {
  const int lock = ::open((folder + "/" + lock_name).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (lock < 0) return;
  struct stat status {};
  if (::fstat(lock, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
      ::flock(lock, LOCK_EX | LOCK_NB) == 0)
    remove_folder(folder);
  ::close(lock);
}

void sweep(const std::string& base) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(base, ignored)) {
    if (entry.path().filename().string().starts_with(folder_prefix) && !entry.is_symlink(ignored))
      remove_if_abandoned(entry.path().string());
  }
}

}  // namespace

LaunchFolder::LaunchFolder() {
  const std::string base = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : fs::temp_directory_path().string();
  sweep(base);
  std::string name = concat(base, "/", folder_prefix, ::getpid(), "-XXXXXX");
  if (!::mkdtemp(name.data()))
    throw RuntimeError(concat("no folder can be made in ", base, ": ", std::strerror(errno)));
  path_ = name;
  // The lock file is renamed into place once locked, so a lock that can be taken always belongs to a dead launch.
  const std::string made = path_ + "/new";
  lock_ = ::open(made.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (lock_ < 0 || ::flock(lock_, LOCK_EX | LOCK_NB) != 0 ||
      ::rename(made.c_str(), (path_ + "/" + lock_name).c_str()) != 0) {
    const int reason = errno;
    ::unlink(made.c_str());
    ::rmdir(path_.c_str());
    if (lock_ >= 0) ::close(lock_);
    throw RuntimeError(concat("no lock can be made in ", path_, ": ", std::strerror(reason)));
  }
}

LaunchFolder::~LaunchFolder() {
  remove_folder(path_);
  ::close(lock_);
}

}  // namespace capibara::command
