// Errors of arithmetic on sizes: a division by zero.
#pragma once

#include <capibara/error.h>

namespace capibara {

class ZeroDivisionError : public ValueError {
 public:
  using ValueError::ValueError;
};

}  // namespace capibara
