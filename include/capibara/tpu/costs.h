// Modelled costs of parts of a program on a TPU: matmuls, copies, collectives. All figures are modelled; none was
// measured.
#pragma once

#include <capibara/tpu/chips.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace capibara {

class Program;

namespace tpu {

enum class Precision { bf16, int8, f32, f32_highest };

// [batch, rows, inner] x [batch, inner, columns] on one device.
struct Matmul {
  int64_t batch = 1, rows = 0, columns = 0, inner = 0;
  Precision precision = Precision::bf16;
  bool large_vmem =
      false;  // xla_tpu_scoped_vmem_limit_kib at its large value: 24576 v4, 49152 v5p, 61440 tpu7x, 98304 v5e and v6e
  bool alone =
      true;  // the only operation of its program: the compiler copies an operand that fits into VMEM beforehand
};

struct MatmulCost {
  double seconds = 0;
  double low_seconds = 0,
         high_seconds = 0;  // nine of ten compiled times, cross-validated; 0: of this chip none is known
  double mxu_seconds = 0, hbm_seconds = 0;  // the larger is the bound
  std::array<int64_t, 3> tile = {};         // rows, columns, inner
  double flops = 0;
  double tflops() const { return flops / seconds / 1e12; }
};

// The time of a matmul on one device: the best tiling within VMEM, by constants fitted to compiled cycles.
MatmulCost matmul_cost(const Chip& chip, const Matmul& matmul);
// The same as one operation among others, cached by shape for searches.
double matmul_seconds(const Chip& chip, int64_t rows, int64_t columns, int64_t inner, int64_t batch = 1,
                      bool large_vmem = true, Precision precision = Precision::bf16);
// The value of xla_tpu_scoped_vmem_limit_kib that counts as large on a chip.
int64_t large_vmem_kib(const Chip& chip);
// Raises ValueError for a value of xla_tpu_scoped_vmem_limit_kib that a device's VMEM cannot hold.
void check_vmem_limit(const Chip& chip, const std::string& kib);

// The time to read and write this many bytes in one device's HBM.
double copy_seconds(const Chip& chip, double bytes);

// One or several axes of the torus that a collective runs over.
struct Ring {
  double size = 1;    // devices
  int axes = 1;       // dimensions of the torus that it spans
  bool wraps = true;  // closed rings have twice the bandwidth
};
// All-gather of an array of this many bytes once gathered.
double all_gather_seconds(const Chip& chip, double bytes, const Ring& ring);
// Reduce-scatter, the transpose of all-gather.
double reduce_scatter_seconds(const Chip& chip, double bytes, const Ring& ring);
// All-reduce: a reduce-scatter and an all-gather.
double all_reduce_seconds(const Chip& chip, double bytes, const Ring& ring);
// All-to-all: a quarter of an all-gather on a ring, half on a line.
double all_to_all_seconds(const Chip& chip, double bytes, const Ring& ring);
// One array sent between chips this many hops apart, over this many paths at once.
double send_seconds(const Chip& chip, double bytes, int hops, int paths = 1);
// All-reduce between slices over the data centre's network: bytes of one chip.
double dcn_all_reduce_seconds(const Chip& chip, double bytes, int slices);

// Rows of a matmul above which a chip is compute-bound, for weights of this many bytes per element.
double critical_batch(const Chip& chip, double weight_bytes = 2);

// One matmul of a program, and how often loops execute it.
struct ProgramMatmul {
  Matmul shape;
  double times = 1;
};
// The matmuls of a program, including those in loops and calls; while loops count once.
std::vector<ProgramMatmul> program_matmuls(const Program& program);
// FLOPs of a program's matmuls, as counted in model FLOPs.
double model_flops(const Program& program);

// A program on one device, equation by equation: elementwise operations are fused with their neighbours, so only
// matmuls and arguments access memory.
struct ProgramPlan {
  double argument_bytes = 0, output_bytes = 0;
  double peak_bytes = 0;  // arguments and values alive at the same time, in equation order
  double flops = 0;       // of matmuls
  double matmul_seconds = 0, memory_seconds = 0;
  std::string peak_source;  // the line of the equation at the peak, if known
};
// Estimates a program: memory by liveness, time by the matmul model and the bytes of everything else.
ProgramPlan plan_program(const Chip& chip, const Program& program);

}  // namespace tpu
}  // namespace capibara
