// linear_solve: a solution of a linear system whose derivative is another solve.
#include "primitives/control.h"

namespace capibara {

PrimitiveRecord linear_solve_record() {
  PrimitiveRecord record;
  record.name = "linear_solve";
  record.doc = "Solves a linear system with the user's solver.";
  record.type = [](std::span<const ArrayType> types, const Attrs&) { return TypeResult(Types(types.begin(), types.end())); };
  return record;
}

}  // namespace capibara
