// The argument `out_sharding` of the library function that runs on this thread: asked for by the operation that makes
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

// What is asked for; nothing where no function asks.
const Sharding& out_sharding_in_scope();
// The same where dimension i of a product is dimension order[i] of the result.
Sharding permuted_out_sharding(const std::vector<int64_t>& order);
// What is asked for a result of this rank, whose last dimensions need no entry, once: the operations that follow ask
// for nothing.
Sharding taken_out_sharding(std::size_t rank);

}  // namespace capibara
