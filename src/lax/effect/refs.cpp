// The primitives of refs. A cotangent of a ref is a plain value: transposition never needs a ref of its own.
#include "lax/effect/refs.h"

#include <capibara/ref.h>

#include "lax/control/control.h"
#include "lax/sharding/factors.h"

namespace capibara {

namespace {

ArrayType value_type(const char* op, const ArrayType& type) {
  if (!type.ref) throw TypeError(concat(op, ": argument 'ref' must be a ref, got ", to_string(type)));
  ArrayType value = type;
  value.ref = false;
  return value;
}

void check_value(const char* op, const ArrayType& ref, const ArrayType& value) {
  if (value.shape == ref.shape && value.dtype == ref.dtype) return;
  throw TypeError(
      concat(op, ": the value must be ", to_string(value_type(op, ref)), " like the ref, got ", to_string(value)));
}

Array& cell(const Array& ref) {
  const auto* body = dynamic_cast<const RefBody*>(ref.body().get());
  if (!body) throw TypeError(concat("a ref is needed, got ", to_string(ref.type())));
  return body->value;
}

void require_mapped_ref(const BatchArgs& args) {
  if (args.mapped(0) || !args.mapped(1)) return;
  throw ValueError(concat(
      "performing a ", args.primitive.name(), " with a vmapped value on an unbatched array reference of type ",
      to_string(args.inputs[0].type()), ". Move the array reference to be an argument of the vmapped function."));
}

// A write of an unmapped value to a mapped ref is broadcast to every lane.
BatchResult batch_write(const BatchArgs& args) {
  require_mapped_ref(args);
  Arrays operands(args.inputs.begin(), args.inputs.end());
  if (args.mapped(0)) operands[1] = batch_at(args.inputs[1], args.dims[1], args.axis, args.dims[0]);
  Arrays outputs = capibara::bind(args.primitive, operands, args.attrs);
  return {outputs, std::vector<int64_t>(outputs.size(), args.dims[0])};
}

JvpResult jvp_write(const JvpArgs& args) {
  if (!args.tangents[0].defined()) {
    throw ValueError(concat(args.primitive.name(),
                            ": a value with a tangent is written to a ref that has none; create the ref ",
                            "inside the differentiated function"));
  }
  Arrays outputs = capibara::bind(args.primitive, args.primals, args.attrs);
  Arrays tangents = {args.tangents[0], instantiate(args.tangents[1], args.primals[1].type())};
  return {outputs, capibara::bind(args.primitive, tangents, args.attrs)};
}

PrimitiveRecord record(std::string name, std::string doc) {
  PrimitiveRecord r;
  r.name = std::move(name);
  r.factors = whole_factors;
  r.doc = std::move(doc);
  return r;
}

}  // namespace

std::vector<PrimitiveRecord> ref_records() {
  PrimitiveRecord create = record("new_ref", "A mutable array that starts with a value.");
  create.type = [](std::span<const ArrayType> types, const Attrs&) {
    require_count("new_ref", types, 1);
    ArrayType type = types[0].strong();
    if (type.ref) throw TypeError("new_ref: the value must be an array, got a ref");
    type.ref = true;
    return TypeResult(Types{type});
  };
  create.jvp = [](const JvpArgs& args) {
    Array tangent = instantiate(args.tangents[0], args.primals[0].type());
    Arrays outputs = capibara::bind(args.primitive, args.primals, args.attrs);
    return JvpResult{outputs, {bind1(args.primitive, {tangent}, args.attrs)}};
  };
  create.batch = [](const BatchArgs& args) {
    int64_t at = args.mapped(0) ? args.dims[0] : 0;
    Array value = batch_at(args.inputs[0], args.dims[0], args.axis, at);
    return BatchResult{{bind1(args.primitive, {value}, args.attrs)}, {at}};
  };
  create.evaluate = [](std::span<const Array> inputs, const Attrs&) {
    return Arrays{Array(std::make_shared<const RefBody>(inputs[0]))};
  };

  PrimitiveRecord get = record("get", "The present value of a ref.");
  get.type = [](std::span<const ArrayType> types, const Attrs&) {
    require_count("get", types, 1);
    return TypeResult(Types{value_type("get", types[0])}, Effects::ref_read);
  };
  get.jvp = [](const JvpArgs& args) {
    return JvpResult{capibara::bind(args.primitive, args.primals, args.attrs),
                     capibara::bind(args.primitive, args.tangents, args.attrs)};
  };
  get.batch = [](const BatchArgs& args) {
    return BatchResult{capibara::bind(args.primitive, args.inputs, args.attrs), {args.dims[0]}};
  };
  get.evaluate = [](std::span<const Array> inputs, const Attrs&) { return Arrays{cell(inputs[0])}; };

  PrimitiveRecord swap = record("swap", "Writes a value to a ref and yields the old one.");
  swap.type = [](std::span<const ArrayType> types, const Attrs&) {
    require_count("swap", types, 2);
    check_value("swap", types[0], types[1]);
    return TypeResult(Types{value_type("swap", types[0])}, Effects::ref_write);
  };
  swap.jvp = jvp_write;
  swap.batch = batch_write;
  swap.evaluate = [](std::span<const Array> inputs, const Attrs&) {
    Array old = cell(inputs[0]);
    const bool as_weak = inputs[1].weak_type() == old.weak_type();
    cell(inputs[0]) = as_weak ? inputs[1] : jax::lax::convert_element_type(inputs[1], old.dtype(), old.weak_type());
    return Arrays{old};
  };

  PrimitiveRecord add = record("addupdate", "Adds a value to a ref.");
  add.traits.multiple_results = true;
  add.type = [](std::span<const ArrayType> types, const Attrs&) {
    require_count("addupdate", types, 2);
    check_value("addupdate", types[0], types[1]);
    return TypeResult(Types{}, Effects::ref_write);
  };
  add.jvp = jvp_write;
  add.batch = batch_write;
  add.evaluate = [](std::span<const Array> inputs, const Attrs&) {
    cell(inputs[0]) = jax::lax::add_any(cell(inputs[0]), inputs[1]);
    return Arrays{};
  };

  PrimitiveRecord freeze = record("freeze", "The last value of a ref that is not used any more.");
  freeze.type = [](std::span<const ArrayType> types, const Attrs&) {
    require_count("freeze", types, 1);
    return TypeResult(Types{value_type("freeze", types[0])}, Effects::ref_read);
  };
  freeze.jvp = get.jvp;
  freeze.batch = get.batch;
  freeze.evaluate = get.evaluate;
  return {create, get, swap, add, freeze};
}

}  // namespace capibara

namespace capibara::jax {

namespace {

// Plain numbers take the ref's dtype and shape.
Array fitted(const Array& ref, const Array& value) {
  Array converted = value.weak_type() ? lax::convert_element_type(value, ref.dtype()) : value;
  return converted.ndim() == 0 && ref.ndim() > 0 ? lax::broadcast_in_dim(converted, ref.shape(), {}) : converted;
}

}  // namespace

Array Ref::get() const { return bind1(primitive("get"), {handle_}); }
void Ref::set(const Array& value) const { swap(value); }
Array Ref::swap(const Array& value) const { return bind1(primitive("swap"), {handle_, fitted(handle_, value)}); }
void Ref::add(const Array& value) const {
  Array operands[] = {handle_, fitted(handle_, value)};
  capibara::bind(primitive("addupdate"), operands);
}

Ref new_ref(const Array& initial) {
  return Ref(bind1(primitive("new_ref"), {initial}, {{"kind", Attr()}, {"memory_space", Attr()}}));
}
Array freeze(const Ref& ref) { return bind1(primitive("freeze"), {ref.handle()}); }

}  // namespace capibara::jax
