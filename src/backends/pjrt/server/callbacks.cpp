// Calling Python from a plugin that does not link it: through the interpreter that has loaded the plugin.
#include "backends/pjrt/server/callbacks.h"

#include <capibara/error.h>

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>

namespace capibara::pjrt::server {

namespace {

// The functions of the interpreter in this process; all null without one.
struct Interpreter {
  int (*is_initialized)() = nullptr;
  int (*lock)() = nullptr;  // PyGILState_Ensure
  void (*unlock)(int) = nullptr;
  void* (*call)(void* callable, const char* format, ...) = nullptr;
  const char* (*text)(void* object) = nullptr;
  void (*release)(void* object) = nullptr;
  void (*print_error)() = nullptr;

  template <class F>
  static void find(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
  }
  Interpreter() {
    find(is_initialized, "Py_IsInitialized");
    find(lock, "PyGILState_Ensure");
    find(unlock, "PyGILState_Release");
    find(call, "PyObject_CallFunction");
    find(text, "PyUnicode_AsUTF8");
    find(release, "Py_DecRef");
    find(print_error, "PyErr_Print");
  }
  bool works() const {
    return is_initialized && lock && unlock && call && text && release && print_error && is_initialized();
  }
};

const Interpreter& interpreter() {
  static const Interpreter found;
  return found;
}

// Appends float32:140737353:2,3 (type, address, shape) for a value, a dash for a token.
void describe(std::string& text, const Array* value, const std::byte* address) {
  if (!text.empty() && text.back() != '|') text += ';';
  if (!value) {
    text += '-';
    return;
  }
  text += concat(dtype_row(value->dtype()).name, ":", reinterpret_cast<std::uintptr_t>(address), ":");
  for (std::size_t dim = 0; dim < value->shape().size(); ++dim) text += concat(dim ? "," : "", value->shape()[dim]);
}

}  // namespace

void CallTable::set(const std::vector<void*>& functions) {
  if (functions.empty()) return;
  const std::lock_guard lock(mutex_);
  functions_ = functions;
}

Arrays CallTable::call(const stablehlo::NumberedCall& call, std::span<const Array> operands) const {
  const Interpreter& python = interpreter();
  if (!python_call_ || !python.works()) {
    throw NotImplementedError(
        "a callback needs Python and the client option python_call, which jax_plugins.capibara "
        "gives");
  }
  void* function = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (call.number < 0 || call.number >= static_cast<int64_t>(functions_.size()))
      throw RuntimeError(concat("callback number ", call.number, ": the execution brought ", functions_.size()));
    function = functions_[static_cast<std::size_t>(call.number)];
  }
  std::string values;
  std::size_t next = 0;
  for (const std::optional<ArrayType>& type : call.operands) {
    const Array* operand = type ? &operands[next++] : nullptr;
    describe(values, operand, operand ? operand->raw_data() : nullptr);
  }
  values += '|';
  Arrays results;
  for (const std::optional<ArrayType>& type : call.results) {
    if (type) {
      Buffer buffer = Buffer::allocate(static_cast<std::size_t>(type->size() * storage_size(type->dtype)));
      results.push_back(Array::from_buffer(*type, std::move(buffer)));
    }
    describe(values, type ? &results.back() : nullptr, type ? results.back().buffer().address() : nullptr);
  }
  std::string error;
  {
    const int state = python.lock();
    void* answer = python.call(python_call_, "Os", function, values.c_str());
    const char* text = answer ? python.text(answer) : nullptr;
    if (text)
      error = text;
    else
      error = "the function could not be called; Python's error is on standard error";
    if (!text) python.print_error();
    if (answer) python.release(answer);
    python.unlock(state);
  }
  if (!error.empty()) throw RuntimeError(concat("CpuCallback error calling callback: ", error));
  return results;
}

std::optional<ffi::Handlers> python_target(void* python_call, const std::string& name) {
  const Interpreter& python = interpreter();
  if (!python_call || !python.works()) return std::nullopt;
  std::string addresses;
  const int state = python.lock();
  void* answer = python.call(python_call, "ss", name.c_str(), "");
  if (const char* text = answer ? python.text(answer) : nullptr)
    addresses = text;
  else
    python.print_error();
  if (answer) python.release(answer);
  python.unlock(state);
  if (addresses.empty()) return std::nullopt;
  unsigned long long stages[4] = {};
  if (std::sscanf(addresses.c_str(), "%llu,%llu,%llu,%llu", &stages[0], &stages[1], &stages[2], &stages[3]) != 4)
    throw InternalError(concat("custom call '", name, "': expected four addresses, got ", addresses));
  for (std::size_t at = addresses.find(':'); at != addresses.npos; at = addresses.find(':', at + 1)) {
    long long type = 0;
    unsigned long long deleter = 0;
    if (std::sscanf(addresses.c_str() + at, ":%lld=%llu", &type, &deleter) == 2)
      ffi::register_type(concat("python ", type), type, reinterpret_cast<void (*)(void*)>(deleter));
  }
  const auto function = [&](int stage) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(stages[stage])); };
  return ffi::Handlers{function(0), function(1), function(2), function(3)};
}

stablehlo::ReadOptions reading_calls(std::shared_ptr<const CallTable> table) {
  stablehlo::ReadOptions options;
  options.numbered_calls = [table](const stablehlo::NumberedCall& call) {
    return std::make_shared<const Callback>(
        concat("callback ", call.number),
        [table, call](std::span<const Array> operands) { return table->call(call, operands); });
  };
  return options;
}

}  // namespace capibara::pjrt::server
