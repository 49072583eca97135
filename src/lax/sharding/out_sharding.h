// The argument `out_sharding` of the library function that runs on this thread: requested by the operation that makes
// its result.
#pragma once

#include <capibara/sharding.h>

namespace capibara {

class OutShardingScope {
 public:
  explicit OutShardingScope(Sharding wanted);
  ~OutShardingScope();
  OutShardingScope(const OutShardingScope&) = delete;
  OutShardingScope& operator=(const OutShardingScope&) = delete;

 private:
  Sharding before_;
};

// The requested sharding; empty if no function requests one.
const Sharding& out_sharding_in_scope();
// The same with dimension i of a product as dimension order[i] of the result.
Sharding permuted_out_sharding(const std::vector<int64_t>& order);
// The sharding requested for a result of this rank, whose last dimensions need no entry, once: later operations
// get no request.
Sharding taken_out_sharding(std::size_t rank);

}  // namespace capibara
