// What this machine has of a TPU, and what keeps a program from it: findings with remedies.
#pragma once

#include <string>
#include <vector>

namespace capibara::tpu {

struct Finding {
  std::string subject;  // "PCI", "device nodes", "libtpu", "lock", "metadata", "environment", "ports", "huge pages",
                        // "shared memory"
  std::string state;    // ok, missing, problem or note
  std::string text;
  std::string remedy;  // empty where none is needed
};

struct DiagnosisOptions {
  std::string root;                             // before /sys, /proc, /dev and /tmp: folders of a test
  std::string metadata = "169.254.169.254:80";  // HOST:PORT, asked on Google's machines alone
  double seconds = 0.5;                         // for the metadata server to answer
  bool libraries = true;                        // whether libtpu is looked for
};

// Looks at the machine; takes milliseconds, half a second where a metadata server does not answer.
std::vector<Finding> diagnose(const DiagnosisOptions& options = {});
// One line: the TPU that there is, or why there is none.
std::string summary(const std::vector<Finding>& findings);

}  // namespace capibara::tpu
