// compile: a named model with shapes and a backend becomes a program that can be evaluated and differentiated.
#pragma once

#include <capibara/models/model.h>
#include <capibara/program.h>

#include <set>

namespace capibara::models {

// Where and how a compiled model computes.
struct Backend {
  DType dtype = DType::float32;  // of parameters and constants
  bool jit = true;
  std::string precision = {};             // of matmuls; empty: the backend's default
  std::vector<int64_t> device_mesh = {};  // for propose_shardings
};

using ArrayMap = std::map<std::string, Array>;
// Arrays by key; a list of arrays for a key that holds a list.
using ValueMap = std::map<std::string, Value>;

struct CompileOptions {
  std::vector<std::pair<std::string, ShapeTemplate>> shapes = {};
  ValueMap constant_keys = {};                // used in computations at compile time
  std::set<std::string> data_keys = {};       // passed to every evaluation, not differentiated
  std::set<std::string> discard_keys = {};    // outputs to drop
  std::set<std::string> trainable_keys = {};  // differentiated, in addition to those that the model declares
  bool inference = false;                     // no gradients
  bool jit = true;
  bool safe_names = true;      // data keys must have names of their own
  bool safe_shapes = true;     // shapes that models recommend are required
  bool verbose = false;        // prints the summary
  std::string file_path = {};  // writes the program as text
};

struct Evaluation {
  ValueMap outputs;
  ValueMap gradients;  // empty unless requested
};

class CompiledBody;

class CompiledModel {
 public:
  explicit CompiledModel(std::shared_ptr<const CompiledBody> body) : body_(std::move(body)) {}

  ValueMap evaluate(const ValueMap& params, const ValueMap& data = {}) const;
  // Gradients of the trainable keys, given these gradients of the outputs.
  Evaluation evaluate(const ValueMap& params, const ValueMap& data, const ValueMap& output_gradients) const;
  // Gradients of the sum of the scalar outputs (losses).
  Evaluation evaluate_with_gradients(const ValueMap& params, const ValueMap& data = {}) const;

  // Normally distributed values for every trainable key whose shape is known; KeyError names the others.
  ValueMap randomize_params(int64_t seed = 0) const;
  // Shapes as far as they are known; an unknown size is std::nullopt.
  std::map<std::string, std::optional<std::vector<std::optional<int64_t>>>> get_shapes() const;

  std::vector<std::string> input_keys() const;
  std::vector<std::string> output_keys() const;
  std::vector<std::string> trainable_keys() const;
  std::vector<std::string> data_keys() const;
  std::vector<std::string> static_keys() const;     // data keys, and those computed at compile time
  std::vector<std::string> discarded_keys() const;  // keys that the remaining outputs do not need
  int64_t parameter_count() const;                  // of the trainable keys whose shapes are known

  std::string summary() const;  // a table: keys, shapes, kind, number of parameters
  std::string svg() const;
  // The program for these types of arguments, printed as a jaxpr.
  Program program(const ValueMap& params, const ValueMap& data = {}) const;
  std::string text() const;  // the operations, one line each

  // For each trainable and data key, the mesh axis (or -1) that splits each dimension: batches of data, and the largest
  // dimension of weights that the axis divides.
  std::map<std::string, std::vector<int64_t>> propose_shardings() const;
  const Backend& backend() const;

 private:
  std::shared_ptr<const CompiledBody> body_;
};

// Compiles a model. The model itself is unchanged and may be compiled again.
CompiledModel compile(const Model& model, const Backend& backend = {}, const CompileOptions& options = {});

}  // namespace capibara::models
