// Memory of one training step on one device: state, activations kept by remat, and the largest of three moments.
//
// Throughout both passes the compiler keeps the stacked weights of all layers in bf16, besides parameters, moments
// and saved activations. At the loss the logits are alive, in some programs with their gradient in a buffer of its own;
// then the gradient of the logits with the gathered output matrix and its gradient; inside the backward pass of a layer
// the f32 gradients of all layers, its gathered weights and its activations. The number of copies of these was fitted
// to compiled steps (constants.cpp, tools/tpu/refit_memory.py); the activations that policies keep are counted from the
// program (step_layers.cpp).
#include <capibara/error.h>
#include <capibara/tpu/plan.h>

#include <algorithm>
#include <cmath>

#include "tpu/bands.h"
#include "tpu/constants.h"
#include "tpu/step.h"
#include "tpu/words.h"

namespace capibara::tpu {

namespace {

constexpr double kGiB = 1073741824;

}  // namespace

double as_number(int64_t value) { return static_cast<double>(value); }

const std::vector<std::string>& remat_policies() {
  static const std::vector<std::string> names = {"none",
                                                 "minimal",
                                                 "qkv",
                                                 "full",
                                                 "offload",
                                                 "minimal_with_context",
                                                 "save_out_proj",
                                                 "save_dot_except_mlp",
                                                 "save_dot_except_mlpwi",
                                                 "save_dot_with_context_except_mlp"};
  return names;
}

Kept kept_by(const std::string& remat) {
  if (remat == "minimal") return {true, false, true, true, false};
  if (remat == "minimal_with_context") return {true, true, true, true, false};
  if (remat == "qkv") return {true, false, false, false, false};
  if (remat == "offload" || remat == "save_dot_except_mlp") return {true, false, true, false, false};
  if (remat == "save_out_proj") return {false, false, true, false, false};
  if (remat == "save_dot_except_mlpwi") return {true, false, true, false, true};
  if (remat == "save_dot_with_context_except_mlp") return {true, true, true, false, false};
  return {};
}

void check_training(const Training& training) {
  const PlanMesh& mesh = training.mesh;
  const Architecture& model = training.model;
  auto refuse = [](const std::string& text) { throw ValueError(concat("plan: ", text)); };
  if (mesh.devices() != training.slice.devices()) {
    refuse(concat("the mesh ", mesh.text(), " is for ", mesh.devices(), " devices, but ", training.slice.name(),
                  " has ", training.slice.devices()));
  }
  if (mesh.dcn_data * mesh.dcn_fsdp != training.slice.slices) {
    refuse(concat("the mesh ", mesh.text(), " has dcn_data x dcn_fsdp = ", mesh.dcn_data * mesh.dcn_fsdp, ", but ",
                  training.slice.name(), " has ", training.slice.slices,
                  training.slice.slices == 1 ? " slice" : " slices: other axes do not cross them"));
  }
  if (!(training.batch_per_device > 0) || training.sequence < 1) refuse("batch and sequence must be positive");
  if (model.layers < 1 || model.width < 1 || model.vocab < 1)
    refuse(concat("the model '", model.name, "' has no layers, width or vocabulary"));
  if (model.kind != "mamba" && (model.heads % mesh.tensor != 0 || model.hidden % mesh.tensor != 0)) {
    refuse(concat("tensor=", mesh.tensor, " must divide ", model.heads, " heads and d_ff ", model.hidden, " of ",
                  model.name));
  }
  if (model.kind == "moe" && (model.active < 1 || model.active > model.experts)) {
    refuse(concat("active=", model.active, " must be from 1 to the ", model.experts, " experts of ", model.name));
  }
  if (mesh.expert > 1 && (model.experts == 0 || model.experts % mesh.expert != 0)) {
    refuse(concat("expert=", mesh.expert, " must divide the ", model.experts, " experts of ", model.name));
  }
  if (training.sequence % mesh.context != 0)
    refuse(concat("context=", mesh.context, " must divide the sequence of ", training.sequence));
  const std::vector<std::string>& policies = remat_policies();
  if (std::find(policies.begin(), policies.end(), training.remat) == policies.end()) {
    refuse(concat("no remat policy is called '", training.remat, "'; there are ", joined(policies, ", "),
                  hint_of(training.remat, policies)));
  }
}

void check_split(const Training& training) {
  check_training(training);
  const PlanMesh& mesh = training.mesh;
  const Architecture& model = training.model;
  auto refuse = [](const std::string& text) { throw ValueError(concat("plan: ", text)); };
  const int64_t groups = int64_t{mesh.dcn_data} * mesh.dcn_fsdp * mesh.data * mesh.fsdp * mesh.expert;
  const double batch = training.batch_per_device * training.slice.devices();
  const int64_t sequences = std::llround(batch);
  if (sequences < 1 || std::abs(batch - as_number(sequences)) > 1e-6 || sequences % groups != 0) {
    const int64_t below = sequences / groups * groups;
    refuse(concat("a batch of ", batch, " sequences cannot be split over the ", groups,
                  " groups of devices of the mesh ", mesh.text(), "; give ", below > 0 ? concat(below, " or ") : "",
                  below + groups));
  }
  auto divide = [&](int64_t parts, const std::string& axes, int64_t size, const char* what) {
    if (size % parts != 0) {
      refuse(concat(axes, "=", parts, " must divide the ", what, " ", size, " of ", model.name,
                    "; the weights could not be split evenly"));
    }
  };
  const int64_t experts = model.experts > 0 ? mesh.expert : 1;
  divide(int64_t{mesh.fsdp} * mesh.dcn_fsdp * experts,
         concat("fsdp", mesh.dcn_fsdp > 1 ? " x dcn_fsdp" : "", experts > 1 ? " x expert" : ""), model.width, "width");
  divide(mesh.tensor, "tensor", model.vocab, "vocabulary");
  if (model.kind == "mamba") return divide(mesh.tensor, "tensor", model.hidden, "inner width");
  divide(mesh.tensor, "tensor", model.kv_heads * model.head_size, "width of keys");
}

double host_bytes(const Training& training) {
  if (training.remat != "offload") return 0;
  const Architecture& m = training.model;
  const double tokens = training.batch_per_device * as_number(training.sequence), width = as_number(m.width);
  return 2 * tokens * as_number(m.layers) * (m.kind == "mamba" ? width : 2 * width + m.qkv());
}

MemoryPlan plan_memory(const Training& training) {
  check_training(training);
  const MemoryConstants& c = memory_constants();
  const Architecture& m = training.model;
  const PlanMesh& mesh = training.mesh;
  const double tensor = mesh.tensor, shards = as_number(int64_t{mesh.fsdp} * mesh.expert * mesh.tensor * mesh.dcn_fsdp);
  const double tokens = training.batch_per_device * as_number(training.sequence), layers = as_number(m.layers),
               width = as_number(m.width);
  const double hidden = as_number(m.hidden), heads = m.qkv(), parameters = m.parameters(),
               table = as_number(m.vocab) * width;
  // Of each token, for experts.
  const double routed = as_number(m.active) * (m.capacity > 0 ? m.capacity : 1);
  const double copies = m.kind == "moe" ? routed + as_number(m.shared) : 1;
  const double products = m.kind == "mamba" ? 2 : as_number(m.matrices() - 1);  // number of arrays of the hidden width
  const double matrices = m.kind == "mamba" ? 3 * width * hidden
                                            : as_number(m.matrices()) * width * hidden *
                                                  as_number(std::max<int64_t>(m.experts + m.shared, 1));

  const double state = training.state_bytes * parameters / shards / kGiB;
  const double tables = m.tied ? 1 : 2;
  const double layer_gradients = 4 * (parameters - tables * table) / shards / kGiB,
               table_gradients = 4 * table / shards / kGiB;
  const double input = 2 * tokens * width / kGiB, whole = tensor > 1 ? input * tensor : 0;
  const double logits = 2 * tokens * as_number(m.vocab) / kGiB, output = 2 * table / tensor / kGiB;
  const double attention = m.kind == "mamba" ? 0 : m.projections();
  const double layer = 2 * (attention + matrices / mesh.expert) / tensor / kGiB;

  const double stacked = layer_gradients / 2;  // the bf16 weights whose f32 gradients these are
  const double slots =                         // [tokens, experts, slots]
      m.capacity > 0 ? 2 * tokens * tensor * routed * as_number(training.sequence) / kGiB : 0;
  const double projections = m.kind == "mamba" ? 2 * as_number(m.state) : heads;
  double saved = layers * input;
  // The result of a mixer's last matmul is only added, so the backward pass does not need it.
  const Kept kept = kept_by(training.remat);
  double beside_input = kept.products ? products * hidden * copies : 0;
  if (m.kind == "mamba") {
    beside_input += kept.products ? projections : 0;
  } else {
    beside_input += (kept.qkv ? projections : 0) + (kept.context ? m.mixed() : 0) + (kept.projection ? width : 0) +
                    (kept.down ? width : 0);
  }
  saved += 2 * tokens * layers * beside_input / kGiB;
  // Offloaded activations come back layer by layer, except one stack of attention's, which the compiler fetches as a
  // whole and copies to another layout before the backward pass, so that two copies exist. Which one it is differs: on
  // chips of one core it is as wide as the model; on the others as wide as keys in a gated model, else as the model.
  const bool offloads = training.remat == "offload", one_core = training.slice.chip->cores == 1;
  const bool stacks = offloads && m.kind != "mamba";
  const double wide_stack = stacks ? 2 * tokens * layers * width / kGiB : 0;
  const double narrow_stack =
      stacks && !one_core ? 2 * tokens * layers * as_number(m.kv_heads * m.head_size) / kGiB : wide_stack;
  const double whole_stack = m.gated ? narrow_stack : wide_stack;
  if (offloads) saved = 0;
  if (training.remat == "none") {
    const double per_hidden = m.kind == "mamba"       ? c.none_mamba
                              : m.kind == "moe_dense" ? c.none_experts * as_number(m.experts)
                              : m.gated               ? c.none_gated * copies
                                                      : c.none_plain * copies;
    saved = tokens * layers *
            (m.kind == "mamba" ? c.none_mamba_width * width : c.none_width * width + c.none_heads * heads) / kGiB;
    saved += tokens * layers * per_hidden * hidden / kGiB;
    // Dispatch, combine, the slot of each choice; tokens sent to experts and back.
    if (m.kind == "moe")
      saved += layers * ((2 + as_number(m.active) / as_number(m.experts)) * slots + 2 * copies * input);
  }

  using Buffers = std::vector<PlanBuffer>;
  auto beside = [&](Buffers own) {
    own.push_back({"saved activations", saved});
    own.push_back({"weights of all layers in bf16", stacked});
    return own;
  };
  // The gradient of the logits is computed in their buffer on chips of one core without tensor parallelism, in this
  // program at least; elsewhere the compiler does so in some programs and keeps two buffers in others, for no reason
  // that their sizes show. The band has both everywhere.
  const bool in_place = one_core && mesh.tensor == 1;
  auto at_logits = [&](int copies) {
    return beside({{copies == 1 ? "logits" : "logits and their gradient", copies * logits},
                   {"whole activations", c.loss_whole * whole}});
  };
  auto at_gradient = [&](double stack) {
    return beside({{"gradient of the logits", logits},
                   {"output matrix, gathered, and its gradient", c.gradient_output * output},
                   {"layer inputs", c.gradient_input * input},
                   {"activations back from the host", 2 * stack}});
  };
  const Buffers logits_twice = at_logits(in_place ? 1 : 2), output_gradient = at_gradient(whole_stack);
  Buffers backward = beside({{"gradients", layer_gradients + table_gradients}});
  const MomentConstants& layer_of = m.kind == "dense"   ? c.dense
                                    : m.kind == "moe"   ? c.experts
                                    : m.kind == "mamba" ? c.mamba
                                                        : c.all_experts;
  const double hidden_arrays =
      2 * tokens * hidden * products * (m.kind == "moe_dense" ? as_number(m.experts) : copies) / kGiB;
  backward.push_back({"weights of a layer, gathered", layer_of.weights * layer});
  backward.push_back({"hidden activations", layer_of.hidden * hidden_arrays});
  backward.push_back({"layer inputs", layer_of.input * input});
  backward.push_back({"whole activations", layer_of.whole * whole});
  backward.push_back({"output matrix, gathered", layer_of.output * output});
  if (m.kind == "moe") backward.push_back({"dispatch to experts", c.expert_dispatch * slots});

  auto sum = [](const Buffers& buffers) {
    double total = 0;
    for (const PlanBuffer& buffer : buffers) total += buffer.gib;
    return total;
  };
  const Buffers& loss = sum(logits_twice) >= sum(output_gradient) ? logits_twice : output_gradient;
  const double at_loss = sum(loss), at_backward = sum(backward);
  MemoryPlan plan;
  plan.state_gib = state;
  plan.host_gib = host_bytes(training) / kGiB;
  plan.limit_gib = training.hbm_gib > 0 ? training.hbm_gib : training.slice.hbm_gib();
  plan.moment = at_loss >= at_backward ? "loss" : "backward of a layer";
  plan.total_gib = state + std::max(at_loss, at_backward);
  const double least = state + std::max({sum(at_logits(1)), sum(at_gradient(narrow_stack)), at_backward});
  const double most = state + std::max({sum(at_logits(2)), sum(at_gradient(wide_stack)), at_backward});
  const Band band = memory_band(training);
  plan.low_gib = band.low * least;
  plan.high_gib = band.high * most;
  judge(plan);
  plan.buffers = at_loss >= at_backward ? loss : backward;
  plan.buffers.push_back({"parameters and optimizer state", state});
  std::erase_if(plan.buffers, [](const PlanBuffer& buffer) { return buffer.gib < 1e-4; });
  std::stable_sort(plan.buffers.begin(), plan.buffers.end(),
                   [](const PlanBuffer& a, const PlanBuffer& b) { return a.gib > b.gib; });
  const double work = at_backward - saved - stacked - layer_gradients - table_gradients;
  plan.timeline = {{"start", state},
                   {"first layer", state + stacked + saved / layers + work / 3},
                   {"last layer", state + stacked + saved + work / 3},
                   {"loss", state + at_loss},
                   {"backward, last layer", state + at_backward},
                   {"backward, first layer", state + at_backward - saved + saved / layers},
                   {"update", state + layer_gradients + tables * table_gradients}};
  return plan;
}

}  // namespace capibara::tpu
