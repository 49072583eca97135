// Sizes of language models, their parameters and model FLOPs.
#include <capibara/error.h>
#include <capibara/tpu/models.h>

#include <algorithm>
#include <iterator>

#include "tpu/words.h"

namespace capibara::tpu {

namespace {

Architecture dense(const char* name, int64_t layers, int64_t width, int64_t heads, int64_t kv_heads, int64_t head_size,
                   int64_t hidden, int64_t vocab, bool gated, bool tied) {
  Architecture model;
  model.name = name;
  model.layers = layers;
  model.width = width;
  model.heads = heads;
  model.kv_heads = kv_heads;
  model.head_size = head_size;
  model.hidden = hidden;
  model.vocab = vocab;
  model.gated = gated;
  model.tied = tied;
  return model;
}

Architecture with_experts(Architecture model, int64_t experts, int64_t active) {
  model.kind = "moe";
  model.experts = experts;
  model.active = active;
  return model;
}

// Blocks similar to Mamba-2: heads of 64, with an inner width of twice the model's.
Architecture mamba(const char* name, int64_t layers, int64_t width, int64_t vocab) {
  Architecture model = dense(name, layers, width, width / 32, 0, 64, 2 * width, vocab, false, true);
  model.kind = "mamba";
  return model;
}

}  // namespace

double Architecture::layer_parameters() const {
  const double d = static_cast<double>(width), f = static_cast<double>(hidden), h = static_cast<double>(heads);
  if (kind == "mamba") {
    const double s = static_cast<double>(state);
    return 2 * d * f + 2 * d * s + d * h + 4 * (f + 2 * s) + 3 * h + f + d + f * d;
  }
  const double mlp = static_cast<double>(matrices()) * d * f;
  const double e = static_cast<double>(experts), n = static_cast<double>(layers);
  const double norms = 2 * d + static_cast<double>(kv_rank + q_rank);
  if (experts == 0) return projections() + mlp + norms;
  const double leading = n > 0 ? static_cast<double>(dense_layers) / n : 0;
  const double first = static_cast<double>(matrices()) * d * static_cast<double>(dense_hidden);
  return projections() + norms + leading * first + (1 - leading) * ((e + static_cast<double>(shared)) * mlp + d * e);
}

double Architecture::qkv() const {
  if (kv_rank > 0) return static_cast<double>(heads * (2 * (head_size + rope_size) + value_size));
  return static_cast<double>((heads + 2 * kv_heads) * head_size);
}

double Architecture::mixed() const { return static_cast<double>(heads * (kv_rank > 0 ? value_size : head_size)); }

double Architecture::projections() const {
  const double d = static_cast<double>(width), h = static_cast<double>(heads);
  if (kv_rank == 0) return d * qkv() + mixed() * d;
  const double query = h * static_cast<double>(head_size + rope_size), rank = static_cast<double>(q_rank);
  const double keys = static_cast<double>(kv_rank);
  return (q_rank > 0 ? d * rank + rank * query : d * query) + d * (keys + static_cast<double>(rope_size)) +
         keys * h * static_cast<double>(head_size + value_size) + mixed() * d;
}

double Architecture::attended(int64_t sequence) const {
  if (window == 0 || window >= sequence) return 1;
  const double reach = static_cast<double>(window) / static_cast<double>(sequence);
  const double whole = global_every > 0 ? 1 / static_cast<double>(global_every) : 0;
  return whole + (1 - whole) * reach * (2 - reach);
}

double Architecture::cached(int64_t context) const {
  const double n = static_cast<double>(layers), all = static_cast<double>(context);
  if (kind == "mamba")  // the state in f32, counted as two elements, and the convolution's last tokens
    return n * (2 * static_cast<double>(hidden * state) + 3 * static_cast<double>(hidden + 2 * state));
  if (kv_rank > 0) return n * all * static_cast<double>(kv_rank + rope_size);
  const double kept = window > 0 ? static_cast<double>(std::min(window, context)) : all;
  const double whole = window > 0 ? (global_every > 0 ? 1 / static_cast<double>(global_every) : 0) : 1;
  return n * (whole * all + (1 - whole) * kept) * static_cast<double>(2 * kv_heads * head_size);
}

double Architecture::parameters() const {
  const double table = static_cast<double>(vocab) * static_cast<double>(width);
  return (tied ? 1 : 2) * table + static_cast<double>(layers) * layer_parameters() + static_cast<double>(width);
}

const std::vector<Architecture>& model_presets() {
  static const std::vector<Architecture> presets = {
      // Sizes from 125M to 2.7B, with GPT-3's shapes (Brown et al. 2020, table 2.1).
      dense("125m", 12, 768, 12, 12, 64, 3072, 50304, false, true),
      dense("350m", 24, 1024, 16, 16, 64, 4096, 50304, false, true),
      dense("1b", 24, 1792, 14, 14, 128, 7168, 50304, false, true),
      dense("1.3b", 24, 2048, 16, 16, 128, 8192, 50304, false, true),
      dense("2.7b", 32, 2560, 20, 20, 128, 10240, 50304, false, true),
      dense("gpt2", 12, 768, 12, 12, 64, 3072, 50257, false, true),
      dense("gpt2-medium", 24, 1024, 16, 16, 64, 4096, 50257, false, true),
      dense("gpt2-large", 36, 1280, 20, 20, 64, 5120, 50257, false, true),
      dense("gpt2-xl", 48, 1600, 25, 25, 64, 6400, 50257, false, true),
      dense("gpt3-6.7b", 32, 4096, 32, 32, 128, 16384, 50304, false, false),
      dense("gpt3-13b", 40, 5120, 40, 40, 128, 20480, 50304, false, false),
      dense("gpt3-175b", 96, 12288, 96, 96, 128, 49152, 50304, false, true),
      dense("llama2-7b", 32, 4096, 32, 32, 128, 11008, 32000, true, false),
      dense("llama2-13b", 40, 5120, 40, 40, 128, 13824, 32000, true, false),
      dense("llama2-70b", 80, 8192, 64, 8, 128, 28672, 32000, true, false),
      dense("llama3.1-8b", 32, 4096, 32, 8, 128, 14336, 128256, true, false),
      dense("llama3.1-70b", 80, 8192, 64, 8, 128, 28672, 128256, true, false),
      dense("llama3.1-405b", 126, 16384, 128, 8, 128, 53248, 128256, true, false),
      with_experts(dense("mixtral-8x7b", 32, 4096, 32, 8, 128, 14336, 32000, true, false), 8, 2),
      with_experts(dense("mixtral-8x22b", 56, 6144, 48, 8, 128, 16384, 32768, true, false), 8, 2),
      dense("gemma-2b", 18, 2048, 8, 1, 256, 16384, 256000, true, true),
      dense("gemma-7b", 28, 3072, 16, 16, 256, 24576, 256000, true, true),
      mamba("mamba-130m", 24, 768, 50288),
      mamba("mamba-790m", 48, 1536, 50288),
      mamba("mamba-1.4b", 48, 2048, 50288),
      mamba("mamba-2.8b", 64, 2560, 50288),
  };
  return presets;
}

const Architecture& find_model(std::string_view name) {
  std::vector<std::string> names;
  for (const Architecture& model : model_presets()) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  throw ValueError(
      concat("tpu: no preset is called '", name, "'; there are ", joined(names, ", "), hint_of(name, names)));
}

Architecture read_model(std::string_view text) {
  if (text.find('=') == std::string_view::npos) return find_model(text);
  Architecture model;
  model.name = "given";
  struct Field {
    const char* name;
    int64_t Architecture::*value;
  };
  static constexpr Field fields[] = {{"layers", &Architecture::layers},
                                     {"width", &Architecture::width},
                                     {"heads", &Architecture::heads},
                                     {"kv_heads", &Architecture::kv_heads},
                                     {"hidden", &Architecture::hidden},
                                     {"head_size", &Architecture::head_size},
                                     {"vocab", &Architecture::vocab},
                                     {"experts", &Architecture::experts},
                                     {"active", &Architecture::active},
                                     {"state", &Architecture::state},
                                     {"shared", &Architecture::shared},
                                     {"dense_layers", &Architecture::dense_layers},
                                     {"dense_hidden", &Architecture::dense_hidden},
                                     {"window", &Architecture::window},
                                     {"global_every", &Architecture::global_every},
                                     {"kv_rank", &Architecture::kv_rank},
                                     {"q_rank", &Architecture::q_rank},
                                     {"rope_size", &Architecture::rope_size},
                                     {"value_size", &Architecture::value_size}};
  std::vector<std::string> names = {"kind", "gated", "tied"};
  for (const Field& field : fields) names.emplace_back(field.name);
  const std::vector<std::string> kinds = {"dense", "moe", "moe_dense", "mamba"};
  while (!text.empty()) {
    const std::size_t end = text.find(',');
    const std::string_view word = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const std::size_t equals = word.find('=');
    const std::string name(word.substr(0, equals)), value(equals < word.size() ? word.substr(equals + 1) : "");
    const bool digits =
        !value.empty() && value.size() < 10 && value.find_first_not_of("0123456789") == std::string::npos;
    const auto field =
        std::find_if(std::begin(fields), std::end(fields), [&](const Field& f) { return name == f.name; });
    if (name == "kind") {
      if (std::find(kinds.begin(), kinds.end(), value) == kinds.end())
        throw ValueError(concat("tpu: no kind of model is called '", value, "'; there are ", joined(kinds, ", "),
                                hint_of(value, kinds)));
      model.kind = value;
    } else if ((name == "gated" || name == "tied") && (value == "0" || value == "1")) {
      (name == "gated" ? model.gated : model.tied) = value == "1";
    } else if (field != std::end(fields) && digits) {
      model.*field->value = std::stoll(value);
    } else {
      const bool known = std::find(names.begin(), names.end(), name) != names.end();
      throw ValueError(concat("tpu: a model is written layers=32,width=4096,..., got '", word, "'",
                              known ? "" : concat("; fields are ", joined(names, ", "), hint_of(name, names))));
    }
  }
  check_model(model);
  return model;
}

void check_model(Architecture& model) {
  if (model.kv_heads == 0 && model.kind != "mamba") model.kv_heads = model.heads;
  if (model.experts > 0 && model.kind == "dense") model.kind = "moe";
  if (model.kind == "moe" && model.active == 0) model.active = 2;
  const bool whole = model.layers > 0 && model.width > 0 && model.heads > 0 && model.hidden > 0 && model.vocab > 0 &&
                     model.head_size > 0;
  if (!whole) throw ValueError("tpu: a model needs layers, width, heads, hidden and vocab, each at least 1");
  if (model.kind != "mamba" && model.heads % model.kv_heads != 0)
    throw ValueError(concat("tpu: ", model.kv_heads, " kv_heads must divide the ", model.heads, " heads"));
  if (model.kind == "mamba" && model.hidden % model.heads != 0)
    throw ValueError(concat("tpu: ", model.heads, " heads must divide the inner width ", model.hidden, " of mamba"));
  if ((model.kind == "moe" || model.kind == "moe_dense") != (model.experts > 0))
    throw ValueError(concat("tpu: a model of kind ", model.kind, " has ", model.experts, " experts"));
  if (model.kind == "moe" && model.active > model.experts)
    throw ValueError(concat("tpu: active=", model.active, " must be from 1 to the ", model.experts, " experts"));
  if (model.experts == 0 && (model.shared > 0 || model.dense_layers > 0 || model.active > 0))
    throw ValueError("tpu: shared, dense_layers and active are of models with experts");
  if (model.dense_layers > model.layers || (model.dense_layers > 0) != (model.dense_hidden > 0))
    throw ValueError("tpu: dense_layers must be at most layers, and needs dense_hidden, the width of their MLP");
  if (model.global_every > 0 && model.window == 0) throw ValueError("tpu: global_every needs window");
  if (model.kind == "mamba" && (model.window > 0 || model.kv_rank > 0))
    throw ValueError("tpu: window and kv_rank are of attention, which a mamba has not");
  if (model.kv_rank > 0 ? model.value_size < 1 : model.q_rank + model.rope_size + model.value_size > 0)
    throw ValueError("tpu: latent attention needs kv_rank and value_size; q_rank and rope_size are parts of it");
}

double training_flops_per_token(const Architecture& model, int64_t sequence, bool causal) {
  const double d = static_cast<double>(model.width), f = static_cast<double>(model.hidden),
               layers = static_cast<double>(model.layers);
  const double head = 2 * d * static_cast<double>(model.vocab);
  if (model.kind == "mamba") {
    const double s = static_cast<double>(model.state), chunk = 256;
    // Projections, then within chunks the scores and their application, between chunks the states.
    const double projections = 2 * d * (2 * f + 2 * s + static_cast<double>(model.heads)) + 2 * f * d;
    return 3 * (layers * (projections + chunk * (s + f) + 4 * s * f) + head);
  }
  const double mixers = 2 * model.projections();
  const double mlp = 2 * static_cast<double>(model.matrices()) * d * f;
  double experts = 1;
  double router = 0;
  if (model.experts > 0) {
    experts = static_cast<double>((model.kind == "moe_dense" ? model.experts : model.active) + model.shared);
    router = 2 * d * static_cast<double>(model.experts);
  }
  const double scored = model.kv_rank > 0 ? static_cast<double>(model.heads * (model.head_size + model.rope_size))
                                          : static_cast<double>(model.heads * model.head_size);
  const double pairs =
      2 * static_cast<double>(sequence) * (scored + model.mixed()) * model.attended(sequence) / (causal ? 2 : 1);
  const double leading = static_cast<double>(model.dense_layers);
  const double first = 2 * static_cast<double>(model.matrices()) * d * static_cast<double>(model.dense_hidden);
  return 3 * ((layers - leading) * (mlp * experts + router) + leading * first + layers * (mixers + pairs) + head);
}

}  // namespace capibara::tpu
