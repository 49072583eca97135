// Masks, and selecting arrays by them.
#include "program/derive/masks.h"

#include <algorithm>

namespace capibara {

Mask defined_mask(std::span<const Array> arrays) {
  Mask mask;
  for (const Array& array : arrays) mask.push_back(array.defined());
  return mask;
}

Mask mapped_mask(const BatchArgs& args) {
  Mask mask;
  for (int64_t dim : args.dims) mask.push_back(dim != not_mapped);
  return mask;
}

Arrays where(std::span<const Array> arrays, const Mask& mask) {
  Arrays chosen;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (mask[i]) chosen.push_back(arrays[i]);
  }
  return chosen;
}

Types where(std::span<const ArrayType> types, const Mask& mask) {
  Types chosen;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (mask[i]) chosen.push_back(types[i]);
  }
  return chosen;
}

Mask join(std::initializer_list<Mask> masks) {
  Mask joined;
  for (const Mask& mask : masks) joined.insert(joined.end(), mask.begin(), mask.end());
  return joined;
}

Mask part(const Mask& mask, std::size_t begin, std::size_t end) {
  return Mask(mask.begin() + static_cast<std::ptrdiff_t>(begin), mask.begin() + static_cast<std::ptrdiff_t>(end));
}

Arrays part(std::span<const Array> arrays, std::size_t begin, std::size_t end) {
  return Arrays(arrays.begin() + static_cast<std::ptrdiff_t>(begin), arrays.begin() + static_cast<std::ptrdiff_t>(end));
}

void append(Arrays& to, std::span<const Array> from) { to.insert(to.end(), from.begin(), from.end()); }

bool any(const Mask& mask) { return std::find(mask.begin(), mask.end(), true) != mask.end(); }

std::size_t count(const Mask& mask) { return static_cast<std::size_t>(std::count(mask.begin(), mask.end(), true)); }

Mask either(const Mask& a, const Mask& b) {
  Mask result = a;
  for (std::size_t i = 0; i < b.size(); ++i) result[i] = a[i] || b[i];
  return result;
}

Mask operator!(const Mask& mask) {
  Mask result = mask;
  result.flip();
  return result;
}

Arrays spread(std::span<const Array> values, const Mask& mask) {
  Arrays result(mask.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i]) result[i] = values[next++];
  }
  return result;
}

std::vector<int64_t> front_dims(const Mask& mapped) {
  std::vector<int64_t> dims;
  for (bool is_mapped : mapped) dims.push_back(is_mapped ? 0 : not_mapped);
  return dims;
}

}  // namespace capibara
