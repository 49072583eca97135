// Learned codebooks: quantization with a straight-through gradient, moving averages, k-means and its initialization.
#include <capibara/control.h>
#include <capibara/kernels/quantization.h>
#include <capibara/numpy.h>
#include <capibara/ops.h>
#include <capibara/random.h>

#include <cmath>

namespace capibara::kernels {

namespace {

namespace jnp = jax::numpy;
namespace lax = jax::lax;
namespace random = jax::random;

DType sum_dtype_of(DType dtype) { return dtype == DType::float64 ? DType::float64 : DType::float32; }

void require_vectors(const char* op, const Array& inputs, int64_t clusters) {
  if (inputs.ndim() != 2 || !is_floating(inputs.dtype()))
    throw TypeError(
        concat(op, ": expected a floating array [count, dim] (argument 'inputs'), got ", to_string(inputs.type())));
  if (clusters < 1 || clusters > inputs.shape(0))
    throw ValueError(concat(op, ": expected from 1 to ", inputs.shape(0), " clusters, the number of vectors (argument ",
                            "'clusters'), got ", clusters));
}

// The sums and counts of the vectors of each code.
std::pair<Array, Array> cluster_sums(const Array& vectors, const Array& codes, int64_t count) {
  const DType wide = sum_dtype_of(vectors.dtype());
  const Array ones = lax::full({codes.size()}, Array(1.0), wide);
  return {jax::ops::segment_sum(vectors.astype(wide), codes, {.num_segments = count}),
          jax::ops::segment_sum(ones, codes, {.num_segments = count})};
}

Array squared_distances(const Array& vectors, const Array& others) {
  const Array difference = vectors - others;
  return jnp::sum(difference * difference, {.axis = -1});
}

Array row_at(const Array& rows, const Array& index) { return lax::dynamic_index_in_dim(rows, index, 0, false); }

}  // namespace

VqQuantized vq_quantize(const Array& inputs, const Array& codebook, const VqQuantizeOptions& options) {
  const Array codes = vq_encode(lax::stop_gradient(inputs), lax::stop_gradient(codebook),
                                {.distance_metric = options.distance_metric, .residual = options.residual});
  const Array decoded = vq_decode(codes, codebook, {.residual = options.residual});
  const Array fixed_inputs = lax::stop_gradient(inputs), fixed_codes = lax::stop_gradient(decoded);
  const DType wide = sum_dtype_of(inputs.dtype());
  auto mean_square = [&](const Array& a, const Array& b) {
    const Array difference = a.astype(wide) - b.astype(wide);
    return jnp::mean(difference * difference);
  };
  // The values of `fixed_codes` with the derivative of `inputs`.
  const Array quantized = fixed_codes + (inputs - fixed_inputs);
  Array loss = lax::full({}, Array(0.0), wide);
  if (inputs.size() > 0) {
    if (options.commitment_cost != 0) loss = loss + options.commitment_cost * mean_square(inputs, fixed_codes);
    if (options.codebook_cost != 0) loss = loss + options.codebook_cost * mean_square(fixed_inputs, decoded);
  }
  return {quantized, codes, loss};
}

// ---- moving averages --------------------------------------------------------------------------------------------

VqState vq_state(const Array& codebook) {
  if (codebook.ndim() != 2 || !is_floating(codebook.dtype()))
    throw TypeError(concat("vq_state: expected a floating array [codes, dim] (argument 'codebook'), got ",
                           to_string(codebook.type())));
  const DType wide = sum_dtype_of(codebook.dtype());
  return {codebook, lax::full({codebook.shape(0)}, Array(1.0), wide), codebook.astype(wide)};
}

VqState vq_update(const VqState& state, const Array& inputs, const Array& codes, const VqUpdateOptions& options) {
  const Array& codebook = state.codebook;
  if (codebook.ndim() != 2 || !is_floating(codebook.dtype()))
    throw TypeError(concat("vq_update: expected a codebook [codes, dim] (argument 'state'), got ",
                           to_string(codebook.type()), "; map over the groups or stages of others"));
  const int64_t count = codebook.shape(0), dim = codebook.shape(1);
  Shape leading = codes.shape();
  leading.push_back(dim);
  if (inputs.shape() != leading || inputs.dtype() != codebook.dtype() || !is_integer(codes.dtype()))
    throw TypeError(concat("vq_update: expected ", to_string(codebook.dtype()), " inputs [..., ", dim,
                           "] and an integer code for each, got ", to_string(inputs.type()),
                           " (argument 'inputs') and ", to_string(codes.type()), " (argument 'codes')"));
  if (state.cluster_size.shape() != Shape{count} || state.cluster_sum.shape() != Shape{count, dim})
    throw TypeError(concat("vq_update: expected cluster sizes [", count, "] and sums [", count, ", ", dim,
                           "] (argument 'state'), got ", to_string(state.cluster_size.type()), " and ",
                           to_string(state.cluster_sum.type())));
  if (!(options.decay >= 0 && options.decay <= 1))
    throw ValueError(concat("vq_update: expected a number from 0 to 1 (argument 'decay'), got ", options.decay));
  if (options.dead_threshold > 0 && !options.key)
    throw ValueError(
        "vq_update: expected a key (argument 'key') where dead_threshold is above 0, got none; it draws the "
        "vectors that take the place of dead codes");
  const Array vectors = lax::stop_gradient(inputs).reshape({codes.size(), dim});
  const auto [sums, counts] = cluster_sums(vectors, codes.reshape({codes.size()}), count);
  auto average = [&](const Array& old, const Array& now) {
    return lax::stop_gradient(old) * options.decay + now * (1 - options.decay);
  };
  Array size = average(state.cluster_size, counts), sum = average(state.cluster_sum, sums);
  // Sizes are smoothed without changing their total.
  const Array total = jnp::sum(size);
  const Array smooth = (size + options.epsilon) / (total + static_cast<double>(count) * options.epsilon) * total;
  Array codes_now = sum / jnp::expand_dims(smooth, -1);
  if (options.dead_threshold > 0 && vectors.shape(0) > 0) {
    const Array dead = size < options.dead_threshold, dead_rows = jnp::expand_dims(dead, -1);
    const Array places = random::randint(*options.key, Shape{count}, 0, vectors.shape(0));
    const Array drawn = jnp::take(vectors, places, {.axis = 0, .mode = "clip", .fill_value = {}}).astype(sum.dtype());
    codes_now = jnp::where(dead_rows, drawn, codes_now);
    sum = jnp::where(dead_rows, drawn * options.dead_threshold, sum);
    size = jnp::where(dead, lax::full_like(size, Array(options.dead_threshold)), size);
  }
  return {codes_now.astype(codebook.dtype()), size, sum};
}

// ---- k-means ----------------------------------------------------------------------------------------------------

Array kmeans_plus_plus(const Array& inputs, int64_t clusters, const Array& key) {
  require_vectors("kmeans_plus_plus", inputs, clusters);
  const DType wide = sum_dtype_of(inputs.dtype());
  const Array vectors = lax::stop_gradient(inputs).astype(wide);
  const int64_t count = vectors.shape(0);
  const Array keys = random::split(key);
  const Array start = random::randint(lax::index_in_dim(keys, 0, 0, false), Shape{}, 0, count);
  const Array shares = random::uniform(lax::index_in_dim(keys, 1, 0, false), {.shape = {clusters - 1}, .dtype = wide});
  const Array first = row_at(vectors, start);
  // Each step samples by the distances so far: the first vector whose cumulative distance exceeds the drawn share.
  auto step = [&](const Array& distances, const Array& share) {
    const Array running = jnp::cumsum(distances, {.axis = 0});
    const Array target = share * lax::index_in_dim(running, count - 1, 0, false);
    const Array passed = jnp::sum((running <= target).astype(DType::int32));
    const Array drawn = row_at(vectors, lax::min(passed, Array(count - 1).astype(DType::int32)));
    return std::pair(lax::min(distances, squared_distances(vectors, drawn)), drawn);
  };
  const Array rest = lax::scan(step, squared_distances(vectors, first), shares).second;
  return lax::concatenate({lax::expand_dims(first, {0}), rest}, 0).astype(inputs.dtype());
}

KMeansResult kmeans(const Array& inputs, int64_t clusters, const Array& key, const KMeansOptions& options) {
  require_vectors("kmeans", inputs, clusters);
  if (options.init != "k-means++" && options.init != "random")
    throw ValueError(concat("kmeans: expected 'k-means++' or 'random' (argument 'init'), got '", options.init, "'"));
  if (options.iterations < 0)
    throw ValueError(concat("kmeans: expected 0 iterations or more (argument 'iterations'), got ", options.iterations));
  const Array vectors = lax::stop_gradient(inputs);
  auto drawn = [&] {
    const Array order = random::permutation(key, inputs.shape(0));
    return jnp::take(vectors, lax::slice_in_dim(order, 0, clusters), {.axis = 0, .mode = "clip", .fill_value = {}});
  };
  const Array start = options.init == "random" ? drawn() : kmeans_plus_plus(vectors, clusters, key);
  auto step = [&](const Array&, const Array& codebook) {
    const auto [sums, counts] = cluster_sums(vectors, vq_encode(vectors, codebook), clusters);
    const Array some = jnp::expand_dims(counts > 0, -1);
    const Array means = sums / jnp::expand_dims(jnp::maximum(counts, Array(1.0)), -1);
    return jnp::where(some, means.astype(codebook.dtype()), codebook);
  };
  const Array codebook = lax::fori_loop(0, options.iterations, step, start);
  const Array codes = vq_encode(vectors, codebook), nearest = vq_decode(codes, codebook);
  const DType wide = sum_dtype_of(inputs.dtype());
  return {codebook, codes, jnp::sum(squared_distances(vectors.astype(wide), nearest.astype(wide)))};
}

}  // namespace capibara::kernels
