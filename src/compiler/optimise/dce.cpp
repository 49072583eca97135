// dce: removes equations whose results no one reads, inside nested programs as well.
//
// A loop loses the carries that only feed themselves, a call and a branch the outputs that no one takes.
#include "program/ir/dce.h"

#include "compiler/optimise/passes.h"

namespace capibara::passes {

Program dce(const Program& program) { return dce_beyond_jax(program); }

}  // namespace capibara::passes
