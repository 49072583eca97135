// The effect family: foreign calls, barriers and tokens; it includes callbacks and refs.
#include "lax/control/control.h"
#include "lax/effect/host_calls.h"
#include "lax/effect/refs.h"
#include "lax/elementwise/elementwise.h"
#include "lax/linalg/lapack_calls.h"
#include "lax/sharding/factors.h"
#include "program/derive/derive.h"
#include "program/ir/callback.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

// ---- custom_call ------------------------------------------------------------------------------------------------

// Layouts name dimensions from the fastest to the slowest: a leading one comes last.
Attr longer_layouts(const Attr::List& layouts, const std::vector<bool>& longer) {
  Attr::List own;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    Ints layout = *layouts[i].get_if<Ints>();
    if (longer[i]) {
      for (int64_t& dim : layout) ++dim;
      layout.push_back(0);
    }
    own.emplace_back(std::move(layout));
  }
  return own;
}

// A call of a user-registered function.
BatchResult batch_foreign(const BatchArgs& args) {
  return batch_by_method(args, "ffi_call", [&](const std::vector<bool>& longer) {
    Types types;
    for (const Attr& attr : args.attrs.list("result_types")) types.push_back(*attr.get_if<ArrayType>());
    const std::vector<bool> all(types.size(), true);
    return args.attrs.with("result_types", with_leading(types, args.axis.size))
        .with("operand_layouts", longer_layouts(args.attrs.list("operand_layouts"), longer))
        .with("result_layouts", longer_layouts(args.attrs.list("result_layouts"), all));
  });
}

PrimitiveRecord custom_call_record() {
  PrimitiveRecord record;
  record.name = "custom_call";
  record.factors = whole_factors;
  record.traits.repeatable = false;
  record.doc = "Calls a function of the backend by name.";
  record.type = [](std::span<const ArrayType>, const Attrs& attrs) {
    Types types;
    for (const Attr& attr : attrs.list("result_types")) types.push_back(*attr.get_if<ArrayType>());
    bool effect = attrs.has("has_side_effect") && attrs.boolean("has_side_effect");
    return TypeResult(std::move(types), effect ? Effects(Effects::io) : Effects());
  };
  // If the target is a routine that our own primitives can compute, it has their values and derivatives.
  record.evaluate = [](std::span<const Array> xs, const Attrs& attrs) { return compose_custom_call(xs, attrs); };
  record.jvp = [](const JvpArgs& args) {
    return jvp_flat([&](std::span<const Array> xs) { return compose_custom_call(xs, args.attrs, "differentiated"); },
                    args.primals, args.tangents);
  };
  record.batch = [](const BatchArgs& args) -> BatchResult {
    if (args.attrs.has("vmap_method")) return batch_foreign(args);
    std::vector<int64_t> dims(args.attrs.list("result_types").size(), 0);
    return {vmap_flat([&](std::span<const Array> xs) { return compose_custom_call(xs, args.attrs, "batched"); },
                      args.inputs, args.dims, dims, args.axis),
            dims};
  };
  record.stablehlo = "stablehlo.custom_call";
  return record;
}

// ---- barriers ---------------------------------------------------------------------------------------------------

PrimitiveRecord barrier_record() {
  PrimitiveRecord record;
  record.name = "optimization_barrier";
  record.factors = pairwise_factors;
  record.traits.moves = Moves::index;
  record.traits.repeatable = false;
  record.traits.multiple_results = true;
  record.doc = "The identity, across which no computation is moved.";
  record.type = [](std::span<const ArrayType> types, const Attrs&) {
    return TypeResult(Types(types.begin(), types.end()));
  };
  record.jvp = [](const JvpArgs& args) {
    Arrays tangents;
    for (std::size_t i = 0; i < args.primals.size(); ++i) {
      if (is_inexact(args.primals[i].dtype()))
        tangents.push_back(instantiate(args.tangents[i], args.primals[i].type()));
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
  record.dce = [](const Attrs& attrs, const Mask& used) { return DceResult{used, attrs, {}}; };
  record.stablehlo = "stablehlo.optimization_barrier";
  record.samples = elementwise::sample_calls(2);
  return record;
}

// ---- empty2: a scalar that is never read -----------------------------------------------------------------------

PrimitiveRecord empty_scalar_record() {
  PrimitiveRecord record;
  record.name = "empty2";
  record.factors = whole_factors;
  record.traits.free_to_recompute = true;
  record.traits.expands = true;
  record.doc = "A scalar of unspecified value (zero here, so that runs repeat).";
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
  record.factors = whole_factors;
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
  Family family = callback_records();
  for (PrimitiveRecord& record : Family{custom_call_record(), barrier_record(), empty_scalar_record()}) {
    family.push_back(std::move(record));
  }
  family.push_back(token_record("create_token", "A new token.", "stablehlo.after_all"));
  family.push_back(
      token_record("after_all", "A token that is ready when all its operands are.", "stablehlo.after_all"));
  for (PrimitiveRecord& record : ref_records()) family.push_back(std::move(record));
  return family;
}

}  // namespace capibara

namespace capibara::jax::lax {

Array optimization_barrier(const Array& x) { return optimization_barrier(Arrays{x})[0]; }

Arrays optimization_barrier(const Arrays& operands) {
  static const Primitive p = primitive("optimization_barrier");
  return capibara::bind(p, operands);
}

}  // namespace capibara::jax::lax
