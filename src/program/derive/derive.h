// Programs derived from a program: its jvp, its split by what is known, its transpose, its batched form; memoised.
#pragma once

#include "program/trace/stage.h"

namespace capibara {

// Inputs are all primals, then the tangents of the `nonzero` inputs; outputs are all primals, then the tangents of
// outputs that are nonzero or marked in `instantiate`.
struct JvpProgram {
  Program program;
  std::vector<bool> nonzero_outputs;  // those that have a tangent among the outputs
};
JvpProgram jvp_program(const Program& program, const std::vector<bool>& nonzero,
                       const std::vector<bool>& instantiate = {});

// Splits a program by which inputs are unknown. known: known inputs -> known outputs, residuals; staged: residuals,
// unknown inputs -> unknown outputs. Outputs marked in `instantiate` are always unknown. With a policy, values that
// may not be saved are recomputed in the staged half.
struct ProgramSplit {
  Program known, staged;
  std::vector<bool> unknown_outputs;
  Types residual_types;
  // For a residual that is a known input, that input's index in the original program; -1 otherwise. The known half
  // returns it all the same.
  std::vector<int> residual_inputs;
};
ProgramSplit partial_eval_program(const Program& program, const std::vector<bool>& unknown,
                                  const std::vector<bool>& instantiate = {}, const SavePolicy* policy = nullptr);
// The same for the program of a call: constants that the staged half reads are residuals too, marked by a residual
// input of -2 - (index of the constant); the known half does not return them.
ProgramSplit partial_eval_call(const Program& program, const std::vector<bool>& unknown);

// Pulls cotangents (one per output, empty: zero) back through a program linear in the marked inputs, given the
// other inputs. Returns one cotangent per input, empty if zero or not linear.
// `sums` may hold cotangents of the inputs to accumulate into, empty where there is none.
Arrays backward_pass(const Program& program, const std::vector<bool>& is_linear, std::span<const Array> inputs,
                     std::span<const Array> cotangents, std::span<const Array> sums = {});

// The transpose as a program: (nonlinear inputs, cotangents of outputs marked in `nonzero`) -> cotangents of the linear
// inputs; zeros are instantiated if `instantiate` (the default), else left out, as recorded in
// `nonzero_results`.
struct TransposedProgram {
  Program program;
  std::vector<bool> nonzero_results;  // one per linear input
};
TransposedProgram transpose_program(const Program& program, const std::vector<bool>& is_linear,
                                    const std::vector<bool>& nonzero_cotangents, bool instantiate = true);

// Inputs marked in `mapped` carry the axis at 0; outputs marked in `instantiate` are always mapped.
struct BatchedProgram {
  Program program;
  std::vector<bool> mapped_outputs;  // those that carry the axis at 0
};
BatchedProgram batch_program(const Program& program, const MappedAxis& axis, const std::vector<bool>& mapped,
                             const std::vector<bool>& instantiate = {});

// Runs a function on primals and tangents (empty: symbolic zero).
JvpResult jvp_flat(const FlatFunction& function, std::span<const Array> primals, std::span<const Array> tangents);

// Maps a function over one axis of its inputs; dims are positions or not_mapped; by default
// all outputs are mapped at 0. out_dims are read after the function has run, which may fill them.
Arrays vmap_flat(const FlatFunction& function, std::span<const Array> inputs, std::span<const int64_t> in_dims,
                 const std::vector<int64_t>& out_dims, const MappedAxis& axis);

// Each output keeps the axis where its rules left it.
BatchResult vmap_in_place(const FlatFunction& function, std::span<const Array> inputs, std::span<const int64_t> in_dims,
                          const MappedAxis& axis);

// The batched program of a call, inputs and outputs with the axis at any position; outputs are moved to 0 on demand.
struct BatchedCall {
  Program program;
  std::vector<int64_t> dims;  // of the outputs
};
BatchedCall batch_call(const Program& program, const MappedAxis& axis, std::span<const int64_t> dims,
                       bool outputs_to_front);

}  // namespace capibara
