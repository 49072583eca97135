// Events, buffers and loaded programs of a plugin.
#include <capibara/error.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "backends/pjrt/client.h"
#include "core/runtime/background.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/transfer_guard.h"

namespace capibara::pjrt {

using abi::Args;
using abi::Function;

namespace {

void drop(const Plugin& plugin, abi::Error* error) {
  if (error) plugin.take_message(error);
}

// Returns when the event is ready, or throws if the wait is interrupted: the device continues its work and keeps its
// buffers.
void wait_for_signals_or(const Event& event) {
  constexpr std::chrono::milliseconds period(2);
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool ready = false;
  };
  const auto state = std::make_shared<State>();
  event.on_ready([state](const std::string&) {
    std::lock_guard lock(state->mutex);
    state->ready = true;
    state->changed.notify_all();
  });
  const Waiting waiting;
  std::unique_lock lock(state->mutex);
  while (!state->changed.wait_for(lock, period, [&] { return state->ready; })) {
    lock.unlock();
    poll_interrupt();
    lock.lock();
  }
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
  Call* owned = call.release();  // from now on the callback owns it
  if (abi::Error* error = plugin_->try_call(Function::event_on_ready, args)) {
    std::unique_ptr<Call> back(owned);
    plugin_->check(error, "event");
  }
}

// ---- buffers ------------------------------------------------------------------------------------------------------

DeviceBuffer::DeviceBuffer(Client& client, abi::Buffer* buffer, const ArrayType& type, int device,
                           std::shared_ptr<const std::string> operation, std::string memory_kind)
    : client_(client),
      buffer_(buffer),
      type_(type),
      device_(device),
      operation_(std::move(operation)),
      memory_kind_(std::move(memory_kind)) {}

std::shared_ptr<const NamedSharding> DeviceBuffer::placement() const {
  return std::make_shared<const NamedSharding>(NamedSharding{client_.platform(), {device_}, {}, {}, memory_kind_});
}

DeviceBuffer::~DeviceBuffer() {
  ready_.reset();
  Args<abi::BufferOnly> args;
  args.buffer = buffer_;
  drop(client_.plugin(), client_.plugin().try_call(Function::buffer_destroy, args));
}

const Event& DeviceBuffer::ready() {
  once_.run([this] {
    Args<abi::BufferReadyEvent> args;
    args.buffer = buffer_;
    client_.plugin().call(Function::buffer_ready_event, args, what());
    ready_.emplace(client_.plugin(), args.event);
  });
  return *ready_;
}

bool DeviceBuffer::is_ready() { return ready().is_ready(); }
void DeviceBuffer::wait() {
  if (may_be_interrupted() && !is_ready()) wait_for_signals_or(ready());
  ready().wait(what());
}

void DeviceBuffer::copy_to_host(std::byte* to) {
  // If the device shares the host's memory, reading it is not a transfer.
  if (!client_.reads_host_memory()) {
    transfer::check(transfer::Direction::device_to_host, [&] {
      return concat("shape=", to_string(type_), ", device=", to_string(client_.device(device_)));
    });
  }
  wait();  // may be interrupted; the copy itself writes to the caller's memory and is always awaited
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
  args.size = static_cast<std::size_t>(type_.size() * storage_size(type_.dtype));
  const std::shared_ptr<std::byte> block = client_.staging_block(args.size);
  args.to = block ? block.get() : to;
  const std::size_t bytes = args.size;
  client_.plugin().call(Function::buffer_to_host, args, what());
  Event(client_.plugin(), args.event).wait(what());
  if (block) copy_in_parallel(to, block.get(), bytes);
}

void DeviceBuffer::release() {
  Args<abi::BufferOnly> args;
  args.buffer = buffer_;
  drop(client_.plugin(), client_.plugin().try_call(Function::buffer_delete, args));
}

// ---- programs -----------------------------------------------------------------------------------------------------

Compiled::~Compiled() {
  Args<abi::ExecutableDestroy> args;
  args.executable = executable_;
  drop(*plugin_, plugin_->try_call(Function::executable_destroy, args));
}

std::size_t Compiled::output_count() const {
  Args<abi::ExecutableCount> args;
  args.executable = executable_;
  plugin_->call(Function::executable_output_count, args, "compile");
  return args.count;
}

std::optional<std::string> Compiled::serialized() const {
  Args<abi::ExecutableSerialize> args;
  args.executable = executable_;
  if (!plugin_->has(Function::executable_serialize)) return std::nullopt;
  if (abi::Error* error = plugin_->try_call(Function::executable_serialize, args)) {
    plugin_->take_message(error);
    return std::nullopt;
  }
  std::string bytes(args.bytes, args.size);
  if (args.deleter) args.deleter(args.holder);
  return bytes;
}

MemoryUse Compiled::memory_analysis() const {
  Args<abi::ExecutableMemory> args;
  args.executable = executable_;
  plugin_->call(Function::executable_memory_stats, args, "memory_analysis");
  return {args.generated_code,      args.argument,      args.output,      args.alias,      args.temp,     args.peak,
          args.host_generated_code, args.host_argument, args.host_output, args.host_alias, args.host_temp};
}

std::map<std::string, double> Compiled::cost_analysis() const {
  Args<abi::ExecutableCosts> args;
  args.executable = executable_;
  plugin_->call(Function::executable_cost_analysis, args, "cost_analysis");
  std::map<std::string, double> costs;
  for (std::size_t i = 0; i < args.count; ++i) {
    const abi::NamedValue& value = args.properties[i];
    const std::string name(value.name, value.name_size);
    if (value.type == abi::named_float)
      costs[name] = static_cast<double>(value.real);
    else if (value.type == abi::named_integer)
      costs[name] = static_cast<double>(value.integer);
  }
  return costs;
}

std::pair<std::string, std::string> Compiled::optimized_program() const {
  Args<abi::ProgramText> program;
  Args<abi::ExecutableProgram> args;
  args.executable = executable_;
  args.program = &program;
  plugin_->call(Function::executable_optimized_program, args, "optimized program");  // queries its size
  std::string code(program.code_size, '\0');
  program.code = code.data();
  plugin_->call(Function::executable_optimized_program, args, "optimized program");
  return {std::move(code), std::string(program.format, program.format_size)};
}

Loaded::Loaded(Client& client, abi::LoadedExecutable* executable) : client_(client), executable_(executable) {
  Args<abi::LoadedExecutableOf> of;
  of.loaded = executable;
  client.plugin().call(Function::loaded_executable, of, "compile");
  compiled_ = std::make_unique<Compiled>(client.plugin(), of.executable);
  output_count_ = compiled_->output_count();
}

Loaded::~Loaded() {
  compiled_.reset();
  Args<abi::LoadedDestroy> loaded;
  loaded.executable = executable_;
  drop(client_.plugin(), client_.plugin().try_call(Function::loaded_destroy, loaded));
}

std::vector<abi::Buffer*> Loaded::execute(std::span<abi::Buffer* const* const> arguments, std::size_t argument_count,
                                          std::span<const int64_t> kept, const std::string& what,
                                          abi::Event** ended) const {
  Args<abi::ExecuteOptions> options;
  options.non_donatable = kept.data();
  options.non_donatable_count = kept.size();
  std::vector<abi::Buffer*> outputs(output_count_ * arguments.size(), nullptr);
  abi::Buffer** first_outputs = outputs.data();
  std::vector<abi::Buffer**> lists;  // only with several devices
  for (std::size_t i = 0; arguments.size() > 1 && i < arguments.size(); ++i)
    lists.push_back(outputs.data() + i * output_count_);
  Args<abi::LoadedExecute> args;
  args.executable = executable_;
  args.options = &options;
  args.arguments = arguments.data();
  args.device_count = arguments.size();
  args.argument_count = argument_count;
  args.outputs = lists.empty() ? &first_outputs : lists.data();
  args.events = ended;
  client_.plugin().check(client_.plugin().try_call(Function::loaded_execute, args), what);
  return outputs;
}

}  // namespace capibara::pjrt
