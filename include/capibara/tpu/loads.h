// Measured loads of devices, and the responses to them: reordered experts and resharded arrays.
#pragma once

#include <capibara/model.h>
#include <capibara/placement.h>
#include <capibara/tpu/error.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace capibara::tpu {

// ---- loads -------------------------------------------------------------------------------------------------------

// The load of each device, [rows, columns], from its amount of work, tokens or seconds: a fraction of its capacity,
// `headroom` times the mean. Devices with equal work have 1 / headroom, 0.8, which detect_hotspots accepts.
// ValueError for amounts that are negative or differ in number from the devices.
Array device_load(const std::vector<double>& amounts, int64_t rows, int64_t columns, double headroom = 1.25);
// Tokens that each of `devices` processes, each having equally many consecutive experts, from a router's counts
// [experts]. ValueError if the number of devices does not divide the number of experts.
std::vector<double> tokens_by_device(const Array& counts, int64_t devices);
// Seconds that a function takes for the part of an array on each device, one after another: the minimum over this many
// calls, after one that is not measured.
std::vector<double> device_seconds(const std::function<Array(const Array& part)>& function, const Array& array,
                                   int repeats = 3);

// ---- experts -----------------------------------------------------------------------------------------------------

// An order of experts that gives devices nearly equal work, with as many experts each as before: order[slot] is the
// number of the expert. The expert with the most tokens is placed first, always on the device with the fewest.
std::vector<int64_t> balance_experts(const Array& counts, int64_t devices);
// The expert dimension of each parameter whose name begins with `prefix`. It is the dimension with the logical
// axis "expert", and the last one of the router, whose name ends in router, router.weight or router.kernel. ValueError
// if there is no router or no expert, or if their numbers differ.
std::map<std::string, std::size_t> expert_dimensions(const ParameterTypes& types, const LogicalAxes& axes,
                                                     const std::string& prefix);
// ValueError unless `order` contains each number below `experts` once.
void require_order(const std::vector<int64_t>& order, int64_t experts);
// The model with the experts of one layer reordered, so that they are on other devices. Router and experts
// change together: the model computes the same values, and its parameters keep their shardings. `prefix` is the prefix
// of the layer's parameter names. ValueError if `order` is not a permutation of the experts.
AnyModel reorder_experts(const AnyModel& model, const std::string& prefix, const std::vector<int64_t>& order);

// ---- arrays ------------------------------------------------------------------------------------------------------

// The specification that splits an array of this shape as `spec` does along its last dimensions; a dimension that the
// axes do not divide stays whole.
PartitionSpec fitted_spec(const PartitionSpec& spec, const Shape& shape, const Mesh& mesh);
// The model with all parameters of at least as many dimensions as `spec` split by it, as optimize_sharding chose;
// the others are unchanged. TypeError if the model has no parameters yet.
AnyModel reshard(const AnyModel& model, const NamedSharding& devices, const PartitionSpec& spec);

}  // namespace capibara::tpu
