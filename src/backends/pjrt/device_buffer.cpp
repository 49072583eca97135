// Events, buffers and loaded programs of a plugin.
#include <capibara/error.h>

#include "backends/pjrt/client.h"

namespace capibara::pjrt {

using abi::Args;
using abi::Function;

namespace {

void drop(const Plugin& plugin, abi::Error* error) {
  if (error) plugin.take_message(error);
}

}  // namespace

// ---- events -------------------------------------------------------------------------------------------------------

Event::~Event() {
  Args<abi::EventDestroy> args;
  args.event = event_;
  drop(*plugin_, plugin_->try_call(Function::event_destroy, args));
}

bool Event::is_ready() const {
  Args<abi::EventIsReady> args;
  args.event = event_;
  plugin_->call(Function::event_is_ready, args, "event");
  return args.is_ready;
}

void Event::wait(const std::string& what) const {
  Args<abi::EventAwait> args;
  args.event = event_;
  plugin_->call(Function::event_await, args, what);
}

void Event::on_ready(std::function<void(std::string)> callback) const {
  struct Call {
    const Plugin* plugin;
    std::function<void(std::string)> callback;
  };
  auto call = std::make_unique<Call>(Call{plugin_, std::move(callback)});
  Args<abi::EventOnReady> args;
  args.event = event_;
  args.user = call.get();
  args.callback = [](abi::Error* error, void* user) {
    std::unique_ptr<Call> own(static_cast<Call*>(user));
    own->callback(error ? own->plugin->take_message(error) : std::string());
  };
  Call* owned = call.release();  // from here on the callback frees it
  if (abi::Error* error = plugin_->try_call(Function::event_on_ready, args)) {
    std::unique_ptr<Call> back(owned);
    plugin_->check(error, "event");
  }
}

// ---- buffers ------------------------------------------------------------------------------------------------------

DeviceBuffer::DeviceBuffer(Client& client, abi::Buffer* buffer, const ArrayType& type, int device,
                           std::shared_ptr<const std::string> operation)
    : client_(client), buffer_(buffer), type_(type), device_(device), operation_(std::move(operation)) {}

DeviceBuffer::~DeviceBuffer() {
  ready_.reset();
  Args<abi::BufferOnly> args;
  args.buffer = buffer_;
  drop(client_.plugin(), client_.plugin().try_call(Function::buffer_destroy, args));
}

const Event& DeviceBuffer::ready() {
  std::call_once(once_, [this] {
    Args<abi::BufferReadyEvent> args;
    args.buffer = buffer_;
    client_.plugin().call(Function::buffer_ready_event, args, what());
    ready_.emplace(client_.plugin(), args.event);
  });
  return *ready_;
}

bool DeviceBuffer::is_ready() { return ready().is_ready(); }
void DeviceBuffer::wait() { ready().wait(what()); }

void DeviceBuffer::copy_to_host(std::byte* to) {
  const HostType type = host_type(type_);
  std::vector<int64_t> order(type.shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(order.size() - 1 - i);
  Args<abi::Layout> layout;
  layout.struct_size = sizeof(abi::Layout);
  layout.tiled.struct_size = sizeof(abi::TiledLayout);
  layout.tiled.minor_to_major = order.data();
  layout.tiled.minor_to_major_size = order.size();
  Args<abi::BufferToHost> args;
  args.source = buffer_;
  args.layout = &layout;
  args.to = to;
  args.size = static_cast<std::size_t>(type_.size() * storage_size(type_.dtype));
  client_.plugin().call(Function::buffer_to_host, args, what());
  Event(client_.plugin(), args.event).wait(what());
}

void DeviceBuffer::release() {
  Args<abi::BufferOnly> args;
  args.buffer = buffer_;
  drop(client_.plugin(), client_.plugin().try_call(Function::buffer_delete, args));
}

// ---- loaded programs ----------------------------------------------------------------------------------------------

Loaded::Loaded(Client& client, abi::LoadedExecutable* executable) : client_(client), executable_(executable) {
  Args<abi::LoadedExecutableOf> of;
  of.loaded = executable;
  client.plugin().call(Function::loaded_executable, of, "compile");
  description_ = of.executable;
  Args<abi::ExecutableCount> count;
  count.executable = description_;
  client.plugin().call(Function::executable_output_count, count, "compile");
  output_count_ = count.count;
}

Loaded::~Loaded() {
  Args<abi::ExecutableDestroy> description;
  description.executable = description_;
  drop(client_.plugin(), client_.plugin().try_call(Function::executable_destroy, description));
  Args<abi::LoadedDestroy> loaded;
  loaded.executable = executable_;
  drop(client_.plugin(), client_.plugin().try_call(Function::loaded_destroy, loaded));
}

std::vector<abi::Buffer*> Loaded::execute(std::span<abi::Buffer* const> arguments, std::span<const int64_t> kept,
                                          const std::string& what, abi::Event** ended) const {
  Args<abi::ExecuteOptions> options;
  options.non_donatable = kept.data();
  options.non_donatable_count = kept.size();
  std::vector<abi::Buffer*> outputs(output_count_, nullptr);
  abi::Buffer* const* argument_list = arguments.data();
  abi::Buffer** output_list = outputs.data();
  Args<abi::LoadedExecute> args;
  args.executable = executable_;
  args.options = &options;
  args.arguments = &argument_list;
  args.device_count = 1;
  args.argument_count = arguments.size();
  args.outputs = &output_list;
  args.events = ended;
  client_.plugin().check(client_.plugin().try_call(Function::loaded_execute, args), what);
  return outputs;
}

std::optional<std::string> Loaded::serialized() const {
  Args<abi::ExecutableSerialize> args;
  args.executable = description_;
  if (!client_.plugin().has(Function::executable_serialize)) return std::nullopt;
  if (abi::Error* error = client_.plugin().try_call(Function::executable_serialize, args)) {
    client_.plugin().take_message(error);
    return std::nullopt;
  }
  std::string bytes(args.bytes, args.size);
  if (args.deleter) args.deleter(args.holder);
  return bytes;
}

MemoryAnalysis Loaded::memory_analysis() const {
  Args<abi::ExecutableMemory> args;
  args.executable = description_;
  client_.plugin().call(Function::executable_memory_stats, args, "memory_analysis");
  return {args.generated_code, args.argument, args.output, args.alias, args.temp, args.peak};
}

std::map<std::string, double> Loaded::cost_analysis() const {
  Args<abi::ExecutableCosts> args;
  args.executable = description_;
  client_.plugin().call(Function::executable_cost_analysis, args, "cost_analysis");
  std::map<std::string, double> costs;
  for (std::size_t i = 0; i < args.count; ++i) {
    const abi::NamedValue& value = args.properties[i];
    const std::string name(value.name, value.name_size);
    if (value.type == abi::named_float) costs[name] = static_cast<double>(value.real);
    else if (value.type == abi::named_integer) costs[name] = static_cast<double>(value.integer);
  }
  return costs;
}

}  // namespace capibara::pjrt
