// The reference backend: looks kernels up by primitive name and evaluates programs equation by equation.
#include "backends/reference/backend.h"

#include "backends/reference/devices.h"
#include "backends/reference/kernels.h"
#include "core/array/buffer_bytes.h"

#include <capibara/config.h>

#include "compiler/optimise/passes.h"
#include "core/profile/recorder.h"
#include "core/runtime/interrupt.h"
#include "program/ir/memo.h"
#include "program/ir/nested.h"
#include "program/ir/plain_types.h"
#include "program/ir/views.h"
#include "program/trace/trace.h"

#include <unordered_map>

namespace capibara::reference {

namespace {

using Table = std::unordered_map<const PrimitiveRecord*, Kernel>;

const Table& table() {
  static const Table kernels = [] {
    Table all;
    for (const KernelList& list :
         {elementwise_kernels(), shape_kernels(), index_kernels(), reduce_kernels(), window_kernels(), sort_kernels(),
          contract_kernels(), control_kernels(), random_kernels(), linalg_kernels(), fft_kernels(), effect_kernels()}) {
      for (const KernelEntry& entry : list) all.emplace(&primitive(entry.primitive).record(), entry.kernel);
    }
    return all;
  }();
  return kernels;
}

// Programs in attributes belong to loops and branches that run as single operations: cached, since an inner loop is
// seen repeatedly.
Attrs expanded_attrs(const Attrs& attrs) {
  static Memo<Program> memo;
  return rewrite_programs(attrs, [](const Program& program) {
    return memo.get({program, {}, {}, 0, "", config().key()}, [&] { return passes::expanded(program); });
  });
}

class ReferenceExecutable final : public Executable {
 public:
  explicit ReferenceExecutable(const Program& program)
      : types_(program.output_types()), program_(passes::expanded(program)) {}

  Arrays execute(std::span<const Array> given, const std::vector<bool>& donated) override {
    Arrays inputs(given.begin(), given.end());
    for (Array& input : inputs) {
      if (input.type().sharding.is_explicit()) input = unplaced(input);  // as in the program
    }
    Arrays outputs = profiled_.run(program_.name(), "reference", [&] { return interpret(program_, inputs); });
    outputs = with_weak_types(std::move(outputs), types_);
    for (std::size_t i = 0; i < donated.size(); ++i) {
      if (donated[i]) release(inputs[i], outputs);
    }
    return outputs;
  }

 private:
  // A donated buffer is deleted unless the program returned it unchanged.
  static void release(const Array& input, const Arrays& outputs) {
    for (const Array& output : outputs) {
      if (output.buffer().defined() && input.same_as(output)) return;
    }
    input.delete_buffers();
  }

  Types types_;  // of the results; the program's own may have become strong
  Program program_;
  profile::WholeProgram profiled_;
};

class ReferenceBackend final : public Backend {
 public:
  std::string name() const override { return "reference"; }
  bool supports(const Primitive& primitive) const override {
    return find_kernel(primitive) != nullptr || primitive->evaluate || primitive->lower;
  }
  std::optional<std::string> compiled_text(const Program& program, const std::vector<bool>&) override {
    return passes::expanded(program).to_string();
  }
  Arrays run(const Primitive& primitive, std::span<const Array> inputs, const Attrs& given) override {
    poll_interrupt();
    const Attrs attrs = holds_programs(given) ? expanded_attrs(given) : given;
    Kernel kernel = find_kernel(primitive);
    if (maps_devices(primitive)) return run_shard_map(inputs, attrs);
    if (!kernel && primitive->evaluate) {
      TraceScope scope(evaluation_trace());
      return primitive->evaluate(inputs, attrs);
    }
    Types types;
    for (const Array& input : inputs) types.push_back(input.type());
    if (!kernel && primitive->lower) {
      TraceScope scope(evaluation_trace());
      ConfigScope own(own_platform());
      primitive->type(types, attrs);  // rejects operands that the lowering does not expect
      return primitive->lower(inputs, attrs);
    }
    if (!kernel) {
      throw NotImplementedError(
          concat("primitive '", primitive.name(), "' has no evaluation rule on the reference backend"));
    }
    TypeResult result = primitive->type(types, attrs);
    return kernel({inputs, result.types, attrs});
  }
  std::shared_ptr<Executable> compile(const Program& program) override {
    return std::make_shared<ReferenceExecutable>(program);
  }
};

}  // namespace

Config own_platform() {
  Config settings = config();
  settings.platform = "reference";
  return settings;
}

Arrays with_weak_types(Arrays values, const Types& types) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ArrayType& own = values[i].type();
    if (own.ref || own.weak_type == types[i].weak_type) continue;
    ArrayType promised = own;
    promised.weak_type = types[i].weak_type;
    values[i] = Array::from_buffer(promised, values[i].buffer(), values[i].committed());
  }
  return values;
}

Kernel find_kernel(const Primitive& primitive) {
  const auto found = table().find(&primitive.record());
  return found == table().end() ? nullptr : found->second;
}

Backend& backend() {
  static ReferenceBackend instance;
  return instance;
}

Arrays interpret(const Program& program, std::span<const Array> inputs) {
  TraceScope scope(evaluation_trace());
  ConfigScope own(own_platform());
  return evaluate_program(program, inputs);
}

Output allocate(const ArrayType& type) {
  Buffer buffer = Buffer::allocate(buffer_bytes(type));
  std::byte* data = buffer.mutable_data();
  return {Array::from_buffer(type, std::move(buffer)), data};
}

Ints row_major_strides(std::span<const int64_t> shape) {
  Ints strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

bool next_index(std::span<int64_t> index, std::span<const int64_t> shape) {
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (++index[i] < shape[i]) return true;
    index[i] = 0;
    poll_stop();
  }
  return false;
}

}  // namespace capibara::reference
