// Measured loads of devices, and what follows from them: experts that change places, and arrays that are split anew.
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

// The load of each device, [rows, columns], of its amount of work, tokens or seconds: the share of its room, which is
// `headroom` times the mean. Devices with equal work have 1 / headroom, 0.8, which detect_hotspots lets pass.
// ValueError for amounts that are negative or not as many as devices.
Array device_load(const std::vector<double>& amounts, int64_t rows, int64_t columns, double headroom = 1.25);
// Tokens that each of `devices` computes for, which have equal numbers of consecutive experts, of a router's counts
// [experts]. ValueError where the devices do not divide the experts.
std::vector<double> tokens_by_device(const Array& counts, int64_t devices);
// Seconds that a function takes for the part of an array on each device, one after another: the shortest of so many
// calls, after one that is not measured.
std::vector<double> device_seconds(const std::function<Array(const Array& part)>& function, const Array& array,
                                   int repeats = 3);

// ---- experts -----------------------------------------------------------------------------------------------------

// An order of experts by which devices have nearly equal work, each as many experts as before: order[place] is the
// number of the expert. The expert with most tokens is placed first, always on the device with least.
std::vector<int64_t> balance_experts(const Array& counts, int64_t devices);
// The dimension of experts of each parameter whose name begins with `prefix`. Those are the dimensions with the logical
// axis "expert", and the last one of the router, whose name ends in router, router.weight or router.kernel. ValueError
// where there is no router or no expert, or where their numbers differ.
std::map<std::string, std::size_t> expert_dimensions(const ParameterTypes& types, const LogicalAxes& axes,
                                                     const std::string& prefix);
// ValueError where `order` does not have each number below `experts` once.
void require_order(const std::vector<int64_t>& order, int64_t experts);
// The model with the experts of one layer in another order, so that they are on other devices. Router and experts
// change together: the model computes what it did, and its parameters stay split as they were. `prefix` is what the
// names of the layer's parameters begin with. ValueError where `order` is no order of the experts.
AnyModel reorder_experts(const AnyModel& model, const std::string& prefix, const std::vector<int64_t>& order);

// ---- arrays ------------------------------------------------------------------------------------------------------

// The specification of an array of this shape that is split as `spec` says along its last dimensions: what the axes
// there do not divide stays whole.
PartitionSpec fitted_spec(const PartitionSpec& spec, const Shape& shape, const Mesh& mesh);
// The model with its parameters of as many dimensions as `spec` or more split as it says, as optimize_sharding chose;
// others are where they were. TypeError where the model has no parameters yet.
AnyModel reshard(const AnyModel& model, const NamedSharding& devices, const PartitionSpec& spec);

}  // namespace capibara::tpu
