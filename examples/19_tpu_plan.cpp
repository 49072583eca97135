// A plan for a TPU slice: whether a training step fits, how long it takes and what to change. Modelled; nothing runs on
// a TPU.
#include <capibara/tpu.h>

#include <cstdio>

namespace tpu = capibara::tpu;

int main() {
  tpu::Training training;
  training.model = tpu::find_model("llama3.1-8b");
  training.slice = tpu::find_slice("v6e-64");
  training.mesh = tpu::read_mesh("fsdp=64");
  training.batch_per_device = 2;
  training.sequence = 8192;

  for (const char* remat : {"none", "minimal", "full"}) {
    training.remat = remat;
    const tpu::MemoryPlan memory = plan_memory(training);
    const tpu::StepPlan step = plan_step(training);
    std::printf("remat %-8s %6.1f of %.1f GiB, %s; %6.3f s a step, %.0f %% of the peak\n", remat, memory.total_gib,
                memory.limit_gib, memory.fits ? "fits" : "does not fit", step.seconds, 100 * step.mfu);
  }
  const tpu::MemoryPlan memory = plan_memory(training);
  std::printf("largest buffer: %s, %.1f GiB\n", memory.buffers[0].name.c_str(), memory.buffers[0].gib);

  // An unknown flag in LIBTPU_INIT_ARGS ends the process: ask first.
  const tpu::FlagVerdict verdict = tpu::check_flag("xla_tpu_enable_latency_hiding_schedule", "true");
  std::printf("%s\n", verdict.message.c_str());
  std::printf("v4-32 has %d chips as %s\n", tpu::find_slice("v4-32").chips(),
              tpu::find_slice("v4-32").topology().c_str());
  return 0;
}
