// Refs: mutable arrays, read and written by equations.
#pragma once

#include <capibara/primitive.h>

#include "core/array/body.h"

namespace capibara {

// A concrete ref: one cell that all copies of the handle share.
class RefBody final : public ArrayBody {
 public:
  mutable Array value;

  explicit RefBody(Array v) : ArrayBody(ref_type(v.type())), value(std::move(v)) {}

 private:
  static ArrayType ref_type(ArrayType type) {
    type.ref = true;
    return type;
  }
};

std::vector<PrimitiveRecord> ref_records();  // new_ref, get, swap, addupdate, freeze

}  // namespace capibara
