// Frames: attributes are decoded once, buffers are filled in for each call. Handlers compare the sizes of structures
// with those of their own headers, so that every size here is that of the interface 0.3 (jaxlib 0.10.2), which later
// ones take.
#include "backends/ffi/call.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <numeric>

#include <capibara/error.h>
#include <capibara/lax.h>

#include "backends/ffi/targets.h"
#include "backends/pjrt/calls/ffi.h"
#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/syntax/parser.h"
#include "core/array/byte_count.h"
#include "core/array/element.h"

namespace capibara::ffi {

namespace {

namespace abi = pjrt::ffi;
using stablehlo::Attribute;
using stablehlo::Dictionary;

// ---- what the interface's functions do -----------------------------------------------------------------------------

struct Failure {
  std::string message;
};

struct Future {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_set = false;
  std::unique_ptr<Failure> failure;
};

enum Stage : int32_t { instantiate, prepare, initialize, execute, stages };

// What belongs to one call in a program: the states that its handlers keep.
struct Context {
  struct State {
    int64_t type = 0;
    void* value = nullptr;
  };
  State states[stages];
  std::mutex mutex;

  ~Context() {
    for (const State& state : states) delete_state(state.type, state.value);
  }
};

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
  if (args->stage < 0 || args->stage >= stages) return error_of("a state was asked of a stage that does not exist");
  const std::lock_guard lock(args->context->mutex);
  const Context::State& own = args->context->states[args->stage];
  if (!own.value) return error_of("the state of this stage is not set");
  if (own.type != *args->type)
    return error_of(concat("the state has type ", own.type, ", the handler asks for type ", *args->type));
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

const Api& api() {
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
  return table;
}

// ---- attributes ----------------------------------------------------------------------------------------------------

// XLA's numbers of element types; nothing for types of which an element here takes more room than there.
std::optional<int32_t> number_of(DType dtype) {
  switch (dtype) {
    case DType::bool_:
      return 1;
    case DType::int8:
      return 2;
    case DType::int16:
      return 3;
    case DType::int32:
      return 4;
    case DType::int64:
      return 5;
    case DType::uint8:
      return 6;
    case DType::uint16:
      return 7;
    case DType::uint32:
      return 8;
    case DType::uint64:
      return 9;
    case DType::float16:
      return 10;
    case DType::float32:
      return 11;
    case DType::float64:
      return 12;
    case DType::complex64:
      return 15;
    case DType::bfloat16:
      return 16;
    case DType::complex128:
      return 18;
    case DType::float8_e5m2:
      return 19;
    case DType::float8_e4m3fn:
      return 20;
    case DType::float8_e4m3b11fnuz:
      return 23;
    case DType::float8_e5m2fnuz:
      return 24;
    case DType::float8_e4m3fnuz:
      return 25;
    case DType::float8_e4m3:
      return 28;
    case DType::float8_e3m4:
      return 29;
    case DType::float8_e8m0fnu:
      return 33;
    default:
      return std::nullopt;
  }
}

int32_t required_number(const std::string& target, std::optional<DType> dtype, const std::string& name) {
  const std::optional<int32_t> number = dtype ? number_of(*dtype) : std::nullopt;
  if (!number) {
    throw NotImplementedError(concat("ffi_call: '", target, "' has an operand, a result or an attribute of type ", name,
                                     ", which handlers are not given"));
  }
  return *number;
}

struct ArrayOf {
  int32_t dtype;
  std::size_t size;
  const void* data;
};

// A dictionary of attributes, and the memory that it points to.
class Frame {
 public:
  Frame(const std::string& target, const Dictionary& dictionary) : target_(target) { fill(attributes_, dictionary); }
  const abi::Attributes& attributes() const { return attributes_; }

 private:
  struct Lists {
    std::vector<int32_t> types;
    std::vector<const abi::ByteSpan*> names;
    std::vector<void*> values;
  };

  template <class T>
  T* keep(T value) {
    auto held = std::make_shared<T>(std::move(value));
    memory_.push_back(held);
    return held.get();
  }
  abi::ByteSpan* span(const std::string& text) {
    const std::string* own = keep(text);
    return keep(abi::ByteSpan{own->data(), own->size()});
  }
  void* scalar(int32_t type, const void* value, std::size_t size) {
    auto* bits = keep(std::array<std::byte, 16>{});
    std::memcpy(bits->data(), value, size);
    return keep(abi::Scalar{type, bits->data()});
  }
  void* array(int32_t type, std::size_t count, std::vector<std::byte> bytes) {
    return keep(ArrayOf{type, count, keep(std::move(bytes))->data()});
  }

  // The kind of an attribute and the structure that holds it.
  std::pair<int32_t, void*> value_of(const Attribute& attribute);
  std::pair<int32_t, void*> number(const std::string& type, int64_t integer, double real);
  void fill(abi::Attributes& into, const Dictionary& dictionary);

  std::string target_;
  abi::Attributes attributes_{};
  std::deque<std::shared_ptr<void>> memory_;
};

// The bytes of a number as an element of this type.
std::vector<std::byte> bytes_of(DType dtype, int64_t integer, double real) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(storage_size(dtype)));
  if (is_floating(dtype))
    store_as<double>(dtype, bytes.data(), 0, real);
  else
    store_as<int64_t>(dtype, bytes.data(), 0, integer);
  return bytes;
}

std::optional<DType> dtype_of(const std::string& name) { return stablehlo::Type::tensor({}, name).dtype(); }

std::pair<int32_t, void*> Frame::number(const std::string& type, int64_t integer, double real) {
  const std::optional<DType> dtype = dtype_of(type == "index" ? "i64" : type);
  const int32_t own = required_number(target_, dtype, type);
  const std::vector<std::byte> bytes = bytes_of(*dtype, integer, real);
  return {3, scalar(own, bytes.data(), bytes.size())};
}

std::pair<int32_t, void*> Frame::value_of(const Attribute& attribute) {
  if (const auto* flag = attribute.as<bool>()) return {3, scalar(1, flag, 1)};
  if (const auto* integer = attribute.as<stablehlo::Integer>())
    return number(integer->type.element().empty() ? "i64" : integer->type.element(), integer->value, 0);
  if (const auto* real = attribute.as<stablehlo::Float>())
    return number(real->type.element().empty() ? "f64" : real->type.element(), 0, real->value);
  if (const auto* text = attribute.as<stablehlo::String>()) return {4, span(text->value)};
  if (const auto* dictionary = attribute.as<Dictionary>()) {
    auto* own = keep(abi::Attributes{});
    fill(*own, *dictionary);
    return {2, own};
  }
  if (const auto* list = attribute.as<stablehlo::Array>()) {
    std::vector<Dictionary::Entry> entries;
    for (std::size_t i = 0; i < list->elements.size(); ++i) entries.emplace_back(std::to_string(i), list->elements[i]);
    auto* own = keep(abi::Attributes{});
    fill(*own, Dictionary(std::move(entries)));
    return {2, own};
  }
  if (const auto* dense = attribute.as<stablehlo::DenseArray>()) {
    const std::optional<DType> dtype = dtype_of(dense->element);
    const int32_t type = required_number(target_, dtype, dense->element);
    const std::size_t count = std::max(dense->integers.size(), dense->floats.size());
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<std::byte> one = bytes_of(*dtype, dense->integers.empty() ? 0 : dense->integers[i],
                                                  dense->floats.empty() ? 0 : dense->floats[i]);
      bytes.insert(bytes.end(), one.begin(), one.end());
    }
    return {1, array(type, count, std::move(bytes))};
  }
  if (const auto* dense = attribute.as<stablehlo::DenseElements>()) {
    const int32_t type = required_number(target_, dense->type.dtype(), dense->type.element());
    const auto count = static_cast<std::size_t>(dense->type.element_count());
    std::vector<std::byte> bytes;
    const auto* own = reinterpret_cast<const std::byte*>(dense->bytes->data());
    for (std::size_t i = 0; i < (dense->splat ? count : 1); ++i)
      bytes.insert(bytes.end(), own, own + dense->bytes->size());
    return {1, array(type, count, std::move(bytes))};
  }
  throw NotImplementedError(concat("ffi_call: '", target_, "' has an attribute of a kind that handlers are not given"));
}

void Frame::fill(abi::Attributes& into, const Dictionary& dictionary) {
  auto* lists = keep(Lists{});
  for (const auto& [name, attribute] : dictionary) {
    const auto [type, value] = value_of(attribute);
    lists->types.push_back(type);
    lists->names.push_back(span(name));
    lists->values.push_back(value);
  }
  into.struct_size = sizeof(abi::Attributes);
  into.size = static_cast<int64_t>(lists->types.size());
  into.types = lists->types.data();
  into.names = lists->names.data();
  into.values = lists->values.data();
}

// ---- calls ---------------------------------------------------------------------------------------------------------

// The attributes of an operation, from its text between the braces.
Dictionary parsed(const std::string& text) {
  const stablehlo::Module module = stablehlo::parse_module(
      concat("module {\n func.func @main() {\n \"ffi.call\"() {", text, "} : () -> ()\n return\n }\n}\n"));
  return module.functions.at(0).body.operations.at(0).attributes;
}

struct Description {
  Dictionary attributes;
  std::vector<Ints> operand_layouts, result_layouts;  // empty: row-major
  std::vector<Ints> aliases;                          // result, operand
};

std::vector<Ints> lists_of(const Attrs& attrs, const char* name) {
  std::vector<Ints> lists;
  if (!attrs.has(name)) return lists;
  for (const Attr& entry : attrs.list(name)) lists.push_back(*entry.get_if<Ints>());
  return lists;
}

std::vector<Ints> lists_of(const Attribute& attribute) {
  std::vector<Ints> lists;
  const auto* array = attribute.as<stablehlo::Array>();
  for (std::size_t i = 0; array && i < array->elements.size(); ++i)
    lists.push_back(stablehlo::integers_of(array->elements[i]).value_or(Ints{}));
  return lists;
}

Dictionary settings_of(const Dictionary& attributes) {
  for (const char* name : {"mhlo.backend_config", "backend_config"}) {
    if (const auto* found = attributes.find(name).as<Dictionary>()) return *found;
  }
  return {};
}

Description describe(const Attrs& attrs) {
  Description own;
  if (attrs.has("attributes")) {  // as it was read
    const Dictionary all = parsed(attrs.text("attributes"));
    own.attributes = settings_of(all);
    own.operand_layouts = lists_of(all.find("operand_layouts"));
    own.result_layouts = lists_of(all.find("result_layouts"));
    const auto* aliases = all.find("output_operand_aliases").as<stablehlo::Array>();
    for (std::size_t i = 0; aliases && i < aliases->elements.size(); ++i) {
      const Attribute& alias = aliases->elements[i];
      const Ints output = stablehlo::field_integers(alias, "output_tuple_indices");
      own.aliases.push_back({output.empty() ? 0 : output[0], stablehlo::field_integer(alias, "operand_index", 0)});
    }
    return own;
  }
  if (attrs.has("mhlo_backend_config"))
    own.attributes = settings_of(parsed(concat("mhlo.backend_config = ", attrs.text("mhlo_backend_config"))));
  own.operand_layouts = lists_of(attrs, "operand_layouts");
  own.result_layouts = lists_of(attrs, "result_layouts");
  own.aliases = lists_of(attrs, "output_operand_aliases");
  return own;
}

// The order of dimensions in memory, the slowest first; empty where it is row-major.
Ints memory_order(const std::string& target, const std::vector<Ints>& layouts, std::size_t index, const Shape& shape) {
  if (index >= layouts.size()) return {};
  Ints order(layouts[index].rbegin(), layouts[index].rend()), plain(shape.size()), sorted = order;
  std::iota(plain.begin(), plain.end(), 0);
  std::sort(sorted.begin(), sorted.end());
  if (sorted != plain) {
    throw ValueError(concat("ffi_call: '", target, "' has a layout that does not name each of ", shape.size(),
                            " dimensions once, got ", stablehlo::list_text(layouts[index])));
  }
  return order == plain ? Ints{} : order;
}

class Call {
 public:
  Call(std::string target, const Handlers& handlers, const Attrs& attrs, const Types& inputs, const Types& outputs)
      : target_(std::move(target)),
        handlers_(handlers),
        outputs_(outputs),
        description_(describe(attrs)),
        frame_(target_, description_.attributes),
        operands_(described(inputs)),
        results_(described(outputs)) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      operand_orders_.push_back(memory_order(target_, description_.operand_layouts, i, inputs[i].shape));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      result_orders_.push_back(memory_order(target_, description_.result_layouts, i, outputs[i].shape));
    for (const Ints& alias : description_.aliases) {
      const auto result = static_cast<std::size_t>(alias[0]), operand = static_cast<std::size_t>(alias[1]);
      if (result >= outputs.size() || operand >= inputs.size() || outputs[result].shape != inputs[operand].shape ||
          outputs[result].dtype != inputs[operand].dtype) {
        throw ValueError(concat("ffi_call: '", target_, "' has result ", alias[0], " in the place of operand ",
                                alias[1], ", whose type is another one or which there is not"));
      }
    }
    if (handlers_.instantiate) {
      const std::vector<void*> none(inputs.size()), nowhere(outputs.size());
      run_stage(instantiate, handlers_.instantiate, none, nowhere);
    }
  }

  Arrays operator()(std::span<const Array> inputs) {
    Arrays held;
    std::vector<void*> operands, results;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      held.push_back(operand_orders_[i].empty() ? inputs[i] : jax::lax::transpose(inputs[i], operand_orders_[i]));
      operands.push_back(const_cast<std::byte*>(held.back().raw_data()));
    }
    std::vector<Buffer> memory;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      memory.push_back(Buffer::allocate(byte_count(outputs_[i])));
      results.push_back(memory.back().mutable_data());
    }
    for (const Ints& alias : description_.aliases) {
      const auto result = static_cast<std::size_t>(alias[0]), operand = static_cast<std::size_t>(alias[1]);
      if (memory[result].size() != 0) std::memcpy(results[result], operands[operand], memory[result].size());
      operands[operand] = results[result];
    }
    if (handlers_.prepare) run_stage(prepare, handlers_.prepare, operands, results);
    if (handlers_.initialize) run_stage(initialize, handlers_.initialize, operands, results);
    run_stage(execute, handlers_.execute, operands, results);
    Arrays values;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const Ints& order = result_orders_[i];
      ArrayType type = outputs_[i];
      for (std::size_t dim = 0; dim < order.size(); ++dim)
        type.shape[dim] = outputs_[i].shape[static_cast<std::size_t>(order[dim])];
      Array value = Array::from_buffer(type, std::move(memory[i]));
      if (!order.empty()) {
        Ints back(order.size());
        for (std::size_t dim = 0; dim < order.size(); ++dim)
          back[static_cast<std::size_t>(order[dim])] = static_cast<int64_t>(dim);
        value = jax::lax::transpose(value, back);
      }
      values.push_back(std::move(value));
    }
    return values;
  }

 private:
  struct Described {
    int32_t dtype;
    Shape shape;
  };

  std::vector<Described> described(const Types& types) const {
    std::vector<Described> own;
    for (const ArrayType& type : types)
      own.push_back({required_number(target_, type.dtype, to_string(type)), type.shape});
    return own;
  }

  void run_stage(int32_t stage, void* handler, const std::vector<void*>& operands, const std::vector<void*>& results) {
    std::deque<abi::Buffer> buffers;
    std::vector<void*> values[2];
    const std::vector<Described>* described[2] = {&operands_, &results_};
    const std::vector<void*>* data[2] = {&operands, &results};
    for (int list = 0; list < 2; ++list) {
      for (std::size_t i = 0; i < described[list]->size(); ++i) {
        abi::Buffer& buffer = buffers.emplace_back();
        buffer.struct_size = sizeof buffer;
        buffer.dtype = (*described[list])[i].dtype;
        buffer.data = (*data[list])[i];
        buffer.rank = static_cast<int64_t>((*described[list])[i].shape.size());
        buffer.dims = (*described[list])[i].shape.data();
        values[list].push_back(&buffer);
      }
    }
    const std::vector<int32_t> are_buffers(std::max(operands.size(), results.size()), 1);
    struct {
      abi::CallFrame own;
      Future* future;
    } frame{};
    frame.own.struct_size = sizeof frame.own;
    frame.own.api = &api().head;
    frame.own.context = &context_;
    frame.own.stage = stage;
    for (int list = 0; list < 2; ++list) {
      abi::List& into = list == 0 ? frame.own.operands : frame.own.results;
      into.struct_size = sizeof into;
      into.size = static_cast<int64_t>(values[list].size());
      into.types = are_buffers.data();
      into.values = values[list].data();
    }
    frame.own.attributes = frame_.attributes();
    std::unique_ptr<Failure> failure(
        reinterpret_cast<Failure*>(reinterpret_cast<abi::Error* (*)(abi::CallFrame*)>(handler)(&frame.own)));
    if (!failure && frame.future) {
      const std::unique_ptr<Future> future(frame.future);
      std::unique_lock lock(future->mutex);
      future->changed.wait(lock, [&] { return future->is_set; });
      failure = std::move(future->failure);
    }
    if (failure) throw RuntimeError(concat("ffi_call: '", target_, "': ", failure->message));
  }

  std::string target_;
  Handlers handlers_;
  Types outputs_;
  Description description_;
  Frame frame_;
  std::vector<Described> operands_, results_;
  std::vector<Ints> operand_orders_, result_orders_;
  Context context_;
};

}  // namespace

ForeignCall make_call(const Attrs& attrs, const Types& inputs, const Types& outputs) {
  const std::string& target = attrs.text("call_target_name");
  const std::optional<Handlers> handlers = find_target(target);
  if (!handlers) return {};
  auto call = std::make_shared<Call>(target, *handlers, attrs, inputs, outputs);
  return [call](std::span<const Array> operands) { return (*call)(operands); };
}

}  // namespace capibara::ffi
