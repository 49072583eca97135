// Dead-code elimination: removes the equations whose results are never read.
#pragma once

#include <capibara/program.h>

namespace capibara {

struct DceProgram {
  Program program;
  std::vector<bool> used_inputs;  // those that are still read, or named in keep_inputs
};

// The program of the marked outputs, without what they do not need; unread inputs are removed, unless marked in
// keep_inputs. Removes what jax's dce_jaxpr removes: derived programs are compared with jax's by their text.
//
// An equation that holds programs shrinks by the `dce` rule of its primitive, which calls this function for the
// programs inside. The nested call joins the elimination in progress: a program is pruned once for each set of outputs
// are read.
DceProgram dce_program(const Program& program, const std::vector<bool>& used_outputs,
                       const std::vector<bool>& keep_inputs = {});

// The program without any unused values, including those that jax keeps: carries of while loops, operands of
// barriers, equations in programs that stay whole. The signature stays; the same object if nothing is removed.
Program dce_beyond_jax(const Program& program);

}  // namespace capibara
