// The sharding requested for the result of the library function on this thread.
#include "lax/sharding/out_sharding.h"

#include <utility>

namespace capibara {

namespace {

Sharding& wanted() {
  thread_local Sharding own;
  return own;
}

}  // namespace

OutShardingScope::OutShardingScope(Sharding requested) : before_(std::exchange(wanted(), std::move(requested))) {}
OutShardingScope::~OutShardingScope() { wanted() = std::move(before_); }

const Sharding& out_sharding_in_scope() { return wanted(); }

Sharding permuted_out_sharding(const std::vector<int64_t>& order) {
  if (!wanted().is_explicit() || wanted().spec().dims.size() > order.size()) return {};
  PartitionSpec result = wanted().spec();
  result.dims.resize(order.size());
  PartitionSpec spec = result;
  for (std::size_t i = 0; i < order.size(); ++i) spec.dims[i] = result.dims[static_cast<std::size_t>(order[i])];
  return Sharding::explicit_over(wanted().mesh(), std::move(spec));
}

Sharding taken_out_sharding(std::size_t rank) {
  if (!wanted().is_explicit() || wanted().spec().dims.size() > rank) return {};
  const Sharding requested = std::exchange(wanted(), Sharding());
  PartitionSpec spec = requested.spec();
  spec.dims.resize(rank);
  return Sharding::explicit_over(requested.mesh(), std::move(spec));
}

}  // namespace capibara
