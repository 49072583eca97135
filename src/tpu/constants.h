// Constants of the models, fitted by tools/tpu/refit.cpp; their values are in constants.cpp.
#pragma once

#include <capibara/tpu/chips.h>

namespace capibara::tpu {

// For matmuls, per generation: fitted to two thirds of the rows of compiled_matmuls.tsv.
struct MatmulConstants {
  double mxu;               // fraction of the peak that the MXU reaches
  double hbm;               // fraction of the HBM bandwidth
  double output;            // cycles per 1024 elements of the result
  double vmem, large_vmem;  // MiB for tiles, by default and with the large limit
  double start, step;       // microseconds per matmul, per tile
  double serial;            // fraction of the shorter of compute and copies that is not overlapped
  double room, large_room;  // MiB that an operand may take to be copied into VMEM beforehand
  double int8;              // speed of int8 relative to bf16
  double highest;           // passes of f32 at the highest precision
  double narrowing;         // cycles at least per 1024 elements of a bf16 result, which is converted from f32
};

// For training steps: memory, fitted by tools/tpu/refit_memory.py. Multiples of the named buffers; see memory.cpp.
// These are alive inside the backward pass of a layer.
struct MomentConstants {
  double weights, hidden, input, whole, output;
};

struct MemoryConstants {
  double loss_whole, gradient_output, gradient_input;
  MomentConstants dense, experts, all_experts, mamba;
  double expert_dispatch;
  // Bytes kept without remat, per token, layer and element of the named size.
  double none_width, none_heads, none_gated, none_plain, none_experts, none_mamba_width, none_mamba;
};

struct StepConstants {
  double slowdown;   // measured over modelled compute time of a step
  double attention;  // fraction of the peak that attention kernels reach
};

const MatmulConstants& matmul_constants(const Chip& chip);
const MemoryConstants& memory_constants();
const StepConstants& step_constants(const Chip& chip);

}  // namespace capibara::tpu
