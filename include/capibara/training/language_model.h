// A language model of mixed layers, described by one struct: attention, Mamba and experts in any order.
#pragma once

#include <capibara/remat.h>
#include <capibara/training/layers.h>

#include <functional>
#include <string>
#include <vector>

namespace capibara::training {

struct LanguageModelConfig {
  int64_t vocabulary = 256;
  int64_t width = 128;
  // Each is a mixer, attention or mamba, optionally followed by mlp or moe, such as "attention+moe" or "mamba".
  std::vector<std::string> layers = {"attention+mlp", "mamba", "attention+moe"};
  int64_t heads = 4, key_heads = 4;
  int64_t hidden = 384;                        // of mlp, and of each expert
  int64_t experts = 4, experts_per_token = 2;  // of moe
  int64_t state = 16, taps = 4, expand = 2;    // of mamba: inner width = expand * width
  std::string norm = "rms";                    // or layer
  std::string positions = "rotary";            // or "learned", for at most max_length tokens
  std::string activation = "silu";             // silu: gated; gelu: plain, as in GPT-2
  bool bias = false;                           // of the projections of attention and mlp
  bool tied = true;                            // the head is the embedding table
  int64_t max_length = 1024;
  double rope_base = 10000;
  double norm_epsilon = 1e-5;
  double load_weight = 0.01;  // of the load-balancing loss of the experts
  // Gradient checkpointing: the backward pass recomputes groups of this many layers; 0: none.
  int64_t checkpoint_every_n_layers = 0;
  std::string checkpoint_policy = "nothing_saveable";  // or everything, minimal, offload, or a name from jax

  friend bool operator==(const LanguageModelConfig&, const LanguageModelConfig&) = default;
};

// Called with each intermediate result, by name, in order.
using Probe = std::function<void(const std::string& name, const Array& value)>;

struct ModelCache {
  std::vector<LayerCache> layers;
  Array position;  // number of tokens processed, int32
};
CAPIBARA_TREE(ModelCache, layers, position)

class LanguageModel {
 public:
  // ValueError if the fields are inconsistent.
  explicit LanguageModel(LanguageModelConfig config);

  const LanguageModelConfig& config() const { return config_; }
  // Random float32 parameters from one key.
  Parameters init(const Array& key) const;
  // The shape of each parameter.
  std::map<std::string, Shape> shapes() const;
  // Elements of all parameters.
  int64_t parameter_count() const;
  // Floating-point operations of a forward pass per token of a sequence of this length.
  double flops_per_token(int64_t length) const;

  // Logits [batch, length, vocabulary] of tokens [batch, length].
  Array apply(const Parameters& parameters, const Array& tokens) const;
  // The mean cross entropy of each token of [batch, length + 1] after the first, in nats, plus the load-balancing loss.
  Array loss(const Parameters& parameters, const Array& tokens) const;
  // The same without the load-balancing loss.
  Array cross_entropy(const Parameters& parameters, const Array& tokens) const;
  // The loss of float32 parameters, with the computation in this dtype.
  Array loss_in(DType compute, const Parameters& parameters, const Array& tokens) const;

  // An empty cache for `capacity` tokens.
  ModelCache make_cache(int64_t batch, int64_t capacity, DType dtype = DType::float32) const;
  // Logits of tokens [batch, length] that follow those of the cache, and the updated cache.
  std::pair<Array, ModelCache> extend(const Parameters& parameters, const Array& tokens, const ModelCache& cache) const;

  // The parts of an AnyModel: all of the above, with layers, logical axes and sizes. A batch is one array of tokens.
  ModelParts parts() const;

  // The name of the first intermediate result, or parameter, that has a NaN or an infinity; empty if none has.
  std::string first_bad_layer(const Parameters& parameters, const Array& tokens) const;

 private:
  struct Output {
    Array logits, load;
  };
  Output run(const Parameters& parameters, const Array& tokens, const Probe& probe) const;
  std::pair<Array, Array> run_layers(const Parameters& parameters, Array x, std::size_t first, std::size_t last,
                                     const Probe& probe) const;
  // With `shares`, a mixture of experts stores its expert_shares there.
  std::pair<Array, Array> run_layer(const Parameters& parameters, std::size_t layer, Array x, CachePosition* cache,
                                    const Probe& probe, Array* shares = nullptr) const;
  Array head(const Parameters& parameters, Array x) const;
  Array loss_of(const Output& output, const Array& tokens) const;
  Array start(const Parameters& parameters, const Array& tokens, const Array& position) const;

  LanguageModelConfig config_;
};

// The model with gradient checkpointing: groups of layers whose values the backward pass recomputes.
LanguageModel enable_gradient_checkpointing(const LanguageModel& model, int64_t checkpoint_every_n_layers,
                                            const std::string& checkpoint_policy = "nothing_saveable");

}  // namespace capibara::training
