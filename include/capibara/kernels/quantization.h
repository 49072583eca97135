// Fused vector quantization: nearest codes of vectors, and codebooks that learn from them.
//
// A codebook is an array [codes, dim]. Vectors are the last axis of `inputs`; the codes of all other axes are found
// at once: no array of vectors x codes is ever stored. A codebook of rank 3 holds several:
// - product quantization, codebook [groups, codes, dim / groups]: each group of a vector's elements has its own;
// - residual quantization (`residual`), codebook [stages, codes, dim]: each stage has a codebook for the residual that
//   the stages before it leave of a vector.
// Codes then have one more axis, of groups or stages.
#pragma once

#include <capibara/array.h>

#include <optional>
#include <string>
#include <tuple>

namespace capibara::kernels {

struct VqOptions {
  std::string distance_metric = "euclidean";  // or "cosine", "dot_product"
  bool residual = false;
};
// The index of the code nearest to each vector, to each part of a vector, or to what earlier stages leave.
// Nearest means the smallest squared difference, the largest cosine or the largest dot product; ties go to the
// first. A codebook [groups, codes, dim / groups] is for parts of vectors, with residual [stages, codes, dim] for
// stages. A NaN counts as nearest, as in argmin; the cosine with a vector of zeros is 0.
Array vq_encode(const Array& inputs, const Array& codebook, const VqOptions& options = {});

struct VqDecodeOptions {
  bool residual = false;
};
// The vectors encoded by codes. Indices beyond the codebook are clamped to it.
Array vq_decode(const Array& codes, const Array& codebook, const VqDecodeOptions& options = {});

struct VqQuantizeOptions {
  std::string distance_metric = "euclidean";
  bool residual = false;
  double commitment_cost = 0.25;  // weight of the gradient that pulls inputs towards their codes
  double codebook_cost = 1.0;     // weight of the gradient that pulls codes towards inputs; 0 if vq_update moves them
};
struct VqQuantized {
  Array quantized, codes, loss;
};
// Vectors replaced by their nearest codes, with the straight-through gradient; the codes; a loss for both. `quantized`
// has the values of the decoded vectors, and its cotangent passes to `inputs` unchanged, with none for the codebook.
// The codebook learns from `loss`, the mean over all elements of commitment_cost * (inputs - c)^2, differentiated with
// respect to inputs only, and codebook_cost * (inputs - c)^2, with respect to the decoded codes c only.
VqQuantized vq_quantize(const Array& inputs, const Array& codebook, const VqQuantizeOptions& options = {});

// A codebook [codes, dim] that follows the vectors it encodes: moving averages of the number of vectors per code and
// of their sum.
struct VqState {
  Array codebook, cluster_size, cluster_sum;
};
// The initial state of a codebook: each code has had one vector, the code itself.
VqState vq_state(const Array& codebook);

struct VqUpdateOptions {
  double decay = 0.99;    // of the moving averages
  double epsilon = 1e-5;  // added to each cluster size, so that no code divides by zero
  // Codes whose average cluster size falls below this are reset to a vector drawn from `inputs`, which requires a
  // key.
  double dead_threshold = 0;
  std::optional<Array> key = {};
};
// One step of the moving averages: codebook = cluster_sum / cluster_size, after updating both from `inputs`.
// Neither inputs nor state have a derivative.
VqState vq_update(const VqState& state, const Array& inputs, const Array& codes, const VqUpdateOptions& options = {});

struct KMeansOptions {
  int64_t iterations = 10;
  std::string init = "k-means++";  // or "random": distinct vectors drawn uniformly
};
struct KMeansResult {
  Array codebook, codes, inertia;  // inertia: the sum of squared distances to the nearest code
};
// Clusters vectors [count, dim] by Lloyd's iterations. A cluster that loses all its vectors does not move.
KMeansResult kmeans(const Array& inputs, int64_t clusters, const Array& key, const KMeansOptions& options = {});
// Vectors drawn by their squared distance from those drawn before: where k-means starts. Each of `inputs` [count, dim]
// is drawn with a probability proportional to its squared distance from the nearest one already drawn.
Array kmeans_plus_plus(const Array& inputs, int64_t clusters, const Array& key);

}  // namespace capibara::kernels
