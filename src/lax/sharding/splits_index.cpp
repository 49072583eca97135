// Explicit types of gather and scatter: batch dimensions and whole slices may be split, indexed dimensions may not.
#include <algorithm>

#include "lax/shape/shape.h"
#include "lax/sharding/splits.h"

namespace capibara {

namespace {

using Dims = std::optional<std::vector<AxisList>>;  // of a result; empty if operands alone do not determine them

// The common axes of the dimensions that are split; empty if they differ.
std::optional<AxisList> agreed(std::initializer_list<const AxisList*> entries) {
  AxisList known;
  for (const AxisList* axes : entries) {
    if (known.empty()) known = *axes;
    if (!axes->empty() && known != *axes) return std::nullopt;
  }
  return known;
}

Ints joined_dims(Ints a, const Ints& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Dims gathered(const SplitArgs& args) {
  const ArrayType &x = args.operands[0], &indices = args.operands[1];
  const auto& numbers = args.attrs.get<GatherDimensionNumbers>("dimension_numbers");
  const Ints &sizes = args.attrs.ints("slice_sizes"), &batching = numbers.start_indices_batching_dims;
  for (int64_t d : numbers.start_index_map) {
    if (at(sizes, d) != at(x.shape, d) && !axes_at(x, d).empty()) return std::nullopt;
  }
  if (splits_any(indices, other_dims(indices.rank(), batching))) return std::nullopt;
  std::vector<AxisList> counts = spec_of(indices).dims;
  for (std::size_t i = 0; i < numbers.operand_batching_dims.size(); ++i) {
    AxisList& own = counts[static_cast<std::size_t>(batching[i])];
    const std::optional<AxisList> both = agreed({&own, &axes_at(x, numbers.operand_batching_dims[i])});
    if (!both) return std::nullopt;
    own = *both;
  }
  const Ints absent = joined_dims(numbers.collapsed_slice_dims, numbers.operand_batching_dims);
  const std::vector<AxisList> slices = axes_of(x, other_dims(x.rank(), absent));
  std::vector<AxisList> out;
  auto slice = slices.begin(), count = counts.cbegin();
  for (int64_t d : range(args.results[0].rank())) out.push_back(contains(numbers.offset_dims, d) ? *slice++ : *count++);
  return out;
}

Dims scattered(const SplitArgs& args) {
  const ArrayType &x = args.operands[0], &indices = args.operands[1], &updates = args.operands[2];
  const auto& numbers = args.attrs.get<ScatterDimensionNumbers>("dimension_numbers");
  const Ints& batching = numbers.scatter_indices_batching_dims;
  if (splits_any(x, numbers.inserted_window_dims)) return std::nullopt;
  const Ints absent = joined_dims(numbers.inserted_window_dims, numbers.operand_batching_dims);
  const Ints windows = other_dims(x.rank(), absent);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const int64_t of_updates = numbers.update_window_dims[i];
    const AxisList &own = axes_at(updates, of_updates), &of_x = axes_at(x, windows[i]);
    const bool whole = at(updates.shape, of_updates) == at(x.shape, windows[i]) && own == of_x;
    if (!whole && !(own.empty() && of_x.empty())) return std::nullopt;
  }
  // The dimensions of updates that count windows, and those of them that are batch dimensions of the indices.
  const Ints counts = other_dims(updates.rank(), numbers.update_window_dims);
  Ints batch;
  for (int64_t d : batching) batch.push_back(at(counts, d));
  if (splits_any(updates, other_dims(updates.rank(), joined_dims(batch, numbers.update_window_dims))))
    return std::nullopt;
  if (splits_any(indices, other_dims(indices.rank(), batching))) return std::nullopt;
  std::vector<AxisList> out = spec_of(x).dims;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    AxisList& own = out[static_cast<std::size_t>(numbers.operand_batching_dims[i])];
    const std::optional<AxisList> all = agreed({&own, &axes_at(indices, batching[i]), &axes_at(updates, batch[i])});
    if (!all) return std::nullopt;
    own = *all;
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
  if (Dims dims = gathered(args)) return {PartitionSpec{std::move(*dims), {}, {}}};
  refuse_sharding(
      "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather indexing as out sharding could "
      "not be resolved unambiguously (or would require collectives on inputs). Got operand=",
      shaped_text(args.operands[0]), ", indices=", shaped_text(args.operands[1]));
}

Splits scatter_splits(const SplitArgs& args) {
  refuse_partial_sums(args);
  if (nothing_split(args)) return {PartitionSpec{}};
  if (Dims dims = scattered(args)) return {PartitionSpec{std::move(*dims), {}, {}}};
  refuse_sharding(
      "Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for the scatter update as out "
      "sharding could not be resolved unambiguously (or would require collectives on inputs). Got operand=",
      shaped_text(args.operands[0]), ", indices=", shaped_text(args.operands[1]),
      ", updates=", shaped_text(args.operands[2]));
}

}  // namespace capibara
