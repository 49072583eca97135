// The table of targets for objects.
#include "backends/cpu/object/targets.h"

#include <capibara/error.h>

#include <algorithm>

namespace capibara::cpu {

namespace {

struct ObjectTarget {
  const char* name;
  const char* triple;
  const char* cpu;
  std::vector<std::string> features;
  int vector_bytes;
};

// The x86-64 psABI levels, limited to what generated code uses; aarch64 is ARMv8-A with NEON.
const std::vector<ObjectTarget>& object_target_table() {
  static const std::vector<ObjectTarget> table = [] {
    const std::vector<std::string> v3 = {"+sse3", "+ssse3", "+sse4.1", "+sse4.2", "+popcnt", "+avx",
                                         "+avx2", "+fma",   "+f16c",   "+bmi",    "+bmi2",   "+lzcnt"};
    std::vector<std::string> v4 = v3;
    v4.insert(v4.end(), {"+avx512f", "+avx512cd", "+avx512bw", "+avx512dq", "+avx512vl"});
    return std::vector<ObjectTarget>{
        {"x86-64-v3", "x86_64-unknown-linux-gnu", "x86-64", v3, 32},
        {"x86-64-v4", "x86_64-unknown-linux-gnu", "x86-64", v4, 64},
        {"aarch64", "aarch64-unknown-linux-gnu", "generic", {"+neon"}, 16},
    };
  }();
  return table;
}

Target target_named(const std::string& name) {
  if (name == "native") return process_target();
  std::string names = "native";
  for (const ObjectTarget& row : object_target_table()) {
    if (name == row.name) return {row.triple, row.cpu, row.features, row.vector_bytes};
    names += concat(", ", row.name);
  }
  throw ValueError(
      concat("compile_object: there is no target '", name, "' (argument 'targets'); expected one of ", names));
}

}  // namespace

std::vector<Target> object_targets(const std::vector<std::string>& names) {
  std::vector<Target> targets;
  for (const std::string& name : names) targets.push_back(target_named(name));
  if (targets.empty())
    throw ValueError("compile_object: expected one target or several (argument 'targets'), got none");
  for (std::size_t i = 1; i < targets.size(); ++i) {
    const bool levels = names[i] != "native" && names[i - 1] != "native" && targets[i].triple == targets[0].triple &&
                        targets[i].vector_bytes > targets[i - 1].vector_bytes;
    if (levels) continue;
    throw ValueError(concat("compile_object: several targets are rising levels of one architecture (argument ",
                            "'targets'), x86-64-v3 and x86-64-v4, got ", names[i - 1], " before ", names[i],
                            "; make an object for each"));
  }
  return targets;
}

}  // namespace capibara::cpu
