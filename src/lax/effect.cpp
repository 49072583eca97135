// The effect family: callbacks to the host, foreign calls and barriers.
#include "lax/control.h"
#include "lax/elementwise.h"
#include "lax/lapack_calls.h"
#include "lax/refs.h"
#include "program/callback.h"
#include "program/derive.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

Types result_types(const Attrs& attrs) {
  Types types;
  for (const Attr& attr : attrs.list("result_avals")) types.push_back(*attr.get_if<ArrayType>());
  return types;
}

Arrays call(std::span<const Array> inputs, const Attrs& attrs) {
  Arrays results;
  try {
    results = attrs.opaque<Callback>("callback")->function(inputs);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw RuntimeError(concat("callback '", attrs.opaque<Callback>("callback")->name, "' failed: ", error.what()));
  }
  Types expected = result_types(attrs);
  if (results.size() != expected.size()) {
    throw RuntimeError(concat("callback '", attrs.opaque<Callback>("callback")->name, "' must return ", expected.size(),
                              " arrays, got ", results.size()));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ArrayType& got = results[i].type();
    if (got.shape != expected[i].shape || got.dtype != expected[i].dtype) {
      throw RuntimeError(concat("callback '", attrs.opaque<Callback>("callback")->name, "': result ", i, " must be ",
                                to_string(expected[i]), ", got ", to_string(got)));
    }
  }
  return results;
}

Attr with_leading(const Attrs& attrs, int64_t size) {
  Attr::List types;
  for (ArrayType type : result_types(attrs)) {
    type.shape.insert(type.shape.begin(), size);
    types.emplace_back(type);
  }
  return Attr(std::move(types));
}

// One call per lane, in a loop.
BatchResult batch_sequential(const BatchArgs& args) {
  Types slices;
  Arrays operands, consts;
  std::vector<bool> mapped = mapped_mask(args);
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    if (!mapped[i]) consts.push_back(args.inputs[i]);
  }
  std::vector<std::size_t> place;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    if (!mapped[i]) slices.push_back(args.inputs[i].type());
  }
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    if (!mapped[i]) continue;
    Array x = batch_at(args.inputs[i], args.dims[i], args.axis.size);
    operands.push_back(x);
    ArrayType type = x.type();
    type.shape.erase(type.shape.begin());
    slices.push_back(type);
  }
  Staged body = stage(
      [&](std::span<const Array> in) {
        Arrays arguments;
        std::size_t next_const = 0, next_slice = consts.size();
        for (bool is_mapped : mapped) arguments.push_back(in[is_mapped ? next_slice++ : next_const++]);
        return capibara::bind(args.primitive, arguments, args.attrs);
      },
      slices, "callback");
  Arrays all = consts;
  append(all, operands);
  static const Primitive scan = primitive("scan");
  Arrays outputs = capibara::bind(scan, all,
                                  {{"jaxpr", body.program},
                                   {"length", args.axis.size},
                                   {"num_carry", 0},
                                   {"num_consts", static_cast<int64_t>(consts.size())},
                                   {"reverse", false},
                                   {"unroll", 1}});
  return {outputs, std::vector<int64_t>(outputs.size(), 0)};
}

BatchResult batch_pure(const BatchArgs& args) {
  const Attr& method = args.attrs["vmap_method"];
  const std::string* name = method.get_if<std::string>();
  if (!name) {
    throw NotImplementedError(
        "vmap is only supported for pure_callback with a non-empty vmap_method ('sequential', 'expand_dims' or 'broadcast_all')");
  }
  if (*name == "sequential" || *name == "sequential_unrolled") return batch_sequential(args);
  Arrays operands;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    if (args.mapped(i) || *name == "broadcast_all") {
      operands.push_back(batch_at(args.inputs[i], args.dims[i], args.axis.size));
    } else if (*name == "legacy_vectorized") {
      operands.push_back(args.inputs[i]);
    } else {
      operands.push_back(lax::expand_dims(args.inputs[i], {0}));
    }
  }
  Arrays outputs = capibara::bind(args.primitive, operands,
                                  args.attrs.with("result_avals", with_leading(args.attrs, args.axis.size)));
  return {outputs, std::vector<int64_t>(outputs.size(), 0)};
}

Arrays refuse_lowering(std::span<const Array>, const Attrs&) {
  throw NotImplementedError("a program with host callbacks has no StableHLO text: the host function cannot be written down");
}

PrimitiveRecord callback_record(std::string name, std::string doc) {
  PrimitiveRecord record;
  record.name = std::move(name);
  record.doc = std::move(doc);
  record.type = [](std::span<const ArrayType>, const Attrs& attrs) {
    Effects effects;
    if (const Attr* ordered = attrs.find("ordered")) {
      bool in_order = *ordered->get_if<bool>(), debug = attrs.has("debug");
      effects.flags = debug ? (in_order ? Effects::ordered_debug : Effects::debug) : (in_order ? Effects::ordered_io : Effects::io);
    }
    return TypeResult(result_types(attrs), effects);
  };
  record.traits.multiple_results = true;
  record.evaluate = call;
  record.lower = refuse_lowering;
  return record;
}

// ---- custom_call ------------------------------------------------------------------------------------------------

PrimitiveRecord custom_call_record() {
  PrimitiveRecord record;
  record.name = "custom_call";
  record.traits.repeatable = false;
  record.doc = "Calls a function of the backend by name.";
  record.type = [](std::span<const ArrayType>, const Attrs& attrs) {
    Types types;
    for (const Attr& attr : attrs.list("result_types")) types.push_back(*attr.get_if<ArrayType>());
    bool effect = attrs.has("has_side_effect") && attrs.boolean("has_side_effect");
    return TypeResult(std::move(types), effect ? Effects(Effects::io) : Effects());
  };
  // Where the target is a routine that our own primitives can compute, it has their values and derivatives.
  record.evaluate = compose_custom_call;
  record.jvp = [](const JvpArgs& args) {
    return jvp_flat([&](std::span<const Array> xs) { return compose_custom_call(xs, args.attrs); }, args.primals, args.tangents);
  };
  record.batch = [](const BatchArgs& args) -> BatchResult {
    std::vector<int64_t> dims(args.attrs.list("result_types").size(), 0);
    return {vmap_flat([&](std::span<const Array> xs) { return compose_custom_call(xs, args.attrs); }, args.inputs, args.dims,
                      dims, args.axis),
            dims};
  };
  record.stablehlo = "stablehlo.custom_call";
  return record;
}

// ---- barriers ---------------------------------------------------------------------------------------------------

PrimitiveRecord barrier_record() {
  PrimitiveRecord record;
  record.name = "optimization_barrier";
  record.traits.moves = Moves::index;
  record.traits.repeatable = false;
  record.traits.multiple_results = true;
  record.doc = "The identity, across which no computation is moved.";
  record.type = [](std::span<const ArrayType> types, const Attrs&) { return TypeResult(Types(types.begin(), types.end())); };
  record.jvp = [](const JvpArgs& args) {
    Arrays tangents;
    for (std::size_t i = 0; i < args.primals.size(); ++i) {
      if (is_inexact(args.primals[i].dtype())) tangents.push_back(instantiate(args.tangents[i], args.primals[i].type()));
    }
    Arrays outputs = capibara::bind(args.primitive, args.primals, args.attrs);
    tangents = capibara::bind(args.primitive, tangents, args.attrs);
    Arrays all;
    std::size_t next = 0;
    for (const Array& primal : args.primals) all.push_back(is_inexact(primal.dtype()) ? tangents[next++] : Array());
    return JvpResult{outputs, all};
  };
  record.transpose = [](const TransposeArgs& args) {
    Mask given = defined_mask(args.cotangents);
    return spread(capibara::bind(args.primitive, where(args.cotangents, given), args.attrs), given);
  };
  record.batch = [](const BatchArgs& args) {
    return BatchResult{capibara::bind(args.primitive, args.inputs, args.attrs), {args.dims.begin(), args.dims.end()}};
  };
  record.stablehlo = "stablehlo.optimization_barrier";
  record.samples = elementwise::sample_calls(2);
  return record;
}

// ---- empty2: a scalar that nobody reads ------------------------------------------------------------------------

PrimitiveRecord empty_scalar_record() {
  PrimitiveRecord record;
  record.name = "empty2";
  record.traits.free_to_recompute = true;
  record.traits.expands = true;
  record.doc = "A scalar whose value nobody relies on (zero here, so that runs repeat).";
  record.differentiable = false;
  record.type = [](std::span<const ArrayType>, const Attrs& attrs) {
    return TypeResult(Types{ArrayType{{}, attrs.dtype("dtype"), false, false, {}}});
  };
  record.lower = [](std::span<const Array>, const Attrs& attrs) { return Arrays{scalar_of(attrs.dtype("dtype"), 0)}; };
  record.samples = [](DType dtype) { return std::vector<Sample>{{{}, {{"dtype", dtype}}}}; };
  return record;
}

// ---- tokens -----------------------------------------------------------------------------------------------------

PrimitiveRecord token_record(std::string name, std::string doc, std::string stablehlo) {
  PrimitiveRecord record;
  record.name = std::move(name);
  record.doc = std::move(doc);
  record.differentiable = false;
  record.type = [](std::span<const ArrayType>, const Attrs&) {
    return TypeResult(Types{ArrayType{{}, DType::token, false, false, {}}});
  };
  record.evaluate = [](std::span<const Array>, const Attrs&) {
    return Arrays{Array::from_buffer(ArrayType{{}, DType::token, false, false, {}}, Buffer::allocate(0))};
  };
  record.stablehlo = std::move(stablehlo);
  return record;
}

}  // namespace

Family effect_family() {
  PrimitiveRecord pure = callback_record("pure_callback", "Calls a host function without side effects.");
  pure.jvp = [](const JvpArgs&) -> JvpResult {
    throw ValueError("Pure callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks while taking gradients.");
  };
  pure.transpose = [](const TransposeArgs&) -> Arrays {
    throw ValueError("Pure callbacks do not support transpose. Please use `jax.custom_vjp` to use callbacks while taking gradients.");
  };
  pure.traits.repeatable = false;
  pure.batch = batch_pure;

  PrimitiveRecord io = callback_record("io_callback", "Calls a host function with side effects.");
  io.jvp = [](const JvpArgs&) -> JvpResult {
    throw ValueError("IO callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks while taking gradients.");
  };
  io.transpose = [](const TransposeArgs&) -> Arrays {
    throw ValueError("IO callbacks do not support transpose. Please use `jax.custom_vjp` to use callbacks while taking gradients.");
  };
  io.batch = [](const BatchArgs& args) {
    if (args.attrs.boolean("ordered")) throw ValueError("Cannot `vmap` ordered IO callback.");
    return batch_sequential(args);
  };

  PrimitiveRecord debug = callback_record("debug_callback", "Shows values to a host function while a program runs.");
  debug.jvp = [](const JvpArgs& args) { return JvpResult{capibara::bind(args.primitive, args.primals, args.attrs), {}}; };
  debug.transpose = [](const TransposeArgs& args) { return Arrays(args.inputs.size()); };
  debug.batch = batch_sequential;

  Family family = {pure, io, debug, custom_call_record(), barrier_record(), empty_scalar_record()};
  family.push_back(token_record("create_token", "A new token.", "stablehlo.after_all"));
  family.push_back(token_record("after_all", "A token that is ready when all its operands are.", "stablehlo.after_all"));
  for (PrimitiveRecord& record : ref_records()) family.push_back(std::move(record));
  return family;
}

}  // namespace capibara
