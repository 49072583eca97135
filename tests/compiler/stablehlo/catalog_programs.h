// One-equation programs from the samples of the catalog, with inputs, for the tests of StableHLO text.
#pragma once

#include <capibara/primitive.h>

#include "core/array/element.h"
#include "program/trace/stage.h"

#include <cmath>
#include <random>

namespace capibara::catalog_programs {

struct Case {
  std::string name;  // primitive, dtype, number of the sample
  Primitive primitive;
  DType dtype;
  bool first;  // first sample in this dtype
  Program program;
  Arrays inputs;
};

inline Array random_array(const ArrayType& type, const Sample& sample, std::mt19937& random) {
  std::uniform_real_distribution<double> real(sample.low, sample.high);
  std::uniform_int_distribution<int64_t> index(0, 2);
  const bool indices = sample.integers_are_indices && is_integer(type.dtype);
  std::vector<double> values(static_cast<std::size_t>(type.size()));
  for (double& value : values) {
    value = indices ? static_cast<double>(index(random)) : real(random);
    if (!is_inexact(type.dtype)) value = std::floor(value);
    if (is_unsigned(type.dtype)) value = std::abs(value);
  }
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(type.size() * storage_size(type.dtype)));
  convert_elements(DType::float64, values.data(), type.dtype, buffer.mutable_data(), type.size());
  return Array::from_buffer(type, buffer);
}

inline bool holds_numbers(const Sample& sample) {
  for (const ArrayType& type : sample.inputs) {
    if (!is_numeric(type.dtype) && !is_bool(type.dtype)) return false;
  }
  return true;
}

// Calls visit(case) for the samples of every primitive in each of its dtypes.
template <class Visit>
void for_each_case(std::span<const DType> dtypes, Visit&& visit) {
  for (const Primitive& primitive : catalog()) {
    if (!primitive->samples) continue;
    for (DType dtype : dtypes) {
      const std::vector<DType>& own = primitive->dtypes;
      if (!own.empty() && std::find(own.begin(), own.end(), dtype) == own.end()) continue;
      std::mt19937 random(7);
      int number = 0;
      for (const Sample& sample : primitive->samples(dtype)) {
        if (!holds_numbers(sample)) continue;
        Case one;
        one.name = concat(primitive.name(), "_", dtype_name(dtype), "_", number++);
        one.primitive = primitive;
        one.dtype = dtype;
        one.first = number == 1;
        one.program = stage([&](std::span<const Array> in) { return capibara::bind(primitive, in, sample.attrs); },
                            sample.inputs, "f")
                          .program;
        for (const ArrayType& type : sample.inputs) one.inputs.push_back(random_array(type, sample, random));
        visit(one);
      }
    }
  }
}

}  // namespace capibara::catalog_programs
