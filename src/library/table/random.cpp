// Table rows for jax.random: keys and the distributions drawn from them.
#include <capibara/random.h>

#include "library/table/families.h"

namespace capibara::library {

namespace random = jax::random;

namespace {

// ---- keys --------------------------------------------------------------------------------------------------------

// A generator by name or by key dtype.
random::KeyOptions implementation(const Arguments& a, std::string_view name) {
  random::KeyOptions options;
  const Value& value = a[name];
  if (const DType* dtype = value.get_if<DType>()) {
    options.dtype = *dtype;
  } else {
    options.impl = a.text(name);
  }
  return options;
}

random::KeyOptions key_options(const Arguments& a) {
  random::KeyOptions options = implementation(a, "impl");
  if (!a.given("dtype")) return options;
  if (a.given("impl")) {
    throw ValueError(concat("Cannot specify both `impl` and `dtype` arguments to jax.random.", a.function(), "."));
  }
  if (const DType* dtype = a["dtype"].get_if<DType>()) {
    options.dtype = *dtype;
  } else {
    options.dtype = a.dtype("dtype");
  }
  return options;
}

// Plain integers keep their 64 bits if x64 is on.
Array seed(const Arguments& a) {
  if (const int64_t* number = a["seed"].get_if<int64_t>()) return random::seed_array(*number);
  if (const bool* truth = a["seed"].get_if<bool>())
    return random::seed_array(*truth);  // a Python bool is a number, as in jax
  return a.array("seed");
}

Value split(const Arguments& a) {
  if (a["num"].sequence()) return random::split(a.array("key"), a.shape("num"));
  return random::split(a.array("key"), a.integer("num"));
}

// ---- options shared by many distributions -------------------------------------------------------------------------

Shape shape_of(const Arguments& a) {
  if (!a.given("shape")) {
    throw TypeError(concat("random.", a.function(), ": argument 'shape' must be a sequence of integers, got None"));
  }
  return a.shape("shape");
}

random::OptionalShape optional_shape(const Arguments& a) {
  if (!a.given("shape")) return std::nullopt;
  return a.shape("shape");
}

random::DrawOptions draw(const Arguments& a) { return {.shape = shape_of(a), .dtype = a.optional_dtype("dtype")}; }
random::ParameterOptions with_parameters(const Arguments& a) {
  return {.shape = optional_shape(a), .dtype = a.optional_dtype("dtype")};
}

template <Array (*function)(const Array&, const random::DrawOptions&)>
Value plain_draw(const Arguments& a) {
  a.require_absent("out_sharding");
  return function(a.array("key"), draw(a));
}

template <Array (*function)(const Array&, const Array&, const random::ParameterOptions&), const char* parameter>
Value parametric_draw(const Arguments& a) {
  a.require_absent("out_sharding");
  return function(a.array("key"), a.array(parameter), with_parameters(a));
}

template <Array (*function)(const Array&, const Array&, const Array&, const random::ParameterOptions&),
          const char* first, const char* second>
Value parametric_draw(const Arguments& a) {
  a.require_absent("out_sharding");
  return function(a.array("key"), a.array(first), a.array(second), with_parameters(a));
}

constexpr char a_name[] = "a", b_name[] = "b", alpha_name[] = "alpha", df_name[] = "df", dfnum_name[] = "dfnum",
               dfden_name[] = "dfden", lam_name[] = "lam", mean_name[] = "mean", p_name[] = "p", scale_name[] = "scale";

// ---- the rest ----------------------------------------------------------------------------------------------------

// lower and upper, or the pair `bounds` of both.
Value truncated_normal(const Arguments& a) {
  a.require_absent("out_sharding");
  if (!a.given("bounds")) {
    return random::truncated_normal(a.array("key"), a.array("lower"), a.array("upper"), with_parameters(a));
  }
  if (a.given("lower") || a.given("upper")) {
    throw TypeError("random.truncated_normal: give either 'bounds' or 'lower' and 'upper', got both");
  }
  const Arrays bounds = a.arrays("bounds");
  if (bounds.size() != 2) {
    throw ValueError(
        concat("random.truncated_normal: 'bounds' must be (lower, upper), got ", bounds.size(), " values"));
  }
  return random::truncated_normal(a.array("key"), bounds[0], bounds[1], with_parameters(a));
}

Value choice(const Arguments& a) {
  std::optional<Array> p;
  if (a.given("p")) p = a.array_like("p");
  return random::choice(
      a.array("key"), a.array("a"),
      {.shape = shape_of(a), .replace = a.flag("replace"), .p = p, .axis = a.integer("axis"), .mode = a.text("mode")});
}

Value uniform(const Arguments& a) {
  a.require_absent("out_sharding");
  return random::uniform(a.array("key"), {.shape = shape_of(a),
                                          .dtype = a.optional_dtype("dtype"),
                                          .minval = a.array("minval"),
                                          .maxval = a.array("maxval")});
}

constexpr const char* draw_signature = "key, shape=(), dtype=None, *, out_sharding=None";

const Function random_functions[] = {
    {"key", "seed, *, impl=None, dtype=None",
     [](const Arguments& a) -> Value { return random::key(seed(a), key_options(a)); }, "A typed key from an integer."},
    {"PRNGKey", "seed, *, impl=None",
     [](const Arguments& a) -> Value { return random::PRNGKey(seed(a), implementation(a, "impl")); },
     "A key from an integer, as its uint32 words."},
    {"key_data", "keys", [](const Arguments& a) -> Value { return random::key_data(a.array("keys")); },
     "The uint32 words of keys."},
    {"wrap_key_data", "key_bits_array, *, impl=None, dtype=None",
     [](const Arguments& a) -> Value { return random::wrap_key_data(a.array("key_bits_array"), key_options(a)); },
     "Typed keys from their uint32 words."},
    {"key_impl", "keys -> str", [](const Arguments& a) -> Value { return random::key_impl(a.array("keys")); },
     "The name of the generator of keys."},
    {"key_dtype", "impl_spec=None -> np.dtype[Any]",
     [](const Arguments& a) -> Value {
       if (const DType* dtype = a["impl_spec"].get_if<DType>(); dtype && is_key(*dtype)) return *dtype;
       return random::key_dtype(a.text("impl_spec"));
     },
     "The dtype of keys of a generator."},
    {"clone", "key", [](const Arguments& a) -> Value { return random::clone(a.array("key")); },
     "A copy of a key that counts as unused."},
    {"fold_in", "key, data",
     [](const Arguments& a) -> Value {
       if (const int64_t* number = a["data"].get_if<int64_t>()) {
         if (*number < 0 || *number > UINT32_MAX) {
           throw OverflowError(
               concat("fold_in: argument 'data': Python integer ", *number, " out of bounds for uint32"));
         }
         return random::fold_in(a.array("key"), random::seed_array(*number));
       }
       return random::fold_in(a.array("key"), a.array("data"));
     },
     "A new key from a key and an integer."},
    {"split", "key, num: int | Sequence[int] = 2", split, "New keys from a key, in an array of this length or shape."},

    {"bits", draw_signature, plain_draw<random::bits>, "Uniform bits as unsigned integers."},
    {"uniform", "key, shape=(), dtype=None, minval=0.0, maxval=1.0, *, out_sharding=None", uniform,
     "Uniform numbers in [minval, maxval)."},
    {"randint", "key, shape, minval, maxval, dtype=None, *, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return random::randint(a.array("key"), shape_of(a), a.array("minval"), a.array("maxval"),
                              {.dtype = a.optional_dtype("dtype")});
     },
     "Uniform integers in [minval, maxval)."},
    {"permutation", "key, x, axis=0, independent=False, *, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return random::permutation(a.array("key"), a.array("x"),
                                  {.axis = a.integer("axis"), .independent = a.flag("independent")});
     },
     "x, or the integers below x, in random order along an axis."},
    {"choice", "key, a, shape=(), replace=True, p=None, axis=0, mode=None", choice,
     "Random elements of an array, or integers below a, with weights p."},
    {"bernoulli", "key, p=0.5, shape=None, mode='low', *, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return random::bernoulli(a.array("key"),
                                {.p = a.array("p"), .shape = optional_shape(a), .mode = a.text("mode")});
     },
     "True with probability p."},
    {"rademacher", draw_signature, plain_draw<random::rademacher>, "-1 or 1 with equal probability."},
    {"categorical", "key, logits, axis=-1, shape=None, replace=True, mode=None, *, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return random::categorical(a.array("key"), a.array("logits"),
                                  {.axis = a.integer("axis"),
                                   .shape = optional_shape(a),
                                   .replace = a.flag("replace"),
                                   .mode = a.text("mode")});
     },
     "Positions along an axis with probabilities softmax(logits)."},

    {"normal", draw_signature, plain_draw<random::normal>, "Standard normal numbers, real or complex."},
    {"truncated_normal",
     "key, lower: ArrayLike = None, upper: ArrayLike = None, shape=None, dtype=None, *, out_sharding=None, bounds=None",
     truncated_normal, "Standard normal numbers between bounds, which may be given as the pair `bounds`."},
    {"multivariate_normal", "key, mean, cov, shape=None, dtype=None, method='cholesky', *, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return random::multivariate_normal(
           a.array("key"), a.array("mean"), a.array("cov"),
           {.shape = optional_shape(a), .dtype = a.optional_dtype("dtype"), .method = a.text("method")});
     },
     "Normal vectors with a mean and a covariance matrix."},
    {"lognormal", "key, sigma=1.0, shape=None, dtype=None, *, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return random::lognormal(
           a.array("key"), {.sigma = a.array("sigma"), .shape = optional_shape(a), .dtype = a.optional_dtype("dtype")});
     },
     "exp of normal numbers of standard deviation sigma."},
    {"generalized_normal", "key, p: float, shape=(), dtype=None, *, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return random::generalized_normal(a.array("key"), a.array("p"), draw(a));
     },
     "Numbers of density proportional to exp(-|x|^p)."},
    {"exponential", draw_signature, plain_draw<random::exponential>, "Exponential numbers of rate 1."},
    {"gumbel", "key, shape=(), dtype=None, mode=None, *, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return random::gumbel(a.array("key"),
                             {.shape = shape_of(a), .dtype = a.optional_dtype("dtype"), .mode = a.text("mode")});
     },
     "Standard Gumbel numbers; mode 'high' draws the tail with more bits."},
    {"laplace", draw_signature, plain_draw<random::laplace>, "Standard Laplace numbers."},
    {"logistic", draw_signature, plain_draw<random::logistic>, "Standard logistic numbers."},
    {"cauchy", draw_signature, plain_draw<random::cauchy>, "Standard Cauchy numbers."},
    {"maxwell", draw_signature, plain_draw<random::maxwell>, "One-sided Maxwell numbers."},
    {"double_sided_maxwell", "key, loc, scale, shape=(), dtype=None",
     [](const Arguments& a) -> Value {
       return random::double_sided_maxwell(a.array("key"), a.array("loc"), a.array("scale"), draw(a));
     },
     "Maxwell numbers of random sign, scaled and shifted."},
    {"rayleigh", "key, scale, shape=None, dtype=None, *, out_sharding=None",
     parametric_draw<random::rayleigh, scale_name>, "Rayleigh numbers."},
    {"weibull_min", "key, scale, concentration, shape=(), dtype=None",
     [](const Arguments& a) -> Value {
       return random::weibull_min(a.array("key"), a.array("scale"), a.array("concentration"), draw(a));
     },
     "Weibull numbers."},
    {"pareto", "key, b, shape=None, dtype=None, *, out_sharding=None", parametric_draw<random::pareto, b_name>,
     "Pareto numbers of exponent b."},
    {"triangular",
     "key, left: ArrayLike, mode: ArrayLike, right: ArrayLike, shape=None, dtype=None, *, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return random::triangular(a.array("key"), a.array("left"), a.array("mode"), a.array("right"),
                                 with_parameters(a));
     },
     "Numbers of a density that rises from left to mode and falls to right."},
    {"wald", "key, mean, shape=None, dtype=None, *, out_sharding=None", parametric_draw<random::wald, mean_name>,
     "Wald (inverse Gaussian) numbers."},
    {"ball", "key, d: int, p: float = 2, shape=(), dtype=None, *, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return random::ball(a.array("key"), a.integer("d"),
                           {.p = a.array("p"), .shape = shape_of(a), .dtype = a.optional_dtype("dtype")});
     },
     "Uniform points of the unit ball of the p-norm in d dimensions."},
    {"orthogonal", "key, n, shape=(), dtype=None, m: int = None, *, out_sharding=None",
     [](const Arguments& a) -> Value {
       a.require_absent("out_sharding");
       return random::orthogonal(
           a.array("key"), a.integer("n"),
           {.shape = shape_of(a), .dtype = a.optional_dtype("dtype"), .m = a.optional_integer("m")});
     },
     "Uniform orthogonal (or unitary) matrices."},

    {"gamma", "key, a, shape=None, dtype=None, *, out_sharding=None", parametric_draw<random::gamma, a_name>,
     "Gamma numbers of shape parameter a."},
    {"loggamma", "key, a, shape=None, dtype=None, *, out_sharding=None", parametric_draw<random::loggamma, a_name>,
     "Logarithms of gamma numbers, accurate for small a."},
    {"beta", "key, a, b, shape=None, dtype=None, *, out_sharding=None", parametric_draw<random::beta, a_name, b_name>,
     "Beta numbers."},
    {"dirichlet", "key, alpha, shape=None, dtype=None, *, out_sharding=None",
     parametric_draw<random::dirichlet, alpha_name>, "Dirichlet vectors."},
    {"t", "key, df, shape=None, dtype=None, *, out_sharding=None", parametric_draw<random::t, df_name>,
     "Student's t numbers with df degrees of freedom."},
    {"chisquare", "key, df, shape=None, dtype=None, *, out_sharding=None", parametric_draw<random::chisquare, df_name>,
     "Chi-square numbers with df degrees of freedom."},
    {"f", "key, dfnum, dfden, shape=None, dtype=None, *, out_sharding=None",
     parametric_draw<random::f, dfnum_name, dfden_name>, "F numbers with dfnum and dfden degrees of freedom."},

    {"poisson", "key, lam, shape=None, dtype=None, *, out_sharding=None", parametric_draw<random::poisson, lam_name>,
     "Poisson counts of mean lam."},
    {"binomial", "key, n: ArrayLike, p, shape=None, dtype=None",
     [](const Arguments& a) -> Value {
       return random::binomial(a.array("key"), a.array("n"), a.array("p"), with_parameters(a));
     },
     "The number of successes in n trials of probability p."},
    {"multinomial", "key, n: ArrayLike, p, *, shape=None, dtype=None, unroll: int | bool = 1",
     [](const Arguments& a) -> Value {
       return random::multinomial(
           a.array("key"), a.array("n"), a.array("p"),
           {.shape = optional_shape(a), .dtype = a.optional_dtype("dtype"), .unroll = a.integer("unroll")});
     },
     "How often each outcome of probabilities p occurs in n trials."},
    {"geometric", "key, p, shape=None, dtype=None, *, out_sharding=None", parametric_draw<random::geometric, p_name>,
     "The number of trials of probability p up to the first success."},
};

}  // namespace

Family random_draws() { return random_functions; }

}  // namespace capibara::library
