// A plan for a TPU slice: whether a training step fits, how long it takes and what to change. Modelled; nothing runs on
// a TPU.
#include <capibara/tpu.h>

#include <cstdio>

namespace tpu = capibara::tpu;

int main() {
  struct Row {
    const char *remat, *strategy;
  };
  tpu::PlanRequest request{
      .model = "llama3.1-8b", .tpu = "v6e-64", .sequence_length = 8192, .batch_size = 2 * 64, .mesh = "fsdp=64"};
  tpu::MemoryPlan memory;
  for (const auto& [remat, strategy] : {Row{"none", "none"}, Row{"minimal", "normal"}, Row{"full", "aggressive"}}) {
    memory = tpu::MemoryOptimizer({.strategy = strategy}).estimate_memory(request).plan;
    request.remat = remat;
    const tpu::StepPlan step = tpu::estimate_step(request).step;
    std::printf("remat %-8s %6.1f of %.1f GiB, %s; %6.3f s a step, %.0f %% of the peak\n", remat, memory.total_gib,
                memory.limit_gib, memory.fits ? "fits" : "does not fit", step.seconds, 100 * step.mfu);
  }
  std::printf("largest buffer: %s, %.1f GiB\n", memory.buffers[0].name.c_str(), memory.buffers[0].gib);

  // An unknown flag in LIBTPU_INIT_ARGS aborts the process: check first.
  const tpu::FlagVerdict verdict = tpu::check_flag("xla_tpu_enable_latency_hiding_schedule", "true");
  std::printf("%s\n", verdict.message.c_str());
  const bool is_v4_32 = tpu::TPUConfig({.num_chips = 16}).slice_name() == "v4-32";
  std::printf("v4-32 has 16 chips as %s\n", is_v4_32 ? "v4:2x2x4" : "?");

  // The configuration of a slice: every field has an effect and is checked whenever it is set.
  tpu::TPUConfig config({.tpu_version = "v6e", .num_chips = 64, .topology = "8x8"});
  config.set("memory_optimization", std::string("aggressive"));
  const tpu::PerformanceMetrics metrics = config.get_performance_metrics("1b");
  std::printf("%s: %.0f TFLOP/s, %.1f %% modelled for 1b, remat %s\n", config.slice_name().c_str(),
              metrics.total_tflops, 100 * *metrics.utilization.value, config.remat_policy().c_str());
  const tpu::PlannedBatch batch =
      tpu::find_optimal_batch_size({.model = "1b", .sequence_length = 2048, .available_memory_gb = 32 * 64});
  std::printf("batch %d on %s\n", static_cast<int>(batch.sequences), batch.tpu.c_str());
  const tpu::BottleneckAnalysis found = tpu::analyze_bottlenecks(request);
  std::printf("%s bound; %s\n", found.bound.c_str(),
              found.recommendations.empty() ? "no single change helps" : found.recommendations[0].text.c_str());

  // How the parameters of a model are placed on a mesh.
  auto matrix = [](int64_t rows, int64_t columns) {
    capibara::ArrayType type;
    type.shape = {rows, columns};
    return type;
  };
  const capibara::ParameterTypes types = {
      {"embed", matrix(512, 64)}, {"layer/down", matrix(256, 64)}, {"layer/up", matrix(64, 256)}};
  const capibara::Mesh mesh{{"data", "model"}, {4, 2}, {}};
  std::printf("%s\n", tpu::sharding_table(types, mesh, {.strategy = "megatron"}).text().c_str());
  return 0;
}
