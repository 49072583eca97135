// TPUv4Kernels: the fused kernels under common options, and the problems for timing them.
#include <capibara/lax.h>
#include <capibara/numpy.h>
#include <capibara/random.h>
#include <capibara/tpu/measure.h>

#include <algorithm>
#include <chrono>
#include <iterator>

#include "tpu/words.h"

namespace capibara::tpu {

namespace {

struct KernelPrecision {
  const char* name;
  DType dtype;
};
constexpr KernelPrecision kernel_precisions[] = {
    {"float32", DType::float32}, {"bfloat16", DType::bfloat16}, {"float16", DType::float16}};

// The contraction order of einsum at each level.
struct KernelLevel {
  const char* name;
  const char* order;
};
constexpr KernelLevel kernel_levels[] = {{"none", "unoptimized"}, {"standard", "auto"}, {"aggressive", "optimal"}};

template <class Row, std::size_t count>
const Row& chosen_row(const Row (&rows)[count], const char* argument, const std::string& value) {
  std::vector<std::string> names;
  for (const Row& row : rows) {
    if (value == row.name) return row;
    names.push_back(concat("'", row.name, "'"));
  }
  throw ValueError(
      concat("TPUv4Kernels: expected one of ", joined(names, ", "), " (argument '", argument, "'), got '", value, "'"));
}

// Calls a kernel whose options hold arrays: these become operands after the leading ones, instead of constants, and
// the cached call holds none of them.
template <class Options, class Members, class Kernel>
Arrays run_with(KernelMeter& meter, const KernelMeter::Call& call, Arrays arrays, Options options,
                const Members& members, const Kernel& kernel) {
  const std::size_t leading = arrays.size();
  for (const auto member : members) {
    if (!(options.*member)) continue;
    arrays.push_back(*(options.*member));
    options.*member = Array();
  }
  return meter.run(
      call,
      [=](const Arrays& given) {
        Options filled = options;
        std::size_t next = leading;
        for (const auto member : members) {
          if (filled.*member) filled.*member = given[next++];
        }
        return kernel(given, filled);
      },
      arrays);
}

template <class Options>
using ArrayMembers = std::vector<std::optional<Array> Options::*>;

// ---- problems ----------------------------------------------------------------------------------------------------

Array drawn(int number, const Shape& shape) {
  return jax::random::normal(jax::random::key(number), {.shape = shape, .dtype = DType::float32});
}

using Measured = std::function<void()>;
struct KernelProblem {
  const char* kernel;
  const char* shapes;
  Measured (*make)(TPUv4Kernels& own);
};

Measured attention_problem(TPUv4Kernels& own, bool sparse) {
  const Array q = drawn(0, {1, 12, 1024, 64}), k = drawn(1, {1, 12, 1024, 64}), v = drawn(2, {1, 12, 1024, 64});
  return [&own, q, k, v, sparse] {
    if (sparse) {
      own.sparse_attention(q, k, v);
    } else {
      own.flash_attention(q, k, v, {.causal = true});
    }
  };
}

Measured matmul_problem(TPUv4Kernels& own, bool adaptive) {
  const Array a = drawn(0, {1024, 1024}), b = drawn(1, {1024, 1024});
  return [&own, a, b, adaptive] {
    if (adaptive) {
      own.adaptive_matmul(a, b);
    } else {
      own.optimized_matmul(a, b);
    }
  };
}

Measured einsum_problem(TPUv4Kernels& own) {
  const Arrays operands = {drawn(0, {2, 12, 512, 64}), drawn(1, {2, 12, 512, 64})};
  return [&own, operands] {
    own.einsum_optimize("bhnd,bhkd->bhnk", operands, {.optimize = std::string(), .memory_efficient = true});
  };
}

Measured batch_problem(TPUv4Kernels& own) {
  Arrays inputs;
  for (int i = 0; i < 16; ++i) inputs.push_back(drawn(i, {64, 768}));
  const kernels::BatchOperationsOptions options = {
      .parameters = {{"weight", jax::numpy::ones({768})}, {"bias", jax::numpy::zeros({768})}}};
  return [&own, inputs, options] { own.batch_operations("layer_norm", inputs, options); };
}

Measured layer_norm_problem(TPUv4Kernels& own) {
  const Array x = drawn(0, {4096, 1024}), weight = jax::numpy::ones({1024}), bias = jax::numpy::zeros({1024});
  return [&own, x, weight, bias] { own.fast_layer_norm(x, {.weight = weight, .bias = bias}); };
}

Measured gelu_problem(TPUv4Kernels& own) {
  const Array x = drawn(0, {2048, 4096});
  return [&own, x] { own.fused_gelu_dropout(x, {.rate = 0.1}); };
}

Measured routing_problem(TPUv4Kernels& own) {
  const Array logits = drawn(0, {8192, 32});
  return [&own, logits] { own.moe_routing_kernel(logits, 32, 4); };
}

Measured mamba_problem(TPUv4Kernels& own) {
  const Array inputs = drawn(0, {1, 1024, 512}), a = -jax::lax::exp(drawn(1, {512, 16}));
  const Array b = drawn(2, {1, 1024, 16}), c = drawn(3, {1, 1024, 16});
  return [&own, inputs, a, b, c] { own.mamba_ssm_kernel(inputs, a, b, c); };
}

Measured vq_problem(TPUv4Kernels& own) {
  const Array inputs = drawn(0, {16384, 64}), codebook = drawn(1, {1024, 64});
  return [&own, inputs, codebook] { own.vq_encode(inputs, codebook); };
}

Measured spiking_problem(TPUv4Kernels& own) {
  const Array inputs = drawn(0, {100, 65536});
  return [&own, inputs] { own.spiking_neuron(inputs); };
}

constexpr KernelProblem kernel_problems[] = {
    {"flash_attention", "batch 1, 12 heads, length 1024, head size 64, causal",
     [](TPUv4Kernels& own) { return attention_problem(own, false); }},
    {"sparse_attention", "batch 1, 12 heads, length 1024, head size 64, blocks of 64",
     [](TPUv4Kernels& own) { return attention_problem(own, true); }},
    {"optimized_matmul", "1024 x 1024 x 1024", [](TPUv4Kernels& own) { return matmul_problem(own, false); }},
    {"adaptive_matmul", "1024 x 1024 x 1024", [](TPUv4Kernels& own) { return matmul_problem(own, true); }},
    {"einsum_optimize", "bhnd,bhkd->bhnk, b 2, h 12, n and k 512, d 64", einsum_problem},
    {"batch_operations", "layer_norm of 16 arrays of 64 x 768", batch_problem},
    {"fast_layer_norm", "4096 rows of 1024", layer_norm_problem},
    {"fused_gelu_dropout", "2048 x 4096, rate 0.1", gelu_problem},
    {"moe_routing_kernel", "8192 tokens, 32 experts, top 4", routing_problem},
    {"mamba_ssm_kernel", "batch 1, length 1024, 512 channels, 16 states", mamba_problem},
    {"vq_encode", "16384 vectors of 64, 1024 codes", vq_problem},
    {"spiking_neuron", "100 steps of 65536 neurons", spiking_problem},
};

}  // namespace

DType kernel_precision(const std::string& name) { return chosen_row(kernel_precisions, "precision", name).dtype; }

TPUv4Kernels::TPUv4Kernels(KernelOptions options)
    : options_(std::move(options)), key_(jax::random::key(options_.seed)) {
  kernel_precision(options_.precision);
  chosen_row(kernel_levels, "optimization_level", options_.optimization_level);
}

Array TPUv4Kernels::next_key(const std::string& method, const std::string& argument) {
  const Array both = jax::random::split(key_);
  if (both.is_tracer()) {
    throw ValueError(concat("TPUv4Kernels.", method, ": inside jit the same elements would be dropped in every call; ",
                            "give a key (argument '", argument, "')"));
  }
  key_ = both[0];
  return both[1];
}

Array TPUv4Kernels::flash_attention(const Array& query, const Array& key, const Array& value,
                                    kernels::FlashAttentionOptions options) {
  using O = kernels::FlashAttentionOptions;
  if (options.dropout_rate > 0 && !options.dropout_key)
    options.dropout_key = next_key("flash_attention", "dropout_key");
  const ArrayMembers<O> members = {&O::attention_mask, &O::bias, &O::segment_ids, &O::key_segment_ids, &O::dropout_key};
  return run_with(
      meter_, {kernel_precision(options_.precision), options_.enable_xla_fusion}, {query, key, value}, options, members,
      [](const Arrays& x, const O& filled) { return Arrays{kernels::flash_attention(x[0], x[1], x[2], filled)}; })[0];
}

Array TPUv4Kernels::sparse_attention(const Array& query, const Array& key, const Array& value,
                                     const kernels::SparseAttentionOptions& options) {
  using O = kernels::SparseAttentionOptions;
  const ArrayMembers<O> members = {&O::blocks, &O::segment_ids, &O::key_segment_ids};
  return run_with(
      meter_, {kernel_precision(options_.precision), options_.enable_xla_fusion}, {query, key, value}, options, members,
      [](const Arrays& x, const O& filled) { return Arrays{kernels::sparse_attention(x[0], x[1], x[2], filled)}; })[0];
}

Array TPUv4Kernels::optimized_matmul(const Array& a, const Array& b, kernels::OptimizedMatmulOptions options) {
  if (options.precision.empty()) options.precision = options_.precision;
  const bool copies = !options_.memory_layout_optimization;
  return meter_.run({std::nullopt, options_.enable_xla_fusion},
                    [options, copies](const Arrays& given) {
                      kernels::OptimizedMatmulOptions own = options;
                      auto copied = [&](const Array& x, bool& transpose) {
                        if (!copies || !transpose) return x;
                        transpose = false;
                        return jax::lax::optimization_barrier(jax::numpy::matrix_transpose(x));
                      };
                      const Array left = copied(given[0], own.transpose_a), right = copied(given[1], own.transpose_b);
                      return Arrays{kernels::optimized_matmul(left, right, own)};
                    },
                    {a, b})[0];
}

Array TPUv4Kernels::adaptive_matmul(const Array& a, const Array& b, kernels::AdaptiveMatmulOptions options) {
  if (options.precision.empty()) options.precision = options_.precision;
  return meter_.run(
      {std::nullopt, options_.enable_xla_fusion},
      [options](const Arrays& given) { return Arrays{kernels::adaptive_matmul(given[0], given[1], options)}; },
      {a, b})[0];
}

Array TPUv4Kernels::einsum_optimize(const std::string& equation, const Arrays& operands,
                                    kernels::EinsumOptimizeOptions options) {
  if (const auto* order = std::get_if<std::string>(&options.optimize); order && order->empty())
    options.optimize = std::string(chosen_row(kernel_levels, "optimization_level", options_.optimization_level).order);
  if (options.precision.empty()) options.precision = options_.precision;
  return meter_.run(
      {std::nullopt, options_.enable_xla_fusion},
      [equation, options](const Arrays& given) { return Arrays{kernels::einsum_optimize(equation, given, options)}; },
      operands)[0];
}

Arrays TPUv4Kernels::batch_operations(const std::string& operation_type, const Arrays& inputs,
                                      const kernels::BatchOperationsOptions& options) {
  Arrays arrays = inputs;
  kernels::BatchOperationsOptions settings = options;  // part of the program, without the arrays that are operands
  std::vector<std::string> names;                      // of those
  for (const auto& [name, array] : options.parameters) {
    if (name == "epsilon" || name == "axis") continue;
    names.push_back(name);
    arrays.push_back(array);
    settings.parameters.erase(name);
  }
  const DType low = kernel_precision(options_.precision);
  return meter_.run(
      {std::nullopt, options_.enable_xla_fusion},
      [operation_type, settings, names, low, count = inputs.size()](const Arrays& given) {
        auto rounded_one = [low](const Array& x) {
          return is_floating(x.dtype()) ? jax::lax::convert_element_type(x, low) : x;
        };
        Arrays own;
        for (std::size_t i = 0; i < count; ++i) own.push_back(rounded_one(given[i]));
        kernels::BatchOperationsOptions filled = settings;
        for (std::size_t i = 0; i < names.size(); ++i) filled.parameters[names[i]] = rounded_one(given[count + i]);
        Arrays results = kernels::batch_operations(operation_type, own, filled);
        for (std::size_t i = 0; i < count; ++i)
          results[i] = jax::lax::convert_element_type(results[i], given[i].dtype());
        return results;
      },
      arrays);
}

Array TPUv4Kernels::fast_layer_norm(const Array& x, const kernels::FastLayerNormOptions& options) {
  using O = kernels::FastLayerNormOptions;
  return run_with(meter_, {kernel_precision(options_.precision), options_.enable_xla_fusion}, {x}, options,
                  ArrayMembers<O>{&O::weight, &O::bias}, [](const Arrays& given, const O& filled) {
                    return Arrays{kernels::fast_layer_norm(given[0], filled)};
                  })[0];
}

Array TPUv4Kernels::fused_gelu_dropout(const Array& x, kernels::GeluDropoutOptions options) {
  using O = kernels::GeluDropoutOptions;
  if (options.training && options.rate > 0 && !options.key) options.key = next_key("fused_gelu_dropout", "key");
  const bool donated = options.inplace;
  if (donated && KernelMeter::is_staged({x}))
    return kernels::fused_gelu_dropout(x, options);  // raises the error that explains why
  options.inplace = false;
  return run_with(meter_, {kernel_precision(options_.precision), options_.enable_xla_fusion, donated}, {x}, options,
                  ArrayMembers<O>{&O::key}, [](const Arrays& given, const O& filled) {
                    return Arrays{kernels::fused_gelu_dropout(given[0], filled)};
                  })[0];
}

kernels::MoeRouting TPUv4Kernels::moe_routing_kernel(const Array& tokens, int64_t num_experts, int64_t top_k,
                                                     bool load_balancing, const kernels::MoeRoutingOptions& options) {
  using O = kernels::MoeRoutingOptions;
  const Arrays found =
      run_with(meter_, {kernel_precision(options_.precision), options_.enable_xla_fusion}, {tokens}, options,
               ArrayMembers<O>{&O::gate}, [=](const Arrays& given, const O& filled) {
                 const kernels::MoeRouting routing =
                     kernels::moe_routing_kernel(given[0], num_experts, top_k, load_balancing, filled);
                 return Arrays{routing.weights,     routing.experts, routing.permutation, routing.inverse,
                               routing.group_sizes, routing.load,    routing.aux_loss};
               });
  return {found[0], found[1], found[2], found[3], found[4], found[5], found[6]};
}

Array TPUv4Kernels::mamba_ssm_kernel(const Array& inputs, const Array& A_matrix, const Array& B_matrix,
                                     const Array& C_matrix, const kernels::MambaOptions& options) {
  using O = kernels::MambaOptions;
  const ArrayMembers<O> members = {&O::D, &O::z, &O::delta_bias, &O::initial_state, &O::segment_ids, &O::delta};
  return run_with(meter_, {kernel_precision(options_.precision), options_.enable_xla_fusion},
                  {inputs, A_matrix, B_matrix, C_matrix}, options, members, [](const Arrays& x, const O& filled) {
                    return Arrays{kernels::mamba_ssm_kernel(x[0], x[1], x[2], x[3], filled)};
                  })[0];
}

Array TPUv4Kernels::vq_encode(const Array& inputs, const Array& codebook, const kernels::VqOptions& options) {
  return meter_.run({kernel_precision(options_.precision), options_.enable_xla_fusion},
                    [options](const Arrays& given) { return Arrays{kernels::vq_encode(given[0], given[1], options)}; },
                    {inputs, codebook})[0];
}

kernels::SpikingResult TPUv4Kernels::spiking_neuron(const Array& inputs, const kernels::SpikingOptions& options) {
  using O = kernels::SpikingOptions;
  const Arrays found =
      run_with(meter_, {kernel_precision(options_.precision), options_.enable_xla_fusion}, {inputs}, options,
               ArrayMembers<O>{&O::initial_potential}, [](const Arrays& given, const O& filled) {
                 const kernels::SpikingResult result = kernels::spiking_neuron(given[0], filled);
                 return Arrays{result.spikes, result.potential};
               });
  return {found[0], found[1]};
}

double TPUv4Kernels::get_memory_usage() const {
  const KernelMeasurement& last = meter_.last("get_memory_usage");
  if (!last.temporary)
    throw ValueError("get_memory_usage: the backend plans no memory, so that temporaries are unknown");
  return static_cast<double>(last.held + *last.temporary) / 1e9;
}

double TPUv4Kernels::get_tflops() const {
  const KernelMeasurement& last = meter_.last("get_tflops");
  return last.operations / last.seconds / 1e12;
}

std::vector<std::string> TPUv4Kernels::benchmarked_kernels() {
  std::vector<std::string> names;
  for (const KernelProblem& problem : kernel_problems) names.emplace_back(problem.kernel);
  return names;
}

std::vector<KernelFigures> TPUv4Kernels::benchmark_kernels(const std::vector<std::string>& names, double seconds) {
  using Clock = std::chrono::steady_clock;
  if (!(seconds >= 0)) throw ValueError(concat("benchmark_kernels: seconds is at least 0, got ", seconds));
  std::vector<KernelFigures> all;
  for (const std::string& name : names.empty() ? benchmarked_kernels() : names) {
    const auto problem = std::find_if(std::begin(kernel_problems), std::end(kernel_problems),
                                      [&](const KernelProblem& one) { return name == one.kernel; });
    if (problem == std::end(kernel_problems)) {
      throw ValueError(concat("benchmark_kernels: expected names from ", joined(benchmarked_kernels(), ", "),
                              " (argument 'names'), got '", name, "'"));
    }
    const Measured call = problem->make(*this);
    double shortest = 0;
    Clock::time_point end;
    for (int count = 0; count < 3 || Clock::now() < end; ++count) {
      call();
      const double taken = meter_.last(name).seconds;
      shortest = count == 0 ? taken : std::min(shortest, taken);
      if (count == 0)
        end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }
    const KernelMeasurement& measured = meter_.last(name);
    KernelFigures figures{name, measured.operations / shortest / 1e12, shortest * 1e3, {}, problem->shapes};
    if (measured.temporary) {
      figures.memory_efficiency =
          static_cast<double>(measured.held) / static_cast<double>(measured.held + *measured.temporary);
    }
    all.push_back(std::move(figures));
  }
  return all;
}

}  // namespace capibara::tpu
