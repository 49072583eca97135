// Completion of plan requests: models of any kind as sizes, slices by name, and assumptions.
#include "tpu/toolbox/request.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/array/format.h"
#include "tpu/words.h"

namespace capibara::tpu {

namespace {

// A planner error without its prefix.
std::string plain(const std::string& text) { return text.rfind("tpu: ", 0) == 0 ? text.substr(5) : text; }

// Fills in sizes that are 0 with those usual for transformers.
void fill_in(ModelDescription& described, const std::string& operation) {
  Architecture& sizes = described.sizes;
  for (const auto& [name, value] : {std::pair("layers", sizes.layers), std::pair("width", sizes.width)}) {
    if (value > 0) continue;
    throw TypeError(concat(operation, ": the sizes of ", sizes.name, " have no ", name,
                           " (argument 'model'), got layers=", sizes.layers, ", width=", sizes.width));
  }
  auto fill = [&](const char* name, int64_t& size, int64_t assumed) {
    if (size > 0) return;
    size = assumed;
    described.inferred = true;
    described.assumptions.push_back(concat(name, " ", assumed, ": not stated"));
  };
  const int64_t heads = sizes.heads > 0 ? sizes.heads : std::max<int64_t>(sizes.width / 64, 1);
  fill("heads", sizes.heads, heads);
  fill("head_size", sizes.head_size, std::max<int64_t>(sizes.width / heads, 1));
  fill("hidden", sizes.hidden, 4 * sizes.width);
  fill("vocab", sizes.vocab, sizes.width);
  if (sizes.kv_heads == 0 && sizes.kind != "mamba") sizes.kv_heads = sizes.heads;
}

ModelDescription of_protocol(const std::string& name, const ModelSizes& given, const std::string& operation) {
  ModelDescription described;
  Architecture& sizes = described.sizes;
  sizes.name = name;
  sizes.kind = given.experts > 0 ? "moe" : "dense";
  sizes.layers = given.layers;
  sizes.width = given.width;
  sizes.heads = given.heads;
  sizes.kv_heads = given.key_heads;
  sizes.head_size = given.head_size;
  sizes.hidden = given.hidden;
  sizes.vocab = given.vocabulary;
  sizes.experts = given.experts;
  sizes.active = given.experts_per_token;
  sizes.gated = given.gated;
  sizes.tied = given.tied;
  described.inferred = given.inferred;
  described.assumptions = given.assumptions;
  fill_in(described, operation);
  described.parameters = given.parameters > 0 ? static_cast<double>(given.parameters) : sizes.parameters();
  return described;
}

}  // namespace

Slice named_slice(const std::string& operation, const std::string& tpu) {
  try {
    return find_slice(tpu);
  } catch (const ValueError& error) {
    throw TPUError(concat(operation, ": ", plain(error.what()), " (argument 'tpu'), got '", tpu, "'"));
  }
}

void require_positive(const std::string& operation, const char* name, double value) {
  if (!(value > 0)) throw TPUError(concat(operation, ": ", name, " is a positive number, got ", number_text(value)));
}

std::string number_text(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string number_text(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? concat(static_cast<int64_t>(value))
                                                              : python_float(value);
}

PlanMesh assumed_mesh(const Slice& slice, double batch_size) {
  const int each = slice.devices() / slice.slices;
  const double share = std::ceil(each / batch_size);
  int tensor = 1;
  while (tensor < 64 && tensor < share) tensor *= 2;
  PlanMesh mesh;
  mesh.fsdp = each / tensor;
  mesh.tensor = tensor;
  mesh.dcn_data = slice.slices;
  return mesh;
}

ModelDescription describe(const PlannedModel& model, const std::string& operation) {
  if (const auto* preset = std::get_if<std::string>(&model.given())) {
    try {
      ModelDescription described;
      described.sizes = read_model(*preset);
      described.parameters = described.sizes.parameters();
      return described;
    } catch (const ValueError& error) {  // it names the nearest name
      throw TPUError(concat(operation, ": ", plain(error.what()), " (argument 'model'), got '", *preset, "'"));
    }
  }
  if (const auto* sizes = std::get_if<Architecture>(&model.given())) {
    ModelDescription described;
    described.sizes = *sizes;
    if (described.sizes.name.empty()) described.sizes.name = "model";
    fill_in(described, operation);
    described.parameters = described.sizes.parameters();
    return described;
  }
  if (const auto* any = std::get_if<AnyModel>(&model.given())) {
    ModelSizes sizes;
    try {
      sizes = any->sizes();
    } catch (const ValueError& error) {
      throw TypeError(concat(operation, ": ", any->name(), " shows no sizes (argument 'model'): ", error.what(),
                             "; state `sizes`, or give an Architecture"));
    }
    return of_protocol(any->name(), sizes, operation);
  }
  const auto& [name, sizes] = std::get<std::pair<std::string, ModelSizes>>(model.given());
  return of_protocol(name, sizes, operation);
}

std::string CompletedRequest::origin() const {
  return concat("modelled for ", tpu, " with ", number_text(batch_size), " sequences of ", training.sequence,
                assumed.empty() ? "" : "; assumed: " + joined(assumed, "; "));
}

CompletedRequest complete(const PlanRequest& request, const std::string& operation, const std::string& default_tpu) {
  require_positive(operation, "sequence_length", static_cast<double>(request.sequence_length));
  if (request.batch_size) require_positive(operation, "batch_size", *request.batch_size);
  const ModelDescription described = describe(request.model, operation);
  CompletedRequest done;
  done.assumed = described.assumptions;
  done.tpu = request.tpu.empty() ? default_tpu : request.tpu;
  if (request.tpu.empty()) done.assumed.push_back(concat("slice ", default_tpu, ": none was given"));
  Training& training = done.training;
  training.model = described.sizes;
  training.slice = named_slice(operation, done.tpu);
  const int devices = training.slice.devices();
  done.batch_size = request.batch_size.value_or(devices);
  if (!request.batch_size) {
    done.assumed.push_back(concat("a batch of ", devices, " sequences, one on each device: none was given"));
  }
  const std::vector<std::string> remats = {"none", "minimal", "qkv", "full", "offload"};
  if (std::find(remats.begin(), remats.end(), request.remat) == remats.end()) {
    throw TPUError(concat(operation, ": expected one of ", joined(remats, ", "), " (argument 'remat'), got '",
                          request.remat, "'"));
  }
  training.remat = request.remat;
  training.flash = request.flash;
  training.sequence = request.sequence_length;
  training.batch_per_device = done.batch_size / devices;
  training.mesh = request.mesh.empty() ? assumed_mesh(training.slice, done.batch_size) : read_mesh(request.mesh);
  return done;
}

}  // namespace capibara::tpu
