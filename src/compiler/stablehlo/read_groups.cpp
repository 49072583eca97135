// Reads which processes take part in an exchange: replicas, partitions, or both.
#include "compiler/stablehlo/read_groups.h"

#include <capibara/error.h>

namespace capibara::stablehlo {

int64_t channel_of(const Operation& operation) {
  return field_integer(operation.attributes.find("channel_handle"), "handle", 0);
}

std::vector<Ints> id_groups(const Operation& operation, int64_t count) {
  const Attribute attribute = operation.attributes.find("replica_groups");
  std::vector<Ints> groups;
  if (const auto* dense = attribute.as<DenseElements>(); dense && dense->type.dims().size() == 2) {
    const Ints values = integers_attribute(operation, "replica_groups");
    const auto width = static_cast<std::size_t>(dense->type.dims()[1]);
    for (std::size_t at = 0; width != 0 && at < values.size(); at += width) {
      Ints row;
      for (std::size_t i = 0; i < width; ++i) {
        if (values[at + i] >= 0) row.push_back(values[at + i]);
      }
      groups.push_back(std::move(row));
    }
  }
  if (attribute.as<DialectAttribute>()) {
    throw UnsupportedError(concat(place_of(operation), ": groups along axes of a mesh are supported inside of ",
                                  "sdy.manual_computation only, got ", print_attribute(attribute)));
  }
  if (groups.empty()) {
    groups.emplace_back();
    for (int64_t i = 0; i < count; ++i) groups[0].push_back(i);
  }
  return groups;
}

std::vector<Group> process_groups(const Operation& operation, const Grid& grid) {
  const bool channel = channel_of(operation) > 0;
  const bool flat = flag_attribute(operation, "use_global_device_ids");
  const bool reduces = operation.name == "stablehlo.all_gather" || operation.name == "stablehlo.all_reduce" ||
                       operation.name == "stablehlo.reduce_scatter";
  std::vector<Group> groups;
  if (flat) {
    for (const Ints& ids : id_groups(operation, grid.replicas * grid.partitions)) {
      Group& group = groups.emplace_back();
      for (int64_t id : ids) group.push_back({id / grid.partitions, id % grid.partitions});
    }
  } else if (!channel) {  // across replicas
    for (const Ints& ids : id_groups(operation, grid.replicas)) {
      for (int64_t p = 0; p < grid.partitions; ++p) {
        Group& group = groups.emplace_back();
        for (int64_t id : ids) group.push_back({id, p});
      }
    }
  } else if (reduces) {  // across replicas and partitions
    for (const Ints& ids : id_groups(operation, grid.replicas)) {
      Group& group = groups.emplace_back();
      for (int64_t p = 0; p < grid.partitions; ++p) {
        for (int64_t id : ids) group.push_back({id, p});
      }
    }
  } else {  // across partitions
    for (const Ints& ids : id_groups(operation, grid.partitions)) {
      for (int64_t r = 0; r < grid.replicas; ++r) {
        Group& group = groups.emplace_back();
        for (int64_t id : ids) group.push_back({r, id});
      }
    }
  }
  return groups;
}

}  // namespace capibara::stablehlo
