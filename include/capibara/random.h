// jax.random: keys and the distributions drawn from them. Equal keys give jax's numbers, bit for bit where it can be.
#pragma once

#include <capibara/array.h>

#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>

namespace capibara::jax::random {

// ---- keys ---------------------------------------------------------------------------------------------------------

// `impl` names the generator: "threefry2x32", "rbg" or "unsafe_rbg"; empty: the configuration's default.
struct KeyOptions {
  std::string impl = {};
  std::optional<DType> dtype = {};  // instead of impl: DType::key_fry, key_rbg, key_unsafe_rbg
};

// A typed key (dtype key<fry>) from an integer seed.
Array key(const Array& seed, const KeyOptions& options = {});
// A legacy key: its uint32 words, to which the functions below apply the default generator.
Array PRNGKey(const Array& seed, const KeyOptions& options = {});
// Plain integers keep their 64 bits where x64 is on, and their low 32 otherwise.
Array seed_array(int64_t seed);
template <std::integral T>
requires(!std::is_same_v<T, bool>) Array key(T seed, const KeyOptions& options = {}) {
  return key(seed_array(static_cast<int64_t>(seed)), options);
}
template <std::integral T>
requires(!std::is_same_v<T, bool>) Array PRNGKey(T seed, const KeyOptions& options = {}) {
  return PRNGKey(seed_array(static_cast<int64_t>(seed)), options);
}
DType key_dtype(const std::string& impl = "");
std::string key_impl(const Array& keys);
Array key_data(const Array& keys);
Array wrap_key_data(const Array& key_bits_array, const KeyOptions& options = {});
Array clone(const Array& key);
Array fold_in(const Array& key, const Array& data);
Array split(const Array& key, int64_t num = 2);
Array split(const Array& key, const Shape& num);

// ---- options ------------------------------------------------------------------------------------------------------

// A shape argument that may be left out: then the parameters decide.
struct OptionalShape : std::optional<Shape> {
  OptionalShape() = default;
  OptionalShape(Shape shape) : std::optional<Shape>(std::move(shape)) {}
  OptionalShape(std::initializer_list<int64_t> shape) : std::optional<Shape>(Shape(shape)) {}
  OptionalShape(std::nullopt_t) {}
};

// Of distributions without parameters.
struct DrawOptions {
  Shape shape = {};
  std::optional<DType> dtype = {};  // by default float32 (float64 where x64 is on), int32 for integers
};
// Of distributions with parameters, which broadcast to the shape.
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

Array bits(const Array& key, const DrawOptions& options = {});
Array uniform(const Array& key, const UniformOptions& options = {});
Array randint(const Array& key, const Shape& shape, const Array& minval, const Array& maxval,
              const RandintOptions& options = {});
// A permutation of x along an axis; an integer x stands for arange(x).
Array permutation(const Array& key, const Array& x, const PermutationOptions& options = {});
Array choice(const Array& key, const Array& a, const ChoiceOptions& options = {});
Array bernoulli(const Array& key, const BernoulliOptions& options = {});
Array rademacher(const Array& key, const DrawOptions& options = {});
Array categorical(const Array& key, const Array& logits, const CategoricalOptions& options = {});

// ---- continuous distributions -------------------------------------------------------------------------------------

Array normal(const Array& key, const DrawOptions& options = {});  // also complex
Array truncated_normal(const Array& key, const Array& lower, const Array& upper, const ParameterOptions& options = {});
Array multivariate_normal(const Array& key, const Array& mean, const Array& cov,
                          const MultivariateNormalOptions& options = {});
Array lognormal(const Array& key, const LognormalOptions& options = {});
Array generalized_normal(const Array& key, const Array& p, const DrawOptions& options = {});
Array exponential(const Array& key, const DrawOptions& options = {});
Array gumbel(const Array& key, const GumbelOptions& options = {});
Array laplace(const Array& key, const DrawOptions& options = {});
Array logistic(const Array& key, const DrawOptions& options = {});
Array cauchy(const Array& key, const DrawOptions& options = {});
Array maxwell(const Array& key, const DrawOptions& options = {});
Array double_sided_maxwell(const Array& key, const Array& loc, const Array& scale, const DrawOptions& options = {});
Array rayleigh(const Array& key, const Array& scale, const ParameterOptions& options = {});
Array weibull_min(const Array& key, const Array& scale, const Array& concentration, const DrawOptions& options = {});
Array pareto(const Array& key, const Array& b, const ParameterOptions& options = {});
Array triangular(const Array& key, const Array& left, const Array& mode, const Array& right,
                 const ParameterOptions& options = {});
Array wald(const Array& key, const Array& mean, const ParameterOptions& options = {});
Array ball(const Array& key, int64_t d, const BallOptions& options = {});
Array orthogonal(const Array& key, int64_t n, const OrthogonalOptions& options = {});

// ---- the gamma family ---------------------------------------------------------------------------------------------

Array gamma(const Array& key, const Array& a, const ParameterOptions& options = {});
Array loggamma(const Array& key, const Array& a, const ParameterOptions& options = {});
Array beta(const Array& key, const Array& a, const Array& b, const ParameterOptions& options = {});
Array dirichlet(const Array& key, const Array& alpha, const ParameterOptions& options = {});
Array t(const Array& key, const Array& df, const ParameterOptions& options = {});
Array chisquare(const Array& key, const Array& df, const ParameterOptions& options = {});
Array f(const Array& key, const Array& dfnum, const Array& dfden, const ParameterOptions& options = {});

// ---- counts -------------------------------------------------------------------------------------------------------

Array poisson(const Array& key, const Array& lam, const ParameterOptions& options = {});
Array binomial(const Array& key, const Array& n, const Array& p, const ParameterOptions& options = {});
Array multinomial(const Array& key, const Array& n, const Array& p, const MultinomialOptions& options = {});
Array geometric(const Array& key, const Array& p, const ParameterOptions& options = {});

}  // namespace capibara::jax::random
