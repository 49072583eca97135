// The training step of a plan as a program for libtpu to compile.
#pragma once

#include <capibara/array.h>
#include <capibara/placement.h>
#include <capibara/program.h>
#include <capibara/tpu/compiled.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace capibara::tpu {

// One parameter of a model, with the mesh axes that split each of its dimensions.
struct StepParameter {
  std::string name;
  capibara::Shape shape;
  PartitionSpec spec;
};

// The mesh of a plan as shardings: the axes that split batches, weights, experts and heads.
class StepMesh {
 public:
  explicit StepMesh(const Training& training);

  // One letter per dimension: b batch, e experts, f weights over fsdp, g the same over fsdp and expert, t tensor, .
  // nothing. Dimensions that the axes do not divide stay whole.
  PartitionSpec spec(const std::string& letters, const capibara::Shape& shape) const;
  NamedSharding sharding(PartitionSpec spec) const;
  Array constrained(const Array& x, const std::string& letters) const;
  int64_t parts(char letter) const;

 private:
  const AxisList& axes_of(char letter) const;
  NamedSharding devices_;
  AxisList batch_, experts_, weights_, all_weights_, tensor_, none_;
};

// Equations traced during its lifetime are attributed to this line of the model's program.
class StepLine {
 public:
  explicit StepLine(const char* name, const char* file = __builtin_FILE(), int line = __builtin_LINE());
  ~StepLine();
  StepLine(const StepLine&) = delete;
  StepLine& operator=(const StepLine&) = delete;

 private:
  void* scope_;
};

using Weights = std::map<std::string, Array>;

// The weights of one layer, without the leading dimension that stacks layers.
std::vector<StepParameter> layer_weights(const Architecture& model, const StepMesh& mesh);
// One layer: [batch, sequence, width] to the same. Its matmuls are named for the policies that keep them.
Array apply_layer(const Architecture& model, const StepMesh& mesh, const Array& x, const Weights& weights);
Array rms_norm(const Array& x, const Array& scale);

// The step with the residuals of its layers on the host. Raises ValueError if there are none.
Program offload_residuals(const Program& program);

}  // namespace capibara::tpu
