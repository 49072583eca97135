// Language models by their sizes: parameters and FLOPs, and the named presets of plans.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace capibara::tpu {

struct Architecture {
  std::string name;
  std::string kind =
      "dense";  // dense, moe (top `active` of `experts`), moe_dense (every expert computes every token), mamba
  int64_t layers = 0, width = 0, heads = 0, kv_heads = 0, head_size = 128, hidden = 0, vocab = 0;
  bool gated = true;  // three matrices in the MLP, else two
  bool tied = false;  // the output matrix is the embedding
  int64_t experts = 0, active = 0;
  int64_t state = 128;  // of mamba
  // Of experts: some that every token passes, leading layers without experts and the width of their MLP, and the slots
  // of an expert over its mean number of tokens; 0 computes every choice and drops none.
  int64_t shared = 0, dense_layers = 0, dense_hidden = 0;
  double capacity = 1.25;
  // Local attention: each token attends to so many before it, in all layers but one of `global_every` (0: in all).
  int64_t window = 0, global_every = 0;
  // Latent attention (MLA) if kv_rank > 0: queries and keys have head_size + rope_size elements, values value_size.
  int64_t kv_rank = 0, q_rank = 0, rope_size = 0, value_size = 0;

  double layer_parameters() const;
  double parameters() const;
  double qkv() const;                       // elements of queries, keys and values of a token
  double mixed() const;                     // elements of all heads' results of a token
  double projections() const;               // parameters of attention in a layer, without norms
  double attended(int64_t sequence) const;  // pairs of tokens that attention computes, relative to all, over the layers
  double cached(int64_t context) const;     // elements that serving keeps for a sequence of this length, in all layers
  int64_t matrices() const { return gated ? 3 : 2; }  // of the MLP
};

// GPT-2 and 3, Llama 2 and 3.1, Mixtral, Gemma, Mamba, and the sizes from 125M to 2.7B.
const std::vector<Architecture>& model_presets();
// The preset of this name. Raises ValueError with the nearest one.
const Architecture& find_model(std::string_view name);

// A preset by its name, or a model by its sizes: layers=32,width=4096,heads=32,kv_heads=8,hidden=14336,vocab=128256.
// Also head_size=128, gated=1, tied=0, experts=8, active=2, state=128, kind=mamba. Raises ValueError for other fields.
Architecture read_model(std::string_view text);

// Completes kv_heads, kind and active, and raises ValueError for sizes that contradict each other.
void check_model(Architecture& model);

// Model FLOPs of training per token: forward and backward, without recomputation. Published figures count attention
// either for all pairs of tokens or, `causal`, for half of them.
double training_flops_per_token(const Architecture& model, int64_t sequence, bool causal);

}  // namespace capibara::tpu
