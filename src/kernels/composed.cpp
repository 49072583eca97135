// The rules derived from a composition, and composed_tangent, which routes reverse derivatives to a pullback.
#include "kernels/composed.h"

#include "lax/control/control.h"

namespace capibara {

namespace {

// Attribute `rule` of composed_tangent: the operation that it differentiates. Its operands are those of the
// operation, the results that the pullback reads, and the tangents of the operands marked in `with_tangent`; the other
// attributes are the operation's own.
class ComposedRule final : public Opaque {
 public:
  std::string name;
  TypeRule type;
  LowerRule compose;
  Pullback pullback;

  std::string print() const override { return name; }
};

struct TangentCall {
  std::shared_ptr<const ComposedRule> rule;
  Mask with_tangent;
  Attrs attrs;  // of the operation itself

  explicit TangentCall(const Attrs& all)
      : rule(all.opaque<ComposedRule>("rule")),
        with_tangent(all.booleans("with_tangent")),
        attrs(all.without("rule").without("with_tangent")) {}

  std::size_t operands() const { return with_tangent.size(); }
  // The index of the first tangent among all operands.
  std::size_t first_tangent() const {
    const Mask& saved = rule->pullback.saved;
    return operands() + static_cast<std::size_t>(std::count(saved.begin(), saved.end(), true));
  }
};

Mask inexact_mask(std::span<const ArrayType> types) {
  Mask mask;
  for (const ArrayType& type : types) mask.push_back(is_inexact(type.dtype));
  return mask;
}

// ---- composed_tangent -------------------------------------------------------------------------------------------

TypeResult tangent_type_rule(std::span<const ArrayType> types, const Attrs& attrs) {
  const TangentCall call(attrs);
  const Types tangents = tangent_types(types.first(std::min(types.size(), call.operands())), call.with_tangent);
  require_count("composed_tangent", types, call.first_tangent() + tangents.size());
  const Types results = call.rule->type(types.first(call.operands()), call.attrs).types;
  return tangent_types(results, inexact_mask(results));
}

Arrays compose_tangent(std::span<const Array> inputs, const Attrs& attrs) {
  const TangentCall call(attrs);
  const auto function = [&](std::span<const Array> operands) { return call.rule->compose(operands, call.attrs); };
  const JvpResult jvp = jvp_flat(function, inputs.first(call.operands()),
                                 spread(inputs.subspan(call.first_tangent()), call.with_tangent));
  Arrays tangents;
  for (std::size_t i = 0; i < jvp.primals.size(); ++i) {
    if (is_inexact(jvp.primals[i].dtype())) tangents.push_back(instantiate(jvp.tangents[i], jvp.primals[i].type()));
  }
  return tangents;
}

// The transpose of a composition that is linear in the marked operands. Whatever does not depend on them is computed
// first: the loops of a derivative carry values alongside their tangents, and only the tangents are linear.
Arrays transpose_composition(const LowerRule& compose, const TransposeArgs& args) {
  Mask linear;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) linear.push_back(args.linear(i));
  const auto function = [&](std::span<const Array> inputs) { return compose(inputs, args.attrs); };
  const Program program = stage(function, Types(args.types.begin(), args.types.end()), args.primitive.name()).program;
  const ProgramSplit split = partial_eval_program(program, linear, Mask(args.cotangents.size(), true));
  Arrays inputs = evaluate_program(split.known, where(args.inputs, !linear));  // only residuals
  const std::size_t residuals = inputs.size();
  inputs.resize(residuals + count(linear));
  Mask unknown(inputs.size(), true);
  std::fill_n(unknown.begin(), residuals, false);
  const Arrays pulled = backward_pass(split.staged, unknown, inputs, args.cotangents);
  return spread(part(pulled, residuals, pulled.size()), linear);
}

Arrays transpose_tangent(const TransposeArgs& args) {
  const TangentCall call(args.attrs);
  const auto operands = args.inputs.first(call.operands());
  const Types types(args.types.begin(), args.types.begin() + static_cast<std::ptrdiff_t>(call.operands()));
  const Types result_types = call.rule->type(types, call.attrs).types;
  const Arrays results =
      spread(args.inputs.subspan(call.operands(), call.first_tangent() - call.operands()), call.rule->pullback.saved);
  const Arrays cotangents = spread(args.cotangents, inexact_mask(result_types));
  const Arrays pulled = call.rule->pullback.rule({operands, results, cotangents, call.attrs});
  if (pulled.empty()) return transpose_composition(compose_tangent, args);
  Arrays all(call.first_tangent());
  append(all, where(pulled, call.with_tangent));
  return all;
}

// ---- the rules of an operation ----------------------------------------------------------------------------------

JvpResult jvp_of_composition(const LowerRule& compose, const JvpArgs& args) {
  return jvp_flat([&](std::span<const Array> inputs) { return compose(inputs, args.attrs); }, args.primals,
                  args.tangents);
}

JvpResult jvp_with_pullback(const std::shared_ptr<const ComposedRule>& rule, const JvpArgs& args) {
  static const Primitive composed_tangent = primitive("composed_tangent");
  const Mask with_tangent = defined_mask(args.tangents);
  JvpResult result;
  result.primals = capibara::bind(args.primitive, args.primals, args.attrs);
  Arrays operands(args.primals.begin(), args.primals.end());
  append(operands, where(result.primals, rule->pullback.saved));
  append(operands, where(args.tangents, with_tangent));
  const Attrs attrs =
      args.attrs.with("rule", std::shared_ptr<const Opaque>(rule)).with("with_tangent", Attr::bools(with_tangent));
  result.tangents = spread(capibara::bind(composed_tangent, operands, attrs), inexact_mask(types_of(result.primals)));
  return result;
}

BatchResult batch_composition(const LowerRule& compose, const BatchArgs& args) {
  BatchResult result;
  result.outputs = vmap_flat([&](std::span<const Array> inputs) { return compose(inputs, args.attrs); }, args.inputs,
                             args.dims, {}, args.axis);
  result.dims.assign(result.outputs.size(), 0);
  return result;
}

}  // namespace

PrimitiveRecord fused_record(std::string name, std::string doc) {
  PrimitiveRecord record;
  record.name = std::move(name);
  record.doc = std::move(doc);
  record.dtypes = float_dtypes;
  record.traits.multiple_results = true;
  record.traits.nan_checked = true;
  return record;
}

PrimitiveRecord composed(PrimitiveRecord record, Pullback pullback) {
  const LowerRule compose = record.lower;
  record.batch = [compose, own = record.batch](const BatchArgs& args) {
    BatchResult result = own ? own(args) : BatchResult{};
    return result.outputs.empty() ? batch_composition(compose, args) : result;
  };
  record.transpose = [compose](const TransposeArgs& args) { return transpose_composition(compose, args); };
  if (!pullback.rule) {
    record.jvp = [compose](const JvpArgs& args) { return jvp_of_composition(compose, args); };
    return record;
  }
  auto rule = std::make_shared<ComposedRule>();
  rule->name = record.name;
  rule->type = record.type;
  rule->compose = compose;
  rule->pullback = std::move(pullback);
  record.jvp = [rule](const JvpArgs& args) { return jvp_with_pullback(rule, args); };
  return record;
}

PrimitiveRecord composed_tangent_record() {
  PrimitiveRecord record;
  record.name = "composed_tangent";
  record.doc = "The tangents of an operation that a composition defines; its transpose is the operation's own.";
  record.traits.multiple_results = true;
  record.type = tangent_type_rule;
  record.lower = compose_tangent;
  record = composed(std::move(record));
  record.transpose = transpose_tangent;
  return record;
}

}  // namespace capibara
