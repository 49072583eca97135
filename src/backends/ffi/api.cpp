// Implementation of the interface's functions: errors, states, memory, and tasks, which run on the calling thread.
#include "backends/ffi/api.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <capibara/error.h>

namespace capibara::ffi {

namespace {

abi::Error* error_of(std::string message) { return reinterpret_cast<abi::Error*>(new Failure{std::move(message)}); }

struct MessageOf : abi::Head {
  Failure* error;
  const char* message;
};
struct OfError : abi::Head {
  Failure* error;
};
struct StateAccess {
  std::size_t struct_size;
  void* extension_start;
  Context* context;
  int32_t stage;
  int64_t* type;
  void* state;
};
static_assert(sizeof(StateAccess) == 48 && offsetof(StateAccess, type) == 32);
struct Task : abi::Head {
  Context* context;
  void (*task)(void*);
  void* data;
};
struct ThreadCount : abi::Head {
  Context* context;
  int64_t* count;
};
struct OfFuture : abi::Head {
  Future* future;
  Failure* error;
};
struct Number : abi::Head {
  Context* context;
  int64_t value;
};
struct TypeRegistration : abi::Head {
  abi::ByteSpan name;
  int64_t* type;
  struct Info {
    std::size_t struct_size;
    void* extension_start;
    void (*deleter)(void*);
  } * info;
};
struct UserData : abi::Head {
  Context* context;
  int64_t* type;
  void* data;
};

struct Api {
  abi::Api head;
  abi::Error* (*schedule)(Task*);
  abi::Error* (*thread_count)(ThreadCount*);
  abi::Error* (*future_create)(OfFuture*);
  abi::Error* (*future_set)(OfFuture*);
  abi::Error* (*future_fail)(OfFuture*);
  abi::Error* (*run_number)(Number*);
  abi::Error* (*device_number)(Number*);
};
static_assert(sizeof(Api) == 192);

abi::Error* state_set(StateAccess* args) {
  if (args->stage < 0 || args->stage >= stages) return error_of("a state was set for a stage that does not exist");
  const std::lock_guard lock(args->context->mutex);
  Context::State& own = args->context->states[args->stage];
  if (own.value) return error_of("the state of this stage is set already");
  own = {*args->type, args->state};
  return nullptr;
}

abi::Error* state_get(StateAccess* args) {
  if (args->stage < 0 || args->stage >= stages)
    return error_of("the state of a stage that does not exist was requested");
  const std::lock_guard lock(args->context->mutex);
  const Context::State& own = args->context->states[args->stage];
  if (!own.value) return error_of("the state of this stage is not set");
  if (own.type != *args->type)
    return error_of(concat("the state has type ", own.type, ", the handler expects type ", *args->type));
  args->state = own.value;
  return nullptr;
}

abi::Error* set_future(OfFuture* args, std::unique_ptr<Failure> failure) {
  const std::lock_guard lock(args->future->mutex);
  args->future->is_set = true;
  args->future->failure = std::move(failure);
  args->future->changed.notify_all();
  return nullptr;
}

}  // namespace

const abi::Api& interface_functions() {
  static const Api table = [] {
    Api own{};
    abi::Api& head = own.head;
    head.struct_size = sizeof own;
    head.version_struct_size = 24;
    head.major_version = 0;
    head.minor_version = 3;
    head.error_create = [](abi::ErrorCreate* args) { return error_of(args->message ? args->message : ""); };
    head.error_get_details =
        reinterpret_cast<void*>(+[](MessageOf* args) { args->message = args->error->message.c_str(); });
    head.error_destroy = reinterpret_cast<void*>(+[](OfError* args) { delete args->error; });
    head.handler_register =
        reinterpret_cast<void*>(+[](void*) { return error_of("handlers are registered by register_ffi_target"); });
    head.stream_get = [](abi::StreamGet*) { return error_of("programs of the CPU have no stream"); };
    head.type_register = reinterpret_cast<void*>(+[](TypeRegistration* args) -> abi::Error* {
      try {
        *args->type = register_type(std::string(args->name.data, args->name.size), *args->type,
                                    args->info ? args->info->deleter : nullptr);
        return nullptr;
      } catch (const std::exception& error) {
        return error_of(error.what());
      }
    });
    head.context_get =
        reinterpret_cast<void*>(+[](UserData*) { return error_of("the context holds no data of this type"); });
    head.state_set = reinterpret_cast<void*>(&state_set);
    head.state_get = reinterpret_cast<void*>(&state_get);
    head.memory_allocate = [](abi::DeviceMemoryAllocate* args) -> abi::Error* {
      const std::size_t alignment = std::max<std::size_t>(args->alignment, 64);
      args->data = std::aligned_alloc(alignment, (args->size + alignment - 1) / alignment * alignment);
      return args->data || args->size == 0 ? nullptr : error_of(concat("no memory for ", args->size, " bytes"));
    };
    head.memory_free = [](abi::DeviceMemoryFree* args) -> abi::Error* {
      std::free(args->data);
      return nullptr;
    };
    own.schedule = [](Task* args) -> abi::Error* {
      args->task(args->data);
      return nullptr;
    };
    own.thread_count = [](ThreadCount* args) -> abi::Error* {
      *args->count = 1;
      return nullptr;
    };
    own.future_create = [](OfFuture* args) -> abi::Error* {
      args->future = new Future;
      return nullptr;
    };
    own.future_set = [](OfFuture* args) { return set_future(args, nullptr); };
    own.future_fail = [](OfFuture* args) { return set_future(args, std::unique_ptr<Failure>(args->error)); };
    own.run_number = [](Number* args) -> abi::Error* {
      args->value = 0;
      return nullptr;
    };
    own.device_number = [](Number* args) -> abi::Error* {
      const int32_t first = 0;
      std::memcpy(&args->value, &first, sizeof first);
      return nullptr;
    };
    return own;
  }();
  return table.head;
}

}  // namespace capibara::ffi
