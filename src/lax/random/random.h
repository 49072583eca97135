// The implementations of keys, shared by the records, the lowering and the kernels of the random primitives.
#pragma once

#include <capibara/primitive.h>

#include <array>
#include <string_view>

namespace capibara {

// The names of keys of one dtype: `name` is what users write, `tag` what programs print.
struct KeyImplementation {
  DType dtype;
  std::string_view name;
  std::string_view tag;
};
inline constexpr std::array<KeyImplementation, 3> key_implementations{{
    {DType::key_fry, "threefry2x32", "fry"},
    {DType::key_rbg, "rbg", "rbg"},
    {DType::key_unsafe_rbg, "unsafe_rbg", "urbg"},
}};
const KeyImplementation& key_implementation(DType dtype);           // InternalError for other dtypes
const KeyImplementation& key_implementation(std::string_view tag);  // of an attribute `impl`

// The random primitives on words: uint32 arrays whose last dimension holds the words of a key. With several keys, rbg
// draws all bits from the first key, as jax's batching rule does.
namespace key_words_of {
Array seed(const KeyImplementation& implementation, const Array& seeds);
Array split(const KeyImplementation& implementation, const Array& words, const Shape& shape);
Array fold_in(const KeyImplementation& implementation, const Array& words, const Array& data);
Array bits(const KeyImplementation& implementation, const Array& words, int64_t bit_width, const Shape& shape);
}  // namespace key_words_of

inline const std::vector<DType> key_dtypes = {DType::key_fry, DType::key_rbg, DType::key_unsafe_rbg};
void require_keys(const std::string& op, const ArrayType& type);  // TypeError if they are not keys

PrimitiveRecord gamma_record();
// Gamma variates, one per element of `a`, from keys whose shape is a prefix of a's.
Array draw_gamma(const Array& keys, const Array& a, bool log_space);

}  // namespace capibara
