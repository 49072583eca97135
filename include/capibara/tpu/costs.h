// What pieces of a program cost on a TPU, modelled: matmuls, copies, collectives. Every figure is ours, none was
// measured here.
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
  double mxu_seconds = 0, hbm_seconds = 0;  // the larger bounds it
  std::array<int64_t, 3> tile = {};         // rows, columns, inner
  double flops = 0;
  double tflops() const { return flops / seconds / 1e12; }
};

// The time of a matmul on one device: the best tiling within VMEM, by constants fitted to compiled cycles.
MatmulCost matmul_cost(const Chip& chip, const Matmul& matmul);
// The same in bf16, not alone in its program, cached by shape for searches.
double matmul_seconds(const Chip& chip, int64_t rows, int64_t columns, int64_t inner, int64_t batch = 1,
                      bool large_vmem = true);
// The value of xla_tpu_scoped_vmem_limit_kib that counts as large on a chip.
int64_t large_vmem_kib(const Chip& chip);

// The time to read and write so many bytes in one device's HBM.
double copy_seconds(const Chip& chip, double bytes);

// One axis or several axes of the torus that a collective runs over.
struct Ring {
  double size = 1;    // devices
  int axes = 1;       // dimensions of the torus that it spans
  bool wraps = true;  // closed rings have twice the bandwidth
};
// All-gather of an array of so many bytes once gathered.
double all_gather_seconds(const Chip& chip, double bytes, const Ring& ring);
// Reduce-scatter, the transpose of all-gather.
double reduce_scatter_seconds(const Chip& chip, double bytes, const Ring& ring);
// All-reduce: a reduce-scatter and an all-gather.
double all_reduce_seconds(const Chip& chip, double bytes, const Ring& ring);
// All-to-all: a quarter of an all-gather on a ring, half on a line.
double all_to_all_seconds(const Chip& chip, double bytes, const Ring& ring);
// One array from one chip to another so many hops away, over so many paths at once.
double send_seconds(const Chip& chip, double bytes, int hops, int paths = 1);
// All-reduce between slices over the data centre's network: bytes of one chip.
double dcn_all_reduce_seconds(const Chip& chip, double bytes, int slices);

// Rows of a matrix product from which on a chip computes longer than it reads weights of so many bytes an element.
double critical_batch(const Chip& chip, double weight_bytes = 2);

// One matmul of a program, and how often its loops run it.
struct ProgramMatmul {
  Matmul shape;
  double times = 1;
};
// The matmuls of a program, those of its loops and calls included; while loops count once.
std::vector<ProgramMatmul> program_matmuls(const Program& program);
// FLOPs of a program's matmuls: what model FLOPs count.
double model_flops(const Program& program);

// A program on one device, as its equations are: elementwise work fused with its neighbours, so that only matmuls and
// arguments touch memory.
struct ProgramPlan {
  double argument_bytes = 0, output_bytes = 0;
  double peak_bytes = 0;  // arguments and the values alive at once, in the order of the equations
  double flops = 0;       // of matmuls
  double matmul_seconds = 0, memory_seconds = 0;
  std::string peak_source;  // the line of the equation at the peak, where it is known
};
// Walks a program: memory by liveness, time by the matmul model and the bytes of everything else.
ProgramPlan plan_program(const Chip& chip, const Program& program);

}  // namespace tpu
}  // namespace capibara
