// Checks the addresses of loads in a region: sums of outer and inner indices that stay within the iteration's share.
#include "backends/cpu/loops/epilogue.h"

#include <algorithm>
#include <map>

namespace capibara::cpu {

namespace {

class Shares {
 public:
  Shares(const Function& region, std::span<const std::size_t> parameters, int64_t bytes)
      : region_(region), share_(bytes / region.extent) {
    std::size_t parameter = 0;
    for (const BufferInfo& buffer : region.buffers) {
      watched_.push_back(!buffer.local &&
                         std::find(parameters.begin(), parameters.end(), parameter) != parameters.end());
      if (!buffer.local) ++parameter;
    }
  }

  bool hold(const Block& block) {
    return std::all_of(block.begin(), block.end(), [&](const Statement& statement) {
      if (const auto* load = std::get_if<Load>(&statement.what)) return holds(*load);
      if (const auto* loop = std::get_if<For>(&statement.what)) {
        if (loop->parallel)
          outer_ = loop->index;
        else if (loop->extent_value == no_value)
          extents_[loop->index] = loop->extent;
        return hold(loop->body);
      }
      if (const auto* loop = std::get_if<While>(&statement.what)) return hold(loop->condition) && hold(loop->body);
      if (const auto* branch = std::get_if<Branch>(&statement.what)) return hold(branch->yes) && hold(branch->no);
      return !std::holds_alternative<Invoke>(statement.what) && !std::holds_alternative<Host>(statement.what);
    });
  }

 private:
  bool holds(const Load& load) const {
    if (!watched_[static_cast<std::size_t>(load.address.buffer)]) return true;
    const int64_t size = byte_size(region_.types[static_cast<std::size_t>(load.result)]);
    int64_t by_outer = 0, last = load.address.offset * size;
    if (last < 0) return false;
    for (const Term& term : load.address.terms) {
      if (term.index == outer_) {
        by_outer += term.factor * size;
        continue;
      }
      const auto extent = extents_.find(term.index);
      if (extent == extents_.end() || term.factor < 0) return false;
      last += std::max<int64_t>(0, extent->second - 1) * term.factor * size;
    }
    return by_outer == share_ && last + size <= share_;
  }

  const Function& region_;
  const int64_t share_;
  std::vector<bool> watched_;
  Value outer_ = no_value;
  std::map<Value, int64_t> extents_;
};

}  // namespace

bool reads_own_share(const Function& region, std::span<const std::size_t> parameters, int64_t bytes) {
  if (!region.parallel || region.extent <= 0 || bytes % region.extent != 0) return false;
  return Shares(region, parameters, bytes).hold(region.body);
}

}  // namespace capibara::cpu
