// Lowers the samples of a primitive and finds out which kernels the loop form calls.
#include "backends/cpu/execution/coverage.h"

#include <algorithm>
#include <set>

#include <capibara/config.h>
#include <capibara/error.h>

#include "backends/cpu/driver/lower.h"
#include "backends/cpu/execution/backend.h"
#include "backends/cpu/groups/fuse.h"
#include "backends/reference/backend.h"
#include "backends/reference/linalg_batch.h"
#include "program/trace/stage.h"

namespace capibara::cpu {

namespace {

std::string way_of(const HostKernel& kernel) {
  const Primitive* primitive = reference_primitive(kernel);
  if (!primitive) return "kernel";  // an empty one is a matmul with an epilogue
  const reference::KernelList lapack = reference::lapack_linalg_kernels();
  const bool by_lapack = std::any_of(lapack.begin(), lapack.end(), [&](const reference::KernelEntry& entry) {
    return primitive->is(entry.primitive);
  });
  return by_lapack ? "lapack" : (*primitive)->evaluate ? "host" : "reference";
}

// The primitive alone, on operands that are unknown at compile time.
Program alone(const Primitive& primitive, const Sample& sample) {
  const auto call = [&](std::span<const Array> inputs) { return bind(primitive, inputs, sample.attrs); };
  return stage(call, sample.inputs, "f").program;
}

}  // namespace

std::vector<std::string> ways_to_run(const Primitive& primitive) {
  if (!reference::backend().supports(primitive)) return {};
  if (!primitive->samples) {
    // Only primitives with nested programs or effects have no samples: control flow becomes control flow of the
    // generated code, the others are composed of their nested programs.
    return {is_control(primitive) ? "compiled"
            : primitive->evaluate ? "host"
            : primitive->lower    ? "composed"
                                  : "reference"};
  }
  Config settings = config();
  settings.enable_x64 = true;
  ConfigScope scope(settings);
  std::set<std::string> ways;
  for (DType dtype :
       primitive->dtypes.empty() ? std::vector{DType::float32, DType::int32, DType::complex64} : primitive->dtypes) {
    for (const Sample& sample : primitive->samples(dtype)) {
      try {
        const Lowered lowered = lower_to_loops(optimised(alone(primitive, sample)));
        if (lowered.kernels.empty()) ways.insert("compiled");
        for (const HostKernel& kernel : lowered.kernels) ways.insert(way_of(kernel));
      } catch (const NotImplementedError&) {
        // A type that cannot be evaluated.
      }
    }
  }
  return {ways.begin(), ways.end()};
}

}  // namespace capibara::cpu
