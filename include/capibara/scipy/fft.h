// jax.scipy.fft: discrete cosine transforms of type 2 and their inverses.
#pragma once

#include <capibara/lax.h>

#include <optional>
#include <string>

namespace capibara::jax::scipy::fft {

struct DctOptions {
  int64_t type = 2;
  std::optional<int64_t> n;  // the transform length: the input is truncated or padded with zeros
  int64_t axis = -1;
  std::string norm;  // "", "backward" or "ortho"
};
// The discrete cosine transform of type 2 along one axis.
Array dct(const Array& x, const DctOptions& options = {});
// The inverse of dct.
Array idct(const Array& x, const DctOptions& options = {});

struct DctnOptions {
  int64_t type = 2;
  std::optional<Ints> s;
  std::optional<Ints> axes;  // by default the last ones, as many as there are lengths
  std::string norm;
};
// The discrete cosine transform of type 2 along several axes.
Array dctn(const Array& x, const DctnOptions& options = {});
// The inverse of dctn.
Array idctn(const Array& x, const DctnOptions& options = {});

}  // namespace capibara::jax::scipy::fft
