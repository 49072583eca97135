// Compiles an elementwise operation on one long dimension; its parallel loop then runs over the actual number of
// elements.
//
// Compiling takes milliseconds: repeated for each shape, it would cost more than the operations themselves ever do.
#include "backends/cpu/execution/eager_elements.h"

#include <capibara/config.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "backends/cpu/driver/lower.h"
#include "backends/cpu/elements/element.h"
#include "backends/cpu/execution/backend.h"
#include "backends/cpu/execution/compiler.h"
#include "compiler/optimise/simplify.h"
#include "core/array/buffer_bytes.h"
#include "core/array/hash.h"
#include "core/runtime/caches.h"
#include "lax/math/denormals.h"
#include "program/trace/stage.h"

namespace capibara::cpu {

namespace {

constexpr int64_t compiled_length = 1 << 24;  // long enough that even the cheapest loop runs in parallel
constexpr std::size_t max_operands = 8, max_functions = 4096;

// Operands of the output's shape, of rank 0, or any other.
enum class Operand : uint8_t { array, number, other };

Operand operand_of(const ArrayType& type, const Shape& shape) {
  if (type.shape == shape) return Operand::array;
  return type.shape.empty() ? Operand::number : Operand::other;
}

}  // namespace

class ElementFunction {
 public:
  // Null if the operation does not become exactly one parallel loop over all elements.
  static std::shared_ptr<const ElementFunction> compile(const Primitive& primitive, const Types& inputs,
                                                        const Attrs& attrs) {
    const FlatFunction call = [&](std::span<const Array> operands) {
      return capibara::bind(primitive, operands, attrs);
    };
    auto made = std::make_shared<ElementFunction>();
    Lowered lowered = lower_to_loops(optimised(stage(call, inputs, primitive.name()).program));
    if (lowered.outputs.size() != 1 || !lowered.kernels.empty() || lowered.arena_bytes != 0) return nullptr;
    if (lowered.outputs[0].from == Lowered::Output::From::input) {
      made->copied_ = static_cast<std::size_t>(lowered.outputs[0].index);
      return made;
    }
    const std::vector<Function>& functions = lowered.module.functions;
    if (lowered.outputs[0].from != Lowered::Output::From::driver || functions.size() != 2) return nullptr;
    if (!runs_in_parallel(functions[1]) || functions[1].extent != compiled_length) return nullptr;
    made->constants_ = std::move(lowered.constants);
    if (inputs.size() + made->constants_.size() + 2 > max_operands) return nullptr;
    made->code_ = code_of(lowered.module);
    made->driver_ = made->code_->driver();
    return made;
  }

  Array run(std::span<const Array> inputs, const ArrayType& type) const {
    const int64_t count = type.size();
    Buffer buffer = Buffer::allocate(buffer_bytes(type));
    if (count == 0) return Array::from_buffer(type, std::move(buffer));
    std::byte* addresses[max_operands];
    std::byte** next = addresses;
    for (const Array& input : inputs) {
      input.block_until_ready();
      *next++ = const_cast<std::byte*>(input.raw_data());
    }
    if (copied_) {
      std::copy_n(addresses[*copied_], buffer.size(), buffer.mutable_data());
      return Array::from_buffer(type, std::move(buffer));
    }
    for (const Array& constant : constants_) *next++ = const_cast<std::byte*>(constant.raw_data());
    *next++ = buffer.mutable_data();
    *next = nullptr;  // no scratch memory
    static constexpr int32_t never = 0;
    const Runtime runtime{&never, run_loop, nullptr, const_cast<int64_t*>(&count)};
    int32_t status;
    {
      const math::FlushDenormals flush;
      status = driver_(&runtime, addresses, 0, 0);
    }
    if (status != 0) throw InternalError(concat("a compiled elementwise operation ended with status ", status));
    return Array::from_buffer(type, std::move(buffer));
  }

 private:
  static int32_t run_loop(const Runtime* runtime, Entry function, std::byte* const* buffers, int64_t, double) {
    return function(runtime, buffers, 0, *static_cast<const int64_t*>(runtime->program));
  }

  std::optional<std::size_t> copied_;  // the operand that is returned as the result
  std::vector<Array> constants_;
  std::shared_ptr<const Code> code_;
  Entry driver_ = nullptr;
};

namespace {

// The functions compiled so far, and the operations that have none.
class ElementFunctions {
 public:
  ElementFunctions() {
    on_clear_caches([this] {
      Entries old;  // freed after the lock is released
      std::lock_guard lock(mutex_);
      old.swap(entries_);
    });
  }

  std::shared_ptr<const ElementFunction> find(const Primitive& primitive, std::span<const Array> inputs,
                                              const Shape& shape, const Attrs& attrs) {
    Key key{config_key(), {}, {}, inputs.size()};
    Hasher hasher;
    hasher.bytes(primitive.name().data(), primitive.name().size());
    hasher.mix(attrs.hash());
    hasher.mix(key.settings);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      key.dtypes[i] = inputs[i].dtype();
      key.operands[i] = operand_of(inputs[i].type(), shape);
      if (key.operands[i] == Operand::other) return nullptr;
      hasher.mix(static_cast<std::size_t>(key.dtypes[i]) * 4 + static_cast<std::size_t>(key.operands[i]));
    }
    const std::size_t hash = hasher.value();
    {
      std::lock_guard lock(mutex_);
      const auto [first, last] = entries_.equal_range(hash);
      for (auto it = first; it != last; ++it) {
        if (it->second.key == key && it->second.primitive == primitive && it->second.attrs == attrs)
          return it->second.function;
      }
    }
    Types types;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      ArrayType type;
      type.dtype = key.dtypes[i];
      if (key.operands[i] == Operand::array) type.shape = {compiled_length};
      types.push_back(std::move(type));
    }
    std::shared_ptr<const ElementFunction> made = ElementFunction::compile(primitive, types, attrs);
    Entries old;  // freed after the lock is released
    std::lock_guard lock(mutex_);
    if (entries_.size() >= max_functions) old.swap(entries_);
    entries_.emplace(hash, Entry{key, primitive, attrs, made});
    return made;
  }

 private:
  struct Key {
    std::size_t settings;
    std::array<DType, max_operands> dtypes;
    std::array<Operand, max_operands> operands;
    std::size_t count;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Entry {
    Key key;
    Primitive primitive;
    Attrs attrs;
    std::shared_ptr<const ElementFunction> function;
  };
  using Entries = std::unordered_multimap<std::size_t, Entry>;

  std::mutex mutex_;
  Entries entries_;
};

ElementFunctions& functions() {
  static auto* known = new ElementFunctions;  // never freed: operations may run until the very end
  return *known;
}

}  // namespace

ElementCall find_elements(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
  if (primitive->traits.elementwise == Elementwise::no || inputs.empty() || inputs.size() > max_operands ||
      !has_compiler())
    return {};
  Types types;
  types.reserve(inputs.size());
  for (const Array& input : inputs) {
    if (!has_element(input.dtype())) return {};
    types.push_back(input.type());
  }
  const Types outputs = primitive->type(types, attrs).types;
  if (outputs.size() != 1 || !has_element(outputs[0].dtype)) return {};
  return {functions().find(primitive, inputs, outputs[0].shape, attrs), outputs[0]};
}

Array run_elements(const ElementCall& call, std::span<const Array> inputs) {
  return call.function->run(inputs, call.result);
}

}  // namespace capibara::cpu
