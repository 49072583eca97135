// Storage formats of model weights: as trained, in bfloat16, or with matrices as codes of 8 or 4 bits.
#pragma once

#include <capibara/training/layers.h>

#include <functional>
#include <optional>
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
// The next batch of a model's loss or apply; empty when there are no more.
using CalibrationLoader = std::function<std::optional<Arrays>()>;
struct ActivationOptions {
  int64_t batches = 16;       // read from the loader
  double percentile = 100;    // of magnitudes; below 100 those above it are clipped to it (found to 1/128)
  std::string function = {};  // "loss" or "apply", which the batches are for; empty: the loss if there is one
};
// A model of int8 codes whose matmuls round activations to int8 too and sum integers. With a loader each matrix gets
// the parameter NAME.input_scale, one scale for all that it multiplies in the batches; without, each row of activations
// is divided by its own maximum magnitude. Unchanged: matrices with several scales for an output or of other formats,
// matmuls by a transpose and those in loops. Gradients pass the rounding straight through. ValueError if the loader
// ends before its last batch, an activation is not finite, or the model has no such codes.
AnyModel quantize_activations(const AnyModel& model, const CalibrationLoader& loader = {},
                              const ActivationOptions& options = {});
// The parameters NAME.input_scale alone, for parameters with int8 codes.
Parameters activation_scales(const AnyModel& model, const Parameters& parameters, const CalibrationLoader& loader = {},
                             const ActivationOptions& options = {});
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
