// Reductions of the exchange: lanes of one process first, then processes; and the agreement on programs.
#include <bit>
#include <cstring>

#include <capibara/distributed.h>

#include "core/processes/mpi_exchange.h"
#include "core/processes/reduce.h"
#include "core/runtime/digest.h"

namespace capibara::processes {

namespace {

// The signature of program comparisons: a process that exchanges values instead is named in the error.
constexpr uint64_t agreement_signature = 1;

uint64_t sign_reduction(const Call& call, const char* name, const Reduce& what) {
  if (!call.checked) return 0;
  const Digest made = digest(concat(call.operation, '\n', name, static_cast<int>(what.kind), '\n',
                                    to_string(what.dtype), '\n', what.count, '\n', what.lanes));
  uint64_t number = 0;
  std::memcpy(&number, made.bytes.data(), sizeof number);
  return number | 1;
}

void check_reduction(const Call& call, const Reduce& what) {
  if (is_key(what.dtype) || what.dtype == DType::token || what.dtype == DType::float0) {
    throw TypeError(concat(call.operation, ": numbers are expected, got ", to_string(what.dtype)));
  }
  if (what.lanes < 1 || what.count < 0)
    throw ValueError(concat(call.operation, ": at least one lane is expected, got ", what.lanes));
}

std::size_t bytes_of(DType dtype, int64_t count) { return static_cast<std::size_t>(storage_size(dtype) * count); }

std::vector<const std::byte*> blocks_of(const std::byte* first, std::size_t bytes, std::size_t count) {
  std::vector<const std::byte*> blocks;
  for (std::size_t i = 0; i < count; ++i) blocks.push_back(first + i * bytes);
  return blocks;
}

// A power of two of lanes is a subtree, and only its sum is sent; else every lane is sent, to keep one order of sums.
void reduce_lanes(Channel& channel, const Reduce& what, const std::byte* from, std::byte* to, bool scatter) {
  const DType partial = partial_dtype(what.dtype);
  const std::size_t bytes = bytes_of(what.dtype, what.count);
  const auto lanes = static_cast<std::size_t>(what.lanes);
  if (lanes == 1) {
    return scatter ? channel.reduce_scatter(what, what.dtype, from, to) : channel.reduce(what, what.dtype, from, to);
  }
  if (std::has_single_bit(lanes)) {
    std::vector<std::byte> sum(bytes_of(partial, what.count));
    combine_blocks(what.kind, what.dtype, blocks_of(from, bytes, lanes), what.count, partial, sum.data());
    return scatter ? channel.reduce_scatter(what, partial, sum.data(), to)
                   : channel.reduce(what, partial, sum.data(), to);
  }
  const auto positions = lanes * static_cast<std::size_t>(channel.size());
  std::vector<std::byte> all(bytes * positions), whole(bytes);
  channel.all_gather(from, all.data(), bytes * lanes);
  combine_blocks(what.kind, what.dtype, blocks_of(all.data(), bytes, positions), what.count, what.dtype,
                 scatter ? whole.data() : to);
  const std::size_t part = bytes / static_cast<std::size_t>(channel.size());
  if (scatter) std::memcpy(to, whole.data() + part * static_cast<std::size_t>(channel.position()), part);
}

}  // namespace

Pending MpiExchange::reduce(const Call& call, const Reduce& what, const std::byte* from, std::byte* to) {
  check_reduction(call, what);
  return post(call, sign_reduction(call, "reduce", what),
              [=](Channel& channel) { reduce_lanes(channel, what, from, to, false); });
}

Pending MpiExchange::reduce_scatter(const Call& call, const Reduce& what, const std::byte* from, std::byte* to) {
  check_reduction(call, what);
  const auto size = static_cast<int64_t>(members_of(call).size());
  if (what.count % size != 0) {
    throw ValueError(
        concat(call.operation, ": ", what.count, " elements cannot be divided among ", size, " processes"));
  }
  return post(call, sign_reduction(call, "reduce_scatter", what),
              [=](Channel& channel) { reduce_lanes(channel, what, from, to, true); });
}

void MpiExchange::agree(const Call& call, const std::string& fingerprint, const std::string& description) {
  const Digest own = digest(fingerprint);
  const std::size_t size = sizeof own.bytes, count = members_of(call).size();
  // Descriptions are only read if the fingerprints differ: each process's is in its report.
  Call named = call;
  named.operation = description;
  auto all = std::make_shared<std::vector<std::byte>>(size * (count + 1));
  std::memcpy(all->data() + size * count, own.bytes.data(), size);
  named.owner = all;
  const std::byte* from = all->data() + size * count;
  std::byte* to = all->data();
  post(named, agreement_signature, [=](Channel& channel) { channel.all_gather(from, to, size); }).wait();
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(all->data() + i * size, own.bytes.data(), size) == 0) continue;
    const int process = members_of(call)[i];
    const std::string text =
        concat(watch_ ? watch_->name_of(process) : concat("process ", process),
               " runs another program: ", watch_ ? watch_->last_call_of(process) : "unknown", "; process ", process_id_,
               " runs ", description, call.line.empty() ? "" : concat(" (", call.line, ")"),
               "\nHint: all processes must trace the same functions with the same shapes");
    if (watch_) watch_->fail(text, process);
    throw DistributedError(text);
  }
}

}  // namespace capibara::processes
