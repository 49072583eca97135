// Derivatives of random programs.
#include "backends/cpu/random/random_programs.h"

#include "program/ir/build.h"
#include "program/trace/stage.h"

#include <capibara/config.h>
#include <capibara/lax.h>
#include <capibara/transforms.h>

#include <algorithm>
#include <cmath>

namespace capibara::random_programs {

namespace {

namespace lax = jax::lax;

// A program as a function of its float inputs; the others are fixed.
struct OfFloats {
  const Program& program;
  Arrays others;  // empty where an input is a float

  Arrays operator()(const Arrays& floats) const {
    Arrays inputs = others;
    auto next = floats.begin();
    for (Array& input : inputs) {
      if (!input.defined()) input = *next++;
    }
    Arrays results;
    for (const Array& output : evaluate_program(program, inputs)) {
      if (output.dtype() == DType::float64) results.push_back(output);
    }
    return results;
  }
};

Array all_of(const Array& x) {
  Ints axes;
  for (int64_t d = 0; d < x.ndim(); ++d) axes.push_back(d);
  return lax::reduce_sum(x, {.axes = axes});
}

// Squares give elements different cotangents.
Array loss(const Arrays& results) {
  Array total(0.0);
  for (const Array& result : results)
    total = lax::add(total, all_of(lax::mul(result, lax::add(result, lax::full_like(result, 1.0)))));
  return total;
}

Arrays gradient(const OfFloats& function, const Arrays& floats) {
  return jax::grad([&](const Arrays& given) { return loss(function(given)); })(floats);
}

Arrays tangents(const OfFloats& function, const Arrays& floats) {
  Arrays directions;
  for (const Array& x : floats) directions.push_back(lax::cos(x));
  return std::get<1>(jax::jvp(function, std::tuple(floats), std::tuple(directions)));
}

}  // namespace

RandomProgram derivative(const RandomProgram& random, const Runner& trusted) {
  Config settings = config();
  settings.enable_x64 = true;
  const ConfigScope scope(settings);
  const Types types = random.program.input_types();
  auto derived = [&](auto&& rule) {
    return stage(
               [&](std::span<const Array> in) {
                 OfFloats function{random.program, Arrays(in.begin(), in.end())};
                 Arrays floats;
                 for (Array& input : function.others) {
                   if (input.dtype() != DType::float64) continue;
                   floats.push_back(input);
                   input = Array();
                 }
                 return rule(function, floats);
               },
               types, "derivative")
        .program;
  };
  RandomProgram result{random.seed, {}, random.inputs, {}};
  try {
    result.program = derived(gradient);
  } catch (const capibara::Error&) {
    try {
      result.program = derived(tangents);
    } catch (const NotImplementedError&) {
      return result;  // nextafter has no derivative
    }
  }
  for (const Array& x : trusted(result.program, result.inputs)) {
    double greatest = 1;
    for (const double element : x.to_vector<double>())
      greatest = std::isfinite(element) ? std::max(greatest, std::abs(element)) : greatest;
    result.tolerances.push_back(1e-8 * greatest);
  }
  return result;
}

}  // namespace capibara::random_programs
