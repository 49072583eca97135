// Call frames: attributes are decoded once, buffers are filled in for each call. Handlers compare the sizes of
// structures with those of their own headers, so every size here is the one of interface version 0.3 (jaxlib 0.10.2),
// which newer handlers accept.
#include "backends/ffi/call.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <numeric>

#include <capibara/error.h>
#include <capibara/lax.h>

#include "backends/ffi/api.h"
#include "backends/ffi/attributes.h"
#include "backends/ffi/targets.h"
#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/syntax/parser.h"
#include "core/array/byte_count.h"

namespace capibara::ffi {

namespace {

// Parses the attributes of an operation from the text between its braces.
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
  if (attrs.has("attributes")) {  // as read from a text
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

// The order of dimensions in memory, slowest first; empty if row-major.
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
    frame.own.api = &interface_functions();
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
  AttributeFrame frame_;
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
