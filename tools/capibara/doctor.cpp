// capibara doctor: reports what this build has, which plugins this machine has, and whether each of them works.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <capibara/config.h>
#include <capibara/error.h>
#include <capibara/jit.h>
#include <capibara/numpy.h>
#include <capibara/tpu/chips.h>
#include <capibara/tpu/diagnosis.h>
#include <capibara/version.h>

#include "backends/backend.h"
#include "backends/pjrt/backend.h"
#include "backends/pjrt/calls/cuda_kernels.h"
#include "backends/pjrt/calls/cudnn.h"
#include "command.h"
#include "core/processes/mpi_module.h"
#include "tpu/compiled.h"

namespace capibara::command {

namespace {

// Runs one addition and checks its value.
std::string try_addition(const std::string& platform) {
  try {
    Config settings = config();
    settings.platform = platform;
    ConfigScope scope(settings);
    const Array sum = jax::jit([](const Array& x) { return x + 1; })(array<float>({1, 2, 3}));
    return sum.to_vector<float>() == std::vector<float>{2, 3, 4} ? "works" : "gives wrong values";
  } catch (const std::exception& error) {
    return concat("fails: ", error.what());
  }
}

// On a machine without a TPU, libtpu waits for a metadata server that does not exist.
bool has_tpu() {
  tpu::DiagnosisOptions options;
  options.libraries = false;
  for (const tpu::Finding& finding : tpu::diagnose(options)) {
    if (finding.subject == "PCI") return finding.state == "ok";
  }
  return false;
}

// The effect of JAX_PLATFORMS, which jax reads too, on Python programs; the first platform counts.
std::string describe_jax_platforms() {
  const char* text = std::getenv("JAX_PLATFORMS");
  if (!text || !*text) return concat("not set: Python programs run on '", config().platform, "'");
  const std::string given = text, first = given.substr(0, given.find(','));
  const auto fails = [&](const std::string& why) {
    return concat("'", given, "': ", why, ", so that every Python program raises; unset it, or set JAX_PLATFORMS=cpu");
  };
  if (first == "cpu" || first == "reference") return concat("'", given, "': Python programs run on '", first, "'");
  if (first == "capibara")
    return concat("'", given, "': jax runs on capibara's plugin (doctor --jax), python -m capibara on 'cpu'");
  if (!pjrt::is_platform(first)) return fails(concat("there is no platform '", first, "'"));
  if (first == "tpu" && !has_tpu()) return fails("this machine has no TPU");
  try {
    pjrt::choose(first);
  } catch (const Error&) {
    return fails(concat("this machine has no plugin for '", first, "'"));
  }
  return concat("'", given, "': Python programs run on '", first, "'");
}

void describe_plugin(const pjrt::Candidate& candidate) {
  std::printf("  %-8s %s\n", candidate.platform.c_str(), candidate.path.c_str());
  if (!pjrt::is_platform(candidate.platform)) {
    std::printf("           its platform is not known here; name it in CAPIBARA_PLUGIN and choose 'pjrt'\n");
    return;
  }
  if (candidate.platform == "tpu" && !has_tpu()) {
    std::printf("           not opened: this machine has no TPU; programs can be compiled for one\n");
    return;
  }
  try {
    pjrt::Client& client = pjrt::client(candidate.platform);
    std::printf("           %s, %s\n", client.plugin().version().c_str(), client.platform_version().c_str());
    for (const pjrt::DeviceInfo& device : client.devices())
      std::printf("           device %d: %s\n", device.id, device.kind.c_str());
    if (candidate.platform == "cuda") {
      std::printf("           own kernels: %s\n", pjrt::has_cuda_kernels(client) ? "loaded" : "none");
      std::printf("           cuDNN for attention: %s\n", pjrt::cudnn_capability(client) > 0 ? "yes" : "none");
    }
    std::printf("           x + 1 %s\n", try_addition(candidate.platform).c_str());
  } catch (const std::exception& error) {
    std::printf("           %s\n", error.what());
  }
}

// Findings about a TPU; without a TPU but with libtpu, compiles x + 1 for every generation.
void describe_tpu() {
  const std::vector<tpu::Finding> findings = tpu::diagnose();
  std::printf("TPU: %s\n", tpu::summary(findings).c_str());
  for (const tpu::Finding& finding : findings) {
    std::printf("  %-13s %-8s %s\n", finding.subject.c_str(), finding.state.c_str(), finding.text.c_str());
    if (!finding.remedy.empty()) std::printf("  %-13s %-8s %s\n", "", "remedy", finding.remedy.c_str());
  }
  if (!tpu::libtpu_problem().empty()) return;
  for (const tpu::Chip& chip : tpu::chips()) {
    tpu::CompileRequest request;
    request.command = own_path();
    request.text =
        "module { func.func public @main(%0: tensor<8xf32>) -> tensor<8xf32> {\n  %1 = stablehlo.constant dense<1.0> : "
        "tensor<8xf32>\n  %2 = stablehlo.add %0, %1 : tensor<8xf32>\n  return %2 : tensor<8xf32>\n} }\n";
    request.topology = tpu::slice_of(chip, 4).topology();
    request.config = chip.config;
    request.only_memory = false;
    request.seconds = 60;
    const tpu::CompiledProgram report = tpu::compile_in_child(request);
    std::printf("  x + 1 for %-6s %s\n", chip.name, report.done ? "compiles (it did not run)" : report.problem.c_str());
  }
}

// Replaces this process by a Python that reports how jax sees our plugin.
int describe_jax() {
  const char* python = python_name();
  std::fflush(stdout);
  ::execlp(python, python, "-m", "jax_plugins.capibara", static_cast<char*>(nullptr));
  std::fprintf(stderr, "capibara doctor: %s cannot be started: %s; name another in CAPIBARA_PYTHON\n", python,
               std::strerror(errno));
  return 1;
}

}  // namespace

int doctor(const Arguments& arguments) {
  if (!arguments.words.empty()) throw UsageError{concat("unexpected '", arguments.words[0], "'")};
  if (arguments.has("jax")) return describe_jax();
  std::printf("capibara %s\nprograms run on '%s' by default\n", version(), config().platform.c_str());
  std::printf("  %-13s %s\n", "JAX_PLATFORMS", describe_jax_platforms().c_str());
  for (const char* name : {"cpu", "reference"}) std::printf("  %-10s x + 1 %s\n", name, try_addition(name).c_str());
  std::printf("  %-10s %s\n", "MPI", processes::describe_mpi().c_str());
  const pjrt::Search found = pjrt::search();
  std::printf("plugins (%zu):\n", found.found.size());
  std::vector<std::string> seen;
  for (const pjrt::Candidate& candidate : found.found) {
    if (std::find(seen.begin(), seen.end(), candidate.platform) != seen.end()) {
      std::printf("  %-8s %s (another one of this platform comes first)\n", candidate.platform.c_str(),
                  candidate.path.c_str());
      continue;
    }
    seen.push_back(candidate.platform);
    describe_plugin(candidate);
  }
  describe_tpu();
  std::printf("looked at:\n");
  for (const std::string& line : found.looked) std::printf("  %s\n", line.c_str());
  return 0;
}

}  // namespace capibara::command
