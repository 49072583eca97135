// Broadcasting of operands, and the list of elementwise kernels.
#include "backends/reference/elementwise.h"

#include <cstring>

namespace capibara::reference {

namespace {

// Copies runs of the last dimension: whole where it is kept, one repeated element where it is broadcast.
void expand_bytes(const std::byte* source, std::span<const int64_t> from, std::span<const int64_t> to,
                  std::size_t element, std::byte* target) {
  const std::size_t rank = to.size();
  Ints strides = row_major_strides(from);
  for (std::size_t i = 0; i < rank; ++i) {
    if (from[i] == 1) strides[i] = 0;
  }
  const std::size_t run = static_cast<std::size_t>(to[rank - 1]);
  const bool contiguous = strides[rank - 1] != 0 || run == 1;
  Ints index(rank - 1, 0);
  do {
    int64_t offset = 0;
    for (std::size_t i = 0; i + 1 < rank; ++i) offset += index[i] * strides[i];
    const std::byte* start = source + static_cast<std::size_t>(offset) * element;
    if (contiguous) {
      std::memcpy(target, start, run * element);
    } else {
      for (std::size_t i = 0; i < run; ++i) std::memcpy(target + i * element, start, element);
    }
    target += run * element;
  } while (next_index(index, to.first(rank - 1)));
}

}  // namespace

BroadcastOperand::BroadcastOperand(const Array& x, const Shape& shape)
    : dtype_(x.dtype()), data_(x.raw_data()), count_(x.size()), step_(1) {
  if (x.shape() == shape) return;
  if (count_ == 1) {
    step_ = 0;
    return;
  }
  count_ = element_count(shape);
  if (count_ == 0) return;
  const std::size_t element = static_cast<std::size_t>(storage_size(dtype_));
  expanded_ = std::make_unique<std::byte[]>(static_cast<std::size_t>(count_) * element);
  expand_bytes(data_, x.shape(), shape, element, expanded_.get());
  data_ = expanded_.get();
}

KernelList elementwise_kernels() {
  KernelList kernels;
  for (KernelList (*part)() :
       {arithmetic_kernels, formula_kernels, comparison_kernels, bit_kernels, conversion_kernels}) {
    for (const KernelEntry& entry : part()) kernels.push_back(entry);
  }
  return kernels;
}

}  // namespace capibara::reference
