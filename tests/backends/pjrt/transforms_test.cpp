// Transform programs on a plugin: every body under every stack of transforms gives jax's values.
#include "backends/pjrt/on_plugin.h"
#include "transforms/bodies.h"

#include <cstdlib>

namespace capibara::pjrt {
namespace {

class TransformsSlow : public OnPlugin, public testing::WithParamInterface<std::string> {};

TEST_P(TransformsSlow, GiveTheValuesOfJax) {
  int number = 0;
  transform_programs::for_each_stack(GetParam(), [&](const transform_programs::Case& one) {
    if (one.record.field("error") || one.record.field("limitation")) return;
    // XLA takes two minutes for all of them: runs a third, the same in each run, unless all are requested.
    static const bool every_call = std::getenv("CAPIBARA_EVERY_CALL") != nullptr;
    if (!every_call && number++ % 3 != 0) return;
    const Arrays outputs = jax::jit(one.function)(one.inputs);
    const auto expected = one.record.all("output");
    ASSERT_EQ(outputs.size(), expected.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto difference = oracle::difference(outputs[i], expected[i]);
      EXPECT_FALSE(difference) << "output " << i << ": " << difference.value_or("");
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Bodies, TransformsSlow, testing::ValuesIn(transform_programs::body_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace capibara::pjrt
