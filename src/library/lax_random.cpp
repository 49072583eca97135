// jax.lax: the backend's bit generator and its stateful uniform numbers.
#include <capibara/config.h>
#include <capibara/lax.h>
#include <capibara/primitive.h>

namespace capibara::jax::lax {

std::pair<Array, Array> rng_bit_generator(const Array& key, const Shape& shape, DType dtype,
                                          RandomAlgorithm algorithm) {
  static const Primitive p = primitive("rng_bit_generator");
  static constexpr const char* names[] = {"RNG_DEFAULT", "RNG_THREE_FRY", "RNG_PHILOX"};
  dtype = canonicalize(dtype, capibara::config().enable_x64);
  if (!is_unsigned(dtype) || is_sub_byte(dtype)) {
    throw TypeError(concat("rng_bit_generator: unsupported dtype ", dtype_name(dtype)));
  }
  Arrays out = capibara::bind(p, Arrays{key},
                              {{"algorithm", names[static_cast<int>(algorithm)]},
                               {"dtype", dtype},
                               {"out_sharding", Attr()},
                               {"shape", shape}});
  return {out[0], out[1]};
}

Array rng_uniform(const Array& low, const Array& high, const Shape& shape) {
  static const Primitive p = primitive("rng_uniform");
  return bind1(p, {low, high}, {{"shape", shape}});
}

}  // namespace capibara::jax::lax
