// Findings about a machine: PCI ids, device nodes and the processes holding them, libtpu, its lock, metadata,
// environment, ports, huge pages.
#include <capibara/error.h>
#include <capibara/tpu/diagnosis.h>
#include <capibara/tpu/flags.h>

#include <dirent.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tpu/compiled.h"
#include "tpu/metadata.h"
#include "tpu/words.h"

namespace capibara::tpu {

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> names;
  if (DIR* handle = opendir(folder.c_str())) {
    while (const dirent* entry = readdir(handle)) {
      if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    }
    closedir(handle);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Google's PCI devices, from jax's hardware_utils.py and tpu-info.
struct Kind {
  const char* device;
  const char* subsystem;  // empty: any
  const char* chip;
};
constexpr Kind kKinds[] = {{"0x0027", "0x004e", "v2"}, {"0x0027", "0x004f", "v3"}, {"0x005e", "", "v4"},
                           {"0x0062", "", "v5p"},      {"0x0063", "", "v5e"},      {"0x006f", "", "v6e"},
                           {"0x0076", "", "tpu7x"},    {"0x0083", "", "tpu8i"},    {"0x007c", "", "tpu8t"}};

std::vector<std::string> pci_chips(const std::string& root) {
  std::vector<std::string> found;
  const std::string folder = root + "/sys/bus/pci/devices/";
  for (const std::string& name : entries_of(folder)) {
    if (text_of(folder + name + "/vendor") != "0x1ae0") continue;
    const std::string device = text_of(folder + name + "/device"),
                      subsystem = text_of(folder + name + "/subsystem_device");
    for (const Kind& kind : kKinds) {
      if (device == kind.device && (*kind.subsystem == 0 || subsystem == kind.subsystem)) found.emplace_back(kind.chip);
    }
  }
  return found;
}

bool is_accelerator_path(const std::string& target) {
  const std::size_t at = target.find("/dev/accel"), group = target.find("/dev/vfio/");
  const std::size_t digit = at != std::string::npos      ? at + 10
                            : group != std::string::npos ? group + 10
                                                         : std::string::npos;
  return digit != std::string::npos && digit < target.size() && target[digit] >= '0' && target[digit] <= '9';
}

std::string link_target(const std::string& path) {
  char target[512];
  const ssize_t length = readlink(path.c_str(), target, sizeof target);
  return length > 0 ? std::string(target, static_cast<std::size_t>(length)) : "";
}

// Processes that have an accelerator open.
std::vector<std::string> holders(const std::string& root, bool (*matches)(const std::string&)) {
  std::vector<std::string> found;
  for (const std::string& process : entries_of(root + "/proc")) {
    if (process.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string folder = root + "/proc/" + process + "/fd/";
    for (const std::string& name : entries_of(folder)) {
      if (!matches(link_target(folder + name))) continue;
      found.push_back(concat(process, " (", text_of(root + "/proc/" + process + "/comm"), ")"));
      break;
    }
  }
  return found;
}

std::vector<std::string> device_nodes(const std::string& root) {
  std::vector<std::string> nodes;
  for (const std::string& name : entries_of(root + "/dev")) {
    if (name.rfind("accel", 0) == 0 && name.size() > 5 && name[5] >= '0' && name[5] <= '9')
      nodes.push_back("/dev/" + name);
  }
  for (const std::string& name : entries_of(root + "/dev/vfio")) {
    if (name[0] >= '0' && name[0] <= '9') nodes.push_back("/dev/vfio/" + name);
  }
  return nodes;
}

void look_at_environment(std::vector<Finding>& findings) {
  const char* arguments = std::getenv("LIBTPU_INIT_ARGS");
  for (const auto& [name, value] : read_init_args(arguments ? arguments : "")) {
    const FlagVerdict verdict = check_flag(name, value);
    if (!verdict.accepted) {
      findings.push_back({"environment", "problem", concat("LIBTPU_INIT_ARGS: ", verdict.message),
                          "take it out: libtpu ends the process at an unknown flag or value"});
    }
  }
  const char* xla = std::getenv("XLA_FLAGS");
  if (xla && std::string(xla).find("xla_tpu_") != std::string::npos) {
    findings.push_back({"environment", "problem", "XLA_FLAGS holds flags of the TPU compiler",
                        "move them to LIBTPU_INIT_ARGS: jaxlib ends the process at them"});
  }
  for (const char* name :
       {"XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_ALLOCATOR", "XLA_PYTHON_CLIENT_MEM_FRACTION"}) {
    if (std::getenv(name))
      findings.push_back({"environment", "note", concat(name, " is a setting of GPUs and does nothing on a TPU"), ""});
  }
  if (const char* path = std::getenv("TPU_LIBRARY_PATH"); path && access(path, R_OK) != 0) {
    findings.push_back({"environment", "problem", concat("TPU_LIBRARY_PATH names ", path, ", which cannot be read"),
                        "point it at libtpu.so"});
  }
}

}  // namespace

std::vector<Finding> diagnose(const DiagnosisOptions& options) {
  std::vector<Finding> findings;
  const std::string& root = options.root;
  const std::vector<std::string> chips = pci_chips(root), nodes = device_nodes(root);
  if (chips.empty()) {
    findings.push_back({"PCI", "missing", "no TPU on the PCI bus",
                        "this machine is not a TPU VM; programs run on its CPU or GPU, plans work everywhere"});
  } else {
    findings.push_back({"PCI", "ok", concat(chips.size(), " x ", chips[0]), ""});
  }
  if (!nodes.empty())
    findings.push_back({"device nodes", "ok", joined(nodes, ", "), ""});
  else if (!chips.empty()) {
    findings.push_back({"device nodes", "problem", "the chips have no device nodes (/dev/accel*, /dev/vfio/*)",
                        "in a container, pass them through; on a VM, load its driver"});
  }
  const std::vector<std::string> users = holders(root, is_accelerator_path);
  if (!users.empty())
    findings.push_back({"device nodes", "problem", concat("held by process ", joined(users, ", ")),
                        "end that process, or give each its own TPU_VISIBLE_CHIPS"});
  if (options.libraries) {
    const std::string problem = libtpu_problem();
    findings.push_back(problem.empty()
                           ? Finding{"libtpu", "ok", "found", ""}
                           : Finding{"libtpu", "missing", problem, chips.empty() ? "" : "pip install libtpu"});
  }
  const std::string lock = root + "/tmp/libtpu_lockfile";
  if (access(lock.c_str(), F_OK) == 0) {
    const std::vector<std::string> owners = holders(
        root, +[](const std::string& target) { return target.ends_with("libtpu_lockfile"); });
    if (owners.empty())
      findings.push_back({"lock", "note", concat(lock, " is there, and no process holds it"), ""});
    else
      findings.push_back({"lock", "problem", concat(lock, " is held by process ", joined(owners, ", ")),
                          "end that process; to compile only, set ALLOW_MULTIPLE_LIBTPU_LOAD=true"});
  }
  if (text_of(root + "/sys/devices/virtual/dmi/id/product_name") == "Google Compute Engine") {
    const std::string type = ask_metadata(options.metadata, "accelerator-type", options.seconds);
    const std::string worker = ask_metadata(options.metadata, "agent-worker-number", options.seconds);
    if (type.empty())
      findings.push_back({"metadata", "note", "the metadata server names no TPU", ""});
    else
      findings.push_back({"metadata", "ok", concat(type, worker.empty() ? "" : concat(", worker ", worker)), ""});
  } else {
    findings.push_back({"metadata", "note", "not a Google machine: no metadata server is queried", ""});
  }
  look_at_environment(findings);
  const std::string pages = text_of(root + "/sys/kernel/mm/transparent_hugepage/enabled");
  if (!pages.empty() && pages.find("[always]") == std::string::npos) {
    findings.push_back(
        {"huge pages", "note", concat("transparent huge pages are '", pages, "'"),
         "echo always > /sys/kernel/mm/transparent_hugepage/enabled makes transfers to v5e and later faster"});
  }
  for (const int port : {8431, 8471, 8476}) {
    if (!chips.empty() && port_answers(port))
      findings.push_back({"ports", "note", concat("something listens on port ", port, ", which libtpu or jax use"),
                          "another job may run here"});
  }
  return findings;
}

std::string summary(const std::vector<Finding>& findings) {
  std::string chips, problems;
  for (const Finding& finding : findings) {
    if (finding.subject == "PCI" && finding.state == "ok") chips = finding.text;
    if (finding.state == "problem") problems += (problems.empty() ? "" : "; ") + finding.text;
  }
  if (chips.empty()) return concat("no TPU here", problems.empty() ? "" : concat("; ", problems));
  return concat("TPU: ", chips, problems.empty() ? ", nothing prevents it" : concat("; ", problems));
}

}  // namespace capibara::tpu
