// The time of one training step on one device: matmuls by their own model, attention, other memory traffic, and
// collectives.
//
// The compute time is multiplied by one constant per generation: measured over modelled time of published
// runs. Most of the time of collectives is exposed.
#include <capibara/error.h>
#include <capibara/tpu/costs.h>
#include <capibara/tpu/plan.h>

#include <algorithm>
#include <cmath>

#include "tpu/bands.h"
#include "tpu/constants.h"
#include "tpu/step.h"
#include "tpu/words.h"

namespace capibara::tpu {

namespace {

constexpr double kElementwise =
    40;  // arrays [tokens, width] in bf16 that a layer reads and writes besides its matmuls, forward and backward
// Fitted to a third of the published runs, like constants.cpp (tools/tpu/refit.py).
constexpr double kTensorHidden =
    0.865;  // of activation collectives, hidden behind recomputation; without it all are exposed
constexpr double kGatherExposed = 0.647;  // of weight gathers and gradient reductions
constexpr double kDcnExposed = 0.8;       // of reductions between slices
constexpr double kPlainPasses = 4.8;  // over scores in f32, as made by attention without a kernel, forward and backward
constexpr double kGatherHidden = 0.85;  // of compute, behind which weight gathers can be hidden

// Forward and backward of one matrix: rows x inner times inner x columns.
struct Pass {
  double forward = 0, backward = 0;
};
Pass matrix_seconds(const Chip& chip, bool large, double rows, double columns, double inner, double batch = 1,
                    const std::string& precision = "bf16") {
  auto whole = [](double value) { return std::max<int64_t>(1, static_cast<int64_t>(std::llround(value))); };
  const int64_t r = whole(rows), c = whole(columns), i = whole(inner), b = whole(batch);
  const Precision type = precision == "int8" ? Precision::int8 : Precision::bf16;
  const double speed = precision == "fp8" ? chip.fp8_tflops / chip.bf16_tflops : 1;
  return {matmul_seconds(chip, r, c, i, b, large, type) / speed,
          (matmul_seconds(chip, r, i, c, b, large, type) + matmul_seconds(chip, i, c, r, b, large, type)) / speed};
}

void check_precision(const Training& training) {
  const Chip& chip = *training.slice.chip;
  const double speed = training.precision == "int8"  ? chip.int8_tops
                       : training.precision == "fp8" ? chip.fp8_tflops
                                                     : 1;
  if (training.precision != "bf16" && training.precision != "int8" && training.precision != "fp8")
    throw ValueError(concat("plan: matmuls of a layer are bf16, int8 or fp8, got '", training.precision, "'"));
  if (speed <= 0) throw ValueError(concat("plan: ", chip.name, " has no ", training.precision, " units"));
}

// Dimensions of the torus that a mesh axis spans, longest first.
int axes_for(const Slice& slice, int size) {
  std::vector<int> sides = slice.shape;
  std::sort(sides.rbegin(), sides.rend());
  int axes = 0;
  for (int covered = 1; covered < size && axes < static_cast<int>(sides.size()); ++axes)
    covered *= sides[static_cast<std::size_t>(axes)];
  return std::max(axes, 1);
}

}  // namespace

double recomputed_share(const Training& training) {
  if (training.recompute >= 0) return training.recompute;
  const Architecture& m = training.model;
  if (training.remat == "full") return 1;
  if (training.remat == "none") return 0;
  const Kept kept = kept_by(training.remat);
  if (m.kind == "mamba" && !kept.products) return 1;  // only the layers' inputs are kept
  // Fractions of a layer's forward FLOPs whose results are kept.
  const double width = as_number(m.width), out = 2 * width * m.mixed(), qkv = 2 * m.projections() - out;
  const double up = 2 * as_number(m.matrices() - 1) * width * as_number(m.hidden) *
                    as_number(std::max<int64_t>(m.active + m.shared, 1));
  const double down = up / as_number(m.matrices() - 1);
  const double pairs = 2 * as_number(training.sequence) * m.mixed() * m.attended(training.sequence);
  double saved = (kept.qkv ? qkv : 0) + (kept.context ? pairs : 0) + (kept.projection ? out : 0);
  if (kept.products) saved += up + down;  // the layer's result is only added, so its matmul is not repeated
  if (kept.down) saved += down;
  return 1 - saved / (qkv + out + up + down + pairs);
}

std::string step_flags(const Training& training) {
  if (!training.large_vmem) return "";
  return concat("xla_tpu_scoped_vmem_limit_kib=", large_vmem_kib(*training.slice.chip));
}

StepPlan plan_step(const Training& training) {
  check_training(training);
  check_precision(training);
  const Architecture& m = training.model;
  const PlanMesh& mesh = training.mesh;
  const Chip& chip = *training.slice.chip;
  const StepConstants& constants = step_constants(chip);
  const double peak = (training.peak_tflops > 0 ? training.peak_tflops : chip.bf16_tflops) * 1e12 / chip.devices;
  const double faster = peak / (chip.bf16_tflops * 1e12 / chip.devices);
  const double bandwidth = chip.hbm_gbps * 1e9 / chip.devices;
  const double tensor = mesh.tensor, tokens = training.batch_per_device * as_number(training.sequence),
               group = tokens * tensor;
  const double width = as_number(m.width), hidden = as_number(m.hidden), layers = as_number(m.layers);
  const double mixers = m.mixed();

  const bool large = training.large_vmem;
  Pass layer;
  auto add = [&](double count, const Pass& pass) {
    layer.forward += count * pass.forward;
    layer.backward += count * pass.backward;
  };
  double scores = 0;  // FLOPs of one layer's forward pass between tokens
  auto product = [&](double rows, double columns, double inner, double batch = 1) {
    return matrix_seconds(chip, large, rows, columns, inner, batch, training.precision);
  };
  if (m.kind == "mamba") {
    add(1, product(group, (2 * hidden + 2 * as_number(m.state) + as_number(m.heads)) / tensor, width));
    add(1, product(group, width, hidden / tensor));
    scores = tokens * (256 * (as_number(m.state) + hidden) + 4 * as_number(m.state) * hidden);
  } else {
    if (m.kv_rank == 0) {
      add(1, product(group, m.qkv() / tensor, width));
    } else {
      const double query = as_number(m.heads * (m.head_size + m.rope_size)) / tensor, rank = as_number(m.q_rank);
      add(1, product(group, m.q_rank > 0 ? rank : query, width));
      if (m.q_rank > 0) add(1, product(group, query, rank));
      add(1, product(group, as_number(m.kv_rank + m.rope_size), width));
      add(1, product(group, as_number(m.heads * (m.head_size + m.value_size)) / tensor, as_number(m.kv_rank)));
    }
    add(1, product(group, width, mixers / tensor));
    // Causal: half of all pairs.
    const double scored = m.kv_rank > 0 ? as_number(m.heads * (m.head_size + m.rope_size)) : mixers;
    scores = tokens * as_number(training.sequence) * (scored + mixers) * m.attended(training.sequence);
    auto add_mlp = [&](double times, double rows, double inner, double batch) {
      add(times * as_number(m.matrices() - 1), product(rows, inner / tensor, width, batch));
      add(times, product(rows, width, inner / tensor, batch));
    };
    if (m.experts == 0) {
      add_mlp(1, group, hidden, 1);
    } else {
      const double leading = as_number(m.dense_layers) / layers, local = as_number(m.experts) / mesh.expert;
      const double choices = as_number(m.active) * (m.capacity > 0 ? m.capacity : 1);
      add_mlp(1 - leading, group * (m.kind == "moe" ? choices : as_number(m.experts)) / local, hidden, local);
      if (m.shared > 0) add_mlp(1 - leading, group, hidden * as_number(m.shared), 1);
      if (m.dense_layers > 0) add_mlp(leading, group, as_number(m.dense_hidden), 1);
      // One-hot dispatch and combine: every token is multiplied with every slot of its sequence.
      if (m.kind == "moe" && m.capacity > 0)
        scores += (1 - leading) * 2 * tokens * 2 * choices * as_number(training.sequence) * width;
    }
  }
  const Pass head = matrix_seconds(chip, large, group, as_number(m.vocab) / tensor, width);
  const double share = recomputed_share(training);
  StepPlan plan;
  const double slow = constants.slowdown;
  plan.matmul = slow * (layers * (layer.forward + layer.backward) + head.forward + head.backward) / faster;
  plan.attention = slow * layers * scores * 3.5 / (peak * constants.attention);
  if (!training.flash) {
    plan.attention += slow * layers * (kPlainPasses + 1.2 * share) * 4 * tokens * as_number(training.sequence) *
                      as_number(m.heads) / bandwidth;
  }
  plan.recompute = slow * share * layers * (layer.forward / faster + scores / (peak * constants.attention));
  plan.elementwise = slow * layers * kElementwise * 2 * tokens * width * (1 + share / 3) / bandwidth;
  const double shards = as_number(int64_t{mesh.fsdp} * mesh.expert * mesh.tensor * mesh.dcn_fsdp);
  plan.optimizer = (2 * training.state_bytes + 4) * m.parameters() / shards / bandwidth;
  const double compute = plan.matmul + plan.attention + plan.recompute + plan.elementwise + plan.optimizer;

  // Collectives inside a slice: torus axes are assigned starting with the innermost mesh axis.
  const std::vector<bool> rings = training.slice.wraps();
  const bool wraps = std::any_of(rings.begin(), rings.end(), [](bool ring) { return ring; });
  const int tensor_axes = axes_for(training.slice, mesh.tensor);
  const int weight_axes = std::max(1, chip.dimensions - (tensor_axes > 1 || tensor > 1 ? tensor_axes : 0));
  const Ring weight_ring{as_number(int64_t{mesh.fsdp} * mesh.expert), weight_axes, wraps},
      tensor_ring{tensor, tensor_axes, wraps};
  const double layer_bytes = 2 * m.layer_parameters() / tensor / mesh.expert;
  const double table_bytes = 2 * as_number(m.vocab) * width / tensor;
  const double gathers = layers * (2 * all_gather_seconds(chip, layer_bytes, weight_ring) +
                                   reduce_scatter_seconds(chip, 2 * layer_bytes, weight_ring)) +
                         2 * all_gather_seconds(chip, table_bytes, weight_ring) +
                         reduce_scatter_seconds(chip, 2 * table_bytes, weight_ring);
  const double activation = 2 * group * width;
  double sums = tensor > 1 ? layers * (8 + 4 * share) * all_gather_seconds(chip, activation, tensor_ring) : 0;
  if (mesh.context > 1)
    sums += layers * 4 *
            all_gather_seconds(chip, 4 * tokens * mesh.context * as_number(m.kv_heads * m.head_size),
                               {as_number(mesh.context), 1, wraps});
  if (mesh.expert > 1)
    sums += layers * 6 *
            all_to_all_seconds(chip, 2 * tokens * width * 2.5 * mesh.expert, {as_number(mesh.expert), 1, wraps});
  if (mesh.data > 1)
    sums += all_reduce_seconds(chip, 4 * m.parameters() / shards, {as_number(mesh.data), 1, wraps}) / 2;
  plan.ici = std::max(gathers - kGatherHidden * compute, kGatherExposed * gathers) + (1 - kTensorHidden * share) * sums;
  plan.weight_collectives = gathers;
  plan.activation_collectives = sums;
  plan.ici_hidden = gathers + sums - plan.ici;
  const int groups = mesh.dcn_data * mesh.dcn_fsdp;
  plan.dcn =
      groups > 1 ? kDcnExposed * dcn_all_reduce_seconds(chip, 4 * m.parameters() / shards * chip.devices, groups) : 0;
  if (mesh.dcn_fsdp > 1) {  // weights cross the network too, hidden behind compute if there is enough
    const double crossing =
        1.5 * dcn_all_reduce_seconds(chip, 2 * m.parameters() / shards * mesh.dcn_fsdp * chip.devices, mesh.dcn_fsdp);
    plan.dcn = std::max(plan.dcn / 2, crossing - kGatherHidden * compute);
  }
  // Activations leave during the forward pass and return during the backward pass, hidden if these are long enough.
  const double copies = host_bytes(training) / (chip.pcie_gbps * 1e9 / chip.devices);
  const double forward = slow * layers * layer.forward / faster + plan.attention / 3.5;
  plan.host = std::max(0.0, copies - forward) + std::max(0.0, copies - (compute - forward));
  plan.seconds = compute + plan.ici + plan.dcn + plan.host;
  const Band band = step_band(training);
  plan.low_seconds = band.low * plan.seconds;
  plan.high_seconds = band.high * plan.seconds;

  const double job_tokens = tokens * training.slice.devices();
  plan.tokens_per_second = job_tokens / plan.seconds;
  const double per_chip = plan.tokens_per_second / training.slice.chips();
  plan.model_tflops_per_chip = per_chip * training_flops_per_token(m, training.sequence, true) / 1e12;
  plan.model_tflops_per_chip_noncausal = per_chip * training_flops_per_token(m, training.sequence, false) / 1e12;
  plan.mfu = plan.model_tflops_per_chip / (peak * chip.devices / 1e12);
  plan.compute_share = (plan.matmul + plan.attention + plan.recompute) / plan.seconds;
  plan.memory_share = (plan.elementwise + plan.optimizer) / plan.seconds;
  plan.communication_share = (plan.ici + plan.dcn + plan.host) / plan.seconds;
  plan.bound = plan.communication_share > std::max(plan.compute_share, plan.memory_share) ? "communication"
               : plan.memory_share > plan.compute_share                                   ? "memory"
                                                                                          : "compute";
  return plan;
}

}  // namespace capibara::tpu
