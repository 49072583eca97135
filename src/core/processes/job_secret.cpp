// Secrets from the environment, from files of the user's own, or made up by process 0.
#include "core/processes/job_secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <capibara/error.h>

#include "core/runtime/digest.h"
#include "core/runtime/private_folder.h"

namespace capibara {

namespace {

constexpr std::size_t min_bytes = 16, max_bytes = 4096;

std::string checked(std::string secret, const std::string& source) {
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.size() < min_bytes) {
    throw ValueError(concat(source, ": a secret of at least ", min_bytes, " bytes is expected, got ", secret.size()));
  }
  return secret;
}

// The content of a file of this user's that no one else may read; `refusal` says what is wrong with another.
std::optional<std::string> read_private_file(int folder, const std::string& name, std::string& refusal) {
  const Descriptor file(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.number(), &status) != 0) {
    refusal = std::strerror(errno);
  } else if (!S_ISREG(status.st_mode) || static_cast<uint64_t>(status.st_size) > max_bytes) {
    refusal = concat("expected a plain file of at most ", max_bytes, " bytes");
  } else if (status.st_uid != geteuid() || (status.st_mode & 077) != 0) {
    refusal = "expected a file that belongs to this user and that no other user may read (chmod 600)";
  } else {
    std::string text(static_cast<std::size_t>(status.st_size), '\0');
    if (read_exactly(file.number(), text.data(), text.size())) return text;
    refusal = "it became shorter while it was read";
  }
  return std::nullopt;
}

std::string folder_of_secrets() { return user_cache_folder().empty() ? "" : user_cache_folder() + "/jobs"; }
std::string name_of(const std::string& address) { return digest(address).hex() + ".secret"; }

}  // namespace

std::optional<std::string> given_job_secret() {
  if (const char* text = secure_getenv("CAPIBARA_JOB_SECRET"); text && *text)
    return checked(text, "CAPIBARA_JOB_SECRET");
  const char* file = secure_getenv("CAPIBARA_JOB_SECRET_FILE");
  if (!file || !*file) return std::nullopt;
  std::string refusal;
  std::optional<std::string> text = read_private_file(AT_FDCWD, file, refusal);
  if (!text) throw ValueError(concat("CAPIBARA_JOB_SECRET_FILE=", file, ": ", refusal));
  return checked(std::move(*text), concat("CAPIBARA_JOB_SECRET_FILE=", file));
}

LeftJobSecret::LeftJobSecret(const std::string& address) : name_(name_of(address)), secret_(random_digits(32)) {
  const std::string hint =
      "\nHint: give all processes of the job one secret in CAPIBARA_JOB_SECRET or CAPIBARA_JOB_SECRET_FILE";
  const std::string name = folder_of_secrets();
  if (name.empty()) throw RuntimeError(concat("distributed.initialize: no secret was given and HOME is not set", hint));
  open_private_folder(user_cache_folder());
  const auto [folder, refusal] = open_private_folder(name);
  if (!folder)
    throw RuntimeError(concat("distributed.initialize: no secret can be left in ", name, ": ", refusal, hint));
  const std::string beside = random_digits(16) + ".part";
  const Descriptor file(
      ::openat(folder.number(), beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file || !write_whole(file.number(), secret_) ||
      ::renameat(folder.number(), beside.c_str(), folder.number(), name_.c_str()) != 0) {
    const int error = errno;
    ::unlinkat(folder.number(), beside.c_str(), 0);
    throw RuntimeError(
        concat("distributed.initialize: no secret can be left in ", name, ": ", std::strerror(error), hint));
  }
}

LeftJobSecret::~LeftJobSecret() {
  const auto [folder, refusal] = open_private_folder(folder_of_secrets());
  std::string ignored;
  // A later job may have left another one.
  if (folder && read_private_file(folder.number(), name_, ignored) == secret_)
    ::unlinkat(folder.number(), name_.c_str(), 0);
}

std::optional<std::string> LeftJobSecret::find(const std::string& address) {
  const std::string name = folder_of_secrets();
  if (name.empty()) return std::nullopt;
  const auto [folder, refusal] = open_private_folder(name);
  std::string ignored;
  return folder ? read_private_file(folder.number(), name_of(address), ignored) : std::nullopt;
}

}  // namespace capibara
