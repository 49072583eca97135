// A pipeline over stages of layers: shard_map over one mesh axis, and microbatches that move from device to device.
//
//   tick        0  1  2  3  4           three microbatches, three stages
//   stage 0     0  1  2
//   stage 1        0  1  2
//   stage 2           0  1  2
//
// In the other slots a stage computes values that are never read, from real inputs: zeros could make a layer
// produce NaNs, which would reach the gradients of its parameters.
#include <capibara/training/mesh.h>

#include <capibara/collective.h>
#include <capibara/control.h>
#include <capibara/lax.h>
#include <capibara/shard_map.h>

#include <algorithm>

#include "core/array/format.h"
#include "core/sharding/placed_memory.h"
#include "lax/collective/collective.h"
#include "models/protocol/checkpointing.h"

namespace capibara::training {

namespace lax = jax::lax;

namespace {

// The parameters of one layer, with the prefix removed from their names.
Parameters own_parameters(const Parameters& parameters, const std::string& prefix) {
  Parameters own;
  for (auto it = parameters.lower_bound(prefix); it != parameters.end() && it->first.starts_with(prefix); ++it) {
    own.emplace(it->first.substr(prefix.size()), it->second);
  }
  return own;
}

// All parameters, with those of one layer replaced.
Parameters with_layer(Parameters parameters, const std::string& prefix, const Parameters& own) {
  for (const auto& [name, array] : own) parameters[prefix + name] = array;
  return parameters;
}

[[noreturn]] void refuse(const AnyModel& model, const std::string& what) {
  throw ValueError(concat("pipeline: ", model.name(), " ", what));
}

// The computation of a layer, as text: a program of its parameters, without the prefix in their names, and the carry.
std::string program_of(const ModelLayers& layers, int64_t layer, const Parameters& parameters, const Arrays& carry) {
  const std::string& prefix = layers.prefixes[static_cast<std::size_t>(layer)];
  auto run = [&](const Parameters& own, const Arrays& x) {
    return layers.run(with_layer(parameters, prefix, own), layer, x);
  };
  const Program program = jax::make_jaxpr(std::function<Arrays(const Parameters&, const Arrays&)>(run), "layer")(
      own_parameters(parameters, prefix), carry);
  return program.to_string();
}

std::vector<std::string> parameter_types(const ModelLayers& layers, int64_t layer, const Parameters& parameters) {
  std::vector<std::string> types;
  for (const auto& [name, array] : own_parameters(parameters, layers.prefixes[static_cast<std::size_t>(layer)]))
    types.push_back(concat(name, " ", to_string(array.type())));
  return types;
}

// Requires that all layers are the same program with different parameters.
void check_layers(const AnyModel& model, const ModelLayers& layers, const Parameters& parameters, const Arrays& carry,
                  int64_t stages, const std::string& axis) {
  if (layers.count % stages != 0) {
    refuse(model, concat("has ", layers.count, " layers, which ", axis, "=", stages, " does not divide"));
  }
  if (static_cast<int64_t>(layers.prefixes.size()) != layers.count) {
    refuse(model, "does not say which parameters are of which layer; give its layers prefixes");
  }
  const std::vector<std::string> first_types = parameter_types(layers, 0, parameters);
  if (first_types.empty()) {
    refuse(model, concat("has no parameters that begin with '", layers.prefixes[0], "', the prefix of layer 0"));
  }
  const std::string first = program_of(layers, 0, parameters, carry);
  for (int64_t layer = 1; layer < layers.count; ++layer) {
    const std::vector<std::string> types = parameter_types(layers, layer, parameters);
    if (types != first_types) {
      const auto [a, b] = std::mismatch(types.begin(), types.end(), first_types.begin(), first_types.end());
      refuse(model,
             concat("has layers with other parameters, which no pipeline can stack: layer ", layer, " has ",
                    a == types.end() ? "nothing" : *a, " where layer 0 has ", b == first_types.end() ? "nothing" : *b));
    }
    if (program_of(layers, layer, parameters, carry) != first) {
      refuse(model, concat("has layers that compute different things, which no pipeline can stack: layer ", layer,
                           " is another program than layer 0"));
    }
  }
}

// [batch, ...] as [microbatches, batch / microbatches, ...]: microbatch i takes the examples i, i + microbatches, ...,
// so that a batch split over devices stays split.
Array cut(const Array& x, int64_t microbatches) {
  Shape shape = x.shape();
  shape[0] /= microbatches;
  shape.insert(shape.begin() + 1, microbatches);
  Ints order;
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i) order.push_back(i < 2 ? 1 - i : i);
  return lax::transpose(lax::reshape(x, shape), order);
}

Array joined(const Array& x) {
  Ints order;
  for (int64_t i = 0; i < x.ndim(); ++i) order.push_back(i < 2 ? 1 - i : i);
  Shape shape = x.shape();
  shape[1] *= shape[0];
  shape.erase(shape.begin());
  return lax::reshape(lax::transpose(x, order), shape);
}

Array mean_over_front(const Array& x) { return lax::reduce_sum(x, {.axes = {0}}) / static_cast<double>(x.shape(0)); }

int64_t microbatches_of(const AnyModel& model, const PipelineOptions& options, int64_t batch, int64_t stages) {
  if (options.microbatches > 0) {
    if (batch % options.microbatches == 0) return options.microbatches;
    refuse(model,
           concat("is given a batch of ", batch, ", which microbatches=", options.microbatches, " does not divide"));
  }
  if (batch % (2 * stages) == 0) return 2 * stages;
  if (batch % stages == 0) return stages;
  refuse(model, concat("is given a batch of ", batch, ", which ", options.axis, "=", stages,
                       " microbatches do not divide; name a number of microbatches"));
}

}  // namespace

Array pipeline_loss(const AnyModel& model, const Parameters& parameters, const Arrays& batch,
                    const NamedSharding& devices, const PipelineOptions& options) {
  const ModelLayers* layers = model.layers();
  if (!layers) refuse(model, "has no layers (layer_count, start, run_layer, finish), over which a pipeline could run");
  if (!devices.mesh.has(options.axis)) {
    throw ValueError(
        concat("pipeline: expected a mesh with the axis '", options.axis, "', got ", mesh_text(devices.mesh)));
  }
  if (batch.empty() || batch[0].ndim() == 0) {
    throw ValueError("pipeline: expected a batch whose first dimension counts examples");
  }
  const int64_t stages = devices.mesh.axis_size(options.axis), examples = batch[0].shape(0);
  const int64_t microbatches = microbatches_of(model, options, examples, stages), each = layers->count / stages;
  const Arrays first = layers->start(parameters, batch);
  check_layers(model, *layers, parameters, first, stages, options.axis);

  // Arrays of the carry with a leading batch dimension are split; the others are repeated for every microbatch.
  std::vector<bool> has_batch;
  Arrays inputs;
  for (const Array& x : first) {
    has_batch.push_back(x.ndim() > 0 && x.shape(0) == examples);
    if (has_batch.back()) {
      inputs.push_back(cut(x, microbatches));
    } else {
      Shape shape = x.shape();
      shape.insert(shape.begin(), microbatches);
      Ints dims;
      for (int64_t i = 0; i < x.ndim(); ++i) dims.push_back(i + 1);
      inputs.push_back(lax::broadcast_in_dim(x, shape, dims));
    }
  }
  // [stages, layers per stage, ...] for each parameter.
  Parameters stacked;
  for (const auto& [name, array] : own_parameters(parameters, layers->prefixes[0])) {
    Arrays all;
    for (const std::string& prefix : layers->prefixes) all.push_back(parameters.at(prefix + name));
    Shape shape = array.shape();
    shape.insert(shape.begin(), {stages, each});
    stacked.emplace(name, lax::reshape(lax::stack(all, 0), shape));
  }
  std::vector<std::string> names;
  Arrays operands = inputs;
  std::vector<PartitionSpec> in_specs(inputs.size()), out_specs(inputs.size());
  for (const auto& [name, array] : stacked) {
    names.push_back(name);
    operands.push_back(array);
    in_specs.push_back(PartitionSpec{{{options.axis}}});
  }

  auto device = [&](const Arrays& local) {
    const Arrays waiting(local.begin(), local.begin() + static_cast<std::ptrdiff_t>(inputs.size()));
    Parameters own;
    for (std::size_t i = 0; i < names.size(); ++i)
      own.emplace(names[i], lax::index_in_dim(local[inputs.size() + i], 0, 0, false));
    const Array stage = lax::axis_index(options.axis);
    std::vector<std::pair<int64_t, int64_t>> to_next;
    for (int64_t i = 0; i + 1 < stages; ++i) to_next.emplace_back(i, i + 1);
    auto run = [&](Arrays carry) {
      const int64_t every = layers->checkpoint_every_n_layers, group = every > 0 ? every : each;
      for (int64_t begin = 0; begin < each; begin += group) {
        auto run_group = [&, end = std::min(each, begin + group)](const Parameters& stage, const Arrays& x) {
          Arrays next = x;
          for (int64_t layer = begin; layer < end; ++layer) {
            Parameters own_layer;
            for (const auto& [name, array] : stage) own_layer.emplace(name, lax::index_in_dim(array, layer, 0, false));
            next = layers->run(with_layer(parameters, layers->prefixes[0], own_layer), 0, next);
          }
          return next;
        };
        carry = every > 0 ? jax::checkpoint(run_group, {.policy = checkpoint_policy_of(layers->checkpoint_policy)})(
                                own, carry)
                          : run_group(own, carry);
      }
      return carry;
    };
    const Array is_first = stage == lax::full_like(stage, 0.0),
                is_last = stage == lax::full_like(stage, double(stages - 1));
    auto tick = [&](const Arrays& arrived, const Array& number) {
      const Array last = lax::full({}, static_cast<int32_t>(microbatches - 1), DType::int32);
      const Array next = lax::min(number, last);
      Arrays carry;
      for (std::size_t i = 0; i < waiting.size(); ++i) {
        const Array fresh = lax::varied_over(lax::dynamic_index_in_dim(waiting[i], next, 0, false), {options.axis});
        carry.push_back(lax::select(lax::broadcast_in_dim(is_first, fresh.shape(), {}), fresh, arrived[i]));
      }
      Arrays done = run(std::move(carry));
      Arrays sent;
      for (Array& x : done) {
        x = lax::varied_over(x, {options.axis});
        sent.push_back(lax::ppermute(x, options.axis, to_next));
      }
      // The first stage receives nothing: it takes its own inputs.
      return std::pair(sent, done);
    };
    Arrays begin;
    for (const Array& x : waiting) begin.push_back(lax::varied_over(lax::index_in_dim(x, 0, 0, false), {options.axis}));
    const Array ticks = lax::broadcasted_iota(DType::int32, {microbatches + stages - 1}, 0);
    const Arrays all = lax::scan(tick, begin, ticks).second;
    Arrays results;
    for (const Array& x : all) {
      const Array own_rows = lax::slice_in_dim(x, stages - 1, x.shape(0), 1, 0);
      const Array kept =
          lax::select(lax::broadcast_in_dim(is_last, own_rows.shape(), {}), own_rows, lax::zeros_like(own_rows));
      results.push_back(lax::psum(kept, {options.axis}));
    }
    return results;
  };
  NamedSharding mesh = devices;
  mesh.spec = {};
  auto mapped = jax::shard_map(
      device, {.mesh = mesh, .in_specs = in_specs, .out_specs = out_specs, .axis_names = {options.axis}});
  Arrays last = mapped(operands);
  for (std::size_t i = 0; i < last.size(); ++i) last[i] = has_batch[i] ? joined(last[i]) : mean_over_front(last[i]);
  return layers->finish(parameters, last, batch);
}

}  // namespace capibara::training
