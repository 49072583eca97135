// The training step of a plan, traced and written as StableHLO: embedding, a scan over layers, cross entropy, gradients
// and Adam with f32 state, computed in bf16.
#include "tpu/step_program.h"

#include <capibara/control.h>
#include <capibara/error.h>
#include <capibara/lax.h>
#include <capibara/nn.h>
#include <capibara/numpy.h>
#include <capibara/transforms.h>

#include <cmath>
#include <numeric>

#include "compiler/stablehlo/write.h"
#include "core/sharding/placed_memory.h"
#include "program/ir/source.h"
#include "tpu/step.h"

namespace capibara::tpu {

namespace jnp = jax::numpy;
namespace lax = jax::lax;
namespace nn = jax::nn;

StepLine::StepLine(const char* name, const char* file, int line) {
  const std::string path = file;
  const std::size_t room = path.rfind("src/tpu/");
  scope_ = new SourceScope(intern({name, room == std::string::npos ? path : path.substr(room), line, nullptr}));
}
StepLine::~StepLine() { delete static_cast<SourceScope*>(scope_); }

StepMesh::StepMesh(const Training& training) {
  const PlanMesh& mesh = training.mesh;
  const std::pair<const char*, int> axes[] = {{"dcn_data", mesh.dcn_data}, {"dcn_fsdp", mesh.dcn_fsdp},
                                              {"data", mesh.data},         {"fsdp", mesh.fsdp},
                                              {"expert", mesh.expert},     {"tensor", mesh.tensor}};
  for (const auto& [name, size] : axes) {
    if (size == 1) continue;
    const std::string axis = name;
    devices_.mesh.axis_names.push_back(axis);
    devices_.mesh.axis_sizes.push_back(size);
    if (axis != "tensor") batch_.push_back(axis);
    if (axis == "fsdp" || axis == "dcn_fsdp") weights_.push_back(axis);
    if (axis == "fsdp" || axis == "dcn_fsdp" || axis == "expert") all_weights_.push_back(axis);
    if (axis == "expert") experts_.push_back(axis);
    if (axis == "tensor") tensor_.push_back(axis);
  }
  devices_.platform = "tpu";
  devices_.devices.resize(static_cast<std::size_t>(training.slice.devices()));
  std::iota(devices_.devices.begin(), devices_.devices.end(), 0);
}

const AxisList& StepMesh::axes_of(char letter) const {
  switch (letter) {
    case 'b':
      return batch_;
    case 'e':
      return experts_;
    case 'f':
      return weights_;
    case 'g':
      return all_weights_;
    case 't':
      return tensor_;
    default:
      return none_;
  }
}

int64_t StepMesh::parts(char letter) const {
  int64_t parts = 1;
  for (const std::string& axis : axes_of(letter)) parts *= devices_.mesh.axis_size(axis);
  return parts;
}

PartitionSpec StepMesh::spec(const std::string& letters, const capibara::Shape& shape) const {
  PartitionSpec spec;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    AxisList axes = axes_of(letters[i]);
    if (letters[i] == 'b' && letters[0] == 'e') std::erase(axes, "expert");  // 'expert' already splits the experts
    int64_t split = 1;
    for (const std::string& axis : axes) split *= devices_.mesh.axis_size(axis);
    spec.dims.push_back(shape[i] % split == 0 ? axes : AxisList());
  }
  return spec;
}

NamedSharding StepMesh::sharding(PartitionSpec spec) const {
  NamedSharding own = devices_;
  own.spec = std::move(spec);
  return own;
}

Array StepMesh::constrained(const Array& x, const std::string& letters) const {
  if (devices_.devices.size() == 1) return x;
  return lax::with_sharding_constraint(x, sharding(spec(letters, x.shape())));
}

namespace {

jax::CheckpointPolicy policy_of(const std::string& remat) {
  using namespace jax::checkpoint_policies;
  if (remat == "save_out_proj") return save_only_these_names({"projection"});
  if (remat == "minimal") return save_only_these_names({"qkv", "projection", "products"});
  if (remat == "offload" || remat == "save_dot_except_mlp") return save_only_these_names({"qkv", "projection"});
  if (remat == "qkv") return save_only_these_names({"qkv"});
  return nothing_saveable;
}

Array mean_loss(const Training& training, const StepMesh& mesh, const std::vector<StepParameter>& names,
                std::size_t layer_count, const Arrays& parameters, const Array& tokens) {
  const Architecture& model = training.model;
  Weights outer;
  Arrays stacked(parameters.begin(), parameters.begin() + static_cast<std::ptrdiff_t>(layer_count));
  for (std::size_t i = layer_count; i < names.size(); ++i) outer[names[i].name] = parameters[i];
  auto layer = [&](const Array& x, const Arrays& own) {
    Weights weights;
    for (std::size_t i = 0; i < layer_count; ++i) weights[names[i].name] = own[i];
    return apply_layer(model, mesh, x, weights);
  };
  auto kept = jax::checkpoint(layer, {.policy = policy_of(training.remat), .prevent_cse = false, .name = "layer"});
  auto step = [&](const Array& x, const Arrays& own) {
    return std::pair(training.remat == "none" ? layer(x, own) : kept(x, own), std::monostate{});
  };
  Array x;
  {
    StepLine line("embedding");
    x = mesh.constrained(jnp::take(outer.at("embed").astype(DType::bfloat16), tokens, {.axis = 0, .mode = "clip"}),
                         "b.t");
  }
  {
    StepLine line("layers");
    x = lax::scan(step, x, stacked).first;
  }
  Array logits;
  {
    StepLine line("logits");
    const Array table = model.tied ? jnp::transpose(outer.at("embed")) : outer.at("out");
    logits = mesh.constrained(jnp::matmul(rms_norm(x, outer.at("norm")), table.astype(DType::bfloat16)), "b.t");
  }
  StepLine line("loss");
  logits = logits.astype(DType::float32);
  const Array wanted = jnp::take_along_axis(logits, jnp::expand_dims(jnp::roll(tokens, -1, 1), -1),
                                            {.axis = -1, .mode = "promise_in_bounds"});
  return jnp::mean(nn::logsumexp(logits, {.axis = -1}) - jnp::squeeze(wanted, -1));
}

}  // namespace

std::string step_stablehlo(const Training& training) {
  check_training(training);
  const Architecture& model = training.model;
  if (training.mesh.context > 1)
    throw ValueError("plan: the step with context > 1 is modelled alone: its attention does not split the sequence");
  const bool named = training.remat == "minimal_with_context" || training.remat == "save_dot_except_mlpwi" ||
                     training.remat == "save_dot_with_context_except_mlp";
  if (named) throw ValueError(concat("plan: the policy ", training.remat, " is modelled alone"));
  if (model.shared > 0 || model.dense_layers > 0 || model.window > 0 || model.kv_rank > 0 ||
      (model.kind == "moe" && model.capacity != 1.25) || training.precision != "bf16") {
    throw ValueError(
        "plan: shared experts, leading dense layers, local and latent attention, dropless experts and quantized "
        "matmuls are modelled alone: the step that is compiled has none of them");
  }
  const StepMesh mesh(training);
  const int64_t batch = std::llround(training.batch_per_device * training.slice.devices());
  if (batch < 1 || batch % mesh.parts('b') != 0) {
    throw ValueError(concat("plan: a batch of ", batch, " sequences cannot be split over ", mesh.parts('b'),
                            " groups of devices; give a multiple to compile the step"));
  }
  std::vector<StepParameter> parameters = layer_weights(model, mesh);
  const std::size_t layer_count = parameters.size();
  for (StepParameter& one : parameters) {
    one.shape.insert(one.shape.begin(), model.layers);
    one.spec.dims.insert(one.spec.dims.begin(), AxisList());
  }
  const capibara::Shape table{model.vocab, model.width};
  parameters.push_back({"embed", table, mesh.spec("tg", table)});
  if (!model.tied)
    parameters.push_back({"out", {model.width, model.vocab}, mesh.spec("gt", {model.width, model.vocab})});
  parameters.push_back({"norm", {model.width}, mesh.spec(".", {model.width})});

  Types types;
  std::vector<PartitionSpec> specs;
  for (int copy = 0; copy < 3; ++copy) {
    for (const StepParameter& one : parameters) {
      types.push_back(ArrayType{one.shape, DType::float32, false, false, {}});
      specs.push_back(one.spec);
    }
  }
  const std::size_t count = parameters.size();
  types.push_back(ArrayType{{batch, training.sequence}, DType::int32, false, false, {}});
  specs.push_back(mesh.spec("b.", {batch, training.sequence}));
  auto train = [&](std::span<const Array> in) {
    const Arrays weights(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(count));
    const Array tokens = in[3 * count];
    const Arrays gradients = jax::grad(
        [&](const Arrays& p) { return mean_loss(training, mesh, parameters, layer_count, p, tokens); })(weights);
    StepLine line("optimizer");
    Arrays out(3 * count);
    for (std::size_t i = 0; i < count; ++i) {
      const Array first = 0.9f * in[count + i] + 0.1f * gradients[i];
      const Array second = 0.95f * in[2 * count + i] + 0.05f * jnp::square(gradients[i]);
      out[i] = weights[i] - 1e-3f * (first / (jnp::sqrt(second) + 1e-8f) + 0.1f * weights[i]);
      out[count + i] = first;
      out[2 * count + i] = second;
    }
    return out;
  };
  stablehlo::WriteOptions options;
  options.module_name = "training_step";
  options.locations = true;
  for (std::size_t i = 0; i < types.size(); ++i) {
    options.argument_attributes.push_back(i < 3 * count ? concat("tf.aliasing_output = ", i, " : i32") : "");
    options.argument_placements.push_back(std::make_shared<const NamedSharding>(mesh.sharding(specs[i])));
    if (i < 3 * count && training.slice.devices() > 1)
      options.result_attributes.push_back(
          concat("sdy.sharding = #sdy.sharding<@mesh, ", shardy_text(specs[i], types[i].shape.size()), ">"));
  }
  const Program program = detail::stage_program(train, types, "training_step");
  return stablehlo::write_program(training.remat == "offload" ? offload_residuals(program) : program, options);
}

}  // namespace capibara::tpu
