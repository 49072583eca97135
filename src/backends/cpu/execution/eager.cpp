// Chooses how an operation outside of jit runs: compiled, by one of the backend's kernels, or by the reference backend.
//
// The choice is cached by types and attributes: a small operation costs little more than the lookup.
//
// Programs (jit under an eager transform, loops, branches), operations with scalar regions that no kernel supports, and
// operations on many elements are compiled as programs of their own. For fewer elements compiling, which takes
// milliseconds, does not pay off: a C++ kernel runs them if there is one.
#include "backends/cpu/execution/eager.h"

#include <capibara/config.h>

#include <algorithm>
#include <array>
#include <memory>

#include "backends/cpu/driver/lower.h"
#include "backends/cpu/execution/backend.h"
#include "backends/cpu/execution/cost.h"
#include "backends/cpu/execution/eager_elements.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/reference/backend.h"
#include "backends/reference/kernels.h"
#include "backends/single_operations.h"
#include "core/array/buffer_bytes.h"
#include "core/array/hash.h"
#include "core/runtime/attend.h"
#include "core/runtime/caches.h"
#include "core/runtime/interrupt.h"
#include "lax/math/denormals.h"
#include "program/ir/handles.h"

namespace capibara::cpu {

namespace {

constexpr int64_t min_compiled_elements = 16384;
constexpr std::size_t max_operations = 2048;

bool runs_program(const Primitive& primitive) {
  switch (primitive->traits.control) {
    case Control::scan:
    case Control::while_loop:
    case Control::cond:
    case Control::device_map:
      return true;
    default:
      return primitive == prim::jit();
  }
}

// Operations with a scalar region: compiled if no kernel supports them, even for few elements.
bool has_region(const Primitive& primitive, const Attrs& attrs) {
  const Traits& traits = primitive->traits;
  if (!traits.region || traits.monoid || traits.combines == Combines::nothing) return false;
  return traits.combines != Combines::updates || (primitive == prim::scatter() && !attrs["update_jaxpr"].is_none());
}

// A fused operation that is defined only by a composition: compiled, its steps take one pass or few.
bool is_fused(const Primitive& primitive) { return primitive->lower && !reference::find_kernel(primitive); }

// Null if only the reference backend runs it. A jit under an eager transform may have side effects: the user requested
// that it be compiled as a whole.
std::shared_ptr<Executable> compile_alone(const Program& program) {
  const bool is_jit = program.equations().size() == 1 && program.equations()[0].primitive == prim::jit();
  const bool allowed = is_jit ? program.effects().axes.empty() : program.effects().empty();
  return allowed ? backend().compile(program) : nullptr;
}

// A single kernel on arrays.
class KernelExecutable final : public Executable, public std::enable_shared_from_this<KernelExecutable> {
 public:
  KernelExecutable(std::string name, Types outputs, HostKernel kernel, double nanoseconds)
      : name_(std::move(name)), outputs_(std::move(outputs)), kernel_(std::move(kernel)), nanoseconds_(nanoseconds) {}

  Arrays execute(std::span<const Array> inputs, const std::vector<bool>&) override {
    Arrays outputs;
    outputs.reserve(outputs_.size());
    for (const ArrayType& type : outputs_) {
      outputs.push_back(Array::from_buffer(type, Buffer::allocate(buffer_bytes(type))));
    }
    if (should_attend(nanoseconds_)) {
      for (const Array& input : inputs) input.block_until_ready();
      const Arrays read(inputs.begin(), inputs.end());
      run_attended(name_, [self = shared_from_this(), read, outputs](const auto&) { self->run(read, outputs); });
    } else {
      run(inputs, outputs);
    }
    return outputs;
  }

 private:
  static constexpr std::size_t few = 8;

  // Reading an operand waits until it is ready.
  void run(std::span<const Array> inputs, std::span<const Array> outputs) const {
    std::byte* on_stack[few];
    std::unique_ptr<std::byte*[]> many;
    std::byte** buffers = on_stack;
    if (inputs.size() + outputs.size() > few) {
      many = std::make_unique<std::byte*[]>(inputs.size() + outputs.size());
      buffers = many.get();
    }
    std::byte** next = buffers;
    for (const Array& input : inputs) *next++ = const_cast<std::byte*>(input.raw_data());
    for (const Array& output : outputs) *next++ = const_cast<std::byte*>(output.raw_data());
    const math::FlushDenormals flush;
    kernel_(buffers);
  }

  std::string name_;
  Types outputs_;
  HostKernel kernel_;
  double nanoseconds_;
};

// Null if the backend has no kernel of its own for these types.
std::shared_ptr<Executable> own_kernel(const Program& program) {
  if (program.equations().size() != 1 || !program.effects().empty()) return nullptr;
  const Equation& equation = program.equations()[0];
  const KernelMaker make = find_kernel_maker(equation.primitive);
  if (!make) return nullptr;
  Types inputs;
  for (Atom input : equation.inputs) inputs.push_back(program.type(input));
  const auto is_empty = [](const ArrayType& type) { return type.size() == 0; };
  const Types outputs = program.output_types();
  if (std::any_of(inputs.begin(), inputs.end(), is_empty) || std::any_of(outputs.begin(), outputs.end(), is_empty))
    return nullptr;
  HostKernel kernel = make({inputs, outputs, equation.attrs, {}});
  if (!kernel) return nullptr;
  return std::make_shared<KernelExecutable>(program.name(), outputs, std::move(kernel), estimated_nanoseconds(program));
}

// Never freed: operations may run until the very end.
SingleOperations& compiled_operations() {
  static auto* known = new SingleOperations(max_operations);
  return *known;
}
SingleOperations& kernel_operations() {
  static auto* known = new SingleOperations(max_operations);
  return *known;
}

// Long enough that the user may want to interrupt it: this thread waits for signals while it runs.
Arrays run_reference_attended(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  struct Operation {
    Primitive primitive;
    Arrays inputs;
    Attrs attrs;
    Config settings;
    Arrays outputs;
  };
  const auto own =
      std::make_shared<Operation>(Operation{primitive, Arrays(inputs.begin(), inputs.end()), attrs, config(), {}});
  run_attended(primitive.name(), [own](const std::atomic<int32_t>&) {
    const ConfigScope as_called(own->settings);
    own->outputs = reference::backend().run(own->primitive, own->inputs, own->attrs);
  });
  return std::move(own->outputs);
}

// To find the operation that yields a NaN (or infinity), operations run one by one; code of the user, and refs, are
// never compiled.
bool may_compile(const Primitive& primitive, std::span<const Array> inputs) {
  const Config& settings = config();
  if (settings.debug_nans || settings.debug_infs || primitive->evaluate) return false;
  return std::none_of(inputs.begin(), inputs.end(), [](const Array& input) { return input.type().ref; });
}

bool is_large(const Array& input) { return input.size() >= min_compiled_elements; }

std::shared_ptr<Executable> find_executable(const Primitive& primitive, std::span<const Array> inputs,
                                            const Attrs& attrs) {
  if (runs_program(primitive) ||
      (std::any_of(inputs.begin(), inputs.end(), is_large) && reference::find_kernel(primitive))) {
    if (auto compiled = compiled_operations().find(primitive, inputs, attrs, compile_alone)) return compiled;
  }
  if (find_kernel_maker(primitive)) {
    if (auto kernel = kernel_operations().find(primitive, inputs, attrs, own_kernel)) return kernel;
  }
  const bool is_long = is_fused(primitive) && std::any_of(inputs.begin(), inputs.end(), is_large);
  const bool compiles = has_region(primitive, attrs) || is_long;
  return compiles ? compiled_operations().find(primitive, inputs, attrs, compile_alone) : nullptr;
}

// A copy compiled alone would be its input: the results of programs may share memory with their arguments.
Array copied(const Array& x) {
  const std::byte* values = x.raw_data();
  Buffer buffer = Buffer::allocate(x.buffer().size());
  std::copy_n(values, buffer.size(), buffer.mutable_data());
  return Array::from_buffer(x.type(), std::move(buffer));
}

// How an operation runs on operands of these types: on the reference backend if both members are null.
struct Way {
  ElementCall elements;
  std::shared_ptr<Executable> executable;
};

std::shared_ptr<const Way> find_way(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  Way way;
  if (std::none_of(inputs.begin(), inputs.end(), is_large)) way.elements = find_elements(primitive, inputs, attrs);
  if (!way.elements.function) way.executable = find_executable(primitive, inputs, attrs);
  return std::make_shared<const Way>(std::move(way));
}

// The most recent choices of this thread. The tables behind them are shared by all threads and keep every operation; a
// lookup here takes no lock, and does not infer the type of the result again.
class RecentWays {
 public:
  std::shared_ptr<const Way> find(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
    const std::size_t settings = config_key();
    const unsigned generation = cache_generation();
    Hasher hasher;
    hasher.mix(std::hash<const void*>{}(&primitive.record()));
    hasher.mix(attrs.hash());
    for (const Array& input : inputs) hasher.type(input.type());
    Slot& slot = slots_[hasher.value() % slots_.size()];
    if (slot.primitive == primitive && slot.settings == settings && slot.generation == generation &&
        slot.attrs == attrs &&
        std::equal(inputs.begin(), inputs.end(), slot.types.begin(), slot.types.end(),
                   [](const Array& input, const ArrayType& type) { return input.type() == type; })) {
      return slot.way;
    }
    // May compile, and run other operations in the process.
    std::shared_ptr<const Way> way = find_way(primitive, inputs, attrs);
    slot = {primitive, attrs, {}, settings, generation, way};
    for (const Array& input : inputs) slot.types.push_back(input.type());
    return way;
  }

 private:
  struct Slot {
    Primitive primitive;
    Attrs attrs;
    Types types;
    std::size_t settings = 0;
    unsigned generation = 0;
    std::shared_ptr<const Way> way;
  };
  std::array<Slot, 256> slots_;
};

// Programs and objects of the host language are not kept alive by a thread.
bool is_value(const Attr& attr) {
  return !attr.get_if<Array>() && !attr.get_if<std::shared_ptr<const Program>>() &&
         !attr.get_if<std::shared_ptr<const Opaque>>() && !attr.get_if<std::shared_ptr<const Attr::List>>();
}

bool may_remember(const Attrs& attrs) {
  const auto entries = attrs.entries();
  return std::all_of(entries.begin(), entries.end(), [](const Attrs::Entry& entry) { return is_value(entry.second); });
}

std::shared_ptr<const Way> way_of(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  if (!may_remember(attrs)) return find_way(primitive, inputs, attrs);
  thread_local const auto recent = std::make_unique<RecentWays>();
  return recent->find(primitive, inputs, attrs);
}

}  // namespace

Arrays run_eagerly(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  if (primitive == prim::copy() && is_large(inputs[0]) && !inputs[0].type().ref) return {copied(inputs[0])};
  if (may_compile(primitive, inputs)) {
    const std::shared_ptr<const Way> way = way_of(primitive, inputs, attrs);
    if (way->elements.function) return {run_elements(way->elements, inputs)};
    if (way->executable) return way->executable->execute(inputs, {});
  }
  if (!primitive->evaluate && may_be_interrupted() && should_attend(estimated_nanoseconds(primitive, inputs, attrs))) {
    return run_reference_attended(primitive, inputs, attrs);
  }
  return reference::backend().run(primitive, inputs, attrs);
}

}  // namespace capibara::cpu
