// How models store weights: as they were trained, in bfloat16, or their matrices as codes of 8 or 4 bits.
#pragma once

#include <capibara/training/layers.h>

#include <functional>
#include <string>

namespace capibara::training {

// The parameters of a language model with weights in "float32", "bfloat16", "int8" or "int4". Codes are those of the
// matrices alone, as kernels::QuantizedMatrix has them: the parameter NAME becomes NAME.codes and NAME.scale, and what
// multiplies by it reads the codes. All else stays float32.
Parameters convert_weights(const Parameters& parameters, const std::string& weights);

struct QuantizeModelOptions {
  int64_t block = 0;  // of int8: elements that share a scale; 0: all of an output
  // Which parameters become codes; by default matrices whose names say nothing of norm, bias, scale or embed. Those of
  // a LanguageModel are known.
  std::function<bool(const std::string& name, const ArrayType& type)> which = {};
};
// Any model with its matrices as codes, "int8" or "int4". A LanguageModel reads them itself. Of other models the
// programs of apply, loss and evaluate multiply by the codes wherever they multiply by the matrix or its transpose;
// what else reads a matrix gets it widened. TypeError where the model has no parameters yet, ValueError where nothing
// becomes codes.
AnyModel quantize_model(const AnyModel& model, const std::string& format = "int8",
                        const QuantizeModelOptions& options = {});
// The rule for models that say nothing themselves: a floating matrix whose name says nothing of norm, bias, scale or
// embed.
bool becomes_codes(const std::string& name, const ArrayType& type);
// Bytes of all parameters in memory.
int64_t parameter_bytes(const Parameters& parameters);

// Writes parameters, codes as they are, to a safetensors file whose metadata has the format of each tensor of codes.
void save_weights(const std::string& path, const Parameters& parameters);
// Reads such a file. ValueError that names file and tensor where codes, scales or codebooks do not fit each other, a
// code is out of range or a scale is not finite.
Parameters load_weights(const std::string& path);

}  // namespace capibara::training
