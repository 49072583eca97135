// The TPU environment of this machine, and why a program cannot use the TPU: findings with remedies.
#pragma once

#include <string>
#include <vector>

namespace capibara::tpu {

struct Finding {
  std::string subject;  // "PCI", "device nodes", "libtpu", "lock", "metadata", "environment", "ports", "huge pages",
                        // "shared memory"
  std::string state;    // ok, missing, problem or note
  std::string text;
  std::string remedy;  // empty if none is needed
};

struct DiagnosisOptions {
  std::string root;                             // prefix of /sys, /proc, /dev and /tmp: a folder in tests
  std::string metadata = "169.254.169.254:80";  // HOST:PORT, queried only on Google's machines
  double seconds = 0.5;                         // for the metadata server to answer
  bool libraries = true;                        // true: look for libtpu
};

// Inspects the machine; takes milliseconds, or half a second if a metadata server does not answer.
std::vector<Finding> diagnose(const DiagnosisOptions& options = {});
// One line: the TPU found, or why there is none.
std::string summary(const std::vector<Finding>& findings);

}  // namespace capibara::tpu
