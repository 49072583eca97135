// The C++ interface of the TPU toolbox: slices, flags, plans and rejected calls.
#include <capibara/error.h>
#include <capibara/tpu.h>
#include <gtest/gtest.h>

#include <algorithm>

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

TEST(Plans, TheSearchPutsWhatFitsFirstAndWhatDoesNotLast) {
  const std::vector<Candidate> found = search_plans(small_plan(), {});
  ASSERT_GT(found.size(), 50U);
  const std::vector<Verdict> order = {Verdict::fits, Verdict::cannot_tell, Verdict::does_not_fit};
  auto last = order.begin();
  for (const Candidate& candidate : found) {
    last = std::find(last, order.end(), candidate.memory.verdict);
    ASSERT_NE(last, order.end());
  }
}

TEST(Plans, AVerdictIsGivenOutsideOfTheBandAlone) {
  Training training = small_plan();
  const MemoryPlan plan = plan_memory(training);
  EXPECT_LT(plan.low_gib, plan.total_gib);
  EXPECT_GT(plan.high_gib, plan.total_gib);
  training.hbm_gib = 1.01 * plan.high_gib;
  EXPECT_EQ(plan_memory(training).verdict, Verdict::fits);
  training.hbm_gib = 0.99 * plan.low_gib;
  EXPECT_EQ(plan_memory(training).verdict, Verdict::does_not_fit);
  training.hbm_gib = plan.total_gib;
  EXPECT_EQ(plan_memory(training).verdict, Verdict::cannot_tell);
}

TEST(Plans, WhatCannotBeSplitIsRefused) {
  Training training = small_plan();
  EXPECT_NO_THROW(check_split(training));
  training.batch_per_device = 10.0 / 16;
  EXPECT_THROW(check_split(training), ValueError);
}

TEST(MaxText, SettingsAreReadAsAPlan) {
  const Slice slice = find_slice("v6e-16");
  const MaxTextPlan plan = maxtext_plan(read_settings("base_emb_dim: 1_024 # width\nlist: [\n  ['a', 'b'],\n]\n"
                                                      "ici_tensor_parallelism: 4\nremat_policy: 'save_qkv_proj'\n"),
                                        &slice);
  EXPECT_EQ(plan.training.model.width, 1024);
  EXPECT_EQ(plan.training.mesh.text(), "fsdp=4,tensor=4");
  EXPECT_EQ(plan.training.remat, "qkv");
  EXPECT_THROW(read_settings("base_emb_dim 1024\n"), ValueError);
}

TEST(Serving, AnInt8CacheHasHalfTheBytes) {
  Serving serving{.model = find_model("llama3.1-8b"), .slice = find_slice("v6e-8"), .batch = 16};
  const ServingPlan wide = plan_serving(serving);
  serving.cache = "int8";
  EXPECT_DOUBLE_EQ(plan_serving(serving).cache_gib, wide.cache_gib / 2);
  EXPECT_DOUBLE_EQ(wide.cache_bytes_per_token, 2 * 2 * 32 * 8 * 128);
  serving.cache = "int4";
  EXPECT_THROW(plan_serving(serving), ValueError);
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
