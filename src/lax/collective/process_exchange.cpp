// Collectives between processes: the lanes of one process, exchanged with other processes.
//
// Lanes are dimension 0 of the operand. Only programs run in lanes contain these primitives: derivatives are taken
// of the collectives that they implement.
#include "lax/collective/process_exchange.h"

#include <cstring>

#include "core/processes/exchange.h"
#include "lax/collective/collective.h"
#include "lax/sharding/factors.h"
#include "program/ir/source.h"

namespace capibara {

namespace {

const Primitive& gather_primitive() {
  static const Primitive own = primitive("process_all_gather");
  return own;
}
const Primitive& permute_primitive() {
  static const Primitive own = primitive("process_permute");
  return own;
}
const Primitive& reduce_primitive() {
  static const Primitive own = primitive("process_reduce");
  return own;
}

Effects in_order() { return Effects(Effects::ordered_debug); }  // every process makes the same exchanges

std::vector<int> group_of(const Attrs& attrs) {
  std::vector<int> group;
  for (const int64_t process : attrs.ints("group")) group.push_back(static_cast<int>(process));
  return group;
}

ArrayType without_lanes(const ArrayType& type) {
  return type.with_shape(Shape(type.shape.begin() + 1, type.shape.end()));
}

std::size_t bytes_of(const ArrayType& type) { return static_cast<std::size_t>(type.size() * storage_size(type.dtype)); }

// The input and the output of a call, alive as long as it runs.
struct Ends {
  Array from;
  Buffer to;
};

processes::Call call_of(const Attrs& attrs, const ArrayType& operand, std::shared_ptr<const void> owner) {
  return {concat(attrs.text("operation"), " of ", to_string(operand)), attrs.text("line"), group_of(attrs), true,
          std::move(owner)};
}

processes::Reduction reduction_of(const std::string& name) {
  if (name == "psum") return processes::Reduction::sum;
  return name == "pmax" ? processes::Reduction::max : processes::Reduction::min;
}

EvaluateRule run_and_wait(const char* name) {
  return [name](std::span<const Array> inputs, const Attrs& attrs) {
    const Primitive own = primitive(name);
    const ArrayType operand = inputs[0].type(), result = own->type(std::span(&operand, 1), attrs).types[0];
    auto ends = std::make_shared<Ends>(Ends{inputs[0], Buffer::allocate(bytes_of(result))});
    start_process_exchange(own, operand, attrs, inputs[0].raw_data(), ends->to.mutable_data(), ends).wait();
    return Arrays{Array::from_buffer(result, ends->to)};
  };
}

PrimitiveRecord record_of(const char* name, const char* doc, bool keeps_lanes) {
  PrimitiveRecord record;
  record.name = name;
  record.doc = doc;
  record.differentiable = false;
  record.traits.repeatable = false;
  record.factors = whole_factors;
  record.type = [keeps_lanes](std::span<const ArrayType> types, const Attrs& attrs) {
    ArrayType type = keeps_lanes ? types[0] : without_lanes(types[0]);
    if (keeps_lanes) type.shape[0] *= static_cast<int64_t>(attrs.ints("group").size());
    return TypeResult(Types{type}, in_order());
  };
  // Lanes of another axis follow those of this one.
  record.batch = [keeps_lanes](const BatchArgs& args) {
    const Array x = move_axis(args.inputs[0], args.dims[0], 1);
    return BatchResult{capibara::bind(args.primitive, std::span(&x, 1), args.attrs), {keeps_lanes ? 1 : 0}};
  };
  record.evaluate = run_and_wait(name);
  return record;
}

// Whole values are exchanged, whatever their dimensions mean.
PrimitiveRecord permute_record() {
  PrimitiveRecord record =
      record_of("process_permute", "The value of another process along a mesh axis, or zeros.", true);
  record.type = [](std::span<const ArrayType> types, const Attrs&) { return TypeResult(Types{types[0]}, in_order()); };
  record.batch = [](const BatchArgs& args) {
    return BatchResult{capibara::bind(args.primitive, std::span(args.inputs.data(), 1), args.attrs), {args.dims[0]}};
  };
  return record;
}

Attrs attrs_of(const std::string& operation, const ProcessAxis& axis) {
  const SourceInfo source = source_info(current_source());
  return {{"group", Ints(axis.group.begin(), axis.group.end())},
          {"line", source.file.empty() ? "" : concat(source.file.substr(source.file.rfind('/') + 1), ":", source.line)},
          {"operation", concat(operation, " over '", axis.name, "'")}};
}

}  // namespace

Family process_records() {
  return {record_of("process_all_gather", "The lanes of all processes along a mesh axis.", true), permute_record(),
          record_of("process_reduce", "A sum, maximum or minimum over the lanes of all processes along a mesh axis.",
                    false)};
}

bool is_process_exchange(const Primitive& own) {
  return own == gather_primitive() || own == permute_primitive() || own == reduce_primitive();
}

processes::Pending start_process_exchange(const Primitive& own, const ArrayType& operand, const Attrs& attrs,
                                          const std::byte* from, std::byte* to, std::shared_ptr<const void> owner) {
  const processes::Call call = call_of(attrs, operand, std::move(owner));
  if (own == gather_primitive()) return processes::exchange().all_gather(call, from, to, bytes_of(operand));
  if (own == permute_primitive()) {
    return processes::exchange().permute(call, from, to, bytes_of(operand), static_cast<int>(attrs.integer("source")),
                                         static_cast<int>(attrs.integer("target")));
  }
  const processes::Reduce what{reduction_of(attrs.text("reduction")), operand.dtype, without_lanes(operand).size(),
                               static_cast<int>(operand.shape[0])};
  return processes::exchange().reduce(call, what, from, to);
}

bool lets_go_of_memory(const Attrs& attrs) { return processes::exchange().lets_go_of_memory(group_of(attrs)); }

Array process_all_gather(const Array& lanes, const std::string& operation, const ProcessAxis& axis) {
  return bind1(gather_primitive(), {lanes}, attrs_of(operation, axis));
}

Array process_reduce(const Array& lanes, const std::string& reduction, const ProcessAxis& axis) {
  return bind1(reduce_primitive(), {lanes}, attrs_of(reduction, axis).with("reduction", reduction));
}

Array process_permute(const Array& x, const std::string& operation, const ProcessAxis& axis, int64_t source,
                      int64_t target) {
  return bind1(permute_primitive(), {x}, attrs_of(operation, axis).with("source", source).with("target", target));
}

}  // namespace capibara
