// Comparisons in the usual and in the total order, finiteness, and select_n.
#include "lax/elementwise/elementwise.h"
#include "lax/shape/shape.h"
#include "lax/sharding/splits.h"

#include <algorithm>
#include <limits>

namespace capibara::elementwise {

namespace lax = jax::lax;

namespace {

PrimitiveRecord comparison(const char* name, const char* doc, unsigned accepted) {
  PrimitiveRecord r = record(name, doc, 2, accepted, "stablehlo.compare", always_bool);
  r.traits.only_order = true;
  r.jvp = zero_jvp();
  r.differentiable = false;
  return r;
}

// A key equals another when all its words do.
LowerRule lower_key_comparison(const char* name, bool equal) {
  return [name, equal, broadcast = lower_broadcasting(name)](std::span<const Array> in, const Attrs& attrs) -> Arrays {
    if (!is_key(in[0].dtype())) return broadcast(in, attrs);
    const Arrays keys = broadcast_operands(name, in);
    static const Primitive unwrap = primitive("random_unwrap");
    const Array x = bind1(unwrap, {keys[0]}), y = bind1(unwrap, {keys[1]});
    const int64_t last = x.ndim() - 1;
    return {equal ? lax::reduce_and(lax::eq(x, y), {.axes = {last}}) : lax::reduce_or(lax::ne(x, y), {.axes = {last}})};
  };
}

// ---- select_n ---------------------------------------------------------------------------------------------------

TypeResult select_type(std::span<const ArrayType> types, const Attrs&) {
  if (types.size() < 2) throw TypeError("select_n: expected `which` and at least one case, got no case");
  const ArrayType& which = types[0];
  const std::span<const ArrayType> cases = types.subspan(1);
  for (const ArrayType& type : cases) {
    if (type.shape == cases[0].shape) continue;
    std::string shapes;
    for (const ArrayType& c : cases) shapes += (shapes.empty() ? "" : ", ") + to_string(c);
    throw TypeError(concat("select cases must have the same shapes, got [", shapes, "]."));
  }
  if (which.rank() != 0 && which.shape != cases[0].shape) {
    throw TypeError(concat("select `which` must be scalar or have the same shape as cases, got `which` ",
                           to_string(which), " but cases ", to_string(cases[0]), "."));
  }
  require_same_dtypes("select", cases);
  if (!is_bool(which.dtype) && !is_integer(which.dtype)) {
    throw TypeError(concat("select `which` must be boolean or integer type, got ", dtype_name(which.dtype), "."));
  }
  if (is_bool(which.dtype) && cases.size() > 2) {
    throw TypeError(concat("select with boolean `which` cannot have > 2 cases, got ", cases.size(), "."));
  }
  ArrayType out = cases[0];
  for (const ArrayType& type : cases) out.weak_type = out.weak_type && type.weak_type;
  return Types{out};
}

JvpResult select_jvp(const JvpArgs& args) {
  JvpResult result;
  result.primals = capibara::bind(args.primitive, args.primals, args.attrs);
  const Array* present = nullptr;
  for (std::size_t i = 1; i < args.tangents.size() && !present; ++i) {
    if (args.tangents[i].defined()) present = &args.tangents[i];
  }
  result.tangents.resize(1);
  if (!present) return result;
  const Array zeros = lax::full_like(*present, 0);
  Arrays operands = {args.primals[0]};
  for (std::size_t i = 1; i < args.tangents.size(); ++i) {
    operands.push_back(args.tangents[i].defined() ? args.tangents[i] : zeros);
  }
  result.tangents = capibara::bind(args.primitive, operands, args.attrs);
  return result;
}

Arrays select_transpose(const TransposeArgs& args) {
  Arrays result(args.inputs.size());
  const Array &t = args.cotangents[0], &which = args.inputs[0];
  if (args.linear(0)) throw InternalError("select_n: not linear in `which`");
  if (!t.defined()) return result;
  const Array zeros = lax::full_like(t, 0);
  for (std::size_t i = 1; i < args.inputs.size(); ++i) {
    if (!args.linear(i)) continue;
    if (is_bool(which.dtype())) {
      result[i] = i == 1 ? lax::select(which, zeros, t) : lax::select(which, t, zeros);
    } else {
      result[i] = lax::select(lax::eq(which, scalar_like(which, static_cast<double>(i - 1))), t, zeros);
    }
  }
  return result;
}

// The sharding of an operand of this one's shape; empty if its type splits nothing.
Sharding split_in_type(const Array& x) { return splits_nothing(x.type()) ? Sharding() : x.type().sharding; }

// The sharding of the mapped operands of a select, with the mapped dimension first; empty if they are not split.
Sharding lead_split(const BatchArgs& args) {
  for (std::size_t n = args.inputs.size(), i = 1; i <= n; ++i) {  // `which` last
    const ArrayType& type = args.inputs[i % n].type();
    const int64_t dim = args.dims[i % n];
    if (dim == not_mapped || splits_nothing(type) || !type.sharding.varying().empty()) continue;
    PartitionSpec spec = spec_of(type);
    std::rotate(spec.dims.begin(), spec.dims.begin() + dim, spec.dims.begin() + dim + 1);
    return Sharding::explicit_over(type.sharding.mesh(), std::move(spec));
  }
  return {};
}

// The mapped dimension first; unmapped operands are split as the others are, since their types must
// agree.
Array led_like_others(const Array& x, int64_t dim, const BatchArgs& args, const Sharding& split) {
  Shape shape = x.shape();
  shape.insert(shape.begin(), args.axis.size);
  const bool follows =
      dim == not_mapped && split.is_explicit() && splits_nothing(x.type()) && split.spec().dims.size() == shape.size();
  return follows ? lax::broadcast_in_dim(x, shape, range(x.ndim() + 1, 1), split) : batch_at(x, dim, args.axis);
}

BatchResult select_batch(const BatchArgs& args) {
  Array which = args.inputs[0];
  Arrays cases(args.inputs.begin() + 1, args.inputs.end());
  const std::span<const int64_t> dims = args.dims.subspan(1);
  const int64_t which_dim = args.dims[0];
  const auto result = [&](int64_t dim) { return BatchResult{{lax::select_n(which, cases)}, {dim}}; };
  const auto all_cases = [&](auto&& holds) {
    for (int64_t dim : dims) {
      if (!holds(dim)) return false;
    }
    return true;
  };
  if (all_cases([&](int64_t dim) { return dim == which_dim; })) {
    if (which.shape() != cases[0].shape() && which_dim != not_mapped) {
      which = lax::broadcast_in_dim(which, cases[0].shape(), {which_dim}, split_in_type(cases[0]));
    }
    return result(which_dim);
  }
  if (which.ndim() == 0 && all_cases([](int64_t dim) { return dim != not_mapped; })) {
    for (std::size_t i = 1; i < cases.size(); ++i) cases[i] = move_axis(cases[i], dims[i], dims[0]);
    return result(dims[0]);
  }
  const Sharding split = lead_split(args);
  if (which.ndim() > 0) which = led_like_others(which, which_dim, args, split);
  bool scalars = true;
  for (const Array& c : cases) scalars = scalars && c.ndim() == 0;
  if (!scalars) {
    for (std::size_t i = 0; i < cases.size(); ++i) cases[i] = led_like_others(cases[i], dims[i], args, split);
  }
  if (which.ndim() > 0 && which.ndim() < cases[0].ndim()) {
    which = lax::broadcast_in_dim(which, cases[0].shape(), {0}, split_in_type(cases[0]));
  }
  if (which.ndim() > cases[0].ndim()) {
    for (Array& c : cases) c = lax::broadcast_in_dim(c, which.shape(), {}, split_in_type(which));
  }
  return result(0);
}

// A balanced tree of comparisons: `which` below 0 takes the first case, above the last the last.
Array select_tree(const Array& which, std::span<const Array> cases, int64_t offset) {
  if (cases.size() == 1) return cases[0];
  const std::size_t middle = cases.size() / 2;
  const int64_t bound = offset + static_cast<int64_t>(middle);
  const Array below = lax::lt(which, lax::full_like(which, static_cast<double>(bound)));
  Array select_tree_which = select_tree(which, cases.first(middle), offset);
  return lax::select(below, select_tree_which, select_tree(which, cases.subspan(middle), bound));
}

PrimitiveRecord select_record() {
  PrimitiveRecord r;
  r.name = "select_n";
  r.splits = select_splits;
  r.traits.elementwise = Elementwise::scalar_choice;
  r.traits.only_order = true;
  r.doc = "Element by element, the case that `which` (boolean or integer) names.";
  r.dtypes = {DType::bool_, DType::int32};
  r.type = select_type;
  r.flops = [](std::span<const ArrayType> types, const Attrs&) { return static_cast<double>(types[1].size()); };
  r.jvp = select_jvp;
  r.transpose = select_transpose;
  r.batch = select_batch;
  r.stablehlo = "stablehlo.select";
  r.lower = [](std::span<const Array> in, const Attrs&) -> Arrays {
    const std::span<const Array> cases = in.subspan(1);
    if (cases.size() == 1) return {cases[0]};
    if (is_bool(in[0].dtype())) return {};
    return {select_tree(in[0], cases, 0)};
  };
  r.samples = [](DType which) {
    std::vector<Sample> samples;
    for (DType dtype : {DType::float64, DType::int32, DType::complex64, DType::bool_}) {
      for (const Shape& shape : {Shape{}, Shape{3}, Shape{0, 2}, Shape{2, 3}}) {
        const ArrayType value{shape, dtype, false, false, {}};
        const std::size_t cases = is_bool(which) ? 2 : 3;
        for (const Shape& which_shape : {shape, Shape{}}) {
          Types types = {{which_shape, which, false, false, {}}};
          types.resize(cases + 1, value);
          samples.push_back({std::move(types), {}, 0.0, 2.0});
        }
      }
    }
    return samples;
  };
  return r;
}

// chlo has these in addition to is_finite.
PrimitiveRecord infinity_test(const char* name, const char* doc, const char* chlo) {
  PrimitiveRecord r = record(name, doc, 1, floats, chlo, always_bool);
  r.jvp = zero_jvp();
  r.differentiable = false;
  return r;
}

}  // namespace

Family comparison_records() {
  Family family;
  const auto add = [&](PrimitiveRecord r) -> PrimitiveRecord& { return family.emplace_back(std::move(r)); };
  for (const auto& [name, doc, equal] : {std::tuple{"eq", "Whether x = y.", true}, {"ne", "Whether x != y.", false}}) {
    PrimitiveRecord& r = add(comparison(name, doc, anything));
    r.type = type_rule(name, 2, anything | keys, always_bool);
    r.lower = lower_key_comparison(name, equal);
  }
  add(comparison("ge", "Whether x >= y.", ordered));
  add(comparison("gt", "Whether x > y.", ordered));
  add(comparison("le", "Whether x <= y.", ordered));
  add(comparison("lt", "Whether x < y.", ordered));
  // Only floating types have a total order besides the usual one.
  const auto total = [](PrimitiveRecord record, Array (*plain)(const Array&, const Array&)) {
    record.lower = [plain, broadcast = lower_broadcasting(record.name)](std::span<const Array> in,
                                                                        const Attrs& attrs) -> Arrays {
      if (is_floating(in[0].dtype())) return broadcast(in, attrs);
      return {plain(in[0], in[1])};
    };
    return record;
  };
  add(total(
      comparison("eq_to", "Whether x = y in the total order, where NaN equals itself and -0 is below +0.", anything),
      lax::eq));
  add(total(comparison("le_to", "Whether x <= y in the total order.", ordered), lax::le));
  add(total(comparison("lt_to", "Whether x < y in the total order: -NaN < -inf < -0 < +0 < inf < NaN.", ordered),
            lax::lt));
  {
    PrimitiveRecord& r = add(
        record("is_finite", "Whether x is neither infinite nor NaN.", 1, floats, "stablehlo.is_finite", always_bool));
    r.jvp = zero_jvp();
    r.differentiable = false;
  }
  add(infinity_test("is_inf", "Whether x is infinite.", "chlo.is_inf"));
  add(infinity_test("is_pos_inf", "Whether x is +infinity.", "chlo.is_pos_inf"));
  add(infinity_test("is_neg_inf", "Whether x is -infinity.", "chlo.is_neg_inf"));
  add(select_record());
  return family;
}

}  // namespace capibara::elementwise

namespace capibara::jax::lax {

Array eq(const Array& x, const Array& y) { return elementwise::call<"eq">(x, y); }
Array ne(const Array& x, const Array& y) { return elementwise::call<"ne">(x, y); }
Array lt(const Array& x, const Array& y) { return elementwise::call<"lt">(x, y); }
Array le(const Array& x, const Array& y) { return elementwise::call<"le">(x, y); }
Array gt(const Array& x, const Array& y) { return elementwise::call<"gt">(x, y); }
Array ge(const Array& x, const Array& y) { return elementwise::call<"ge">(x, y); }
Array eq_to(const Array& x, const Array& y) { return elementwise::call<"eq_to">(x, y); }
Array lt_to(const Array& x, const Array& y) { return elementwise::call<"lt_to">(x, y); }
Array le_to(const Array& x, const Array& y) { return elementwise::call<"le_to">(x, y); }
Array is_finite(const Array& x) { return elementwise::call<"is_finite">(x); }

Array select(const Array& pred, const Array& on_true, const Array& on_false) {
  return select_n(pred, {on_false, on_true});
}

Array select_n(const Array& which, const Arrays& cases) {
  static const Primitive p = primitive("select_n");
  if (cases.empty()) throw ValueError("select_n() must have at least one case");
  Arrays operands = {which};
  operands.insert(operands.end(), cases.begin(), cases.end());
  if (cases.size() == 2) {
    const Arrays adopted = adopt_numbers({cases[0], cases[1]});
    operands = {which, adopted[0], adopted[1]};
  }
  return capibara::bind(p, operands)[0];
}

}  // namespace capibara::jax::lax
