// Measured calls: a program for each function and types, compiled once, its time and its memory.
#include <capibara/jit.h>
#include <capibara/lax.h>
#include <capibara/tpu/measure.h>

#include <algorithm>
#include <chrono>

#include "core/array/format.h"

namespace capibara::tpu {

namespace lax = jax::lax;

// A traced function, and how to call it.
struct KernelMeter::Compiled {
  Program traced;
  bool donated = false;
  std::function<Arrays(const Arrays&)> call;
  KernelMeasurement needs;  // all but the seconds
};

namespace {

int64_t bytes_of(const Arrays& arrays) {
  int64_t bytes = 0;
  for (const Array& array : arrays) bytes += array.size() * storage_size(array.dtype());
  return bytes;
}

// The function with its floating operands rounded.
KernelMeter::Function rounded(std::optional<DType> precision, const KernelMeter::Function& function) {
  if (!precision) return function;
  return [function, low = *precision](const Arrays& arrays) {
    Arrays given;
    std::optional<DType> first;
    for (const Array& array : arrays) {
      const bool rounds = is_floating(array.dtype());
      if (rounds && !first) first = array.dtype();
      given.push_back(rounds ? lax::convert_element_type(array, low) : array);
    }
    Arrays results = function(given);
    if (results.size() == 1 && first && results[0].dtype() == low)
      results[0] = lax::convert_element_type(results[0], *first);
    return results;
  };
}

template <class Lowered>
void note_needs(KernelMeasurement& needs, const Lowered& compiled) {
  needs.operations = compiled.cost_analysis().flops;
  if (const std::optional<MemoryUse> memory = compiled.memory_analysis()) {
    needs.held = memory->argument + memory->output - memory->alias;
    needs.temporary = memory->temp;
  }
}

}  // namespace

bool KernelMeter::is_staged(const Arrays& arrays) {
  return lax::neg(Array(0.0F)).is_tracer() ||
         std::any_of(arrays.begin(), arrays.end(), [](const Array& array) { return array.is_tracer(); });
}

Arrays KernelMeter::run(const Call& call, const Function& function, const Arrays& arrays) {
  const Function whole = rounded(call.precision, function);
  if (is_staged(arrays)) return whole(arrays);
  const Program traced = jax::make_jaxpr([&](const Arrays& given) { return whole(given); }, "kernel")(arrays);
  const auto [begin, end] = compiled_.equal_range(traced.hash());
  const auto found = std::find_if(begin, end, [&](const auto& entry) {
    return entry.second->traced == traced && entry.second->donated == call.donated;
  });
  std::shared_ptr<const Compiled> program;
  if (found != end) {
    program = found->second;
  } else {
    auto made = std::make_shared<Compiled>();
    made->traced = traced;
    made->donated = call.donated;
    if (call.donated) {
      auto split = jax::jit(
          [whole](const Array& first, const Arrays& rest) {
            Arrays given = {first};
            given.insert(given.end(), rest.begin(), rest.end());
            return whole(given);
          },
          {.donate_argnums = {0}, .name = "kernel"});
      const Arrays rest(arrays.begin() + 1, arrays.end());
      auto compiled = split.lower(arrays[0], rest).compile();
      note_needs(made->needs, compiled);
      made->call = [compiled](const Arrays& given) {
        return compiled(given[0], Arrays(given.begin() + 1, given.end()));
      };
    } else {
      auto compiled =
          jax::jit([whole](const Arrays& given) { return whole(given); }, {.name = "kernel"}).lower(arrays).compile();
      note_needs(made->needs, compiled);
      made->call = [compiled](const Arrays& given) { return compiled(given); };
    }
    compiled_.emplace(traced.hash(), made);
    program = made;
  }
  KernelMeasurement measured = program->needs;
  const int64_t given_bytes = bytes_of(arrays);
  const auto started = std::chrono::steady_clock::now();
  // Only a compiled program can reuse the memory of an operand.
  Arrays results = call.compiled || call.donated ? program->call(arrays) : whole(arrays);
  for (const Array& result : results) result.block_until_ready();
  measured.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  if (!measured.temporary) measured.held = given_bytes + bytes_of(results);
  last_ = measured;
  return results;
}

const KernelMeasurement& KernelMeter::last(const std::string& operation) const {
  if (!last_) {
    throw ValueError(concat(operation, ": no call of this object has been measured yet; calls inside jit are not"));
  }
  return *last_;
}

}  // namespace capibara::tpu
