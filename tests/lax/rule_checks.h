// Checks for every record of a family: its rules against each other on its own samples.
#pragma once

#include <capibara/config.h>
#include <capibara/lax.h>
#include <capibara/primitive.h>

#include "core/array/element.h"
#include "lax/families.h"
#include "transforms/flat.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace capibara::rule_checks {

inline Array random_array(const ArrayType& type, const Sample& sample, std::mt19937& random) {
  std::uniform_real_distribution<double> real(sample.low, sample.high);
  std::uniform_int_distribution<int64_t> index(-2, 5);
  bool indices = sample.integers_are_indices && type.dtype == DType::int32;
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

inline Arrays random_inputs(const Sample& sample, unsigned seed) {
  std::mt19937 random(seed);
  Arrays inputs;
  for (const ArrayType& type : sample.inputs) inputs.push_back(random_array(type, sample, random));
  return inputs;
}

inline bool same_bytes(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.raw_data(), b.raw_data(), static_cast<std::size_t>(a.size() * storage_size(a.dtype()))) == 0;
}

inline std::string describe(const Primitive& primitive, const Sample& sample) {
  std::string text = primitive.name();
  for (const ArrayType& type : sample.inputs) text += " " + to_string(type);
  return text;
}

inline double dot(const Array& a, const Array& b) {
  std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

// Calls check(primitive, sample, inputs) for every sample of every record, on the reference backend: the claims are
// bitwise, and kernels of other backends split sums differently.
template <class Check>
void for_each_sample(const Family& family, DType dtype, Check&& check) {
  Config settings = config();
  settings.platform = "reference";
  const ConfigScope scope(settings);
  for (const PrimitiveRecord& record : family) {
    if (!record.dtypes.empty() && std::find(record.dtypes.begin(), record.dtypes.end(), dtype) == record.dtypes.end())
      continue;
    Primitive p = primitive(record.name);
    unsigned seed = 1;
    for (const Sample& sample : record.samples(dtype)) {
      SCOPED_TRACE(describe(p, sample));
      check(p, sample, random_inputs(sample, seed++));
    }
  }
}

// The lowered program gives the primitive's results, and each of its steps type-checks.
inline void check_lowering(const Family& family, DType dtype) {
  for_each_sample(family, dtype, [](const Primitive& p, const Sample& sample, const Arrays& inputs) {
    Program program =
        stage([&](std::span<const Array> in) { return capibara::bind(p, in, sample.attrs); }, sample.inputs, "f")
            .program;
    verify(program);
    Program lowered = lower(program);
    verify(lowered);
    for (const Equation& equation : lowered.equations())
      EXPECT_FALSE(equation.primitive->stablehlo.empty()) << equation.primitive.name();
    Arrays want = capibara::bind(p, inputs, sample.attrs), got = evaluate_program(lowered, inputs);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(same_bytes(got[i], want[i])) << got[i].repr() << want[i].repr();
  });
}

// One batched equation gives the results of a loop over the batch, for any position of the mapped axes.
inline void check_batching(const Family& family) {
  for_each_sample(family, DType::float32, [](const Primitive& p, const Sample& sample, const Arrays& inputs) {
    const int64_t size = 3;
    FlatFunction f = [&](std::span<const Array> in) { return capibara::bind(p, in, sample.attrs); };
    std::size_t count = inputs.size();
    if (count == 0) return;
    std::size_t subsets = std::size_t{1} << std::min<std::size_t>(count, 4);
    for (std::size_t subset = 1; subset < subsets; ++subset) {
      for (bool last : {false, true}) {
        std::vector<Arrays> rows;
        for (int64_t b = 0; b < size; ++b) rows.push_back(random_inputs(sample, static_cast<unsigned>(10 + b)));
        Arrays batched;
        std::vector<int64_t> dims;
        for (std::size_t i = 0; i < count; ++i) {
          bool mapped = (subset >> i) & 1;
          int64_t dim = last ? inputs[i].ndim() : 0;
          dims.push_back(mapped ? dim : not_mapped);
          Arrays parts;
          for (int64_t b = 0; b < size; ++b) {
            if (!mapped) rows[static_cast<std::size_t>(b)][i] = inputs[i];
            parts.push_back(rows[static_cast<std::size_t>(b)][i]);
          }
          batched.push_back(mapped ? jax::lax::stack(parts, dim) : inputs[i]);
        }
        Arrays want_first = f(rows[0]);
        std::vector<int64_t> out_dims(want_first.size(), 0);
        Arrays got = vmap_flat(f, batched, dims, out_dims, {"", size});
        for (int64_t b = 0; b < size; ++b) {
          Arrays want = f(rows[static_cast<std::size_t>(b)]);
          for (std::size_t i = 0; i < want.size(); ++i) {
            Array part = jax::lax::index_in_dim(got[i], b, 0, false);
            EXPECT_TRUE(same_bytes(part, want[i])) << "subset " << subset << " last " << last << "\n"
                                                   << part.repr() << want[i].repr();
          }
        }
      }
    }
  });
}

// <ct, J t> == <J^T ct, t> for the operation at a random point, and J t by central differences.
inline void check_derivatives(const Family& family, bool differences) {
  for_each_sample(family, DType::float32, [&](const Primitive& p, const Sample& sample, const Arrays& inputs) {
    FlatFunction f = [&](std::span<const Array> in) { return capibara::bind(p, in, sample.attrs); };
    std::vector<bool> differentiable;
    Arrays tangents, random = random_inputs(sample, 77);
    bool any = false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      differentiable.push_back(is_inexact(inputs[i].dtype()));
      any |= differentiable.back();
      tangents.push_back(differentiable.back() ? random[i] : Array());
    }
    if (!any) return;
    JvpResult forward = jvp_flat(f, inputs, tangents);
    if (differences) {
      const double h = 1e-2;
      auto moved = [&](double by) {
        Arrays point = inputs;
        for (std::size_t i = 0; i < point.size(); ++i) {
          if (!differentiable[i]) continue;
          std::vector<float> x = point[i].to_vector<float>(), t = tangents[i].to_vector<float>();
          for (std::size_t k = 0; k < x.size(); ++k) x[k] += static_cast<float>(by * t[k]);
          point[i] = array<float>(x, point[i].shape());
        }
        return f(point);
      };
      Arrays up = moved(h), down = moved(-h);
      for (std::size_t i = 0; i < up.size(); ++i) {
        std::vector<double> a = up[i].to_vector<double>(), b = down[i].to_vector<double>();
        std::vector<double> t =
            forward.tangents[i].defined() ? forward.tangents[i].to_vector<double>() : std::vector<double>(a.size());
        for (std::size_t k = 0; k < a.size(); ++k) EXPECT_NEAR((a[k] - b[k]) / (2 * h), t[k], 2e-2);
      }
    }
    Linearized linear = linearize_flat(f, inputs, differentiable);
    Arrays cotangents, operands = linear.residuals;
    std::vector<bool> is_linear(linear.residuals.size(), false);
    double left = 0, right = 0;
    for (std::size_t i = 0; i < linear.outputs.size(); ++i) {
      std::mt19937 generator(static_cast<unsigned>(5 + i));
      Array ct = random_array(linear.outputs[i].type(), sample, generator);
      EXPECT_TRUE(same_bytes(linear.outputs[i], forward.primals[i]));
      if (!linear.nonzero_outputs[i]) continue;
      cotangents.push_back(ct);
      left += dot(ct, forward.tangents[i]);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!differentiable[i]) continue;
      is_linear.push_back(true);
      operands.push_back(Array());
    }
    Arrays back = backward_pass(linear.linear, is_linear, operands, cotangents);
    std::size_t next = linear.residuals.size();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!differentiable[i]) continue;
      const Array& ct = back[next++];
      if (!ct.defined()) continue;
      EXPECT_EQ(ct.shape(), inputs[i].shape());
      right += dot(ct, tangents[i]);
    }
    EXPECT_NEAR(left, right, 1e-3 * (1 + std::abs(left)));
  });
}

}  // namespace capibara::rule_checks
