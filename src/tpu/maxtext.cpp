// Reads MaxText's settings as a plan: sizes, batch, parallelism, remat policy, types.
#include <capibara/error.h>
#include <capibara/tpu/maxtext.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "tpu/words.h"

namespace capibara::tpu {

namespace {

using Settings = std::map<std::string, std::string>;

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

// Without a comment, which starts at # after a space and outside of quotes.
std::string_view without_comment(std::string_view text) {
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quote != 0) {
      if (text[i] == quote) quote = 0;
    } else if (text[i] == '"' || text[i] == '\'') {
      quote = text[i];
    } else if (text[i] == '#' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t')) {
      return text.substr(0, i);
    }
  }
  return text;
}

class Reader {
 public:
  explicit Reader(const Settings& settings) : settings_(settings) {}

  std::string text(const char* name, const char* otherwise) const {
    const auto it = settings_.find(name);
    if (it == settings_.end() || it->second == "None" || it->second == "null") return otherwise;
    return it->second;
  }
  double number(const char* name, double otherwise) const {
    const std::string value = text(name, "");
    if (value.empty()) return otherwise;
    std::string digits = value;
    std::erase(digits, '_');
    char* end = nullptr;
    const double found = std::strtod(digits.c_str(), &end);
    if (*end != 0 || !std::isfinite(found)) refuse(name, "needs a number");
    return found;
  }
  int64_t count(const char* name, int64_t otherwise, int64_t lowest = 1) const {
    const double found = number(name, static_cast<double>(otherwise));
    if (found != std::floor(found) || found < static_cast<double>(lowest) || found > 1e9)
      refuse(name, concat("needs a whole number from ", lowest));
    return static_cast<int64_t>(found);
  }
  bool truth(const char* name, bool otherwise) const {
    std::string value = text(name, otherwise ? "true" : "false");
    std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::tolower(c); });
    if (value != "true" && value != "false") refuse(name, "needs true or false");
    return value == "true";
  }
  [[noreturn]] void refuse(const char* name, const std::string& why) const {
    throw ValueError(concat("maxtext: ", name, " ", why, ", got '", text(name, ""), "'"));
  }
  // Refuses other values than these: they change the program as no plan models.
  void require(const char* name, std::initializer_list<const char*> allowed) const {
    const std::string value = text(name, *allowed.begin());
    if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
      refuse(name, concat("is planned only as ", *allowed.begin()));
  }

 private:
  const Settings& settings_;
};

int64_t items(const std::string& list) { return std::count(list.begin(), list.end(), ',') + 1; }

Architecture maxtext_model(const Reader& read, std::vector<std::string>& remarks) {
  Architecture model;
  read.require("global_parameter_scale", {"1"});
  model.name = read.text("model_name", "default");
  model.layers = read.count("base_num_decoder_layers", 16);
  model.width = read.count("base_emb_dim", 2048);
  model.heads = read.count("base_num_query_heads", 16);
  model.kv_heads = read.count("base_num_kv_heads", 16);
  model.head_size = read.count("head_dim", 128);
  model.hidden = read.count("base_mlp_dim", 7168);
  model.vocab = read.count("vocab_size", 32000);
  model.gated = items(read.text("mlp_activations", "silu,linear")) > 1;
  model.tied = read.truth("logits_via_embedding", false);
  const std::string block = read.text("decoder_block", "llama2");
  const bool deepseek = block.starts_with("deepseek");
  if (const int64_t experts = read.count("num_experts", 1); experts > 1) {
    model.kind = "moe";
    model.experts = experts;
    model.active = read.count("num_experts_per_tok", 1);
    const double capacity = read.number("capacity_factor", -1);
    model.capacity = capacity > 0 && !read.truth("sparse_matmul", true) ? capacity : 0;
    const int64_t leading = deepseek ? read.count("first_num_dense_layers", 0, 0) : 0;
    model.dense_layers = leading;
    model.dense_hidden = leading > 0 ? model.hidden : 0;
    model.hidden = read.count("base_moe_mlp_dim", model.hidden);
    if (deepseek) model.shared = read.count("shared_experts", 1, 0);
    remarks.push_back(model.capacity > 0 ? "experts with slots" : "no choice of an expert is dropped");
  }
  const std::string attention = read.text("attention_type", "global");
  const int64_t window = read.count("sliding_window_size", 0, 0);
  if (attention == "mla") {
    model.kv_rank = read.count("kv_lora_rank", 512);
    model.q_rank = read.count("q_lora_rank", 0, 0);
    model.head_size = read.count("qk_nope_head_dim", 128);
    model.rope_size = read.count("qk_rope_head_dim", 64, 0);
    model.value_size = read.count("v_head_dim", 128);
    model.kv_heads = model.heads;
  } else if (block == "gemma2" || block == "gpt_oss" || block == "gemma3") {
    if (window == 0) read.refuse("sliding_window_size", concat("is needed by decoder_block ", block));
    model.window = window;
    model.global_every = block == "gemma3" ? 6 : 2;
    remarks.push_back(concat("one of ", model.global_every, " layers attends to all tokens (", block, ")"));
  } else if (attention == "local_sliding") {
    if (window == 0) read.refuse("sliding_window_size", "is needed by attention_type local_sliding");
    model.window = window;
  } else if (attention != "global") {
    read.refuse("attention_type", "is planned as global, local_sliding or mla");
  }
  check_model(model);
  return model;
}

PlanMesh maxtext_mesh(const Reader& read, const Slice& slice) {
  for (const char* prefix : {"ici_", "dcn_"}) {
    for (const char* axis : {"fsdp_transpose", "tensor_transpose", "tensor_sequence", "pipeline", "autoregressive",
                             "context_autoregressive"}) {
      read.require(concat(prefix, axis, "_parallelism").c_str(), {"1"});
    }
  }
  for (const char* axis : {"sequence", "context", "tensor", "expert"})
    read.require(concat("dcn_", axis, "_parallelism").c_str(), {"1"});
  PlanMesh mesh;
  int64_t sequence = 1;
  struct Axis {
    std::string name;
    int64_t size;
  };
  auto fill = [&](std::vector<Axis>& axes, int64_t devices, const char* what) {
    int64_t known = 1;
    Axis* open = nullptr;
    for (Axis& axis : axes) {
      axis.size = read.count(axis.name.c_str(), axis.size, -1);
      if (axis.size == 0) read.refuse(axis.name.c_str(), "needs a number from 1, or -1");
      if (axis.size == -1) {
        if (open) read.refuse(axis.name.c_str(), concat("and ", open->name, " are both open"));
        open = &axis;
      } else {
        known *= axis.size;
      }
    }
    if (open && devices % known == 0) open->size = devices / known;
    if (open ? devices % known != 0 : known != devices)
      throw ValueError(
          concat("maxtext: the product of ", what, " is ", known, ", but ", slice.name(), " has ", devices));
  };
  std::vector<Axis> ici = {{"ici_data_parallelism", 1},    {"ici_fsdp_parallelism", -1},
                           {"ici_tensor_parallelism", 1},  {"ici_expert_parallelism", 1},
                           {"ici_context_parallelism", 1}, {"ici_sequence_parallelism", 1}};
  fill(ici, slice.devices() / slice.slices, "the ici axes (devices of a slice)");
  std::vector<Axis> dcn = {{"dcn_data_parallelism", -1}, {"dcn_fsdp_parallelism", 1}};
  fill(dcn, slice.slices, "the dcn axes (slices)");
  sequence = ici[4].size * ici[5].size;
  mesh.data = static_cast<int>(ici[0].size);
  mesh.fsdp = static_cast<int>(ici[1].size);
  mesh.tensor = static_cast<int>(ici[2].size);
  mesh.expert = static_cast<int>(ici[3].size);
  mesh.context = static_cast<int>(sequence);
  mesh.dcn_data = static_cast<int>(dcn[0].size);
  mesh.dcn_fsdp = static_cast<int>(dcn[1].size);
  return mesh;
}

std::string maxtext_policy(const Reader& read, std::vector<std::string>& remarks) {
  const std::string policy = read.text("remat_policy", "full");
  if (policy == "save_qkv_proj") return "qkv";
  if (policy == "minimal_offloaded" || policy == "qkv_proj_offloaded") {
    remarks.push_back(
        concat("remat_policy ", policy,
               " is planned as offload: the inputs, q, k, v and output projections of layers on the host"));
    return "offload";
  }
  if (policy == "custom") {
    auto placed = [&](const char* name) { return read.text(name, "remat"); };
    int kept = 0, moved = 0;
    for (const char* name : {"query_proj", "key_proj", "value_proj", "out_proj"}) {
      kept += placed(name) == "device";
      moved += placed(name) == "offload";
    }
    for (const char* name : {"context", "mlpwi", "mlpwi_0", "mlpwi_1", "mlpwo", "qkv_proj", "mla_q", "mla_kv"}) {
      if (placed(name) != "remat") read.refuse(name, "of a custom policy is planned only as remat");
    }
    const std::string input = read.text("decoder_layer_input", "device");
    if (input == "offload" || moved > 0) {
      remarks.push_back("the custom policy is planned as offload: inputs, q, k, v and output projections on the host");
      return "offload";
    }
    if (kept == 0) return "full";
    if (kept == 4) return "save_dot_except_mlp";
    if (kept == 3 && placed("out_proj") == "remat") return "qkv";
    if (kept == 1 && placed("out_proj") == "device") return "save_out_proj";
    read.refuse("remat_policy", "custom is planned if query, key and value projections are placed alike");
  }
  return policy;
}

}  // namespace

std::map<std::string, std::string> read_settings(std::string_view yaml) {
  Settings settings;
  for (int number = 1; !yaml.empty(); ++number) {
    const std::size_t end = yaml.find('\n');
    const std::string_view raw = yaml.substr(0, end), line = without_spaces(without_comment(raw));
    yaml = end == std::string_view::npos ? std::string_view() : yaml.substr(end + 1);
    if (line.empty() || std::isspace(static_cast<unsigned char>(raw.front())) || line.starts_with("---")) continue;
    if (line.front() == ']' || line.front() == '}' || line.starts_with("- ")) continue;  // of a list over several lines
    const std::size_t colon = line.find(':');
    const std::string_view name = without_spaces(line.substr(0, colon));
    const bool named = !name.empty() && name.find_first_of(" \"'[{") == std::string_view::npos;
    if (colon == std::string_view::npos || !named)
      throw ValueError(concat("maxtext: line ", number, " is not written name: value: '", line.substr(0, 60), "'"));
    std::string_view value = without_spaces(line.substr(colon + 1));
    if (value.size() > 1 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front())
      value = value.substr(1, value.size() - 2);
    settings[std::string(name)] = value;
  }
  return settings;
}

MaxTextPlan maxtext_plan(const std::map<std::string, std::string>& settings, const Slice* slice) {
  const Reader read(settings);
  MaxTextPlan plan;
  Training& training = plan.training;
  if (slice) {
    training.slice = *slice;
  } else {
    const std::string topology = read.text("compile_topology", "");
    if (topology.empty()) throw ValueError("maxtext: neither --tpu nor compile_topology names a slice");
    const int64_t slices = read.count("compile_topology_num_slices", 1, -1);
    training.slice = find_slice(slices > 1 ? concat(slices, "x ", topology) : topology);
  }
  training.model = maxtext_model(read, plan.remarks);
  training.mesh = maxtext_mesh(read, training.slice);
  training.batch_per_device = read.number("per_device_batch_size", 12);
  if (!(training.batch_per_device > 0)) read.refuse("per_device_batch_size", "must be positive");
  training.sequence = read.count("max_target_length", 2048);
  training.remat = maxtext_policy(read, plan.remarks);
  training.flash = read.text("attention", "autoselected") != "dot_product";
  read.require("gradient_accumulation_steps", {"1"});
  for (const char* name :
       {"optimizer_memory_host_offload", "parameter_memory_host_offload", "shard_optimizer_over_data"}) {
    if (read.truth(name, false)) read.refuse(name, "is planned only as false");
  }
  read.require("dtype", {"bfloat16"});
  const std::string quantization = read.text("quantization", "");
  if (!quantization.empty()) {
    if (quantization == "int8") {
      training.precision = "int8";
    } else if (quantization.starts_with("fp8")) {
      training.precision = "fp8";
    } else {
      read.refuse("quantization", "is planned as int8 or fp8");
    }
    plan.remarks.push_back("the time of quantizing is not modelled, and no band is known for quantized matmuls");
  }
  auto bytes = [&](const char* name, const char* otherwise) {
    const std::string type = read.text(name, otherwise);
    if (type != "float32" && type != "bfloat16") read.refuse(name, "is planned as float32 or bfloat16");
    return type == "float32" ? 4.0 : 2.0;
  };
  const std::string weights = read.text("weight_dtype", "float32"), optimizer = read.text("opt_type", "adamw");
  const double weight = bytes("weight_dtype", "float32");
  const double first = bytes("mu_dtype", weights.c_str());
  if (optimizer == "adamw" || optimizer == "adam_pax") {
    training.state_bytes = weight + first + weight;
  } else if (optimizer == "sgd") {
    training.state_bytes = weight;
  } else {
    read.refuse("opt_type", "is planned as adamw, adam_pax or sgd");
  }
  if (bytes("grad_dtype", "float32") < 4) plan.remarks.push_back("gradients are planned in float32");
  if (read.count("num_vocab_tiling", 1) > 1) plan.remarks.push_back("logits are planned whole, not tiled");
  if (read.count("mtp_num_layers", 0, 0) > 0)
    plan.remarks.push_back("the layers of multi-token prediction are left out");
  return plan;
}

}  // namespace capibara::tpu
