// The gamma variate: its record, and the draw by rejection.
#include "lax/random/random.h"
#include "lax/random/random_draws.h"
#include "lax/rules.h"
#include "lax/shape/shape.h"
#include "lax/sharding/factors.h"
#include "program/derive/derive.h"

namespace capibara {

namespace lax = jax::lax;

namespace {

namespace random = jax::random;

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000. For alpha < 1 a draw of alpha + 1 is
// multiplied by U^(1/alpha); in log space that product is a sum, which does not underflow.
Array gamma_one(const Array& first_key, const Array& alpha, bool log_space) {
  DType dtype = alpha.dtype();
  auto number = [&](double value) { return scalar_of(dtype, value); };
  Array direct = lax::ge(alpha, number(1));
  Array boosted = lax::select(direct, alpha, lax::add(alpha, number(1)));
  Array d = lax::sub(boosted, number(1.0 / 3.0));
  Array c = lax::div(number(1.0 / 3.0), lax::sqrt(d));

  auto rejected = [&](std::span<const Array> state) {
    const Array &square = state[1], &cube = state[2], &u = state[3];
    Array outside = lax::ge(u, lax::sub(number(1), lax::mul(number(0.0331), lax::mul(square, square))));
    Array product = lax::mul(square, number(0.5)), difference = lax::sub(number(1), cube);
    Array bound = lax::add(product, lax::mul(d, lax::add(difference, lax::log(cube))));
    return lax::bitwise_and(outside, lax::ge(lax::log(u), bound));
  };
  auto propose = [&](std::span<const Array> state) {
    Arrays keys = random::split_keys(state[0], 3);
    Arrays proposal = random::while_loop([&](std::span<const Array> s) { return lax::le(s[2], number(0)); },
                                         [&](std::span<const Array> s) {
                                           Arrays next = random::split_keys(s[0], 2);
                                           Array x = random::draw_normal(next[1], {}, dtype);
                                           return Arrays{next[0], x, lax::add(number(1), lax::mul(x, c))};
                                         },
                                         {keys[1], number(0), number(-1)});
    const Array &x = proposal[1], &v = proposal[2];
    return Arrays{keys[0], lax::mul(x, x), lax::mul(lax::mul(v, v), v), random::draw_uniform(keys[2], {}, dtype)};
  };
  Arrays keys = random::split_keys(first_key, 2);
  Array cube = random::while_loop(rejected, propose, {keys[0], number(0), number(1), number(2)})[2];

  Array inverse = lax::div(number(1), alpha);
  if (log_space) {
    Array log_draw = lax::neg(random::draw_exponential(keys[1], {}, dtype));
    Array plain = lax::bitwise_or(direct, lax::eq(log_draw, number(0)));
    Array boost = lax::select(plain, number(0), lax::mul(log_draw, inverse));
    Array logarithm = lax::log(d);
    return lax::add(lax::add(logarithm, lax::log(cube)), boost);
  }
  Array draw = lax::sub(number(1), random::draw_uniform(keys[1], {}, dtype));
  Array boost = lax::select(direct, number(1), lax::pow(draw, inverse));
  return lax::mul(lax::mul(d, cube), boost);
}

JvpResult gamma_jvp(const JvpArgs& args) {
  JvpResult result;
  result.primals = capibara::bind(args.primitive, args.primals, args.attrs);
  result.tangents.resize(1);
  if (!args.tangents[1].defined()) return result;
  const Array& a = args.primals[1];
  Array sample = result.primals[0];
  Array slope;
  if (args.attrs.boolean("log_space")) {
    // d log(s) = ds / s; a sample that underflows counts as the smallest normal number.
    sample = lax::exp(sample);
    Array tiny = lax::full_like(sample, scalar_of(sample.dtype(), finfo(sample.dtype()).tiny));
    sample = lax::select(lax::eq(sample, scalar_of(sample.dtype(), 0)), tiny, sample);
    slope = lax::div(lax::random_gamma_grad(a, sample), sample);
  } else {
    slope = lax::random_gamma_grad(a, sample);
  }
  result.tangents[0] = lax::mul(args.tangents[1], slope);
  return result;
}

}  // namespace

Array draw_gamma(const Array& keys, const Array& a, bool log_space) {
  static const Primitive split = primitive("random_split");
  int64_t count = a.size();
  if (count == 0) return a;
  Array each = bind1(split, {lax::reshape(keys, {keys.size()})}, {{"shape", Shape{count / keys.size()}}});
  Arrays inputs = {lax::reshape(each, {count}), lax::reshape(a, {count})};
  auto one = [&](std::span<const Array> in) { return Arrays{gamma_one(in[0], in[1], log_space)}; };
  if (keys.dtype() == DType::key_fry) {
    const int64_t dims[] = {0, 0};
    return lax::reshape(vmap_flat(one, inputs, dims, {0}, MappedAxis{"", count})[0], a.shape());
  }
  // The other generators would draw all elements from the first key: here one element at a time.
  Types types = {inputs[0].type().with_shape({}), inputs[1].type().with_shape({}).strong()};
  Staged staged = stage(one, types, "gamma_one");
  return lax::reshape(bind_scan(staged, 0, count, inputs)[0], a.shape());
}

PrimitiveRecord gamma_record() {
  PrimitiveRecord r;
  r.name = "random_gamma";
  r.factors = key_factors;
  r.traits.element_nanoseconds = 300;
  r.doc = "A gamma variate, or its logarithm, for each element of a.";
  r.dtypes = key_dtypes;
  r.type = [](std::span<const ArrayType> types, const Attrs&) {
    require_count("random_gamma", types, 2);
    require_keys("random_gamma", types[0]);
    const Shape &keys = types[0].shape, &a = types[1].shape;
    if (!is_floating(types[1].dtype)) {
      throw TypeError(concat("random_gamma: the argument 'a' must be floating, got ", to_string(types[1])));
    }
    if (keys.size() > a.size() || !std::equal(keys.begin(), keys.end(), a.begin())) {
      throw TypeError(concat("random_gamma: the shape of the keys must begin the shape of 'a', got ",
                             to_string(types[0]), " and ", to_string(types[1])));
    }
    return TypeResult(Types{types[1]});
  };
  r.jvp = gamma_jvp;
  r.batch = batch_leading;
  r.lower = [](std::span<const Array> in, const Attrs& attrs) -> Arrays {
    return {draw_gamma(in[0], in[1], attrs.boolean("log_space"))};
  };
  r.samples = [](DType dtype) {
    std::vector<Sample> samples;
    for (bool log_space : {false, true}) {
      for (auto [keys, a] : {std::pair<Shape, Shape>{{}, {}}, {{}, {3}}, {{2}, {2, 3}}, {{}, {0}}}) {
        samples.push_back(
            {{sample_type(dtype, keys), sample_type(DType::float32, a)}, {{"log_space", log_space}}, 0.2, 4, false});
      }
    }
    return samples;
  };
  return r;
}

}  // namespace capibara
