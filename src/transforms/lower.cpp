// Lowering: rewrites a program to the primitives that StableHLO names, by running it under a trace that applies each
// primitive's lower rule until only the subset is left. Key arrays become arrays of their uint32 words.
#include <capibara/config.h>
#include <capibara/lax.h>

#include "lax/rules.h"
#include "program/ir/callback.h"
#include "program/ir/handles.h"
#include "program/ir/memo.h"
#include "program/ir/nested.h"
#include "program/trace/discharge.h"
#include "transforms/flat.h"

namespace capibara {

namespace {

ArrayType words_type(const ArrayType& type) {
  if (!is_key(type.dtype)) return type;
  ArrayType words = type.with_dtype(DType::uint32);
  words.shape.push_back(key_words(type.dtype));
  return words;
}

// A value of key type, represented by its words: one more trailing dimension.
class KeyTracer final : public Tracer {
 public:
  Array words;

  KeyTracer(ArrayType type, std::shared_ptr<Trace> trace, Array w)
      : Tracer(std::move(type), std::move(trace)), words(std::move(w)) {}
};

class LoweringTrace final : public Trace {
 public:
  explicit LoweringTrace(std::shared_ptr<Trace> outer) { parent = std::move(outer); }
  const char* kind() const override { return "lowering"; }

  Array wrap(Array value, const ArrayType& logical) {
    if (!is_key(logical.dtype)) return value;
    return Array(std::make_shared<const KeyTracer>(logical, shared_from_this(), std::move(value)));
  }
  Array words(const Array& value) const {
    if (value.body()->trace() == this) return static_cast<const KeyTracer&>(*value.body()).words;
    if (!is_key(value.dtype())) return value;
    // A concrete key: the same bytes, viewed as words.
    return Array::from_buffer(words_type(value.type()), value.buffer(), value.committed());
  }

  Arrays bind(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) override {
    if (primitive == prim::random_unwrap()) return {words(inputs[0])};
    Types types;
    bool keys = false;
    for (const Array& input : inputs) {
      types.push_back(input.type());
      keys |= is_key(input.dtype());
    }
    if (primitive == prim::random_wrap()) return {wrap(inputs[0], primitive->type(types, attrs).types[0])};
    TraceScope scope(shared_from_this());
    if (primitive->lower) {
      Arrays outputs = primitive->lower(inputs, attrs);
      if (!outputs.empty() || primitive->stablehlo.empty()) return outputs;
    }
    if (primitive->stablehlo.empty() && calls_host(primitive)) {
      throw NotImplementedError(concat("a program with host callbacks has no StableHLO text: the host function of '",
                                       primitive.name(), "' cannot be written down"));
    }
    if (primitive->stablehlo.empty()) {
      throw NotImplementedError(concat("primitive '", primitive.name(), "' has no lowering to StableHLO"));
    }
    if (!keys) return bind_words(primitive, inputs, attrs);
    Types outputs = primitive->type(types, attrs).types;
    Arrays physical =
        holds_programs(attrs) ? bind_words(primitive, inputs, attrs) : bind_batched(primitive, inputs, attrs);
    Arrays results;
    for (std::size_t i = 0; i < physical.size(); ++i) results.push_back(wrap(physical[i], outputs[i]));
    return results;
  }

 private:
  // StableHLO has no weak types: programs that differ in nothing else must produce the same text.
  static Array strong(const Array& value) {
    if (value.is_tracer() || !value.weak_type()) return value;
    return Array::from_buffer(value.type().strong(), value.buffer(), value.committed());
  }

  // The operation on words; programs of calls and control flow take words too.
  Arrays bind_words(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
    Arrays operands;
    for (const Array& input : inputs) operands.push_back(strong(words(input)));
    Attrs own = primitive == prim::convert_element_type()
                    ? attrs.with("weak_type", false)
                    : rewrite_programs(attrs, [](const Program& program) { return lower(program); });
    return parent->bind(primitive, operands, own);
  }

  // Operations that only move keys: the words are a batch dimension, kept last.
  Arrays bind_batched(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs) {
    if (!primitive->batch) {
      throw NotImplementedError(concat("primitive '", primitive.name(), "' does not take key arrays"));
    }
    Arrays operands;
    std::vector<int64_t> dims;
    MappedAxis axis;
    for (const Array& input : inputs) {
      bool key = is_key(input.dtype());
      operands.push_back(words(input));
      dims.push_back(key ? input.ndim() : not_mapped);
      if (key) axis.size = key_words(input.dtype());
    }
    BatchResult result = primitive->batch({primitive, axis, operands, dims, attrs});
    for (std::size_t i = 0; i < result.outputs.size(); ++i) {
      if (result.dims[i] == not_mapped) continue;
      result.outputs[i] = move_axis(result.outputs[i], result.dims[i], result.outputs[i].ndim() - 1);
    }
    return result.outputs;
  }
};

Memo<Program>& lowered_memo() {
  static Memo<Program> instance;
  return instance;
}

}  // namespace

Program lower(const Program& given) {
  const Program program = discharge(given).program;
  return lowered_memo().get({program, {}, {}, 0, "", config().key()}, [&] {
    Types types;
    for (const ArrayType& type : program.input_types()) types.push_back(words_type(type).strong());
    return stage(
               [&](std::span<const Array> inputs) {
                 auto trace = std::make_shared<LoweringTrace>(current_trace());
                 TraceEnd end(trace);
                 TraceScope scope(trace);
                 Arrays wrapped;
                 for (std::size_t i = 0; i < inputs.size(); ++i) {
                   wrapped.push_back(trace->wrap(inputs[i], program.type(program.invars()[i])));
                 }
                 Arrays outputs;
                 for (const Array& output : evaluate_program(program, wrapped)) outputs.push_back(trace->words(output));
                 return outputs;
               },
               types, program.name())
        .program;
  });
}

}  // namespace capibara
