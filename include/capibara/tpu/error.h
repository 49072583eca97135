// The exception type of the TPU toolbox.
#pragma once

#include <capibara/error.h>

namespace capibara::tpu {

// A configuration that no TPU has, an unknown compiler flag, or a request that needs a TPU that this machine does not
// have.
class TPUError : public ValueError {
 public:
  using ValueError::ValueError;
};

}  // namespace capibara::tpu
