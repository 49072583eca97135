// The handler that calls cuSOLVER, and the pass that writes its calls.
#include "backends/pjrt/calls/cusolver.h"

#include <dlfcn.h>

#include <capibara/error.h>
#include <capibara/primitive.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>

#include "backends/pjrt/calls/ffi.h"
#include "compiler/optimise/rewrite.h"
#include "program/ir/handles.h"

namespace capibara::pjrt {

namespace {

constexpr const char* target_name = "capibara_cusolver";

// ---- the library --------------------------------------------------------------------------------------------------

void* library = nullptr;  // set before the handler is registered

// Opens the library: already loaded, on the system's path, or in the packages next to the plugin.
void* open_library(const std::string& plugin_path) {
  std::vector<std::string> names;
  std::string folder = plugin_path;
  for (int level = 0; level < 3 && !folder.empty(); ++level)
    folder.resize(folder.find_last_of('/') == std::string::npos ? 0 : folder.find_last_of('/'));
  for (const char* file : {"libcusolver.so.12", "libcusolver.so.11"}) {
    names.push_back(file);
    if (folder.empty()) continue;
    for (const char* package : {"cu13", "cu12", "cusolver"})
      names.push_back(concat(folder, "/nvidia/", package, "/lib/", file));
  }
  for (const std::string& name : names) {
    if (void* found = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
  }
  return nullptr;
}

// Calls a function of the library by name; its C signature is deduced from the types of the arguments.
template <class... Arguments>
void call(const std::string& name, Arguments... arguments) {
  auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name.c_str()));
  if (!function) throw RuntimeError(concat("cuSOLVER has no ", name));
  if (const int status = function(arguments...); status != 0)
    throw RuntimeError(concat(name, " failed with status ", status));
}

// A handle of the library, borrowed for one call: creating one takes milliseconds.
class Handle {
 public:
  explicit Handle(void* stream) {
    {
      std::lock_guard lock(mutex());
      if (!idle().empty()) {
        handle_ = idle().back();
        idle().pop_back();
      }
    }
    if (!handle_) call("cusolverDnCreate", &handle_);
    call("cusolverDnSetStream", handle_, stream);
  }
  ~Handle() {
    std::lock_guard lock(mutex());
    idle().push_back(handle_);
  }
  Handle(const Handle&) = delete;
  void* get() const { return handle_; }

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::vector<void*>& idle() {
    static auto* handles = new std::vector<void*>;  // never freed: programs may run until the very end
    return *handles;
  }
  void* handle_ = nullptr;
};

// ---- decoding a frame -----------------------------------------------------------------------------------------------

// Memory of the device for the duration of a call.
class Scratch {
 public:
  Scratch(const ffi::CallFrame* frame, std::size_t bytes) : frame_(frame), bytes_(bytes) {
    ffi::DeviceMemoryAllocate allocate{};
    allocate.struct_size = sizeof allocate;
    allocate.context = frame->context;
    allocate.size = bytes;
    allocate.alignment = 16;
    if (frame->api->memory_allocate(&allocate) || !allocate.data)
      throw RuntimeError(concat("no device memory for ", bytes, " bytes of workspace"));
    data_ = static_cast<std::byte*>(allocate.data);
  }
  ~Scratch() {
    ffi::DeviceMemoryFree free{};
    free.struct_size = sizeof free;
    free.context = frame_->context;
    free.size = bytes_;
    free.data = data_;
    frame_->api->memory_free(&free);
  }
  Scratch(const Scratch&) = delete;
  std::byte* data() const { return data_; }

 private:
  const ffi::CallFrame* frame_;
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

struct Settings {
  std::string routine;  // with its type letter: sgetrf
  int64_t lower = 0;
  int64_t job = 'N';       // of singular vectors
  int64_t transposed = 0;  // the matrices are row-major: read as column-major they are transposed
};

Settings read_settings(const ffi::CallFrame* frame) {
  Settings settings;
  const auto* routine = static_cast<const ffi::ByteSpan*>(ffi::find_attribute(frame, "routine"));
  if (!routine) throw InternalError("the frame does not say which routine");
  settings.routine.assign(routine->data, routine->size);
  auto read = [&](std::string_view name, int64_t& number) {
    if (const void* value = ffi::find_attribute(frame, name))
      std::memcpy(&number, static_cast<const ffi::Scalar*>(value)->value, sizeof number);
  };
  read("lower", settings.lower);
  read("job", settings.job);
  read("transposed", settings.transposed);
  return settings;
}

std::size_t element_size(char letter) { return letter == 's' ? 4 : letter == 'z' ? 16 : 8; }
std::size_t real_size(char letter) { return letter == 's' || letter == 'c' ? 4 : 8; }

// The matrices of one call, a contiguous batch.
class Decomposition {
 public:
  Decomposition(const ffi::CallFrame* frame, Settings settings, void* stream)
      : frame_(frame),
        settings_(std::move(settings)),
        handle_(stream),
        stream_(stream),
        letter_(settings_.routine[0]),
        element_(element_size(letter_)) {
    const ffi::Buffer& matrix = operand(0);
    rows_ = matrix.dims[matrix.rank - 2];
    columns_ = matrix.dims[matrix.rank - 1];
    for (int64_t i = 0; i + 2 < matrix.rank; ++i) batch_ *= matrix.dims[i];
    if (settings_.transposed) std::swap(rows_, columns_);
  }

  void run() {
    if (batch_ == 0 || rows_ == 0 || columns_ == 0) return;
    copy_matrix();
    const std::string routine = settings_.routine.substr(1);
    if (routine == "getrf")
      getrf();
    else if (routine == "geqrf")
      geqrf();
    else if (routine == "orgqr" || routine == "ungqr")
      orgqr();
    else if (routine == "syevd" || routine == "heevd")
      syevd();
    else
      gesvd();
  }

 private:
  const ffi::Buffer& operand(int64_t index) const {
    return *static_cast<const ffi::Buffer*>(frame_->operands.values[index]);
  }
  std::byte* result(int64_t index) const {
    return static_cast<std::byte*>(static_cast<const ffi::Buffer*>(frame_->results.values[index])->data);
  }

  std::string name(const char* ending = "") const {
    std::string all = concat("cusolverDn", settings_.routine, ending);
    all[10] = static_cast<char>(letter_ - 'a' + 'A');
    return all;
  }
  int rows() const { return static_cast<int>(rows_); }
  int columns() const { return static_cast<int>(columns_); }
  int least() const { return std::min(rows(), columns()); }
  void* matrix(int64_t which) const {
    return result(0) + static_cast<std::size_t>(which * rows_ * columns_) * element_;
  }

  // The routines overwrite their matrix: the first result, which need not alias the operand.
  void copy_matrix() const {
    if (operand(0).data == result(0)) return;
    using Copy = int (*)(uint64_t, uint64_t, std::size_t, void*);
    static const auto copy =
        reinterpret_cast<Copy>(dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), "cuMemcpyDtoDAsync_v2"));
    const std::size_t bytes = static_cast<std::size_t>(batch_ * rows_ * columns_) * element_;
    if (!copy ||
        copy(reinterpret_cast<uint64_t>(result(0)), reinterpret_cast<uint64_t>(operand(0).data), bytes, stream_) != 0) {
      throw RuntimeError("cuSOLVER: copying a matrix on the device failed");
    }
  }

  // Workspace of `elements`, followed by a slot for a status that the caller does not read.
  Scratch workspace(int elements) const { return Scratch(frame_, static_cast<std::size_t>(elements) * element_ + 16); }
  int* unread_report(const Scratch& scratch, int elements) const {
    return reinterpret_cast<int*>(scratch.data() + (static_cast<std::size_t>(elements) * element_ + 3) / 4 * 4);
  }

  void getrf() const {
    int size = 0;
    call(name("_bufferSize"), handle_.get(), rows(), columns(), matrix(0), rows(), &size);
    const Scratch scratch = workspace(size);
    auto* pivots = reinterpret_cast<int*>(result(1));
    auto* report = reinterpret_cast<int*>(result(2));
    for (int64_t i = 0; i < batch_; ++i) {
      call(name(), handle_.get(), rows(), columns(), matrix(i), rows(), static_cast<void*>(scratch.data()),
           pivots + i * least(), report + i);
    }
  }

  void geqrf() const {
    int size = 0;
    call(name("_bufferSize"), handle_.get(), rows(), columns(), matrix(0), rows(), &size);
    const Scratch scratch = workspace(size);
    for (int64_t i = 0; i < batch_; ++i) {
      call(name(), handle_.get(), rows(), columns(), matrix(i), rows(),
           static_cast<void*>(result(1) + static_cast<std::size_t>(i * least()) * element_),
           static_cast<void*>(scratch.data()), size, unread_report(scratch, size));
    }
  }

  void orgqr() const {
    const ffi::Buffer& factors = operand(1);
    const int count = static_cast<int>(factors.dims[factors.rank - 1]);
    const auto* scales = static_cast<const std::byte*>(factors.data);
    int size = 0;
    call(name("_bufferSize"), handle_.get(), rows(), columns(), count, matrix(0), rows(),
         static_cast<const void*>(scales), &size);
    const Scratch scratch = workspace(size);
    for (int64_t i = 0; i < batch_; ++i) {
      call(name(), handle_.get(), rows(), columns(), count, matrix(i), rows(),
           static_cast<const void*>(scales + static_cast<std::size_t>(i * count) * element_),
           static_cast<void*>(scratch.data()), size, unread_report(scratch, size));
    }
  }

  void syevd() const {
    constexpr int with_vectors = 1;
    const int triangle = settings_.lower ? 0 : 1;
    int size = 0;
    call(name("_bufferSize"), handle_.get(), with_vectors, triangle, rows(), matrix(0), rows(),
         static_cast<void*>(result(1)), &size);
    const Scratch scratch = workspace(size);
    auto* report = reinterpret_cast<int*>(result(2));
    for (int64_t i = 0; i < batch_; ++i) {
      void* values = result(1) + static_cast<std::size_t>(i * rows_) * real_size(letter_);
      call(name(), handle_.get(), with_vectors, triangle, rows(), matrix(i), rows(), values,
           static_cast<void*>(scratch.data()), size, report + i);
    }
  }

  // The library requires at least as many rows as columns. For the transposed matrix, left and right singular vectors
  // are swapped.
  void gesvd() const {
    int size = 0;
    call(name("_bufferSize"), handle_.get(), rows(), columns(), &size);
    const Scratch scratch = workspace(size);
    const auto job = static_cast<signed char>(settings_.job);
    const int64_t left = settings_.job == 'A' ? rows_ : least(), right = settings_.job == 'A' ? columns_ : least();
    auto* report = reinterpret_cast<int*>(result(4));
    for (int64_t i = 0; i < batch_; ++i) {
      void* values = result(1) + static_cast<std::size_t>(i * least()) * real_size(letter_);
      void* u = result(settings_.transposed ? 3 : 2) + static_cast<std::size_t>(i * rows_ * left) * element_;
      void* v = result(settings_.transposed ? 2 : 3) + static_cast<std::size_t>(i * right * columns_) * element_;
      call(name(), handle_.get(), job, job, rows(), columns(), matrix(i), rows(), values, u, rows(), v,
           static_cast<int>(right), static_cast<void*>(scratch.data()), size, static_cast<void*>(nullptr), report + i);
    }
  }

  const ffi::CallFrame* frame_;
  Settings settings_;
  Handle handle_;
  void* stream_;
  char letter_;
  std::size_t element_;
  int64_t rows_ = 0, columns_ = 0, batch_ = 1;
};

void* run_decomposition(ffi::CallFrame* frame) {
  if (ffi::answer_metadata(frame, ffi::no_traits) || frame->stage != 3) return nullptr;
  std::string message;
  try {
    void* stream = ffi::stream_of(frame);
    if (!stream) throw RuntimeError("the program has no stream");
    Decomposition(frame, read_settings(frame), stream).run();
    return nullptr;
  } catch (const std::exception& error) {
    message = concat("cuSOLVER: ", error.what());
  }
  return ffi::failure(frame, message.c_str());
}

// ---- the pass -------------------------------------------------------------------------------------------------------

// The NUMBER of `name = NUMBER : type` in the text of a call's settings.
int64_t number_in(const std::string& settings, const std::string& name) {
  const std::size_t position = settings.find(name + " = ");
  return position == std::string::npos ? 0 : std::stoll(settings.substr(position + name.size() + 3));
}

bool pays(const ArrayType& matrix) {
  int64_t batch = 1;
  for (int64_t i = 0; i + 2 < matrix.rank(); ++i) batch *= matrix.shape[static_cast<std::size_t>(i)];
  const int64_t rows = matrix.shape[matrix.shape.size() - 2], columns = matrix.shape.back();
  return std::max(rows, columns) <= INT32_MAX && (batch <= 16 || std::min(rows, columns) >= 64);
}

// The attributes of the cuSOLVER call that replaces `equation`, a LAPACK call; nullopt if it stays.
std::optional<Attrs> cusolver_attributes(const Equation& equation, const ArrayType& matrix) {
  constexpr std::string_view prefix = "lapack_", ending = "_ffi";
  const std::string target = equation.attrs.text("call_target_name");
  if (!target.starts_with(prefix) || !target.ends_with(ending) || matrix.rank() < 2 || !pays(matrix))
    return std::nullopt;
  if (equation.attrs.list("operand_layouts").empty()) return std::nullopt;  // read from a text without layouts
  std::string routine = target.substr(prefix.size(), target.size() - prefix.size() - ending.size());
  const std::string plain = routine.substr(1);
  static constexpr std::string_view known[] = {"getrf", "geqrf", "orgqr", "ungqr", "syevd", "heevd", "gesdd", "gesvd"};
  if (std::find(std::begin(known), std::end(known), plain) == std::end(known)) return std::nullopt;
  const std::string settings = equation.attrs.text("mhlo_backend_config");
  std::string text;
  Attrs attrs = equation.attrs;
  if (plain == "syevd" || plain == "heevd")
    text = concat(", lower = ", number_in(settings, "uplo") == 'L' ? 1 : 0, " : i64");
  if (plain == "gesdd" || plain == "gesvd") {
    routine = concat(routine.substr(0, 1), "gesvd");
    const bool transposed = matrix.shape[matrix.shape.size() - 2] < matrix.shape.back();
    text = concat(", job = ", number_in(settings, "mode"), " : i64, transposed = ", transposed ? 1 : 0, " : i64");
    if (transposed) {  // row-major, as everywhere else
      for (const char* name : {"operand_layouts", "result_layouts"}) {
        Attr::List layouts;
        for (const Attr& layout : attrs.list(name)) {
          Ints order = *layout.get_if<Ints>();
          std::sort(order.begin(), order.end(), std::greater<>());
          layouts.emplace_back(std::move(order));
        }
        attrs = attrs.with(name, std::move(layouts));
      }
    }
  }
  attrs = attrs.with("call_target_name", std::string(target_name));
  return attrs.with("mhlo_backend_config", concat("{routine = \"", routine, "\"", text, "}"));
}

}  // namespace

bool has_cusolver(const Client& client) {
  static AnswersByPlugin answers;
  return client.plugin().takes_gpu_calls() && answers(client.plugin(), [](const Plugin& plugin) {
           if (!library) library = open_library(plugin.path());
           if (library)
             plugin.register_gpu_call(target_name, reinterpret_cast<void*>(run_decomposition), ffi::no_traits);
           return library != nullptr;
         });
}

Program call_cusolver(const Program& program, const std::function<bool()>& available) {
  return passes::NestedPass([&](const Program& one, passes::NestedPass& nested) {
    Copy copy(one);
    bool changed = false;
    for (const Equation& equation : one.equations()) {
      std::optional<Attrs> attrs;
      if (equation.primitive == prim::custom_call() && !equation.inputs.empty())
        attrs = cusolver_attributes(equation, one.type(equation.inputs[0]));
      if (!attrs || !available()) attrs = nested(equation.attrs);
      changed |= !same_object(*attrs, equation.attrs);
      copy.emit(equation, copy(equation.inputs), std::move(*attrs));
    }
    return changed ? copy.finish() : one;
  })(program);
}

}  // namespace capibara::pjrt
