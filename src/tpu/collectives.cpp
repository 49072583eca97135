// Times of copies and collectives, by the formulas of the scaling book: bytes over the bandwidth of the axes used,
// or hops.
#include <capibara/tpu/costs.h>

#include <algorithm>

namespace capibara::tpu {

namespace {

constexpr double kHop = 1e-6;  // the scaling book: about a microsecond
constexpr double kCopyShare =
    0.87;  // of the HBM bandwidth, read and write: 6421 of 7380 GB/s published for TPU7x, 1360 of 1638 for v6e
constexpr double kCopyStart = 0.8e-6;  // of the published copies of TPU7x from 2 MB on
constexpr double kDcnShare = 0.33;     // 4.1 of 12.5 GB/s published for an all-reduce between two v6e-256

}  // namespace

double copy_seconds(const Chip& chip, double bytes) {
  return 2 * bytes / (chip.hbm_gbps * 1e9 / chip.devices * kCopyShare) + kCopyStart;
}

double all_gather_seconds(const Chip& chip, double bytes, const Ring& ring) {
  if (ring.size <= 1) return 0;
  const double link = chip.ici_link_gbps * 1e9;
  if (!ring.wraps) return std::max(kHop * (ring.size - 1), (ring.size - 1) * bytes / ring.size / (link * ring.axes));
  double hops = 0;  // half of each ring
  double side = ring.size;
  for (int axis = 1; axis < ring.axes; ++axis) side = std::max(2.0, side / 4);
  hops = side / 2 + (ring.axes - 1) * 2;
  return std::max(kHop * hops, bytes / (2 * link * ring.axes));
}

double reduce_scatter_seconds(const Chip& chip, double bytes, const Ring& ring) {
  return all_gather_seconds(chip, bytes, ring);
}
double all_reduce_seconds(const Chip& chip, double bytes, const Ring& ring) {
  return 2 * all_gather_seconds(chip, bytes, ring);
}
double all_to_all_seconds(const Chip& chip, double bytes, const Ring& ring) {
  return all_gather_seconds(chip, bytes, ring) / (ring.wraps ? 4 : 2);
}

double send_seconds(const Chip& chip, double bytes, int hops, int paths) {
  return bytes / (chip.ici_link_gbps * 1e9 * paths) + kHop * hops;
}

double dcn_all_reduce_seconds(const Chip& chip, double bytes, int slices) {
  if (slices <= 1) return 0;
  const double rounds = 2.0 * (slices - 1) / slices;
  return rounds * bytes / (chip.dcn_gbps * 1e9 * kDcnShare);
}

double critical_batch(const Chip& chip, double weight_bytes) {
  return chip.bf16_tflops * 1e12 / (chip.hbm_gbps * 1e9) * weight_bytes / 2;
}

}  // namespace capibara::tpu
