// The C++ interface of the TPU toolbox: slices, flags, plans and rejected calls.
#include <capibara/error.h>
#include <capibara/tpu.h>
#include <gtest/gtest.h>

namespace capibara::tpu {
namespace {

Training small_plan() {
  Training training;
  training.model = find_model("llama3.1-8b");
  training.slice = find_slice("v5e-16");
  training.mesh = read_mesh("fsdp=16");
  training.sequence = 4096;
  return training;
}

TEST(Slices, TwoNamesOfOneSliceAreEqual) {
  EXPECT_EQ(find_slice("v4-32").topology(), "v4:2x2x4");
  EXPECT_EQ(find_slice("v4:2x2x4").name(), "v4-32");
  EXPECT_EQ(find_slice("v5litepod-16").name(), "v5e-16");
  EXPECT_EQ(find_slice("2x v5e-256").chips(), 512);
  EXPECT_THROW(find_slice("v4:4x8"), ValueError);
}

TEST(Slices, DevicesAreListedHostByHost) {
  const std::vector<SliceDevice> devices = slice_devices(find_slice("v5e-16"));
  const int ids[] = {0, 1, 4, 5, 2, 3};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(devices[static_cast<std::size_t>(i)].id, ids[i]);
}

TEST(Plans, MemoryIsNearWhatTheCompilerPlanned) {
  // compiled_steps.tsv: llama3_8b_v5e-16_fsdp16_b1_s4096_full takes 10.644 GiB in libtpu 0.0.51.
  EXPECT_NEAR(plan_memory(small_plan()).total_gib, 10.644, 1.06);
}

TEST(Plans, SharesOfAStepAddUpToOne) {
  const StepPlan step = plan_step(small_plan());
  EXPECT_NEAR(step.compute_share + step.memory_share + step.communication_share, 1, 1e-9);
  EXPECT_NEAR(step.tokens_per_second * step.seconds, 16 * 4096, 1e-6);
}

TEST(Plans, TheSearchPutsWhatFitsFirst) {
  const std::vector<Candidate> found = search_plans(small_plan(), {});
  ASSERT_GT(found.size(), 50U);
  bool fits = true;
  for (const Candidate& candidate : found) {
    EXPECT_FALSE(candidate.memory.fits && !fits);
    fits = candidate.memory.fits;
  }
}

TEST(Plans, MeshesThatDoNotMatchAreRefused) {
  Training training = small_plan();
  training.mesh = read_mesh("fsdp=8");
  EXPECT_THROW(plan_memory(training), ValueError);
  training.mesh = read_mesh("fsdp=2,expert=8");
  EXPECT_THROW(plan_step(training), ValueError);
  EXPECT_THROW(read_mesh("fdsp=8"), ValueError);
  EXPECT_EQ(read_mesh("data=2,model=8").text(), "data=2,tensor=8");
}

TEST(Flags, InitArgumentsAreMergedByName) {
  EXPECT_EQ(
      merge_init_args("--xla_tpu_scoped_vmem_limit_kib=1 --other=2", {{"xla_tpu_scoped_vmem_limit_kib", "65536"}}),
      "--other=2 --xla_tpu_scoped_vmem_limit_kib=65536");
  EXPECT_THROW(merge_init_args("", {{"xla_tpu_enable_data_parallelism", "true"}}), ValueError);
}

TEST(Matmuls, LargerOnesComeNearerToThePeak) {
  const Chip& chip = find_chip("v6e");
  double last = 0;
  for (const int64_t size : {512, 1024, 2048, 4096}) {
    const double tflops = matmul_cost(chip, {1, size, size, size}).tflops();
    EXPECT_GT(tflops, last);
    last = tflops;
  }
  EXPECT_LT(last, chip.bf16_tflops);
}

}  // namespace
}  // namespace capibara::tpu
