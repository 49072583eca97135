// Chooses the devices of a call, compiles for them, and launches the program.
#include "backends/pjrt/executable.h"
#include "program/ir/handles.h"

#include "core/array/byte_count.h"
#include "core/runtime/transfer_guard.h"
#include "core/runtime/warning.h"

#include <capibara/error.h>

#include <algorithm>

namespace capibara::pjrt {

namespace {

// cuDNN versions differ in what they support, and report it when XLA compiles.
bool blames_cudnn(std::string_view message) {
  return message.find("cudnn") != message.npos || message.find("CUDNN") != message.npos ||
         message.find("cuDNN") != message.npos;
}

// True if both split an array in the same way; trailing dimensions that are not split need no entry.
bool same_layout(const NamedSharding& a, const NamedSharding& b) {
  if (a.devices != b.devices || a.memory_kind != b.memory_kind) return false;
  if (a.mesh == b.mesh) {
    const std::size_t rank = std::max(a.spec.dims.size(), b.spec.dims.size());
    for (std::size_t dim = 0; dim < rank; ++dim) {
      static const std::vector<std::string> none;
      if ((dim < a.spec.dims.size() ? a.spec.dims[dim] : none) != (dim < b.spec.dims.size() ? b.spec.dims[dim] : none))
        return false;
    }
    return true;
  }
  return a.replicated() && b.replicated();
}

bool same_placed(const std::shared_ptr<const NamedSharding>& a, const std::shared_ptr<const NamedSharding>& b) {
  return a == b || (a && b && *a == *b);
}

std::string devices_text(const NamedSharding& placement) {
  std::string text = "[";
  for (std::size_t i = 0; i < placement.devices.size(); ++i) text += concat(i ? ", " : "", placement.devices[i]);
  return concat("device ids ", text, "] on platform ", placement.platform);
}

}  // namespace

PjrtExecutable::PjrtExecutable(Client& client, const Program& program, std::vector<bool> donated, Extras extras,
                               int first, Compiler compile)
    : client_(client),
      program_(program),
      types_(program.output_types()),
      donated_(std::move(donated)),
      extras_(std::move(extras)),
      first_(first),
      compile_(std::move(compile)),
      name_(std::make_shared<const std::string>(program.name().empty() ? "program" : program.name())),
      borders_(stablehlo::find_borders(program)) {
  if (borders_.first && borders_.first->platform != client.platform()) {
    throw ValueError(concat("Received incompatible devices for jitted computation: ", *name_, " has a constraint for ",
                            to_string(*borders_.first), " of platform ", borders_.first->platform,
                            ", but runs on platform ", client.platform()));
  }
}

ExecutableDetails PjrtExecutable::details(std::span<const std::shared_ptr<const NamedSharding>> inputs) {
  std::vector<Placed> own(inputs.begin(), inputs.end());
  own.resize(program_.invars().size());
  const bool placed = std::any_of(own.begin(), own.end(), [](const Placed& one) { return one != nullptr; });
  const std::shared_ptr<const Variant> variant =
      placed || borders_.first ? find(program_.input_types(), std::move(own)) : plain();
  const Compiled& compiled = variant->loaded->compiled();
  return {compiled.memory_analysis(), variant->outputs};
}

const Loaded& PjrtExecutable::loaded() { return *plain()->loaded; }

std::shared_ptr<const PjrtExecutable::Variant> PjrtExecutable::plain() {
  std::lock_guard lock(mutex_);
  if (!plain_) plain_ = make(std::vector<Placed>(program_.invars().size()), nullptr);
  return plain_;
}

// ---- devices of a call --------------------------------------------------------------------------------------------

// The devices that the program's constraints and its inputs agree on.
PjrtExecutable::Placed PjrtExecutable::partitions_of(std::span<const ArrayType> types,
                                                     const std::vector<Placed>& own) const {
  Placed chosen = borders_.first;
  std::size_t chooser = types.size();
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (!own[i]) continue;
    if (!chosen) {
      chosen = own[i];
      chooser = i;
    } else if (chosen->devices != own[i]->devices) {
      const std::string other = chooser < types.size()
                                    ? concat("argument ", chooser, " with shape ", to_string(types[chooser]))
                                    : "a constraint";
      throw ValueError(concat("Received incompatible devices for jitted computation. Got ", other, " and with ",
                              devices_text(*chosen), " and argument ", i, " of ", *name_, " with shape ",
                              to_string(types[i]), " and with ", devices_text(*own[i])));
    } else if (chosen->mesh.axis_names.empty()) {
      chosen = own[i];
    }
  }
  if (!chosen) return nullptr;
  NamedSharding partitions = *chosen;
  partitions.spec = {};
  partitions.memory_kind.clear();
  return std::make_shared<const NamedSharding>(std::move(partitions));
}

std::shared_ptr<const PjrtExecutable::Variant> PjrtExecutable::find(std::span<const Array> inputs,
                                                                    const Memories& memories) {
  std::vector<Placed> own(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto* placed = dynamic_cast<const PlacedMemory*>(memories[i].get());
    if (!placed) continue;
    if (const auto* single = dynamic_cast<const DeviceBuffer*>(placed)) {
      if (&single->client() != &client_ || !inputs[i].committed()) continue;
    }
    own[i] = placed->placement();
    if (own[i]->platform != client_.platform()) own[i] = nullptr;
  }
  return find(program_.input_types(), std::move(own));
}

std::shared_ptr<const PjrtExecutable::Variant> PjrtExecutable::find(std::span<const ArrayType> types,
                                                                    std::vector<Placed> own) {
  for (const stablehlo::BorderDemand& demand : borders_.arguments) {
    Placed& input = own[demand.index];
    if (input && !same_layout(*input, *demand.placement)) {
      throw ValueError(
          concat("Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding: ",
                 to_string(*demand.placement), ",\narg sharding: ", to_string(*input),
                 " for arg type: ", to_string(types[demand.index])));
    }
    if (!input) input = demand.placement;
  }
  const auto matches = [&](const Variant& variant) {
    return std::equal(own.begin(), own.end(), variant.inputs.begin(), same_placed);
  };
  {
    std::lock_guard lock(mutex_);
    for (const auto& variant : variants_) {
      if (matches(*variant)) return variant;
    }
  }
  const Placed partitions = partitions_of(types, own);
  std::shared_ptr<const Variant> made = make(std::move(own), partitions);
  std::lock_guard lock(mutex_);
  variants_.push_back(made);
  return made;
}

std::shared_ptr<const PjrtExecutable::Variant> PjrtExecutable::make(std::vector<Placed> inputs,
                                                                    Placed partitions) const {
  auto variant = std::make_shared<Variant>();
  const std::vector<int> devices = partitions ? partitions->devices : std::vector<int>{first_};
  const Placed cut = devices.size() > 1 ? partitions : nullptr;
  Prepared prepared = prepare(program_, donated_, extras_, cut, inputs);
  if (prepared.calls) register_host_calls(client_);
  if (prepared.effects && devices.size() > 1) {
    throw NotImplementedError(
        concat(*name_, ": callbacks with side effects run on one device, got ", devices.size(), " devices"));
  }
  const bool first = devices.size() == 1 && devices[0] == client_.first_device() && client_.device_count() == 1;
  const std::vector<int> wanted_devices = first ? std::vector<int>{} : devices;
  try {
    variant->loaded = compile_(prepared, wanted_devices);
  } catch (const RuntimeError& error) {
    if (!prepared.cudnn || !blames_cudnn(error.what())) throw;
    warn(concat(*name_, ": attention runs without cuDNN, which refuses it: ", error.what()));
    Extras others = extras_;
    others.cudnn = {};
    prepared = prepare(program_, donated_, others, cut, inputs);
    variant->loaded = compile_(prepared, wanted_devices);
  }
  variant->inputs = std::move(inputs);
  variant->partitions = partitions;
  variant->calls = std::move(prepared.calls);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!client_.info(devices[i]).addressable) continue;
    variant->local.push_back(i);
    std::vector<std::shared_ptr<DeviceBuffer>>& own = variant->constants.emplace_back();
    const transfer::Explicit wanted;  // constants belong to the program
    for (const Array& constant : prepared.constants) own.push_back(client_.buffer_of(constant, devices[i]));
  }
  if (devices.size() > 1) {
    variant->outputs = output_placements(variant->loaded->compiled(), *partitions, types_);
    // An output placed like an input gets the input's spec: P('x', None) keeps its form.
    for (std::size_t i = 0; i < types_.size(); ++i) {
      for (std::size_t k = variant->inputs.size(); k-- > 0;) {
        const Placed& input = variant->inputs[k];
        if (input && program_.type(program_.invars()[k]).rank() == types_[i].rank() &&
            input->mesh == partitions->mesh && same_layout(*input, *variant->outputs[i])) {
          variant->outputs[i] = input;
        }
      }
    }
    // The result of a lone constraint gets exactly its spec.
    if (program_.equations().size() == 1 && program_.equations()[0].primitive == prim::sharding_constraint() &&
        program_.equations()[0].attrs.ints("unconstrained_dims").empty()) {
      variant->outputs[0] = borders_.first;
    }
    for (const stablehlo::BorderDemand& demand : borders_.results) {
      NamedSharding wanted = *demand.placement;
      wanted.memory_kind.clear();
      variant->outputs[demand.index] = std::make_shared<const NamedSharding>(std::move(wanted));
    }
  }
  return variant;
}

// ---- running ------------------------------------------------------------------------------------------------------

std::vector<int64_t> PjrtExecutable::kept_positions(const std::vector<bool>& donated) const {
  std::vector<int64_t> kept;  // compiled as donated but not donated in this call
  for (std::size_t i = 0; i < donated_.size(); ++i) {
    if (donated_[i] && (i >= donated.size() || !donated[i])) kept.push_back(static_cast<int64_t>(i));
  }
  return kept;
}

std::vector<abi::Buffer*> PjrtExecutable::start(const Variant& variant, std::span<abi::Buffer* const* const> arguments,
                                                std::size_t count, std::span<const int64_t> kept) const {
  // An error surfaces when an output is read: without outputs the call waits, or the error would be lost.
  if (!variant.calls && variant.loaded->output_count() > 0)
    return variant.loaded->execute(arguments, count, kept, *name_);
  std::vector<abi::Buffer*> results;
  auto run = [&] {
    std::vector<abi::Event*> ended(arguments.size(), nullptr);
    results = variant.loaded->execute(arguments, count, kept, *name_, ended.data());
    std::vector<std::unique_ptr<Event>> events;
    for (abi::Event* event : ended) {
      if (event) events.push_back(std::make_unique<Event>(client_.plugin(), event));
    }
    for (const auto& event : events) event->wait(*name_);
  };
  if (variant.calls)
    variant.calls->serve(run);
  else
    run();
  return results;
}

Arrays PjrtExecutable::execute(std::span<const Array> inputs, const std::vector<bool>& donated) {
  return profiled_.run(*name_, "pjrt", [&] { return dispatch(inputs, donated); });
}

Arrays PjrtExecutable::dispatch(std::span<const Array> inputs, const std::vector<bool>& donated) {
  Memories memories;
  memories.reserve(inputs.size());
  bool is_plain = !borders_.first, committed = false;
  for (const Array& input : inputs) {
    memories.push_back(input.buffer().device_memory());
    committed = committed || input.committed();
    const auto* placed = dynamic_cast<const PlacedMemory*>(memories.back().get());
    if (!placed) continue;
    const auto* single = dynamic_cast<const DeviceBuffer*>(placed);
    is_plain = is_plain && single &&
               (&single->client() != &client_ || (single->device() == first_ && single->memory_kind().empty()));
  }
  if (!is_plain) return execute_on(*find(inputs, memories), inputs, memories, donated);

  const std::shared_ptr<const Variant> variant = plain();
  std::vector<std::shared_ptr<DeviceBuffer>> held;
  std::vector<abi::Buffer*> arguments;
  held.reserve(inputs.size());
  arguments.reserve(inputs.size() + variant->constants[0].size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto* known = dynamic_cast<DeviceBuffer*>(memories[i].get());
    if (known && &known->client() == &client_) {
      arguments.push_back(known->handle());
      continue;
    }
    held.push_back(client_.buffer_of(inputs[i], first_));
    arguments.push_back(held.back()->handle());
  }
  for (const auto& constant : variant->constants[0]) arguments.push_back(constant->handle());
  abi::Buffer* const* list = arguments.data();
  const std::vector<abi::Buffer*> results = start(*variant, {&list, 1}, arguments.size(), kept_positions(donated));
  Arrays outputs;
  outputs.reserve(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    auto memory = std::make_shared<DeviceBuffer>(client_, results[i], types_[i], first_, name_);
    outputs.push_back(Array::from_buffer(
        types_[i], Buffer::on_device(std::move(memory), byte_count(types_[i]), client_.device(first_)), committed));
  }
  for (std::size_t i = 0; i < donated.size(); ++i) {
    if (donated[i]) inputs[i].delete_buffers();
  }
  return outputs;
}

Arrays PjrtExecutable::execute_on(const Variant& variant, std::span<const Array> inputs, const Memories& memories,
                                  const std::vector<bool>& donated) {
  const std::vector<int> devices = variant.partitions ? variant.partitions->devices : std::vector<int>{first_};
  const bool committed =
      borders_.first || std::any_of(inputs.begin(), inputs.end(), [](const Array& input) { return input.committed(); });
  const std::size_t constant_count = variant.constants.empty() ? 0 : variant.constants[0].size(),
                    count = inputs.size() + constant_count;
  // One row per device of this process: its arguments.
  std::vector<abi::Buffer*> arguments(variant.local.size() * count);
  std::vector<std::shared_ptr<DeviceMemory>> held;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (devices.size() == 1) {
      std::shared_ptr<DeviceBuffer> buffer = client_.buffer_of(inputs[i], devices[0]);
      arguments[i] = buffer->handle();
      held.push_back(std::move(buffer));
      continue;
    }
    Placed wanted = variant.inputs[i] ? variant.inputs[i] : variant.partitions;
    auto known = std::dynamic_pointer_cast<ShardedBuffer>(memories[i]);
    if (!known || &known->client() != &client_ || !same_layout(*known->placement(), *wanted) ||
        !wanted->memory_kind.empty()) {
      if (!wanted->memory_kind.empty()) {
        NamedSharding moved = *wanted;
        moved.memory_kind.clear();
        wanted = std::make_shared<const NamedSharding>(std::move(moved));
      }
      known = shard(client_, inputs[i], wanted);
    }
    for (std::size_t d = 0; d < variant.local.size(); ++d)
      arguments[d * count + i] = known->parts()[variant.local[d]]->handle();
    held.push_back(std::move(known));
  }
  std::vector<abi::Buffer* const*> lists;
  for (std::size_t d = 0; d < variant.local.size(); ++d) {
    for (std::size_t i = 0; i < constant_count; ++i)
      arguments[d * count + inputs.size() + i] = variant.constants[d][i]->handle();
    lists.push_back(arguments.data() + d * count);
  }
  const std::vector<abi::Buffer*> results = start(variant, lists, count, kept_positions(donated));
  Arrays outputs;
  for (std::size_t i = 0; i < types_.size(); ++i) {
    std::vector<std::shared_ptr<DeviceBuffer>> parts(devices.size());
    const ArrayType part_type =
        devices.size() == 1 ? types_[i] : types_[i].with_shape(variant.outputs[i]->shard_shape(types_[i].shape));
    for (std::size_t d = 0; d < variant.local.size(); ++d) {
      const std::size_t position = variant.local[d];
      parts[position] =
          std::make_shared<DeviceBuffer>(client_, results[d * types_.size() + i], part_type, devices[position], name_);
    }
    if (devices.size() == 1) {
      outputs.push_back(Array::from_buffer(
          types_[i], Buffer::on_device(parts[0], byte_count(types_[i]), client_.device(devices[0])), committed));
    } else {
      outputs.push_back(sharded_array(client_, types_[i], variant.outputs[i], std::move(parts)));
    }
  }
  for (std::size_t i = 0; i < donated.size(); ++i) {
    if (donated[i]) inputs[i].delete_buffers();
  }
  return outputs;
}

}  // namespace capibara::pjrt
