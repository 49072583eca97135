// Maximum, minimum, clamping, and the next floating-point number.
#include "lax/elementwise/elementwise.h"
#include "lax/sharding/splits.h"

namespace capibara::elementwise {

namespace lax = jax::lax;

namespace {

// 1 if x alone is the extremum, 1/2 if both are, 0 otherwise.
Array balanced_share(const Array& x, const Array& extremum, const Array& other) {
  const Array mine = lax::eq(x, extremum);
  const Array ones = lax::full_like(extremum, 1);
  const Array zeros = lax::full_like(extremum, 0);
  const Array numerator = lax::select(mine, ones, zeros);
  const Array theirs = lax::eq(other, extremum);
  const Array twos = lax::full_like(extremum, 2);
  const Array one = lax::full_like(extremum, 1);
  const Array denominator = lax::select(theirs, twos, one);
  return lax::div(numerator, denominator);
}

JvpRule extremum_jvp() {
  return elementwise_jvp({from_pair_output([](const Array& g, const Array& z, const Array& x, const Array& y) {
                            return lax::mul(g, balanced_share(x, z, y));
                          }),
                          from_pair_output([](const Array& g, const Array& z, const Array& x, const Array& y) {
                            return lax::mul(g, balanced_share(y, z, x));
                          })});
}

PrimitiveRecord clamp_record() {
  PrimitiveRecord r = record("clamp", "x limited to [min, max]; the bounds are scalars or have x's shape.", 3, anything,
                             "stablehlo.clamp");
  r.splits = clamp_splits;
  r.traits.elementwise = Elementwise::scalar_bounds;
  r.type = [](std::span<const ArrayType> types, const Attrs&) -> TypeResult {
    require_count("clamp", types, 3);
    for (int i = 0; i < 3; ++i) require_accepted("clamp", anything, types[static_cast<std::size_t>(i)].dtype, i);
    require_same_dtypes("clamp", types);
    const ArrayType &low = types[0], &x = types[1], &high = types[2];
    for (const auto& [name, bound] : {std::pair<const char*, const ArrayType&>{"min", low}, {"max", high}}) {
      if (bound.rank() != 0 && bound.shape != x.shape) {
        throw TypeError(concat("clamp requires ", name, ".shape == operand.shape or ", name, ".shape == (), got ", name,
                               " ", to_string(bound), " and operand ", to_string(x)));
      }
    }
    ArrayType out = x;
    out.weak_type = low.weak_type && x.weak_type && high.weak_type;
    return Types{out};
  };
  r.jvp = elementwise_jvp({[](const Array& g, const Array&, std::span<const Array> in, const Attrs&) {
                             const Array above = lax::gt(in[0], in[1]);
                             const Array inside = lax::bitwise_and(above, lax::lt(in[0], in[2]));
                             Array broadcasted = broadcast_to(in[1].shape(), g);
                             return lax::select(inside, broadcasted, lax::full_like(in[1], 0));
                           },
                           [](const Array& g, const Array&, std::span<const Array> in, const Attrs&) {
                             const Array above = lax::gt(in[1], in[0]);
                             const Array inside = lax::bitwise_and(above, lax::lt(in[1], in[2]));
                             return lax::select(inside, g, lax::full_like(in[1], 0));
                           },
                           [](const Array& g, const Array&, std::span<const Array> in, const Attrs&) {
                             const Array beyond = lax::lt(in[2], in[1]);
                             Array broadcasted_in = broadcast_to(in[1].shape(), g);
                             return lax::select(beyond, broadcasted_in, lax::full_like(in[1], 0));
                           }});
  r.batch = [](const BatchArgs& args) {
    Arrays in(args.inputs.begin(), args.inputs.end());
    const auto result = [&](int64_t dim) { return BatchResult{capibara::bind(args.primitive, in, args.attrs), {dim}}; };
    const int64_t dim = args.dims[1];
    if (args.dims[0] == dim && args.dims[2] == dim) {
      if (in[0].shape() == in[1].shape() && in[2].shape() == in[1].shape()) return result(dim);
      if (in[0].ndim() == 0 && in[2].ndim() == 0) return result(dim);
      if (in[0].ndim() == 1 && in[2].ndim() == 1) {
        in[0] = lax::broadcast_in_dim(in[0], in[1].shape(), {dim});
        in[2] = lax::broadcast_in_dim(in[2], in[1].shape(), {dim});
        return result(dim);
      }
    } else if (in[0].ndim() == 0 && in[2].ndim() == 0 && dim != not_mapped) {
      return result(dim);
    }
    for (std::size_t i : {std::size_t{0}, std::size_t{2}, std::size_t{1}}) {
      if (in[i].ndim() > 0) in[i] = batch_at(in[i], args.dims[i], args.axis);
    }
    if (in[1].ndim() == 0) in[1] = lax::broadcast(in[1], {args.axis.size});
    for (std::size_t i : {std::size_t{0}, std::size_t{2}}) {
      if (in[i].ndim() == 0)
        in[i] = lax::broadcast(in[i], in[1].shape());
      else if (in[i].ndim() < in[1].ndim())
        in[i] = lax::broadcast_in_dim(in[i], in[1].shape(), {0});
    }
    return result(0);
  };
  r.lower = nullptr;  // StableHLO's clamp takes scalar bounds too
  r.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{0, 2}, Shape{2, 3}}) {
      const ArrayType full{shape, dtype, false, false, {}}, scalar{{}, dtype, false, false, {}};
      samples.push_back({{full, full, full}, {}});
      samples.push_back({{scalar, full, scalar}, {}});
    }
    return samples;
  };
  return r;
}

}  // namespace

Family extremum_records() {
  Family family;
  const auto add = [&](PrimitiveRecord r) -> PrimitiveRecord& { return family.emplace_back(std::move(r)); };
  {
    PrimitiveRecord& r =
        add(record("max", "The greater of x and y; NaN wins, complex numbers by real, then imaginary part.", 2,
                   anything, "stablehlo.maximum"));
    combine_operands(r, Monoid::max);
    r.jvp = extremum_jvp();
  }
  {
    PrimitiveRecord& r =
        add(record("min", "The lesser of x and y; NaN wins, complex numbers by real, then imaginary part.", 2, anything,
                   "stablehlo.minimum"));
    combine_operands(r, Monoid::min);
    r.jvp = extremum_jvp();
  }
  add(clamp_record());
  add(record("nextafter", "The number next to x in the direction of y.", 2, floats, "chlo.next_after"));
  return family;
}

}  // namespace capibara::elementwise

namespace capibara::jax::lax {

Array max(const Array& x, const Array& y) { return elementwise::call<"max">(x, y); }
Array min(const Array& x, const Array& y) { return elementwise::call<"min">(x, y); }
Array nextafter(const Array& x, const Array& y) { return elementwise::call<"nextafter">(x, y); }

Array clamp(const Array& min, const Array& x, const Array& max) { return elementwise::call<"clamp">(min, x, max); }

}  // namespace capibara::jax::lax
