// dce: removes equations whose results no one reads, in nested programs as well.
//
// A loop loses the carries that only feed themselves; a call or a branch loses outputs that no one reads.
#include "program/ir/dce.h"

#include "compiler/optimise/passes.h"

namespace capibara::passes {

Program dce(const Program& program) { return dce_beyond_jax(program); }

}  // namespace capibara::passes
