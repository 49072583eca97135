// jax.random: keys and the distributions drawn from them. Equal keys give jax's values, bit for bit where possible.
#pragma once

#include <capibara/array.h>

#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>

namespace capibara::jax::random {

// ---- keys ---------------------------------------------------------------------------------------------------------

// `impl` names the generator: "threefry2x32", "rbg" or "unsafe_rbg"; empty: the configured default.
struct KeyOptions {
  std::string impl = {};
  std::optional<DType> dtype = {};  // instead of impl: DType::key_fry, key_rbg, key_unsafe_rbg
};

// A typed key from an integer. Its dtype is key<fry> by default.
Array key(const Array& seed, const KeyOptions& options = {});
// A key from an integer, as its uint32 words. A legacy key, to which the functions below apply the default generator.
Array PRNGKey(const Array& seed, const KeyOptions& options = {});
// A seed as an array: 64 bits if x64 is on, otherwise the low 32.
Array seed_array(int64_t seed);
template <std::integral T>
requires(!std::is_same_v<T, bool>) Array key(T seed, const KeyOptions& options = {}) {
  return key(seed_array(static_cast<int64_t>(seed)), options);
}
template <std::integral T>
requires(!std::is_same_v<T, bool>) Array PRNGKey(T seed, const KeyOptions& options = {}) {
  return PRNGKey(seed_array(static_cast<int64_t>(seed)), options);
}
// The dtype of keys of a generator.
DType key_dtype(const std::string& impl = "");
// The name of the generator of keys.
std::string key_impl(const Array& keys);
// The uint32 words of keys.
Array key_data(const Array& keys);
// Typed keys from their uint32 words.
Array wrap_key_data(const Array& key_bits_array, const KeyOptions& options = {});
// A copy of a key that counts as unused.
Array clone(const Array& key);
// A new key from a key and an integer.
Array fold_in(const Array& key, const Array& data);
// New keys from a key, in an array of this length or shape.
Array split(const Array& key, int64_t num = 2);
Array split(const Array& key, const Shape& num);

// ---- options ------------------------------------------------------------------------------------------------------

// An optional shape argument: if omitted, the parameters determine the shape.
struct OptionalShape : std::optional<Shape> {
  OptionalShape() = default;
  OptionalShape(Shape shape) : std::optional<Shape>(std::move(shape)) {}
  OptionalShape(std::initializer_list<int64_t> shape) : std::optional<Shape>(Shape(shape)) {}
  OptionalShape(std::nullopt_t) {}
};

// For distributions without parameters.
struct DrawOptions {
  Shape shape = {};
  std::optional<DType> dtype = {};  // by default float32 (float64 where x64 is on), int32 for integers
};
// For distributions with parameters, which broadcast to the shape.
struct ParameterOptions {
  OptionalShape shape = {};
  std::optional<DType> dtype = {};
};
struct UniformOptions {
  Shape shape = {};
  std::optional<DType> dtype = {};
  Array minval = 0.0, maxval = 1.0;
};
struct RandintOptions {
  std::optional<DType> dtype = {};
};
struct PermutationOptions {
  int64_t axis = 0;
  bool independent = false;
};
struct ChoiceOptions {
  Shape shape = {};
  bool replace = true;
  std::optional<Array> p = {};
  int64_t axis = 0;
  std::string mode = {};
};
struct BernoulliOptions {
  Array p = 0.5;
  OptionalShape shape = {};
  std::string mode = "low";
};
struct GumbelOptions {
  Shape shape = {};
  std::optional<DType> dtype = {};
  std::string mode = {};  // "low" (the default), "high", "highest"
};
struct CategoricalOptions {
  int64_t axis = -1;
  OptionalShape shape = {};
  bool replace = true;
  std::string mode = {};
};
struct MultivariateNormalOptions {
  OptionalShape shape = {};
  std::optional<DType> dtype = {};
  std::string method = "cholesky";  // or "eigh", "svd"
};
struct MultinomialOptions {
  OptionalShape shape = {};
  std::optional<DType> dtype = {};
  int64_t unroll = 1;
};
struct LognormalOptions {
  Array sigma = 1.0;
  OptionalShape shape = {};
  std::optional<DType> dtype = {};
};
struct BallOptions {
  Array p = 2;
  Shape shape = {};
  std::optional<DType> dtype = {};
};
struct OrthogonalOptions {
  Shape shape = {};
  std::optional<DType> dtype = {};
  std::optional<int64_t> m = {};
};

// ---- uniform bits, numbers and choices ----------------------------------------------------------------------------

// Uniform bits as unsigned integers.
Array bits(const Array& key, const DrawOptions& options = {});
// Uniform numbers in [minval, maxval).
Array uniform(const Array& key, const UniformOptions& options = {});
// Uniform integers in [minval, maxval).
Array randint(const Array& key, const Shape& shape, const Array& minval, const Array& maxval,
              const RandintOptions& options = {});
// x, or the integers below x, in random order along an axis.
Array permutation(const Array& key, const Array& x, const PermutationOptions& options = {});
// Random elements of an array, or integers below a, with weights p.
Array choice(const Array& key, const Array& a, const ChoiceOptions& options = {});
// True with probability p.
Array bernoulli(const Array& key, const BernoulliOptions& options = {});
// -1 or 1 with equal probability.
Array rademacher(const Array& key, const DrawOptions& options = {});
// Positions along an axis with probabilities softmax(logits).
Array categorical(const Array& key, const Array& logits, const CategoricalOptions& options = {});

// ---- continuous distributions -------------------------------------------------------------------------------------

// Standard normal numbers, real or complex.
Array normal(const Array& key, const DrawOptions& options = {});
// Standard normal numbers between bounds, which may be given as the pair `bounds`.
Array truncated_normal(const Array& key, const Array& lower, const Array& upper, const ParameterOptions& options = {});
// Normal vectors with a mean and a covariance matrix.
Array multivariate_normal(const Array& key, const Array& mean, const Array& cov,
                          const MultivariateNormalOptions& options = {});
// exp of normal numbers of standard deviation sigma.
Array lognormal(const Array& key, const LognormalOptions& options = {});
// Numbers of density proportional to exp(-|x|^p).
Array generalized_normal(const Array& key, const Array& p, const DrawOptions& options = {});
// Exponential numbers of rate 1.
Array exponential(const Array& key, const DrawOptions& options = {});
// Standard Gumbel numbers; mode 'high' draws the tail with more bits.
Array gumbel(const Array& key, const GumbelOptions& options = {});
// Standard Laplace numbers.
Array laplace(const Array& key, const DrawOptions& options = {});
// Standard logistic numbers.
Array logistic(const Array& key, const DrawOptions& options = {});
// Standard Cauchy numbers.
Array cauchy(const Array& key, const DrawOptions& options = {});
// One-sided Maxwell numbers.
Array maxwell(const Array& key, const DrawOptions& options = {});
// Maxwell numbers of random sign, scaled and shifted.
Array double_sided_maxwell(const Array& key, const Array& loc, const Array& scale, const DrawOptions& options = {});
// Rayleigh numbers.
Array rayleigh(const Array& key, const Array& scale, const ParameterOptions& options = {});
// Weibull numbers.
Array weibull_min(const Array& key, const Array& scale, const Array& concentration, const DrawOptions& options = {});
// Pareto numbers of exponent b.
Array pareto(const Array& key, const Array& b, const ParameterOptions& options = {});
// Numbers of a density that rises from left to mode and falls to right.
Array triangular(const Array& key, const Array& left, const Array& mode, const Array& right,
                 const ParameterOptions& options = {});
// Wald (inverse Gaussian) numbers.
Array wald(const Array& key, const Array& mean, const ParameterOptions& options = {});
// Uniform points of the unit ball of the p-norm in d dimensions.
Array ball(const Array& key, int64_t d, const BallOptions& options = {});
// Uniform orthogonal (or unitary) matrices.
Array orthogonal(const Array& key, int64_t n, const OrthogonalOptions& options = {});

// ---- the gamma family ---------------------------------------------------------------------------------------------

// Gamma numbers of shape parameter a.
Array gamma(const Array& key, const Array& a, const ParameterOptions& options = {});
// Logarithms of gamma numbers, accurate for small a.
Array loggamma(const Array& key, const Array& a, const ParameterOptions& options = {});
// Beta numbers.
Array beta(const Array& key, const Array& a, const Array& b, const ParameterOptions& options = {});
// Dirichlet vectors.
Array dirichlet(const Array& key, const Array& alpha, const ParameterOptions& options = {});
// Student's t numbers with df degrees of freedom.
Array t(const Array& key, const Array& df, const ParameterOptions& options = {});
// Chi-square numbers with df degrees of freedom.
Array chisquare(const Array& key, const Array& df, const ParameterOptions& options = {});
// F numbers with dfnum and dfden degrees of freedom.
Array f(const Array& key, const Array& dfnum, const Array& dfden, const ParameterOptions& options = {});

// ---- counts -------------------------------------------------------------------------------------------------------

// Poisson counts of mean lam.
Array poisson(const Array& key, const Array& lam, const ParameterOptions& options = {});
// The number of successes in n trials of probability p.
Array binomial(const Array& key, const Array& n, const Array& p, const ParameterOptions& options = {});
// How often each outcome of probabilities p occurs in n trials.
Array multinomial(const Array& key, const Array& n, const Array& p, const MultinomialOptions& options = {});
// The number of trials of probability p up to the first success.
Array geometric(const Array& key, const Array& p, const ParameterOptions& options = {});

}  // namespace capibara::jax::random
