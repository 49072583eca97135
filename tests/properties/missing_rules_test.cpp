// Missing rules: jax 0.10.2 also lacks every rule that one of our primitives lacks (the recording rules.expected).
#include <capibara/primitive.h>

#include "backends/reference/kernels.h"
#include "data/recordings.h"
#include "properties/hard_points.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace capibara {
namespace {

// One line of rules.expected.
struct JaxPrimitive {
  bool in_lax = false;
  std::set<std::string> rules;
};

std::map<std::string, JaxPrimitive> read_rules() {
  std::ifstream file(oracle::recording("rules.expected"));
  std::map<std::string, JaxPrimitive> result;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name, where, rule;
    words >> name >> where;
    JaxPrimitive& entry = result[name];
    entry.in_lax = where == "lax";
    while (words >> rule) entry.rules.insert(rule);
  }
  return result;
}

// Primitives that have another name in jax.
const std::map<std::string, std::string> renamed = {};

// Primitives that jax does not have, and why they are here.
const std::map<std::string, std::string> own = {
    {"is_inf", "chlo.is_inf, for the reader"},
    {"is_pos_inf", "chlo.is_pos_inf, for the reader"},
    {"is_neg_inf", "chlo.is_neg_inf, for the reader"},
    {"map", "stablehlo.map, for the reader"},
    {"batch_norm_training", "stablehlo.batch_norm_training, for the reader"},
    {"batch_norm_inference", "stablehlo.batch_norm_inference, for the reader"},
    {"batch_norm_grad", "stablehlo.batch_norm_grad, for the reader"},
    {"sort_general", "stablehlo.sort with any comparator"},
    {"custom_call", "stablehlo.custom_call, for the reader"},
    {"multiply_add", "the product and sum that jax's compiler fuses in random.uniform"},
    {"random_gamma_grad", "lax.random_gamma_grad, which jax composes of other operations"},
    {"process_all_gather", "what a collective of shard_map becomes where its axis crosses processes"},
    {"process_permute", "as process_all_gather"},
    {"process_reduce", "as process_all_gather"},
};

// Primitives that jax.lax exposes and this library does not have, and why.
const std::map<std::string, std::string> absent = {
    {"dce_sink", "keeps a value alive through jax's own removal of dead code"},
    {"device_put", "arrays move between devices outside of programs"},
    {"ragged_all_to_all", "lax.ragged_all_to_all is a composition of all_to_all and all_gather"},
    {"stage", "jax's own marker of the stages of its compiler"},
};

// Rules that jax has and our primitive lacks, and why.
const std::map<std::string, std::string> not_needed = {
    {"pure_callback lowering", "a function of the host cannot be written down; backends call it"},
    {"io_callback lowering", "as pure_callback"},
    {"debug_callback lowering", "as pure_callback"},
    {"custom_lin lowering", "transposition removes it before lowering"},
    {"random_wrap lowering", "lower() itself turns keys into words"},
    {"random_unwrap lowering", "lower() itself turns keys into words"},
    {"psum_invariant lowering", "written as psum: a text has no types that vary"},
    {"all_gather_invariant lowering", "as psum_invariant"},
    {"unreduced_psum lowering", "as psum_invariant"},
    {"all_gather_reduced lowering", "written as all_gather"},
    {"unreduced_reduce_scatter lowering", "written as reduce_scatter"},
    {"pbroadcast lowering", "written as all_gather: XLA has no such operation for the CPU"},
    {"get transpose", "the backward pass handles refs itself"},
    {"swap transpose", "the backward pass handles refs itself"},
    {"addupdate transpose", "the backward pass handles refs itself"},
};

bool has_rule(const PrimitiveRecord& record, const std::string& rule) {
  if (rule == "jvp") return record.jvp || !record.differentiable;
  if (rule == "transpose") return static_cast<bool>(record.transpose);
  if (rule == "batch") return static_cast<bool>(record.batch);
  return record.lower || !record.stablehlo.empty();
}

TEST(MissingRules, AreThoseOfJax) {
  std::map<std::string, JaxPrimitive> jax = read_rules();
  ASSERT_FALSE(jax.empty()) << oracle::recording("rules.expected") << " was not found";
  int ours = 0, theirs = 0;
  for (const Primitive& primitive : catalog()) {
    auto other = renamed.find(primitive.name());
    auto entry = jax.find(other == renamed.end() ? primitive.name() : other->second);
    if (entry == jax.end()) continue;
    for (const char* rule : {"jvp", "transpose", "batch", "lowering"}) {
      bool we = has_rule(primitive.record(), rule), they = entry->second.rules.count(rule) > 0;
      ours += !we;
      theirs += !they;
      std::string key = primitive.name() + " " + rule;
      bool excused = not_needed.count(key) > 0;
      EXPECT_TRUE(we || !they || excused) << key << ": jax has this rule";
      EXPECT_FALSE(we && excused) << key << " is there: it need not be excused";
    }
  }
  std::printf("rules missing among the primitives that both have: %d here, %d in jax\n", ours, theirs);
}

TEST(MissingRules, NoPrimitiveOfLaxIsMissing) {
  std::set<std::string> names;
  for (const Primitive& primitive : catalog()) {
    auto other = renamed.find(primitive.name());
    names.insert(other == renamed.end() ? primitive.name() : other->second);
  }
  for (const auto& [name, entry] : read_rules()) {
    if (!entry.in_lax) continue;
    EXPECT_NE(names.count(name) > 0, absent.count(name) > 0)
        << name << (absent.count(name) ? " is there: it need not be excused" : " is missing");
  }
}

// Every primitive is one of jax's, a fused operation, or has a reason to exist.
TEST(MissingRules, OwnPrimitivesAreExplained) {
  std::map<std::string, JaxPrimitive> jax = read_rules();
  for (const Primitive& primitive : catalog()) {
    if (properties::is_fused(primitive)) continue;
    bool known = jax.count(primitive.name()) || renamed.count(primitive.name());
    EXPECT_NE(known, own.count(primitive.name()) > 0)
        << primitive.name() << (known ? " is in jax too" : " is not in jax");
  }
}

}  // namespace
}  // namespace capibara
