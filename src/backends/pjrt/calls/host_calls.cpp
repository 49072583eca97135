// The handler of host calls, and the thread that serves them.
#include "backends/pjrt/calls/host_calls.h"
#include "core/array/byte_count.h"
#include "core/array/element.h"

#include <dlfcn.h>

#include <capibara/config.h>
#include <capibara/error.h>

#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <unordered_map>

#include "backends/pjrt/calls/ffi.h"
#include "backends/reference/backend.h"

namespace capibara::pjrt {

namespace {

std::mutex calls_mutex;

std::unordered_map<int64_t, HostCalls::Call>& all_calls() {
  static auto* calls =
      new std::unordered_map<int64_t, HostCalls::Call>;  // never freed: programs may run until the very end
  return *calls;
}

// Copies between a GPU and the host inside a handler, through the driver that the plugin has loaded.
struct CudaDriver {
  int (*to_host)(void*, uint64_t, std::size_t, void*) = nullptr;
  int (*to_device)(uint64_t, const void*, std::size_t, void*) = nullptr;
  int (*synchronize)(void*) = nullptr;

  static const CudaDriver& get() {
    static const CudaDriver driver = [] {
      CudaDriver found;
      void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
      if (!library) return found;
      found.to_host = reinterpret_cast<decltype(found.to_host)>(dlsym(library, "cuMemcpyDtoHAsync_v2"));
      found.to_device = reinterpret_cast<decltype(found.to_device)>(dlsym(library, "cuMemcpyHtoDAsync_v2"));
      found.synchronize = reinterpret_cast<decltype(found.synchronize)>(dlsym(library, "cuStreamSynchronize"));
      return found;
    }();
    return driver;
  }
  bool complete() const { return to_host && to_device && synchronize; }
};

// Reads and writes the buffers of a handler's frame.
class Copier {
 public:
  Copier(const ffi::CallFrame* frame, bool on_host) : on_host_(on_host) {
    if (on_host_) return;
    if (!CudaDriver::get().complete())
      throw RuntimeError("host call: libcuda.so.1 cannot be loaded, by which operands come to the host");
    stream_ = ffi::stream_of(frame);
    if (!stream_) throw RuntimeError("host call: the program has no stream");
  }
  void to_host(std::byte* to, const ffi::Buffer& from, std::size_t bytes) const {
    if (bytes == 0) return;
    if (on_host_)
      std::memcpy(to, from.data, bytes);
    else
      check(CudaDriver::get().to_host(to, reinterpret_cast<uint64_t>(from.data), bytes, stream_));
  }
  void to_device(const ffi::Buffer& to, const std::byte* from, std::size_t bytes) const {
    if (bytes == 0) return;
    if (on_host_)
      std::memcpy(to.data, from, bytes);
    else
      check(CudaDriver::get().to_device(reinterpret_cast<uint64_t>(to.data), from, bytes, stream_));
  }
  void finish() const {
    if (!on_host_) check(CudaDriver::get().synchronize(stream_));
  }

 private:
  static void check(int status) {
    if (status != 0) throw RuntimeError(concat("host call: copying failed with CUDA error ", status));
  }
  bool on_host_;
  void* stream_ = nullptr;
};

capibara::Buffer converted(const ArrayType& from, const std::byte* data, DType to) {
  capibara::Buffer buffer = capibara::Buffer::allocate(static_cast<std::size_t>(from.size() * storage_size(to)));
  convert_elements(from.dtype, data, to, buffer.mutable_data(), from.size());
  return buffer;
}

int64_t call_number(const ffi::CallFrame* frame) {
  const void* value = ffi::find_attribute(frame, "call");
  if (!value) throw InternalError("host call: the frame does not say which");
  return *static_cast<const int64_t*>(static_cast<const ffi::Scalar*>(value)->value);
}

void run_host_call(ffi::CallFrame* frame, bool on_host) {
  HostCalls::Call call;
  {
    std::lock_guard lock(calls_mutex);
    const auto it = all_calls().find(call_number(frame));
    if (it == all_calls().end()) throw InternalError("host call: its program is gone");
    call = it->second;
  }
  // A call with a side effect has a token after its operands and after its results.
  const int64_t tokens = frame->operands.size - static_cast<int64_t>(call.inputs.size());
  if (tokens < 0 || tokens > 1 || frame->results.size != static_cast<int64_t>(call.outputs.size()) + tokens) {
    throw InternalError(
        concat("host call of ", call.primitive.name(), ": the frame has other operands than the program"));
  }
  const Copier copier(frame, on_host);
  std::vector<capibara::Buffer> buffers;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    buffers.push_back(capibara::Buffer::allocate(byte_count(carried_type(call.inputs[i]))));
    copier.to_host(buffers[i].mutable_data(), *static_cast<const ffi::Buffer*>(frame->operands.values[i]),
                   buffers[i].size());
  }
  copier.finish();
  Arrays inputs;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const ArrayType carried = carried_type(call.inputs[i]);
    if (carried.dtype != call.inputs[i].dtype) buffers[i] = converted(carried, buffers[i].data(), call.inputs[i].dtype);
    inputs.push_back(Array::from_buffer(call.inputs[i], std::move(buffers[i])));
  }
  const Arrays outputs = call.owner->run(call, std::move(inputs));
  std::vector<capibara::Buffer> wide;  // alive until the copies are complete
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ArrayType carried = carried_type(call.outputs[i]);
    const auto& to = *static_cast<const ffi::Buffer*>(frame->results.values[i]);
    if (carried.dtype == call.outputs[i].dtype) {
      copier.to_device(to, outputs[i].raw_data(), byte_count(carried));
    } else {
      wide.push_back(converted(call.outputs[i], outputs[i].raw_data(), carried.dtype));
      copier.to_device(to, wide.back().data(), byte_count(carried));
    }
  }
  static constexpr std::byte token[4] = {};
  if (tokens == 1)
    copier.to_device(*static_cast<const ffi::Buffer*>(frame->results.values[outputs.size()]), token, sizeof token);
  copier.finish();
}

void* answer(ffi::CallFrame* frame, bool on_host) {
  if (ffi::answer_metadata(frame, ffi::no_traits)) return nullptr;
  if (frame->stage != 3) return nullptr;
  std::string message;
  try {
    run_host_call(frame, on_host);
    return nullptr;
  } catch (const std::exception& error) {
    message = error.what();
  } catch (...) {
    message = "host call: unknown error";
  }
  return ffi::failure(frame, message.c_str());
}

void* on_cpu(ffi::CallFrame* frame) { return answer(frame, true); }
void* on_cuda(ffi::CallFrame* frame) { return answer(frame, false); }

}  // namespace

ArrayType carried_type(ArrayType type) {
  if (is_sub_byte(type.dtype) && bits(type.dtype) > 1) {
    type.dtype = is_floating(type.dtype) ? DType::float32 : is_unsigned(type.dtype) ? DType::uint8 : DType::int8;
  }
  return type;
}

HostCalls::~HostCalls() {
  std::lock_guard lock(calls_mutex);
  for (int64_t number : numbers_) all_calls().erase(number);
}

int64_t HostCalls::add(const Primitive& primitive, const Attrs& attrs, Types inputs, Types outputs) {
  static std::atomic<int64_t> next{1};
  const int64_t number = next++;
  std::lock_guard lock(calls_mutex);
  all_calls().emplace(number, Call{this, primitive, attrs, std::move(inputs), std::move(outputs)});
  numbers_.push_back(number);
  return number;
}

Arrays HostCalls::run(const Call& call, Arrays inputs) {
  Request request{&call, std::move(inputs), {}, nullptr};
  std::unique_lock lock(mutex_);
  if (!session_) throw InternalError(concat("host call of ", call.primitive.name(), ": no thread waits for it"));
  session_->waiting.push_back(&request);
  changed_.notify_all();
  changed_.wait(lock, [&] { return request.finished; });
  if (request.error) std::rethrow_exception(request.error);
  return std::move(request.outputs);
}

void HostCalls::serve(const std::function<void()>& program) {
  std::lock_guard alone(serving_);
  Session session;
  std::unique_lock lock(mutex_);
  Session* const outer = std::exchange(session_, &session);
  std::exception_ptr failure;
  std::thread runner([&] {
    try {
      program();
    } catch (...) {
      failure = std::current_exception();
    }
    std::lock_guard ending(mutex_);
    session.ended = true;
    changed_.notify_all();
  });
  for (;;) {
    changed_.wait(lock, [&] { return session.ended || !session.waiting.empty(); });
    if (session.waiting.empty()) break;
    Request* request = session.waiting.front();
    session.waiting.pop_front();
    lock.unlock();
    try {
      request->outputs = reference::backend().run(request->call->primitive, request->inputs, request->call->attrs);
    } catch (...) {
      request->error = std::current_exception();
    }
    lock.lock();
    if (request->error && !session.first_error) session.first_error = request->error;
    request->finished = true;
    changed_.notify_all();
  }
  session_ = outer;
  lock.unlock();
  runner.join();
  if (session.first_error) std::rethrow_exception(session.first_error);
  if (failure) std::rethrow_exception(failure);
}

void register_host_calls(const Client& client) {
  const Plugin& plugin = client.plugin();
  static std::mutex mutex;
  static std::set<const Plugin*> known;
  std::lock_guard lock(mutex);
  if (known.count(&plugin)) return;
  const std::string name = host_call_target;
  if (plugin.takes_gpu_calls()) {
    plugin.register_gpu_call(name, reinterpret_cast<void*>(on_cuda), ffi::no_traits);
  } else if (const abi::Extension* handlers = plugin.extension(abi::ffi_extension);
             handlers && client.reads_host_memory()) {
    const std::string platform = "HOST";
    abi::Args<abi::FfiRegister> args;
    args.name = name.data();
    args.name_size = name.size();
    args.handler = reinterpret_cast<void*>(on_cpu);
    args.platform = platform.data();
    args.platform_size = platform.size();
    plugin.check(static_cast<const abi::FfiExtension*>(handlers)->register_handler(&args), "host calls");
  } else {
    throw NotImplementedError(concat("the plugin ", plugin.path(),
                                     " takes no foreign functions: callbacks, lu, qr, eigh, eig and svd ",
                                     "cannot run inside its programs; run them outside of jit or on the cpu backend"));
  }
  known.insert(&plugin);
}

}  // namespace capibara::pjrt
