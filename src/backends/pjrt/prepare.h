// From a program to the text that a plugin compiles: host calls marked, constants made arguments, primitives lowered.
#pragma once

#include <capibara/placement.h>

#include "backends/pjrt/calls/host_calls.h"

namespace capibara::pjrt {

struct Prepared {
  std::string text;
  Arrays constants;                  // the arguments after the program's own
  std::shared_ptr<HostCalls> calls;  // null if the host has nothing to do
  bool effects = false;              // some of these calls have side effects
  bool cudnn = false;                // some attention is computed by cuDNN
};

// Kernels and libraries available on a device beyond the plugin itself.
struct Extras {
  bool cuda_kernels = false;            // use our own where they apply
  std::function<bool()> cusolver;       // whether it computes LAPACK calls; called only if there is one
  std::function<int64_t()> cudnn = {};  // cudnn_capability; called only if there is attention
  bool tpu_kernels = false;             // use our own Mosaic kernels where they apply
};
// `donated` has one entry per input, or is empty. For several devices `partitions` is their mesh, and `inputs` are the
// placements of the inputs on it (null: replicated).
Prepared prepare(const Program& program, const std::vector<bool>& donated, const Extras& extras = {},
                 const std::shared_ptr<const NamedSharding>& partitions = nullptr,
                 const std::vector<std::shared_ptr<const NamedSharding>>& inputs = {});

// True if the primitive can be sent to a plugin: as StableHLO text, or as a host call.
bool can_prepare(const Primitive& primitive);
// True if it always runs on the host.
bool runs_on_host(const Primitive& primitive);

}  // namespace capibara::pjrt
