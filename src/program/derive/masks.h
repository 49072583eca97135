// Masks: flags for a list of arrays, or for a program's inputs or outputs.
#pragma once

#include <capibara/primitive.h>

#include <initializer_list>

namespace capibara {

using Mask = std::vector<bool>;

Mask defined_mask(std::span<const Array> arrays);
Mask mapped_mask(const BatchArgs& args);
Arrays where(std::span<const Array> arrays, const Mask& mask);  // those marked
Types where(std::span<const ArrayType> types, const Mask& mask);
Mask join(std::initializer_list<Mask> masks);
Mask part(const Mask& mask, std::size_t begin, std::size_t end);
Arrays part(std::span<const Array> arrays, std::size_t begin, std::size_t end);
void append(Arrays& to, std::span<const Array> from);
bool any(const Mask& mask);
std::size_t count(const Mask& mask);
Mask either(const Mask& a, const Mask& b);
Mask operator!(const Mask& mask);

// Puts computed values where the mask is set and empty handles elsewhere.
Arrays spread(std::span<const Array> values, const Mask& mask);
// 0 for marked ones, not_mapped for the others.
std::vector<int64_t> front_dims(const Mask& mapped);

}  // namespace capibara
