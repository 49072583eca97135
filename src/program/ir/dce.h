// Dead-code elimination: programs without the equations whose results no one reads.
#pragma once

#include <capibara/program.h>

namespace capibara {

struct DceProgram {
  Program program;
  std::vector<bool> used_inputs;  // those that are still read, or named in keep_inputs
};

// The program of the outputs marked, without what they do not need; inputs that are not read go, unless keep_inputs
// names them. Removes what jax's dce_jaxpr removes: derived programs are compared with jax's by their text.
//
// An equation that holds programs shrinks by the `dce` rule of its primitive, which calls this function for the
// programs inside. Such a call joins the elimination under way: a program is pruned once for each set of outputs that
// are read.
DceProgram dce_program(const Program& program, const std::vector<bool>& used_outputs,
                       const std::vector<bool>& keep_inputs = {});

// The program without anything that no one reads, what jax keeps included: carries of while loops, operands of
// barriers, equations inside of equations that stay whole. The signature stays; the same object where nothing goes.
Program dce_beyond_jax(const Program& program);

}  // namespace capibara
