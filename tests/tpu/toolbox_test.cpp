// TPUConfig, memory, performance and sharding in C++: the blocks of the original proposal's pages, one test each.
#include <capibara/lax.h>
#include <capibara/random.h>
#include <capibara/tpu.h>
#include <capibara/transforms.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace capibara::tpu {
namespace {

TPUConfig page_config() {  // from the page on configurations
  return TPUConfig({.num_chips = 32,
                    .topology = "4x8",
                    .memory_per_chip = int64_t{32} << 30,
                    .flops_per_chip = 275e12,
                    .compute_dtype = "bfloat16",
                    .param_dtype = "float32"});
}

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// ---- configurations ----------------------------------------------------------------------------------------------

TEST(Config, OfThePageNamesItsSlice) {
  const TPUConfig config = page_config();
  EXPECT_EQ(config.validate(),
            std::vector<std::string>({"32 v4 chips are v4-64 = 2x4x4; the topology 4x8 is taken as the logical mesh"}));
  EXPECT_EQ(config.get_total_tflops(), 8800);
  EXPECT_EQ(config.slice_name(), "v4-64");
  EXPECT_EQ(TPUConfig({.tpu_version = "v6e", .num_chips = 64, .topology = "8x8"}).get_total_tflops(), 64 * 918);
}

TEST(Config, WrongFieldsNameTheChoices) {
  EXPECT_TRUE(has(error_of([] { TPUConfig({.tpu_version = "v9"}); }), "there are v2, v3, v4"));
  EXPECT_TRUE(has(error_of([] { TPUConfig({.num_chips = 5}); }), "v4-8 = 4 chips"));
  EXPECT_TRUE(has(error_of([] { TPUConfig({.precision = "half"}); }), "one of bfloat16, float32, mixed, got 'half'"));
  EXPECT_TRUE(has(error_of([] { TPUConfig({.mesh_shape = {3, 3}}); }), "mesh_shape=(3, 3) is for 9 chips"));
  EXPECT_TRUE(has(error_of([] { TPUConfig({.num_chips = 16, .topology = "4x8"}); }), "has 32 chips"));
  EXPECT_TRUE(
      has(error_of([] { TPUConfig({.tpu_version = "v3", .compute_dtype = "int8"}); }), "v3 has no units for int8"));
  EXPECT_TRUE(has(error_of([] { bytes_from_text("much"); }), "'32GB'"));
  EXPECT_EQ(bytes_from_text("32GB"), 32'000'000'000);
  EXPECT_EQ(bytes_from_text("1.5 GiB"), 3 << 29);
}

TEST(Config, AssignedFieldsAreCheckedAndRefusedOnesChangeNothing) {
  TPUConfig config({.tpu_version = "v6e", .num_chips = 64});
  config.set("mesh_shape", std::vector<int64_t>{4, 16});
  config.set("memory_optimization", std::string("aggressive"));
  EXPECT_EQ(config.remat_policy(), "full");
  EXPECT_THROW(config.set("mesh_shape", std::vector<int64_t>{4, 4}), TPUError);
  EXPECT_EQ(config->mesh_shape, std::vector<int64_t>({4, 16}));
  EXPECT_TRUE(has(error_of([&] { config.set("gradient_checkpoint", true); }), "did you mean 'gradient_checkpointing'"));
  EXPECT_TRUE(has(error_of([&] { config.set("xla_optimization_level", int64_t{4}); }), "from 0 to 3, got 4"));
  EXPECT_TRUE(has(error_of([&] { config.set("enable_xla_fusion", int64_t{1}); }), "True or False, got 1"));
}

TEST(Config, TypesFollowThePrecisionUntilTheyAreSet) {
  TPUConfig config({.tpu_version = "v6e", .num_chips = 4});
  const double whole = config.get_total_tflops();
  EXPECT_EQ(*config->compute_dtype, "bfloat16");
  EXPECT_TRUE(*config->use_mixed_precision && *config->fp32_params);
  config.set("fp32_params", false);
  EXPECT_EQ(*config->param_dtype, "bfloat16");
  EXPECT_EQ(config.training().state_bytes, 10);
  config.set("precision", std::string("float32"));
  EXPECT_DOUBLE_EQ(config.get_total_tflops(), whole / 6);
  EXPECT_FALSE(config.get_performance_metrics().utilization.value);
  config.set("compute_dtype", std::string("int8"));
  EXPECT_GT(config.get_total_tflops(), whole);
}

TEST(Config, MetricsAreTheVendorsAndModelledOnesSaySo) {
  const PerformanceMetrics metrics = TPUConfig({.tpu_version = "v6e", .num_chips = 64}).get_performance_metrics();
  EXPECT_EQ(metrics.total_tflops, 64 * 918);
  EXPECT_EQ(metrics.memory_bandwidth_gb_s, 64 * 1638);
  EXPECT_EQ(metrics.interconnect_bandwidth_gb_s, 2 * 90 * 112);  // 8 x 8 chips in lines
  EXPECT_GT(*metrics.utilization.value, 0.1);
  EXPECT_LT(*metrics.utilization.value, 1);
  EXPECT_TRUE(has(metrics.utilization.origin, "modelled: training 1b at 8 sequences of 2048"));
  EXPECT_TRUE(has(metrics.throughput_samples_s.origin, "nothing was run on a TPU"));
}

TEST(Config, SpecificationsSplitWhatDivides) {
  const TPUConfig config = page_config();
  auto dims = [&](const Shape& shape) { return config.get_sharding_spec(shape).dims; };
  using Dims = std::vector<AxisList>;
  EXPECT_EQ(dims({16, 64}), (Dims{{"data"}, {"model"}}));
  EXPECT_EQ(dims({16, 7, 64}), (Dims{{"data"}, {}, {"model"}}));
  EXPECT_EQ(dims({7, 16}), (Dims{{}, {"model"}}));
  EXPECT_EQ(dims({8}), (Dims{{"data"}}));
  EXPECT_EQ(dims({}), Dims());
}

TEST(Config, MemoryIsThatOfThePage) {
  const MemoryConfig memory = page_config().get_memory_config();
  EXPECT_TRUE(memory.use_mixed_precision);
  EXPECT_EQ(memory.memory_per_chip, 0x1p35);
  EXPECT_EQ(memory.remat_policy, "minimal");
}

TEST(Config, HotspotsAreAboveTheThresholdAndChooseTheSplit) {
  TPUConfig config = page_config();
  EXPECT_TRUE(has(error_of([&] { config.optimize_sharding(); }), "detect_hotspots"));
  std::vector<float> load(32, 0);
  for (std::size_t row = 0; row < 3; ++row) load[8 * row + 5] = 0.9F;
  const Array matrix = Array::from_host(DType::float32, {4, 8}, load.data());
  EXPECT_EQ(config.detect_hotspots(matrix), (std::vector<Hotspot>{{0, 5}, {1, 5}, {2, 5}}));
  using Dims = std::vector<AxisList>;
  EXPECT_EQ(config.optimize_sharding().dims, (Dims{{"data", "model"}, {}}));
  EXPECT_EQ(config.optimize_sharding(matrix.T()).dims, (Dims{{}, {"data", "model"}}));
  config.set_load_threshold(0.95);
  EXPECT_TRUE(config.detect_hotspots(matrix).empty());
  EXPECT_TRUE(has(error_of([&] { config.detect_hotspots(matrix.flatten()); }), "got shape (32,)"));
}

TEST(Config, FlagsAndTheEnvironmentFollowTheFields) {
  unsetenv("LIBTPU_INIT_ARGS");
  const TPUConfig config(
      {.tpu_version = "v6e", .num_chips = 64, .enable_async_collective = false, .use_collective_matmul = true});
  const std::map<std::string, std::string> made = config.environment(true);
  EXPECT_TRUE(has(made.at("LIBTPU_INIT_ARGS"), "--xla_jf_spmd_threshold_for_windowed_einsum_mib=0"));
  EXPECT_TRUE(has(made.at("LIBTPU_INIT_ARGS"), "--xla_tpu_enable_async_collective_fusion=false"));
  EXPECT_TRUE(has(made.at("XLA_PYTHON_CLIENT_ALLOCATOR"), "GPUs"));
  EXPECT_TRUE(has(config.environment(false).at("JAX_PLATFORMS"), "this machine has no TPU"));
  EXPECT_TRUE(has(environment_text("TPUConfig", made), "TPUConfig: set "));
}

// ---- memory and performance --------------------------------------------------------------------------------------

PlanRequest request_of(PlannedModel model, const std::string& tpu, int64_t length, double batch) {
  PlanRequest request{std::move(model), tpu, length};
  request.batch_size = batch;
  return request;
}

TEST(Memory, StrategiesAreOrderedAndGroupsOfLayersTakeLess) {
  const PlanRequest request = request_of("1.3b", "v4-8", 2048, 128);
  auto total = [&](MemoryOptions options) { return *MemoryOptimizer(options).estimate_memory(request).total_gb.value; };
  EXPECT_GT(total({.strategy = "none"}), total({.strategy = "normal"}));
  EXPECT_GT(total({.strategy = "normal"}), total({.strategy = "aggressive"}));
  EXPECT_GT(total({.strategy = "aggressive"}), total({.strategy = "aggressive", .activation_checkpointing_layers = 2}));
  EXPECT_EQ(total({.strategy = "none", .gradient_checkpointing = true}), total({.strategy = "aggressive"}));
  const MemoryEstimate two =
      MemoryOptimizer({.strategy = "aggressive", .activation_checkpointing_layers = 2}).estimate_memory(request);
  double sum = 0;
  for (const PlanBuffer& buffer : two.plan.buffers) sum += buffer.gib;
  EXPECT_NEAR(sum, two.plan.total_gib, 1e-3 * sum);
  EXPECT_TRUE(has(error_of([] { MemoryOptimizer({.strategy = "most"}); }), "none, normal, aggressive, got 'most'"));
}

struct Tower {
  Parameters init(const Array& key) const {
    Parameters made;
    for (int i = 0; i < 4; ++i) {
      const std::string name = "layers." + std::to_string(i) + ".w";
      made[name] = jax::random::normal(jax::random::fold_in(key, i), {.shape = {32, 32}}) * 0.2F;
    }
    return made;
  }
  int64_t layer_count() const { return 4; }
  std::string layer_prefix(int64_t layer) const { return "layers." + std::to_string(layer) + "."; }
  Arrays start(const Parameters&, const Arrays& batch) const { return batch; }
  Arrays run_layer(const Parameters& p, int64_t layer, const Arrays& carry) const {
    return {jax::lax::tanh(jax::lax::dot(carry[0], p.at("layers." + std::to_string(layer) + ".w")))};
  }
  Array finish(const Parameters&, const Arrays& carry, const Arrays&) const {
    return jax::lax::reduce_sum(carry[0] * carry[0], {.axes = {0, 1}});
  }
  Array loss(const Parameters& p, const Arrays& batch) const {
    Arrays carry = batch;
    for (int64_t i = 0; i < 4; ++i) carry = run_layer(p, i, carry);
    return finish(p, carry, batch);
  }
};

TEST(Memory, OptimizedModelsComputeTheSameGradient) {
  const AnyModel model{Tower()};
  const Parameters parameters = model.init(jax::random::key(0));
  const Arrays batch = {jax::random::normal(jax::random::key(1), {.shape = {8, 32}})};
  auto gradient = [&](const AnyModel& one) {
    return jax::grad([&](const Parameters& p) { return one.loss(p, batch); })(parameters);
  };
  const Parameters plain = gradient(model);
  const AnyModel optimized =
      MemoryOptimizer({.strategy = "aggressive", .activation_checkpointing_layers = 2}).optimize(model);
  const Parameters recomputed = gradient(optimized);
  for (const auto& [name, array] : plain) {
    const std::vector<float> got = recomputed.at(name).to_vector<float>(), want = array.to_vector<float>();
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5) << name;
  }
  EXPECT_EQ(MemoryOptimizer({.strategy = "none"}).optimize(model).name(), model.name());
}

TEST(Memory, BatchesArePowersOfTwoThatFit) {
  const PlannedBatch batch =
      find_optimal_batch_size({.model = "1.3b", .sequence_length = 2048, .available_memory_gb = 32 * 64});
  EXPECT_EQ(batch.sequences & (batch.sequences - 1), 0);
  EXPECT_EQ(batch.tpu, "v6e:8x8");
  EXPECT_TRUE(has(batch.origin, "64 chips have that memory"));
  PlanRequest request = request_of("1.3b", batch.tpu, 2048, static_cast<double>(batch.sequences));
  request.remat = "full";
  EXPECT_TRUE(plan_memory(complete(request).training).fits);
  EXPECT_TRUE(has(
      error_of([] { find_optimal_batch_size({.model = "llama3.1-405b", .sequence_length = 8192, .tpu = "v5e-4"}); }),
      "larger slice"));
}

TEST(Performance, SharesSumToOneAndWhatIsAssumedIsSaid) {
  const BottleneckAnalysis found = analyze_bottlenecks(request_of("llama3.1-8b", "v6e-64", 8192, 256));
  EXPECT_NEAR(*found.compute_bound.value + *found.memory_bound.value + *found.communication_bound.value, 1, 1e-6);
  EXPECT_TRUE(found.assumed.empty());
  PlanRequest little{PlannedModel("1b")};
  const StepEstimate step = estimate_step(little);
  EXPECT_EQ(step.tpu, "v4-8");
  EXPECT_EQ(step.batch_size, 4);
  EXPECT_EQ(step.assumed.size(), 2U);
  EXPECT_TRUE(has(error_of([&] { estimate_step(request_of("1b", "v4-8", 2048, -1)); }),
                  "batch_size is a positive number, got -1"));
  EXPECT_TRUE(has(error_of([&] { estimate_step(request_of("2b", "v4-8", 2048, 1)); }), "argument 'model'"));
  EXPECT_TRUE(has(error_of([&] { estimate_step(request_of("1b", "v4-9", 2048, 1)); }), "argument 'tpu'"));
}

TEST(Performance, SizesOfAModelAreInferredFromItsParameters) {
  const ModelDescription found = describe(PlannedModel(AnyModel(Tower())));
  EXPECT_TRUE(found.inferred);
  EXPECT_EQ(found.sizes.width, 32);
  EXPECT_EQ(found.parameters, 4 * 32 * 32);
  EXPECT_FALSE(found.assumptions.empty());
}

TEST(Performance, TheDiagnosisNamesASlowLoaderAndATarget) {
  int loaded = 0;
  const PerformanceDiagnosis found = diagnose_performance(request_of("125m", "v6e-1", 128, 1),
                                                          {.target_tflops = 1e6, .load_batch = [&] {
                                                             std::this_thread::sleep_for(std::chrono::milliseconds(20));
                                                             return ++loaded < 20;
                                                           }});
  EXPECT_EQ(loaded, 8);
  ASSERT_EQ(found.issues.size(), 2U);
  EXPECT_EQ(found.issues[0].problem, "data loading");
  EXPECT_TRUE(has(found.issues[1].impact, "of 1e+06 TFLOP/s (modelled)"));
}

// ---- sharding ----------------------------------------------------------------------------------------------------

TEST(ShardModel, StrategiesPlaceParametersWhereTheTableSays) {
  const AnyModel model{Tower()};
  ModelParts parts = model.parts();
  parts.parameters = model.init(jax::random::key(0));
  const AnyModel whole{parts};
  const Mesh mesh{{"data", "model"}, {1, 1}, {}};
  EXPECT_TRUE(has(error_of([&] { shard_model(model, mesh); }), "has no parameters yet"));
  const AnyModel sharded = shard_model(whole, mesh, {.strategy = "fsdp"});
  for (const auto& [name, array] : sharded.parts().parameters) {
    ASSERT_TRUE(jax::placement(array).has_value());
    EXPECT_EQ(array.to_vector<float>(), parts.parameters.at(name).to_vector<float>());
  }
  const Mesh wide{{"data", "model"}, {2, 4}, {}};
  const training::ShardingTable table = sharding_table(whole, wide);
  EXPECT_EQ(table.at("layers.0.w").spec.dims, (std::vector<AxisList>{{"data"}, {}}));
  EXPECT_EQ(table.bytes(), 4 * 32 * 32 * 4 / 2);
  const training::ShardingTable own =
      sharding_table(whole, wide, {.rules = {{"layers.[01]", {"", "model"}, "", "columns"}}});
  EXPECT_EQ(own.at("layers.1.w").spec.dims, (std::vector<AxisList>{{}, {"model"}}));
  EXPECT_EQ(own.at("layers.2.w").spec.dims, (std::vector<AxisList>{{}, {}}));
  EXPECT_TRUE(has(error_of([&] { sharding_table(whole, wide, {.strategy = "some"}); }), "got 'some'"));
}

}  // namespace
}  // namespace capibara::tpu
