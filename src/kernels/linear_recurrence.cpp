// The linear recurrence h[t] = a[t] * h[t - 1] + b[t]: its meaning as a scan over chunks, its record, the function.
//
// Its derivatives are recurrences with the same factors, in the same direction for forward derivatives and reversed for
// transposes: so derivatives of every order run the kernel.
#include <capibara/kernels/recurrence.h>

#include "kernels/recurrence_records.h"
#include "lax/families.h"

namespace capibara::kernels {

namespace {

namespace lax = jax::lax;

constexpr int64_t chunk_size = 128;

// (a, b [batch, length, inner], initial [batch, inner]) -> h
Arrays compose(std::span<const Array> in, const Attrs& attrs) {
  const int64_t length = in[0].shape(1), chunk = std::min(chunk_size, length);
  if (in[0].size() == 0) return {in[1]};
  const DType narrow = in[0].dtype(), wide = wide_dtype(narrow);
  const bool reverse = attrs.boolean("reverse");
  auto ordered = [&](const Array& x) { return reverse ? lax::rev(x, {1}) : x; };
  const Array a = in_chunks(ordered(in[0]).astype(wide), chunk), b = in_chunks(ordered(in[1]).astype(wide), chunk);
  const Arrays out = lax::detail::scan_flat(
      [](std::span<const Array> all) {
        const Array h = scan_chunk(Array(), all[1], all[2]).from(lax::expand_dims(all[0], {1}));
        return Arrays{lax::index_in_dim(h, h.shape(1) - 1, 1, false), h};
      },
      {in[2].astype(wide)}, {a, b}, std::nullopt, false, 1);
  return {ordered(from_chunks(out[1], length)).astype(narrow)};
}

TypeResult type_rule(std::span<const ArrayType> types, const Attrs&) {
  const char* op = "linear_recurrence";
  require_count(op, types, 3);
  require_rank(op, "a", types[0], 3);
  if (!is_inexact(types[0].dtype))
    throw TypeError(concat(op, ": expected floats or complex numbers (argument 'a'), got ", to_string(types[0])));
  require_operand(op, "b", types[1], types[0].shape, types[0].dtype);
  require_operand(op, "initial", types[2], {types[0].shape[0], types[0].shape[2]}, types[0].dtype);
  return Types{types[0].strong()};
}

const Primitive& handle() {
  static const Primitive& primitive = *new Primitive(capibara::primitive("linear_recurrence"));
  return primitive;
}

Array bind_recurrence(const Array& a, const Array& b, const Array& initial, bool reverse) {
  return capibara::bind(handle(), Arrays{a, b, initial}, {{"reverse", reverse}})[0];
}

int64_t first_step(const Array& x, bool reverse) { return reverse ? x.shape(1) - 1 : 0; }

// Shifts x by one step: each becomes the previous value (`start` at the first) or the next one (zero at the last).
Array step_before(const Array& start, const Array& x, bool reverse) {
  const Array own = lax::expand_dims(start, {1});
  const Array rest = reverse ? lax::slice_in_dim(x, 1, std::nullopt, 1, 1) : lax::slice_in_dim(x, 0, -1, 1, 1);
  return lax::concatenate(reverse ? Arrays{rest, own} : Arrays{own, rest}, 1);
}

Array step_after(const Array& x, bool reverse) {
  return step_before(lax::zeros_like(lax::index_in_dim(x, 0, 1, false)), x, !reverse);
}

JvpResult jvp_rule(const JvpArgs& args) {
  const bool reverse = args.attrs.boolean("reverse");
  const Array &a = args.primals[0], &b = args.primals[1], &initial = args.primals[2];
  const Array h = bind_recurrence(a, b, initial, reverse);
  Array driven = instantiate(args.tangents[1], b.type());
  if (args.tangents[0].defined() && a.size() > 0)
    driven = add_tangents(lax::mul(args.tangents[0], step_before(initial, h, reverse)), args.tangents[1]);
  const Array start = instantiate(args.tangents[2], initial.type());
  return {{h}, {bind_recurrence(a, driven, start, reverse)}};
}

Arrays transpose_rule(const TransposeArgs& args) {
  const bool reverse = args.attrs.boolean("reverse");
  const Array &a = args.inputs[0], &cotangent = args.cotangents[0];
  Arrays result(3);
  if (!cotangent.defined()) return result;
  if (args.linear(0)) throw NotImplementedError("linear_recurrence: not linear in its factors");
  if (a.size() == 0) {
    result[1] = lax::zeros(args.types[1].strong());
    result[2] = lax::zeros(args.types[2].strong());
  } else {
    const Array start = lax::zeros(args.types[2].strong());
    const Array g = bind_recurrence(step_after(a, reverse), cotangent, start, !reverse);
    result[1] = g;
    const Array factor = lax::index_in_dim(a, first_step(a, reverse), 1, false);
    if (args.linear(2)) result[2] = lax::mul(factor, lax::index_in_dim(g, first_step(a, reverse), 1, false));
  }
  for (std::size_t i : {1, 2}) {
    if (!args.linear(i)) result[i] = Array();
  }
  return result;
}

PrimitiveRecord record_of_recurrence() {
  PrimitiveRecord record;
  record.name = "linear_recurrence";
  record.doc = "h[t] = a[t] * h[t - 1] + b[t] along the second of three axes.";
  record.dtypes = float_dtypes;
  record.dtypes.push_back(DType::complex64);
  record.dtypes.push_back(DType::complex128);
  record.traits.nan_checked = true;
  record.type = type_rule;
  record.lower = compose;
  record.jvp = jvp_rule;
  record.transpose = transpose_rule;
  record.batch = [](const BatchArgs& args) { return batch_in_front(args, {}); };
  record.flops = [](std::span<const ArrayType> types, const Attrs&) {
    return 2.0 * static_cast<double>(types[0].size());
  };
  record.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (const auto& [shape, reverse] :
         std::initializer_list<std::pair<Shape, bool>>{{{2, 5, 3}, false}, {{1, 7, 1}, true}}) {
      const ArrayType step = scalar_of(dtype, 0).type().with_shape(shape);
      samples.push_back({{step, step, step.with_shape({shape[0], shape[2]})}, {{"reverse", reverse}}, -1.0, 1.0});
    }
    return samples;
  };
  return record;
}

}  // namespace

Family linear_recurrence_records() { return {record_of_recurrence()}; }

Array linear_recurrence(const Array& a, const Array& b, const LinearRecurrenceOptions& options) {
  const char* op = "linear_recurrence";
  Arrays both = {a, b};
  if (options.initial) both.push_back(*options.initial);
  both = promote_dtypes_inexact(both);
  const Array& factors = both[0];
  if (factors.ndim() < 1)
    throw ValueError(concat(op, ": argument 'a' must have rank 1 or more, got ", to_string(a.type())));
  require_shape(op, "b", "of the shape of a", both[1], factors.shape());
  const int64_t axis = checked_axis(op, options.axis, factors.type());
  const Shape& shape = factors.shape();
  auto extent = [&](int64_t from, int64_t to) {
    return element_count(std::span(shape).subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from)));
  };
  const int64_t batch = extent(0, axis), inner = extent(axis + 1, factors.ndim());
  Shape rest = shape;
  rest.erase(rest.begin() + axis);
  if (options.initial) require_shape(op, "initial", "of the shape of a without the axis", both[2], rest);
  const Shape flat = {batch, shape[static_cast<std::size_t>(axis)], inner}, start_shape = {batch, inner};
  ArrayType start_type = factors.type().strong().with_shape(start_shape);
  const Array start = options.initial ? lax::reshape(both[2], start_shape) : lax::zeros(start_type);
  const Array left = lax::reshape(factors, flat), right = lax::reshape(both[1], flat);
  return lax::reshape(bind_recurrence(left, right, start, options.reverse), shape);
}

}  // namespace capibara::kernels
