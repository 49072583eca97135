// The body of a CompiledModel: the remaining operations, constants, shapes, and the source of each key.
#pragma once

#include "models/named/shapes.h"

#include <capibara/config.h>

#include <mutex>

namespace capibara::models {

class CompiledFunctions;
std::shared_ptr<CompiledFunctions> make_functions();

class CompiledBody {
 public:
  CompiledBody(const Model& model, const Backend& backend, const CompileOptions& options);
  CompiledBody(const CompiledBody&) = delete;

  Model model;  // keeps the bodies alive that the graph refers to
  Backend backend;
  CompileOptions options;
  FlatGraph graph;
  std::unique_ptr<ShapeSystem> shapes;
  std::vector<Value> values;  // of edges known at compile time
  std::vector<int> same;      // the representative edge: repeated operations run once
  std::vector<bool> live;     // of operations
  std::vector<int> outputs;   // edges, in the order of output_keys
  std::vector<std::string> output_keys, trainable, data, statics, discarded;
  std::shared_ptr<CompiledFunctions> functions = make_functions();

  std::vector<std::string> names() const;  // of edges that exist at run time
  std::optional<Shape> full_shape(int edge) const;
  // Runs the remaining operations; `given` has values for the free inputs.
  std::vector<Value> run(const ValueMap& given) const;

 private:
  int edge_of(const std::string& key, const char* argument) const;
  void set_constants();
  void infer();
  void fold();
  void merge_repeated();
  void choose_outputs();
  void find_live();
  void assign_roles();
};

// The configuration for tracing and running on a backend of this dtype.
Config config_for(const Backend& backend);

}  // namespace capibara::models
