// Storage formats of model weights: as trained, in bfloat16, or with matrices as codes of 8 or 4 bits.
#pragma once

#include <capibara/training/layers.h>

#include <functional>
#include <string>

namespace capibara::training {

// The parameters of a language model with weights in "float32", "bfloat16", "int8", "int4" or "vq". Only matrices
// become codes, in the format of kernels::QuantizedMatrix: the parameter NAME becomes NAME.codes and NAME.scale, with
// vq (vectors of four in two stages of 256 entries, four bits per element) also NAME.codebook, and its matmuls read the
// codes. All else stays float32, as do matrices too small for codebooks.
Parameters convert_weights(const Parameters& parameters, const std::string& weights);

struct QuantizeModelOptions {
  int64_t block = 0;                                        // of int8: elements that share a scale; 0: all of an output
  kernels::QuantizeVectorsOptions vectors = {.stages = 2};  // of vq
  // Which parameters become codes; by default matrices whose names do not contain norm, bias, scale or embed. Those of
  // a LanguageModel are known.
  std::function<bool(const std::string& name, const ArrayType& type)> which = {};
};
// Any model with its matrices as codes, "int8", "int4" or "vq". A LanguageModel reads them directly. For other models
// the programs of apply, loss and evaluate multiply by the codes wherever they multiply by the matrix or its transpose;
// other uses of a matrix widen it. TypeError if the model has no parameters yet, ValueError if nothing
// becomes codes.
AnyModel quantize_model(const AnyModel& model, const std::string& format = "int8",
                        const QuantizeModelOptions& options = {});
// The default rule for other models: a floating matrix whose name does not contain norm, bias, scale or
// embed.
bool becomes_codes(const std::string& name, const ArrayType& type);
// True if a matrix splits into vectors along its contracted axis, and has more of them than the codebooks have entries.
// Experts [experts, inputs, outputs] split along both axes, so that all of their matrices become codes or none.
bool fits_codebooks(const Shape& shape, int64_t axis, const kernels::QuantizeVectorsOptions& options);
// Bytes of all parameters in memory.
int64_t parameter_bytes(const Parameters& parameters);

// Writes parameters, including codes, to a safetensors file whose metadata has the format of each tensor of codes.
void save_weights(const std::string& path, const Parameters& parameters);
// Reads such a file. ValueError that names file and tensor if codes, scales or codebooks are inconsistent, a
// code is out of range or a scale is not finite.
Parameters load_weights(const std::string& path);

}  // namespace capibara::training
