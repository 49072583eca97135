// The model of a matmul: of all tilings that fit into VMEM, the one with the shortest overlapped compute and copies.
//
// Compute pads tiles to the MXU and has a cost per element of the result; copies read an operand once per tile of
// the other one's dimension. The compiler prefetches operands that fit into VMEM, which its cycle counts omit, as does
// this model (`alone`), down to the time that all bytes take at the full bandwidth.
#include "tpu/matmul.h"

#include <capibara/error.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <mutex>
#include <tuple>

#include "tpu/bands.h"

namespace capibara::tpu {

namespace {

double round_up(double value, double multiple) { return std::ceil(value / multiple) * multiple; }

// Tile sides to try: those shorter than the dimension, and the dimension itself.
int tile_sides(double dimension, double multiple, double* sides) {
  static const double tried[] = {128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192};
  const double whole = round_up(dimension, multiple);
  int count = 0;
  for (const double side : tried) {
    if (side < whole) sides[count++] = side;
  }
  if (whole <= 16384) sides[count++] = whole;
  return count;
}

}  // namespace

MatmulCost matmul_cost(const Chip& chip, const Matmul& matmul, const MatmulConstants& constants) {
  const double in_size = matmul.precision == Precision::bf16 ? 2 : matmul.precision == Precision::int8 ? 1 : 4;
  const double out_size = matmul.precision == Precision::bf16 ? 2 : 4;
  const double batch = static_cast<double>(matmul.batch), rows = static_cast<double>(matmul.rows),
               columns = static_cast<double>(matmul.columns), inner = static_cast<double>(matmul.inner);
  double peak = chip.bf16_tflops * 1e12 / chip.devices * constants.mxu;
  if (matmul.precision == Precision::int8) peak *= constants.int8;
  if (matmul.precision == Precision::f32_highest) peak /= constants.highest;
  const double full_bandwidth = chip.hbm_gbps * 1e9 / chip.devices, bandwidth = full_bandwidth * constants.hbm;
  const double vmem = (matmul.large_vmem ? constants.large_vmem : constants.vmem) * 1048576;
  const double room = matmul.alone ? (matmul.large_vmem ? constants.large_room : constants.room) * 1048576 : 0;
  const double left = batch * rows * inner * in_size, right = batch * inner * columns * in_size;
  double read_left = 1, read_right = 1;  // 0: copied into VMEM beforehand
  if (std::max(left, right) <= room)
    (left >= right ? read_left : read_right) = 0;
  else if (std::min(left, right) <= room)
    (left <= right ? read_left : read_right) = 0;

  MatmulCost best;
  best.seconds = 1e30;
  double row_sides[12], column_sides[12], inner_sides[12];
  const int row_count = tile_sides(rows, 8, row_sides), column_count = tile_sides(columns, 128, column_sides);
  const int inner_count = tile_sides(inner, 128, inner_sides);
  const double mxu = chip.mxu_size;
  for (int i = 0; i < row_count; ++i) {
    const double tile_rows = row_sides[i], row_tiles = std::ceil(rows / tile_rows);
    for (int j = 0; j < column_count; ++j) {
      const double tile_columns = column_sides[j], column_tiles = std::ceil(columns / tile_columns);
      const double result = tile_rows * tile_columns * (2 * out_size + 4);
      if (result > vmem) break;
      const double results = batch * row_tiles * tile_rows * column_tiles * tile_columns * constants.output / 1024 /
                             (chip.clock_ghz * 1e9);
      for (int k = 0; k < inner_count; ++k) {
        const double tile_inner = inner_sides[k], inner_tiles = std::ceil(inner / tile_inner);
        const double window = (tile_rows * tile_inner * read_left + tile_inner * tile_columns * read_right) * in_size;
        if (2 * window + result > vmem && i + j + k > 0) break;
        const double compute = 2 * batch * row_tiles * tile_rows * column_tiles * round_up(tile_columns, mxu) *
                                   inner_tiles * round_up(tile_inner, mxu) / peak +
                               results;
        const double elements = batch * row_tiles * tile_rows * column_tiles * tile_columns;
        const double narrowed = out_size == 2 ? elements * constants.narrowing / 1024 / (chip.clock_ghz * 1e9) : 0;
        double bytes = read_left * left * column_tiles + read_right * right * row_tiles;
        if (inner_tiles == 1)
          bytes = std::min(read_left * left + read_right * right * row_tiles,
                           read_left * left * column_tiles + read_right * right);
        const double copies = (bytes + batch * rows * columns * out_size) / bandwidth;
        const double steps = batch * row_tiles * column_tiles * inner_tiles;
        const double busy = std::max(compute, narrowed);
        const double seconds = std::max(busy, copies) + constants.serial * std::min(busy, copies) +
                               (window + tile_rows * tile_columns * out_size) / bandwidth + constants.start * 1e-6 +
                               constants.step * 1e-6 * steps;
        if (seconds < best.seconds) {
          best.seconds = seconds;
          best.mxu_seconds = busy;
          best.hbm_seconds = copies;
          best.tile = {static_cast<int64_t>(tile_rows), static_cast<int64_t>(tile_columns),
                       static_cast<int64_t>(tile_inner)};
        }
      }
    }
  }
  best.seconds = std::max(best.seconds, (left + right + batch * rows * columns * out_size) / full_bandwidth);
  best.flops = 2 * batch * rows * columns * inner;
  return best;
}

MatmulCost matmul_cost(const Chip& chip, const Matmul& matmul) {
  MatmulCost cost = matmul_cost(chip, matmul, matmul_constants(chip));
  const Band band = matmul_band(chip, matmul);
  cost.low_seconds = band.low * cost.seconds;
  cost.high_seconds = band.high * cost.seconds;
  return cost;
}

int64_t large_vmem_kib(const Chip& chip) {
  const std::string_view name = chip.name;
  return name == "v4" ? 24576 : name == "v5p" ? 49152 : name == "tpu7x" ? 61440 : 98304;
}

void check_vmem_limit(const Chip& chip, const std::string& kib) {
  const auto room = static_cast<int64_t>(1024 * chip.vmem_mib * chip.cores / chip.devices);
  const int64_t value = std::atoll(kib.c_str());
  if (kib.size() < 10 && value > 0 && value <= room) return;
  throw ValueError(concat("plan: xla_tpu_scoped_vmem_limit_kib=", kib, " must be from 1 to ", room, ", the VMEM of a ",
                          chip.name, " device in KiB; ", large_vmem_kib(chip), " is usual for large matmuls"));
}

double matmul_seconds(const Chip& chip, int64_t rows, int64_t columns, int64_t inner, int64_t batch, bool large_vmem,
                      Precision precision) {
  using Key = std::tuple<const Chip*, int64_t, int64_t, int64_t, int64_t, bool, Precision>;
  static std::mutex mutex;
  static auto* known = new std::map<Key, double>;
  const Key key{&chip, rows, columns, inner, batch, large_vmem, precision};
  std::lock_guard lock(mutex);
  if (const auto it = known->find(key); it != known->end()) return it->second;
  if (known->size() > 100000) known->clear();
  Matmul matmul{batch, rows, columns, inner, precision, large_vmem, false};
  return (*known)[key] = matmul_cost(chip, matmul).seconds;
}

}  // namespace capibara::tpu
