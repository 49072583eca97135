// jax.nn: softmax, logarithms of sums of exponentials, standardisation and one-hot codes.
#pragma once

#include <capibara/array.h>
#include <capibara/numpy/axis.h>

#include <optional>
#include <string>
#include <utility>

namespace capibara::jax::nn {

struct SoftmaxOptions {
  numpy::Axis axis = -1;
  std::optional<Array> where = {};  // elements to include; the others become 0, or minus infinity in log_softmax
};
// exp(x) divided by its sum along axes.
Array softmax(const Array& x, const SoftmaxOptions& options = {});
// The logarithm of softmax.
Array log_softmax(const Array& x, const SoftmaxOptions& options = {});

struct LogsumexpOptions {
  numpy::Axis axis = {};
  std::optional<Array> b = {};  // factors of the exponentials
  bool keepdims = false;
  std::optional<Array> where = {};
};
// log(sum(b exp(a))) along axes; with return_sign, of the absolute sum, and its sign. NaN where that sum is negative.
Array logsumexp(const Array& a, const LogsumexpOptions& options = {});
// log(|sum(b exp(a))|) and the sign of the sum: logsumexp(return_sign=True).
std::pair<Array, Array> logsumexp_with_sign(const Array& a, const LogsumexpOptions& options = {});

struct LogmeanexpOptions {
  numpy::Axis axis = {};
  std::optional<Array> where = {};
  bool keepdims = false;
};
// log(mean(exp(x))) along axes.
Array logmeanexp(const Array& x, const LogmeanexpOptions& options = {});

struct StandardizeOptions {
  numpy::Axis axis = -1;
  std::optional<Array> mean = {}, variance = {};  // computed if not given
  Array epsilon = 1e-5;
  std::optional<Array> where = {};
  std::string algorithm = "fast";  // E[x^2] - E[x]^2; or "stable": E[(x - E[x])^2]
};
// (x - mean) / sqrt(variance + epsilon).
Array standardize(const Array& x, const StandardizeOptions& options = {});

struct OneHotOptions {
  std::optional<DType> dtype = {};
  int64_t axis = -1;           // position of the new axis
  std::string axis_name = {};  // or a mapped axis of size num_classes instead
};
// 1 where the class along a new axis is x, else 0; axis may name a mapped axis of that size.
Array one_hot(const Array& x, int64_t num_classes, const OneHotOptions& options = {});

}  // namespace capibara::jax::nn
