// Explicit types of gather and scatter: batch dimensions and whole slices may be split, indexed dimensions may not.
#include <algorithm>

#include "lax/sharding/splits.h"

namespace capibara {

namespace {

bool lists(const Ints& dims, std::size_t dim) {
  return std::find(dims.begin(), dims.end(), static_cast<int64_t>(dim)) != dims.end();
}

bool agree(std::initializer_list<const AxisList*> entries) {
  const AxisList* known = nullptr;
  for (const AxisList* axes : entries) {
    if (axes->empty()) continue;
    if (known && *known != *axes) return false;
    known = axes;
  }
  return true;
}

const AxisList& first_of(const AxisList& a, const AxisList& b) { return a.empty() ? b : a; }

const AxisList& axes_at(const ArrayType& type, int64_t dim) { return split_axes(type, static_cast<std::size_t>(dim)); }

// The axes of a gather's result; nothing where operand and indices do not say them alone.
std::optional<std::vector<AxisList>> gathered(const SplitArgs& args) {
  const ArrayType &x = args.operands[0], &indices = args.operands[1];
  const auto& numbers = args.attrs.get<GatherDimensionNumbers>("dimension_numbers");
  const Ints& sizes = args.attrs.ints("slice_sizes");
  for (int64_t d : numbers.start_index_map) {
    const auto at = static_cast<std::size_t>(d);
    if (sizes[at] != x.shape[at] && !axes_at(x, d).empty()) return std::nullopt;
  }
  std::vector<AxisList> of_indices;
  for (std::size_t d = 0; d < indices.shape.size(); ++d) {
    of_indices.push_back(split_axes(indices, d));
    if (!of_indices.back().empty() && !lists(numbers.start_indices_batching_dims, d)) return std::nullopt;
  }
  for (std::size_t i = 0; i < numbers.operand_batching_dims.size(); ++i) {
    AxisList& own = of_indices[static_cast<std::size_t>(numbers.start_indices_batching_dims[i])];
    const AxisList& other = axes_at(x, numbers.operand_batching_dims[i]);
    if (!agree({&own, &other})) return std::nullopt;
    own = first_of(own, other);
  }
  std::vector<AxisList> of_slices, out;
  for (std::size_t d = 0; d < x.shape.size(); ++d) {
    if (!lists(numbers.collapsed_slice_dims, d) && !lists(numbers.operand_batching_dims, d))
      of_slices.push_back(split_axes(x, d));
  }
  auto slice = of_slices.begin();
  auto index = of_indices.begin();
  for (std::size_t d = 0; d < args.results[0].shape.size(); ++d)
    out.push_back(lists(numbers.offset_dims, d) ? *slice++ : *index++);
  return out;
}

// The dimension of a scatter's updates that each batch dimension of its indices is.
Ints update_batch_dims(const ScatterDimensionNumbers& numbers, const ArrayType& updates) {
  Ints scattered, out;
  for (std::size_t d = 0; d < updates.shape.size(); ++d) {
    if (!lists(numbers.update_window_dims, d)) scattered.push_back(static_cast<int64_t>(d));
  }
  for (int64_t d : numbers.scatter_indices_batching_dims) out.push_back(scattered[static_cast<std::size_t>(d)]);
  return out;
}

std::optional<std::vector<AxisList>> scattered(const SplitArgs& args) {
  const ArrayType &x = args.operands[0], &indices = args.operands[1], &updates = args.operands[2];
  const auto& numbers = args.attrs.get<ScatterDimensionNumbers>("dimension_numbers");
  std::vector<AxisList> out = spec_of(x).dims;
  Ints windows;
  for (std::size_t d = 0; d < x.shape.size(); ++d) {
    const bool inserted = lists(numbers.inserted_window_dims, d);
    if (inserted && !out[d].empty()) return std::nullopt;
    if (!inserted && !lists(numbers.operand_batching_dims, d)) windows.push_back(static_cast<int64_t>(d));
  }
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const auto of_updates = static_cast<std::size_t>(numbers.update_window_dims[i]),
               at = static_cast<std::size_t>(windows[i]);
    const AxisList& own = split_axes(updates, of_updates);
    const bool whole = updates.shape[of_updates] == x.shape[at] && own == out[at];
    if (!whole && !(own.empty() && out[at].empty())) return std::nullopt;
  }
  const Ints batch = update_batch_dims(numbers, updates);
  for (std::size_t d = 0; d < updates.shape.size(); ++d) {
    const bool free = !lists(batch, d) && !lists(numbers.update_window_dims, d);
    if (free && !split_axes(updates, d).empty()) return std::nullopt;
  }
  for (std::size_t d = 0; d < indices.shape.size(); ++d) {
    if (!lists(numbers.scatter_indices_batching_dims, d) && !split_axes(indices, d).empty()) return std::nullopt;
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    AxisList& own = out[static_cast<std::size_t>(numbers.operand_batching_dims[i])];
    const AxisList& of_indices = axes_at(indices, numbers.scatter_indices_batching_dims[i]);
    const AxisList& of_updates = axes_at(updates, batch[i]);
    if (!agree({&own, &of_indices, &of_updates})) return std::nullopt;
    own = first_of(own, first_of(of_indices, of_updates));
  }
  return out;
}

bool nothing_split(const SplitArgs& args) {
  return std::all_of(args.operands.begin(), args.operands.end(), splits_nothing);
}

}  // namespace

Splits gather_splits(const SplitArgs& args) {
  refuse_partial_sums(args);
  if (nothing_split(args)) return {PartitionSpec{}};
  if (std::optional<std::vector<AxisList>> dims = gathered(args)) return {PartitionSpec{std::move(*dims), {}, {}}};
  throw ShardingTypeError(concat("Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather "
                                 "indexing as out sharding could not be resolved unambiguously (or would require "
                                 "collectives on inputs). Got operand=",
                                 shaped_text(args.operands[0]), ", indices=", shaped_text(args.operands[1])));
}

Splits scatter_splits(const SplitArgs& args) {
  refuse_partial_sums(args);
  if (nothing_split(args)) return {PartitionSpec{}};
  if (std::optional<std::vector<AxisList>> dims = scattered(args)) return {PartitionSpec{std::move(*dims), {}, {}}};
  throw ShardingTypeError(
      concat("Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for the "
             "scatter update as out sharding could not be resolved unambiguously (or would require "
             "collectives on inputs). Got operand=",
             shaped_text(args.operands[0]), ", indices=", shaped_text(args.operands[1]),
             ", updates=", shaped_text(args.operands[2])));
}

}  // namespace capibara
