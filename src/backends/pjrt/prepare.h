// From a program to the text that a plugin compiles: host calls marked, constants made arguments, primitives lowered.
#pragma once

#include <capibara/placement.h>

#include "backends/pjrt/calls/host_calls.h"

namespace capibara::pjrt {

struct Prepared {
  std::string text;
  Arrays constants;                  // the arguments after the program's own
  std::shared_ptr<HostCalls> calls;  // null where the host has nothing to do
  bool effects = false;              // some of these calls have side effects
  bool cudnn = false;                // attention is in the hands of cuDNN
};

// What a device has beyond the plugin itself.
struct Extras {
  bool cuda_kernels = false;            // our own take over what they can
  std::function<bool()> cusolver;       // whether it takes over calls of LAPACK; asked only where there is one
  std::function<int64_t()> cudnn = {};  // cudnn_capability; asked only where there is attention
};
// `donated` has one entry for each input, or none. For several devices `partitions` is their mesh, and `inputs` say how
// each input is placed on it (null: whole on every device).
Prepared prepare(const Program& program, const std::vector<bool>& donated, const Extras& extras = {},
                 const std::shared_ptr<const NamedSharding>& partitions = nullptr,
                 const std::vector<std::shared_ptr<const NamedSharding>>& inputs = {});

// Whether the primitive can go out: by a StableHLO text, or as a call of the host.
bool can_prepare(const Primitive& primitive);
// Whether it runs on the host in any case.
bool runs_on_host(const Primitive& primitive);

}  // namespace capibara::pjrt
