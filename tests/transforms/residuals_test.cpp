// Each checkpoint policy saves the same residuals for the backward pass as in jax.
#include <capibara/capibara.h>

#include "oracle/expected.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace {

using capibara::Array;
using capibara::concat;
namespace jax = capibara::jax;
namespace lax = capibara::jax::lax;
namespace oracle = capibara::oracle;
namespace policies = capibara::jax::checkpoint_policies;

using Body = std::function<Array(Array, Array, Array)>;

Array mlp(Array x, Array w, Array b) {
  Array hidden = jax::checkpoint_name(lax::sin(lax::dot(x, w)), "hidden");
  return lax::reduce_sum(lax::sin(lax::dot(hidden, w)) * lax::exp(b), {.axes = {0, 1}});
}

Array attention(Array x, Array w, Array) {
  Array x3 = lax::reshape(x, {2, 2, 3});
  Array scores = jax::checkpoint_name(lax::dot_general(x3, x3, {{2}, {2}, {0}, {0}}), "scores");
  Array y = lax::dot_general(lax::exp(scores), x3, {{2}, {1}, {0}, {0}});
  return lax::reduce_sum(lax::sin(lax::dot(lax::reshape(y, {4, 3}), w)), {.axes = {0, 1}});
}

Array loop(Array x, Array w, Array) {
  auto step = [](const Array& c, const Array& row) {
    return std::pair(jax::checkpoint_name(lax::sin(c * row), "carry"), std::monostate{});
  };
  return lax::reduce_sum(lax::scan(step, x, w).first, {.axes = {0}});
}

Array nested(Array x, Array w, Array) {
  auto step = jax::checkpoint([](const Array& c, const Array& row) {
    return std::pair(jax::checkpoint_name(lax::sin(c * row), "carry"), lax::cos(c));
  });
  const auto [carry, stacked] = lax::scan(step, x, w);
  return lax::reduce_sum(lax::sin(carry), {.axes = {0}}) + lax::reduce_sum(lax::sin(stacked), {.axes = {0, 1}});
}

std::optional<jax::CheckpointPolicy> policy_named(const std::string& name) {
  const std::vector<std::string> names = {"hidden", "scores", "carry"};
  const std::map<std::string, std::optional<jax::CheckpointPolicy>> all = {
      {"none", std::nullopt},
      {"everything_saveable", policies::everything_saveable},
      {"nothing_saveable", policies::nothing_saveable},
      {"dots_saveable", policies::dots_saveable},
      {"checkpoint_dots", policies::checkpoint_dots},
      {"dots_with_no_batch_dims_saveable", policies::dots_with_no_batch_dims_saveable},
      {"checkpoint_dots_with_no_batch_dims", policies::checkpoint_dots_with_no_batch_dims},
      {"save_anything_except_these_names", policies::save_anything_except_these_names(names)},
      {"save_any_names_but_these", policies::save_any_names_but_these({"hidden"})},
      {"save_only_these_names", policies::save_only_these_names(names)},
      {"save_from_both_policies", policies::save_from_both_policies(policies::dots_with_no_batch_dims_saveable,
                                                                    policies::save_only_these_names({"scores"}))},
      {"offload_dot_with_no_batch_dims", policies::offload_dot_with_no_batch_dims("device", "pinned_host")},
      {"save_and_offload_only_these_names",
       policies::save_and_offload_only_these_names(
           {.names_which_can_be_saved = {"hidden"}, .names_which_can_be_offloaded = {"scores", "carry"}})},
  };
  return all.at(name);
}

class Residuals : public testing::TestWithParam<std::string> {};

TEST_P(Residuals, AreThoseThatJaxKeeps) {
  const std::map<std::string, Body> bodies = {
      {"mlp", mlp}, {"attention", attention}, {"loop", loop}, {"nested", nested}};
  const std::map<std::string, std::vector<capibara::Shape>> shapes = {{"mlp", {{4, 3}, {3, 3}, {4, 3}}},
                                                                      {"attention", {{4, 3}, {3, 3}, {4, 3}}},
                                                                      {"loop", {{3}, {5, 3}, {3}}},
                                                                      {"nested", {{3}, {5, 3}, {3}}}};
  std::size_t checked = 0;
  for (const oracle::Record& record : oracle::read_records(oracle::recording("residuals.expected"))) {
    std::string body = record.name.substr(0, record.name.find('/')),
                policy = record.name.substr(record.name.find('/') + 1);
    if (body != GetParam() || record.field("error")) continue;
    SCOPED_TRACE(record.name);
    Array x = lax::full(shapes.at(body)[0], 1.0f), w = lax::full(shapes.at(body)[1], 1.0f),
          b = lax::full(shapes.at(body)[2], 1.0f);
    std::vector<jax::SavedResidual> saved;
    if (policy == "without_checkpoint") {
      saved = jax::saved_residuals(bodies.at(body), x, w, b);
    } else {
      saved = jax::saved_residuals(jax::checkpoint(bodies.at(body), {.policy = policy_named(policy)}), x, w, b);
    }
    std::vector<std::string> got, expected;
    // jax wraps the known half of a loop in a call. The offloading policies save in place here, so only the types of
    // their residuals are compared.
    bool offloads = policy.find("offload") != std::string::npos;
    for (const jax::SavedResidual& one : saved) {
      got.push_back(offloads ? to_string(one.type) : concat(to_string(one.type), " ", one.origin));
    }
    for (auto [key, value] : record.fields) {
      if (key != "saved") continue;
      if (std::size_t at = value.find("closed_call"); at != std::string::npos) value.replace(at, 11, "scan");
      expected.push_back(offloads ? value.substr(0, value.find(' ')) : value);
    }
    std::sort(got.begin(), got.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(got, expected);
    ++checked;
  }
  EXPECT_GE(checked, 10u);
}

INSTANTIATE_TEST_SUITE_P(Bodies, Residuals, testing::Values("mlp", "attention", "loop", "nested"),
                         [](const auto& info) { return info.param; });

}  // namespace
