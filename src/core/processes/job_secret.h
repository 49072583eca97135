// The secret that the processes of one job share, and how they obtain it.
#pragma once

#include <optional>
#include <string>

namespace capibara {

// CAPIBARA_JOB_SECRET, or the content of the file CAPIBARA_JOB_SECRET_FILE. Empty if neither is set. Raises
// ValueError for a secret of fewer than 16 bytes, or a file that others may read.
std::optional<std::string> given_job_secret();

// A random secret for the job at this address, left for this user's other processes in a file of mode 0600 in the
// user's cache folder, until this is destroyed. Raises RuntimeError where that folder cannot be used.
class LeftJobSecret {
 public:
  explicit LeftJobSecret(const std::string& address);
  ~LeftJobSecret();
  LeftJobSecret(const LeftJobSecret&) = delete;
  const std::string& secret() const { return secret_; }

  static std::optional<std::string> find(const std::string& address);

 private:
  std::string name_, secret_;
};

}  // namespace capibara
