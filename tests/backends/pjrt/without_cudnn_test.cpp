// Attention that cuDNN unexpectedly rejects: another plugin stands in for such a version of cuDNN.
#include <capibara/kernels/attention.h>

#include "backends/pjrt/executable.h"
#include "backends/pjrt/on_plugin.h"
#include "core/runtime/warning.h"
#include "program/trace/stage.h"

namespace capibara::pjrt {
namespace {

using WithoutCudnn = OnPlugin;

std::vector<std::string>& warnings() {
  static std::vector<std::string> texts;
  return texts;
}

TEST_F(WithoutCudnn, AttentionRunsByOtherMeansAndSaysSo) {
  if (plugin_platform() != "xla_cpu") GTEST_SKIP() << "this plugin may have cuDNN";
  const FlatFunction flat = [](std::span<const Array> in) {
    return Arrays{kernels::flash_attention(in[0], in[0], in[0], {.causal = true})};
  };
  const Array x = jax::random::normal(jax::random::key(0), {.shape = {1, 2, 8, 16}}).astype(DType::bfloat16);
  const Program program = stage(flat, Types{x.type()}, "attend").program;
  Client& device = client("xla_cpu");
  std::vector<std::string> texts;
  const auto compile = [&](const Prepared& prepared, const std::vector<int>& devices) -> std::shared_ptr<Loaded> {
    texts.push_back(prepared.text);
    CompileOptions options = standard_options("xla_cpu");
    options.devices.assign(devices.begin(), devices.end());
    return device.compile(prepared.text, options, "attend");
  };
  set_warning_handler([](const std::string& text, WarningKind) { warnings().push_back(text); });
  PjrtExecutable executable(device, program, {}, {false, {}, [] { return 90; }}, device.first_device(), compile);
  const Arrays inputs = {x}, got = executable.execute(inputs, {}), want = on_reference(program, inputs);
  set_warning_handler({});
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_NE(texts[0].find("@__cudnn$fmhaSoftmax"), std::string::npos);
  EXPECT_EQ(texts[1].find("@__cudnn$"), std::string::npos);
  ASSERT_EQ(warnings().size(), 1u);
  EXPECT_TRUE(warnings()[0].starts_with("attend: attention runs without cuDNN, which refuses it: ")) << warnings()[0];
  const std::vector<float> a = got[0].to_vector<float>(), b = want[0].to_vector<float>();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 0.02) << "element " << i;
}

}  // namespace
}  // namespace capibara::pjrt
