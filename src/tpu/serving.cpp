// The model of serving: decoding reads all weights and the KV cache once per token; prefill is bound by matmuls.
#include <capibara/error.h>
#include <capibara/tpu/costs.h>
#include <capibara/tpu/serving.h>

#include <algorithm>
#include <cmath>

#include "tpu/constants.h"
#include "tpu/step.h"

namespace capibara::tpu {

namespace {

constexpr double kBytesPerGiB = 1073741824;

double type_bytes(const std::string& type, const char* what, bool weights) {
  if (type == "bf16") return 2;
  if (type == "int8") return 1;
  if (type == "int4" && weights) return 0.5;
  throw ValueError(concat("serve: ", what, " is bf16, int8", weights ? " or int4" : "", ", got '", type, "'"));
}

// Seconds of the matmuls of all layers and the output matrix for so many tokens on one device. Weights of fewer bits
// are widened on their way to the MXU, so that compute is that of bf16.
double serving_matmuls(const Serving& serving, int tensor, double tokens, double outputs) {
  const Architecture& m = serving.model;
  const Chip& chip = *serving.slice.chip;
  auto product = [&](double rows, double columns, double inner) {
    auto whole = [](double value) { return std::max<int64_t>(1, std::llround(value)); };
    return matmul_seconds(chip, whole(rows), whole(columns), whole(inner));
  };
  const double width = as_number(m.width), hidden = as_number(m.hidden), t = tensor;
  double layer = 0;
  if (m.kind == "mamba") {
    layer = product(tokens, (2 * hidden + 2 * as_number(m.state)) / t, width) + product(tokens, width, hidden / t);
  } else {
    layer = product(tokens, (m.projections() / width - m.mixed()) / t, width) + product(tokens, width, m.mixed() / t);
    const double active = m.experts == 0          ? 1
                          : m.kind == "moe_dense" ? as_number(m.experts)
                                                  : as_number(m.active + m.shared);
    layer += active *
             (as_number(m.matrices() - 1) * product(tokens, hidden / t, width) + product(tokens, width, hidden / t));
  }
  return as_number(m.layers) * layer + product(outputs, as_number(m.vocab) / t, width);
}

}  // namespace

ServingPlan plan_serving(const Serving& serving) {
  const Architecture& m = serving.model;
  const Chip& chip = *serving.slice.chip;
  auto refuse = [](const std::string& text) { throw ValueError(concat("serve: ", text)); };
  const double weight_bytes = type_bytes(serving.weights, "the type of weights", true),
               cache_bytes = type_bytes(serving.cache, "the type of the cache", false);
  if (serving.batch < 1 || serving.prompt < 1 || serving.output < 1 || serving.page < 1)
    refuse("batch, prompt, output and page must be positive");
  const int each = serving.slice.devices() / serving.slice.slices;
  const int tensor = serving.tensor > 0 ? serving.tensor : each;
  if (tensor > each || each % tensor != 0)
    refuse(concat("tensor=", tensor, " must divide the ", each, " devices of ", serving.slice.name()));
  const bool splits = m.kind == "mamba" ? m.hidden % tensor == 0 : m.heads % tensor == 0 && m.hidden % tensor == 0;
  if (!splits) {
    refuse(concat("tensor=", tensor, " must divide ", m.heads, " heads and d_ff ", m.hidden, " of ", m.name,
                  "; give fewer with --mesh tensor=N"));
  }
  ServingPlan plan;
  plan.replicas = serving.slice.devices() / tensor;
  const double bandwidth = chip.hbm_gbps * 1e9 / chip.devices;
  auto pages = [&](int64_t tokens) { return (tokens + serving.page - 1) / serving.page * serving.page; };
  // Key and value heads beyond their number are copies; a latent cache is one on every device.
  const double split = m.kind == "mamba" ? tensor : m.kv_rank > 0 ? 1 : std::min<double>(tensor, as_number(m.kv_heads));
  auto cache_of = [&](int64_t tokens) { return cache_bytes * m.cached(pages(tokens)) / split; };
  const int64_t whole = serving.prompt + serving.output;
  const double weights = weight_bytes * m.parameters() / tensor, one = cache_of(whole);
  const double batch = as_number(serving.batch);
  // Of the prompt that is prefilled: its activations, and logits of the last token.
  const double work =
      2 * as_number(serving.prompt) * (2 * as_number(m.width) + (m.qkv() + 2 * as_number(m.hidden)) / tensor) +
      4 * batch * as_number(m.vocab) / tensor;
  plan.weights_gib = weights / kBytesPerGiB;
  plan.cache_gib = batch * one / kBytesPerGiB;
  plan.work_gib = work / kBytesPerGiB;
  plan.total_gib = plan.weights_gib + plan.cache_gib + plan.work_gib;
  plan.limit_gib = serving.slice.hbm_gib();
  plan.fits = plan.total_gib <= plan.limit_gib;
  plan.cache_bytes_per_token = cache_bytes * m.cached(whole) / as_number(whole);
  plan.max_batch = std::max<int64_t>(0, static_cast<int64_t>((plan.limit_gib * kBytesPerGiB - weights - work) / one));

  const double peak = chip.bf16_tflops * 1e12 / chip.devices * step_constants(chip).attention;
  const double pairs = as_number(m.layers) * as_number(serving.prompt) * as_number(serving.prompt) * 2 *
                       (m.kind == "mamba" ? 0 : m.mixed() * m.attended(serving.prompt)) / tensor;
  const std::vector<bool> rings = serving.slice.wraps();
  const Ring ring{as_number(tensor), std::min(chip.dimensions, tensor > 1 ? 2 : 1),
                  std::any_of(rings.begin(), rings.end(), [](bool wraps) { return wraps; })};
  auto sums = [&](double tokens) {
    return tensor > 1 ? 2 * as_number(m.layers) * all_reduce_seconds(chip, 2 * tokens * as_number(m.width), ring) : 0;
  };
  plan.prefill_seconds =
      std::max(serving_matmuls(serving, tensor, as_number(serving.prompt), 1) + pairs / peak, weights / bandwidth) +
      sums(as_number(serving.prompt));
  // Experts that no token of the batch chose are not read.
  double read = weights;
  if (m.kind == "moe") {
    const double layers = as_number(m.layers - m.dense_layers), experts = as_number(m.experts);
    const double all = weight_bytes * layers * experts * as_number(m.matrices() * m.width * m.hidden) / tensor;
    read -= all * std::pow(1 - as_number(m.active) / experts, batch);
  }
  plan.decode_hbm_seconds = (read + batch * cache_of(serving.prompt + serving.output / 2)) / bandwidth;
  const double compute = serving_matmuls(serving, tensor, batch, batch);
  plan.decode_collectives = sums(batch);
  // The matmuls' own time has the reading of bf16 weights in it, so that of what is bound by the MXU is counted alone.
  const double flops =
      2 * batch * (m.parameters() - as_number(m.vocab * m.width)) / tensor / (chip.bf16_tflops * 1e12 / chip.devices);
  const double busy = weight_bytes < 2 ? flops : compute;
  const double main = std::max(plan.decode_hbm_seconds, busy);
  plan.decode_seconds = main + plan.decode_collectives;
  plan.bound = plan.decode_collectives > main ? "communication" : busy > plan.decode_hbm_seconds ? "compute" : "memory";
  const double output = as_number(serving.output);
  plan.tokens_per_second =
      plan.replicas * batch * output / (batch * plan.prefill_seconds + output * plan.decode_seconds);
  plan.tokens_per_second_per_chip = plan.tokens_per_second / serving.slice.chips();
  if (serving.price > 0) plan.price_per_million = serving.price / 3600 / plan.tokens_per_second_per_chip * 1e6;
  return plan;
}

}  // namespace capibara::tpu
