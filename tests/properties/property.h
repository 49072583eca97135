// A property as a test: one test for each primitive of the catalog that has calls, on all its calls.
#pragma once

#include "properties/exceptions.h"

#include <optional>
#include <set>
#include <span>

namespace capibara::properties {

// The test parameters: names of the primitives that have calls; Catalog.EveryPrimitiveHasCalls lists those without,
// and why.
inline std::vector<std::string> primitive_names() {
  std::vector<std::string> names;
  for (const Primitive& primitive : catalog()) {
    if (!calls_of(primitive).empty()) names.push_back(primitive.name());
  }
  return names;
}
inline std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

// A property of one primitive, given by name. Operations run on the reference backend, the ground truth; a test of
// another backend names it. Skipped means that the property cannot apply: no call of the primitive was checked, and the
// message says why.
class Property : public testing::TestWithParam<std::string> {
 public:
  static inline int checked = 0, inapplicable = 0, lacking = 0;
  static inline std::set<std::string> reasons = {};  // of exceptions

 protected:
  void SetUp() override {
    checked = inapplicable = lacking = 0;
    reasons.clear();
    Config settings = config();
    settings.platform = "reference";
    scope_.emplace(settings);
  }
  void TearDown() override {
    scope_.reset();
    if (checked > 0 || HasFailure() || IsSkipped()) return;
    std::string why;
    if (inapplicable > 0) why += concat(" the property says nothing about ", inapplicable, " calls;");
    if (lacking > 0) why += concat(" ", lacking, " calls need a rule that is not there;");
    for (const std::string& reason : reasons) why += concat(" ", reason, ";");
    if (why.empty()) {
      ADD_FAILURE() << "the primitive has no calls: nothing was checked";
      return;
    }
    why.back() = '.';
    GTEST_SKIP() << "cannot apply:" << why;
  }

 private:
  std::optional<ConfigScope> scope_;
};

// Runs a check on calls of one primitive. The check returns an empty text, or what is wrong. Missing rules are counted
// separately: missing_rules_test.cpp compares them with jax's.
template <class Check>
void for_each_call(const std::string& property, std::span<const Call> calls, Check&& check) {
  Tally& tally = Tally::of(property);
  int failures = 0;
  for (const Call& call : calls) {
    if (failures >= 6) return;
    if (const Exception* exception = exception_for(property, call)) {
      tally.except();
      Property::reasons.emplace(exception->reason);
      continue;
    }
    ConfigScope scope = config_for(call);
    try {
      std::string text = check(call);
      if (text == not_applicable) {
        ++Property::inapplicable;
        continue;
      }
      ++Property::checked;
      if (text.empty()) {
        tally.pass();
      } else {
        tally.fail(call, text);
        ++failures;
      }
    } catch (const NotImplementedError& error) {
      if (is_known_refusal(call, error.what())) {
        ++Property::lacking;
        tally.lack(call, error.what());
      } else {
        tally.fail(call, concat("refused: ", error.what()));
        ++failures;
      }
    } catch (const std::exception& error) {
      tally.fail(call, concat("raised ", error.what()));
      ++failures;
    }
  }
}
// The same on every call of a primitive.
template <class Check>
void for_each_call(const std::string& property, const std::string& name, Check&& check) {
  for_each_call(property, std::span<const Call>(calls_of(capibara::primitive(name))), std::forward<Check>(check));
}

}  // namespace capibara::properties
