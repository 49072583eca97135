// What the TPU toolbox raises.
#pragma once

#include <capibara/error.h>

namespace capibara::tpu {

// A configuration that no TPU has, a flag that its compiler does not know, or a request that needs one that is not
// here.
class TPUError : public ValueError {
 public:
  using ValueError::ValueError;
};

}  // namespace capibara::tpu
