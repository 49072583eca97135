// Distances, polynomial features, neighbour probabilities, and the linear algebra of Gaussian processes.
#include "models/named/numbers.h"

#include <capibara/linalg.h>
#include <capibara/numpy.h>
#include <capibara/scipy.h>
#include <capibara/transforms.h>

#include <cmath>

namespace capibara::models {

namespace jnp = jax::numpy;

namespace {

Array differences(const Operands& c) {
  Array left = c.array("left"), right = c.array("right");
  return jnp::expand_dims(left, 1) - jnp::expand_dims(right, 0);
}

Value distance_matrix(const Operands& c) {
  Array size = jnp::absolute(differences(c));
  return jnp::sum(jnp::power(size, c.array("norm")), {.axis = 2});
}

// All products of up to `degree` columns, without the constant: powers come in descending order of the first columns.
Value polynomial_features(const Operands& c) {
  Array input = c.array("input");
  int64_t degree = c["degree"].integer(), columns = input.shape(1);
  Arrays features;
  std::vector<int64_t> chosen(static_cast<std::size_t>(degree), 0);  // 0: the constant
  bool first = true;
  while (true) {
    if (!first) {
      Array product;
      for (int64_t column = 1; column <= columns; ++column) {
        int64_t power = static_cast<int64_t>(std::count(chosen.begin(), chosen.end(), column));
        if (power == 0) continue;
        Array values = input(slice(), column - 1);
        Array factor = power == 1 ? values : jnp::power(values, Array(power));
        product = product.defined() ? product * factor : factor;
      }
      features.push_back(jnp::expand_dims(product, 1));
    }
    first = false;
    std::size_t i = chosen.size();
    while (i > 0 && chosen[i - 1] == columns) --i;
    if (i == 0) break;
    int64_t next = chosen[i - 1] + 1;
    for (std::size_t j = i - 1; j < chosen.size(); ++j) chosen[j] = next;
  }
  return jnp::concatenate(features, {.axis = 1});
}

// The neighbour probabilities for one row of squared distances and a width; that of the point itself is 0.
std::vector<double> neighbour_shares(const std::vector<double>& row, std::size_t self, double sigma) {
  std::vector<double> shares(row.size(), 0.0);
  double largest = -INFINITY, total = 0;
  for (double distance : row) largest = std::max(largest, -distance / (2 * sigma * sigma));
  for (std::size_t j = 0; j < row.size(); ++j) {
    if (j == self) continue;
    shares[j] = std::exp(-row[j] / (2 * sigma * sigma) - largest);
    total += shares[j];
  }
  for (double& share : shares) share /= total;
  return shares;
}

// Joint probabilities of t-SNE: each row's width is found by bisection, to match the requested perplexity.
Value joint_probabilities(const Operands& c) {
  Array distances = c.array("squared_distances");
  double wanted = c.threshold("target_perplexity"), threshold = c.threshold("threshold");
  if (distances.is_tracer()) {
    throw ConcretizationTypeError(
        "TsnePJoint searches the widths of neighbourhoods: give 'distances' as a constant key");
  }
  std::size_t n = static_cast<std::size_t>(distances.shape(0));
  std::vector<double> values = distances.to_vector<double>(), result(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> row(values.begin() + static_cast<std::ptrdiff_t>(i * n),
                            values.begin() + static_cast<std::ptrdiff_t>((i + 1) * n));
    double low = 1e-20, high = 1000.0, middle = 0;
    for (int step = 0; step < 10000; ++step) {
      middle = (low + high) / 2;
      double entropy = 0;
      for (double share : neighbour_shares(row, i, middle)) {
        double p = std::min(std::max(share, threshold), 1 - threshold);
        entropy -= p * std::log2(p);
      }
      double perplexity = std::exp2(entropy);
      if (std::abs(perplexity - wanted) <= 1e-10) break;
      (perplexity > wanted ? high : low) = middle;
    }
    std::vector<double> shares = neighbour_shares(row, i, middle);
    for (std::size_t j = 0; j < n; ++j) {
      result[i * n + j] += shares[j] / (2.0 * static_cast<double>(n));
      result[j * n + i] += shares[j] / (2.0 * static_cast<double>(n));
    }
  }
  return array<double>(result, distances.shape()).astype(distances.dtype());
}

Value process_alpha(const Operands& c) {
  Array difference = c.array("label_mu_diff");
  if (c["L"].is_none()) return jax::numpy::linalg::solve(c.array("K_term"), difference);
  Array factor = c.array("L");
  Array half = jax::scipy::linalg::solve_triangular(factor, difference, {.lower = true});
  return jax::scipy::linalg::solve_triangular(jnp::transpose(factor), half, {.lower = false});
}

Value process_outer(const Operands& c) {
  Array K = c.array("K");
  if (c["L"].is_none()) return jnp::matmul(jnp::transpose(K), jax::numpy::linalg::solve(c.array("K_term"), K));
  Array half = jax::scipy::linalg::solve_triangular(c.array("L"), K, {.lower = true});
  return jnp::matmul(jnp::transpose(half), half);
}

Value eigenvalues(const Operands& c) {
  if (!c["L"].is_none()) return jnp::diag(c.array("L"));
  Array values = jax::numpy::linalg::eigvalsh(c.array("K_term"));
  return jnp::clip(values, {.min = Array(c.threshold("threshold"))}) / Array(2.0);
}

// True and false positive rates with each value of the input as a threshold, from the largest down.
Value rates(const Operands& c) {
  Array input = c.array("input"), label = c.array("label");
  Array thresholds = jnp::flip(jnp::sort(input));
  Array chosen = jnp::expand_dims(input, 0) >= jnp::expand_dims(thresholds, 1);
  Array positive = jnp::expand_dims(label == Array(1), 0), negative = jnp::expand_dims(label == Array(0), 0);
  auto count = [&](const Array& condition) { return jnp::sum(condition, {.axis = 1}); };
  Array true_positives = count(chosen & positive), false_positives = count(chosen & negative);
  Array rate = true_positives / jnp::sum(positive);
  return jnp::stack({rate, false_positives / jnp::sum(negative)});
}

// The norm of a distance is clamped to between 1 and 5: a wave of period 8.
Value norm_modifier(const Operands& c) {
  Array x = c.array(0);
  Array inner = ((x - Array(1.0)) % Array(8.0)) / Array(8.0) - Array(0.5);
  return Array(4.0) * (Array(1.0) - Array(2.0) * jnp::absolute(inner)) + Array(1.0);
}

}  // namespace

Records analysis_records() {
  return {
      {"CartesianDifference", "left, right", "left[N, D], right[M, D] -> output[N, M, D]",
       "All differences of two sets of rows.", [](const Operands& c) -> Value { return differences(c); }},
      {"DistanceMatrix", "left, right, norm", "left[N, D], right[M, D], norm[?] -> output[N, M]",
       "Sums of powers of differences of rows.", distance_matrix},
      {"NormModifier", "input", "input[V...] -> output[V...]", "A norm between 1 and 5.", norm_modifier},
      {"PolynomialFeatures", "degree, input", "input[N, D], degree -> output[N, P]",
       "Products of columns up to a degree.", polynomial_features},
      {"TsnePJoint", "squared_distances, target_perplexity, threshold='EPSILON'",
       "squared_distances[N, N], target_perplexity, threshold='EPSILON' -> output[N, N]",
       "Joint probabilities of neighbours at a perplexity.", joint_probabilities},
      {"Cholesky", "input", "input[N, N] -> output[N, N]", "The lower Cholesky factor.",
       [](const Operands& c) -> Value { return jax::numpy::linalg::cholesky(c.array(0)); }},
      {"GPRAlpha", "label_mu_diff, L, K_term", "label_mu_diff[N, 1], L[N, N], K_term[N, N] -> output[N, 1]",
       "The solution for the labels of a Gaussian process.", process_alpha},
      {"GPRVOuter", "K, K_term, L", "K[N, N], K_term[N, N], L[N, N] -> output[N, N]", "K^T K_term^-1 K.",
       process_outer},
      {"Eigvalsh", "K_term, L, threshold='EPSILON'", "K_term[N, N], L[N, N], threshold='EPSILON' -> output[N]",
       "The diagonal of a factor.", eigenvalues},
      {"TransposedDiagonal", "input", "input[N, N] -> output[N, 1]", "The diagonal as a column.",
       [](const Operands& c) -> Value { return jnp::expand_dims(jnp::diag(c.array(0)), 1); }},
      {"AUCCore", "input, label", "input[N], label[N] -> output[2, N]", "True and false positive rates.", rates},
      {"Unique", "input", "input[?] -> output[?]", "The distinct elements, sorted.",
       [](const Operands& c) -> Value { return jnp::unique_values(c.array(0)); }},
      {"Trapezoid", "x, y", "y[?], x[?] -> output[?]", "The integral of y over x.",
       [](const Operands& c) -> Value {
         Array y = c.array("y");
         return jnp::trapezoid(y, {.x = c.array("x")});
       }},
  };
}

}  // namespace capibara::models
