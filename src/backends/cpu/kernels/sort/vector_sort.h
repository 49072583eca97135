// Sorting of unsigned keys in vector registers, on machines with the instructions for it.
#pragma once

#include <cstdint>

namespace capibara::cpu {

// AVX-512: without it, keys are sorted by their digits.
bool has_vector_sort();

// Sorts keys in place; `scratch` has the same size. Uses several threads for many keys.
void vector_sort(uint32_t* keys, uint32_t* scratch, int64_t count);
void vector_sort(uint64_t* keys, uint64_t* scratch, int64_t count);

}  // namespace capibara::cpu
