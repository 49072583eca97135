// Placement of a trainer's parameters, optimizer state and batches on a mesh.
#include "models/training/placements.h"

#include <capibara/device.h>
#include <capibara/distributed.h>
#include <capibara/explicit.h>
#include <capibara/lax.h>

#include <algorithm>

#include "core/sharding/explicit.h"
#include "core/sharding/mesh_attr.h"
#include "models/training/layer_kinds.h"
#include "program/ir/nested.h"

namespace capibara::training {

namespace lax = jax::lax;

namespace {

[[noreturn]] void refuse(const TrainingMesh& mesh, const std::string& what) {
  throw ValueError(concat("Trainer: the mesh ", to_string(mesh), " ", what));
}

void check_devices(const TrainingMesh& mesh) {
  const auto there = static_cast<int64_t>(jax::devices().size());
  const int64_t processes = jax::process_count();
  if (processes > 1 && mesh.devices() != there) {
    refuse(mesh, concat("has ", mesh.devices(), " devices, the ", processes, " processes have ", there,
                        "; name a size for each of them"));
  }
  if (mesh.devices() > there) {
    refuse(mesh, concat("needs ", mesh.devices(), " devices, there ", there == 1 ? "is 1" : concat("are ", there),
                        "; on CPUs JAX_NUM_CPU_DEVICES says how many"));
  }
}

void check_axes(const TrainingMesh& mesh, const AnyModel& model, const TrainerConfig& config,
                const ShardingTable& table) {
  struct Axis {
    const char* name;
    int64_t size;
    const char* splits;
  };
  const Axis axes[] = {{"fsdp", mesh.fsdp, "a dimension that it divides"},
                       {"tensor", mesh.tensor, "a dimension of heads, hidden units or vocabulary that it divides"},
                       {"expert", mesh.expert, "a dimension of experts that it divides"}};
  for (const Axis& axis : axes) {
    if (axis.size == 1 || table.uses(axis.name)) continue;
    refuse(mesh, concat("has an axis that would do nothing: no parameter of '", model.name(), "' has ", axis.splits,
                        ", ", axis.name, "=", axis.size));
  }
  if (mesh.stages > 1 && mesh.sequence > 1) {
    refuse(mesh, "has stages and sequence; a pipeline computes whole sequences, so name one of the two");
  }
  if (mesh.stages > 1) {
    const ModelLayers* layers = model.layers();
    if (!layers) refuse(mesh, concat("has stages, and '", model.name(), "' has no layers to divide among them"));
    if (layers->count % mesh.stages != 0) {
      refuse(mesh, concat("has ", mesh.stages, " stages, which do not divide the ", layers->count, " layers of '",
                          model.name(), "'"));
    }
  }
  const auto* language = model.target<LanguageModel>();
  if (!language) return;
  const int64_t parts = mesh.data * mesh.fsdp;
  if (config.batch % parts != 0) {
    refuse(mesh,
           concat("splits batches into ", parts, " parts (data x fsdp), which do not divide batch=", config.batch));
  }
  if (mesh.sequence == 1) return;
  if (config.length % mesh.sequence != 0) {
    refuse(mesh, concat("splits sequences into ", mesh.sequence, " parts, which do not divide length=", config.length));
  }
  const std::vector<std::string>& layers = language->config().layers;
  if (std::none_of(layers.begin(), layers.end(),
                   [](const std::string& text) { return layer_kind(text).mixer == "attention"; })) {
    refuse(mesh, concat("has an axis that would do nothing: '", model.name(),
                        "' has no attention, sequence=", mesh.sequence));
  }
}

MeshRules rules_of(const TrainerConfig& config) {
  MeshRules rules = config.rules;
  // Parameters that no stage owns are split over the stages.
  if (config.mesh.stages > 1) rules.largest.push_back("stages");
  return rules;
}

bool maps_over(const Program& program, const std::string& axis) {
  return std::any_of(program.equations().begin(), program.equations().end(), [&](const Equation& equation) {
    if (equation.primitive->traits.control == Control::device_map) {
      const Attr* axes = equation.attrs.find("newly_manual_axes");
      const auto* list = axes ? axes->get_if<std::shared_ptr<const Attr::List>>() : nullptr;
      for (std::size_t i = 0; list && i < (*list)->size(); ++i) {
        const auto* name = (**list)[i].get_if<std::string>();
        if (name && *name == axis) return true;
      }
    }
    return any_program(equation.attrs, [&](const Program& inner) { return maps_over(inner, axis); });
  });
}

}  // namespace

std::shared_ptr<const TrainingPlacement> TrainingPlacement::of(const AnyModel& model, const TrainerConfig& config) {
  const Mesh mesh = make_mesh(config.mesh);  // checks the sizes
  if (mesh.axis_names.empty()) return nullptr;
  check_devices(config.mesh);
  return std::shared_ptr<const TrainingPlacement>(new TrainingPlacement(model, config));
}

TrainingPlacement::TrainingPlacement(const AnyModel& model, const TrainerConfig& config)
    : mesh_(config.mesh),
      devices_(jax::make_sharding(make_mesh(config.mesh), {})),
      table_(shard_by_axes(model, devices_.mesh, rules_of(config))) {
  check_axes(mesh_, model, config, table_);
  for (const char* axis : {"data", "fsdp"}) {
    if (!devices_.mesh.has(axis)) continue;
    batch_axes_.push_back(axis);
    batch_parts_ *= devices_.mesh.axis_size(axis);
  }
}

jax::Scope TrainingPlacement::scope() const { return jax::set_mesh(devices_.mesh, devices_.platform); }

NamedSharding TrainingPlacement::at(const PartitionSpec& spec) const {
  NamedSharding placement = devices_;
  placement.spec = spec;
  return placement;
}

std::vector<std::vector<int>> TrainingPlacement::owners(const TrainState& state) const {
  const std::vector<ParameterSharding>& parameters = table_.parameters;
  const auto count = static_cast<int>(parameters.size());
  std::vector<std::vector<int>> owners;
  for (const Arrays& link : state.optimizer) {
    owners.emplace_back();
    int next = 0;
    for (const Array& leaf : link) {
      int owner = -1;
      for (int i = 0; i < count && owner < 0 && leaf.ndim() > 0; ++i) {
        const int at = (next + i) % count;
        if (parameters[static_cast<std::size_t>(at)].type.shape == leaf.shape()) owner = at;
      }
      if (owner >= 0) next = (owner + 1) % count;
      owners.back().push_back(owner);
    }
  }
  return owners;
}

template <class Place>
TrainState TrainingPlacement::mapped(const TrainState& state, Place place) const {
  TrainState result;
  for (const auto& [name, array] : state.parameters) result.parameters.emplace(name, place(array, at(name)));
  const std::vector<std::vector<int>> all = owners(state);
  for (std::size_t link = 0; link < state.optimizer.size(); ++link) {
    result.optimizer.emplace_back();
    for (std::size_t i = 0; i < state.optimizer[link].size(); ++i) {
      const int owner = all[link][i];
      const PartitionSpec spec = owner < 0 ? PartitionSpec{} : table_.parameters[static_cast<std::size_t>(owner)].spec;
      result.optimizer.back().push_back(place(state.optimizer[link][i], at(spec)));
    }
  }
  result.average = place(state.average, devices_);
  result.good = place(state.good, devices_);
  result.bad = place(state.bad, devices_);
  return result;
}

namespace {

Array put(const Array& array, const NamedSharding& placement) { return jax::device_put(array, placement); }
Array require(const Array& array, const NamedSharding& placement) {
  return lax::with_sharding_constraint(array, placement);
}

}  // namespace

Parameters TrainingPlacement::placed(const Parameters& parameters) const {
  Parameters result;
  for (const auto& [name, array] : parameters) result.emplace(name, put(array, at(name)));
  return result;
}

TrainState TrainingPlacement::placed(const TrainState& state) const { return mapped(state, put); }

TrainState TrainingPlacement::constrained(const TrainState& state) const { return mapped(state, require); }

Parameters TrainingPlacement::constrained(const Parameters& parameters) const {
  Parameters result;
  for (const auto& [name, array] : parameters) result.emplace(name, require(array, at(name)));
  return result;
}

TrainState TrainingPlacement::gathered(const TrainState& state) const {
  if (jax::process_count() == 1) return state;
  auto whole = jax::jit(
      [devices = devices_](const TrainState& split) {
        return jax::tree::map([&](const Array& array) { return require(array, devices); }, split);
      },
      {.name = "gather_state"});
  return whole(state);
}

Arrays TrainingPlacement::placed_batch(const char* operation, const Arrays& batch) const {
  Arrays result;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Array& array = batch[i];
    PartitionSpec spec;
    if (array.ndim() > 0 && batch_parts_ > 1) {
      if (array.shape(0) % batch_parts_ != 0) {
        throw ValueError(concat("Trainer.", operation, ": the mesh ", to_string(mesh_), " splits batches into ",
                                batch_parts_, " parts (data x fsdp), which do not divide the first dimension of array ",
                                i, " of the batch, ", to_string(array.type())));
      }
      spec.dims = {batch_axes_};
    }
    result.push_back(put(array, at(spec)));
  }
  return result;
}

Arrays TrainingPlacement::constrained_parts(const Arrays& parts) const {
  Arrays result;
  for (const Array& array : parts) {
    const bool splits = array.ndim() > 1 && array.shape(1) % batch_parts_ == 0;
    result.push_back(splits ? require(array, at(PartitionSpec{{{}, batch_axes_}})) : array);
  }
  return result;
}

Array TrainingPlacement::loss(const AnyModel& model, const TrainerConfig& config, const Parameters& parameters,
                              const Arrays& batch) const {
  if (mesh_.stages == 1) {
    return config.compute == DType::float32 ? model.loss(parameters, batch)
                                            : model.loss_in(config.compute, parameters, batch);
  }
  auto cast = [&](const Array& x) {
    return is_floating(x.dtype()) && config.compute != DType::float32 ? lax::convert_element_type(x, config.compute)
                                                                      : x;
  };
  const Array loss = pipeline_loss(model, jax::tree::map(cast, parameters), jax::tree::map(cast, batch), devices_,
                                   {.axis = "stages", .microbatches = mesh_.microbatches});
  return lax::convert_element_type(loss, DType::float32);
}

void TrainingPlacement::require_sequence(const AnyModel& model, const Parameters& parameters,
                                         const Arrays& batch) const {
  if (mesh_.sequence == 1) return;
  const jax::Scope mesh = scope();
  auto loss = [&](const Parameters& p, const Arrays& b) { return model.loss(p, b); };
  if (maps_over(jax::make_jaxpr(loss, "loss")(parameters, batch), "sequence")) return;
  refuse(mesh_,
         concat("has an axis that would do nothing: the loss of '", model.name(), "' computes nothing over ",
                "sequence=", mesh_.sequence, "; its attention is kernels.flash_attention(sequence_parallel=True)"));
}

MeshBytes TrainingPlacement::planned(const TrainState& state) const {
  auto bytes_of = [](const Array& array, const NamedSharding& placement) {
    return element_count(placement.shard_shape(array.shape())) * storage_size(array.dtype());
  };
  MeshBytes bytes;
  bytes.parameters = bytes.gradients = table_.bytes();
  int64_t all = 0;
  mapped(state, [&](const Array& array, const NamedSharding& placement) {
    all += bytes_of(array, placement);
    return array;
  });
  for (const auto& [name, array] : state.parameters) all -= bytes_of(array, at(name));
  for (const Array* scalar : {&state.average, &state.good, &state.bad}) all -= bytes_of(*scalar, devices_);
  bytes.optimizer = all;
  return bytes;
}

int64_t bytes_held(const Arrays& arrays) {
  std::map<std::size_t, int64_t> held;
  for (const Array& array : arrays) {
    const std::vector<Array> shards = jax::addressable_shards(array);
    for (std::size_t i = 0; i < shards.size(); ++i) held[i] += shards[i].size() * storage_size(shards[i].dtype());
  }
  int64_t most = 0;
  for (const auto& [device, bytes] : held) most = std::max(most, bytes);
  return most;
}

}  // namespace capibara::training
