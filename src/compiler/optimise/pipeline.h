// The pipeline between the transforms and a compiling backend.
#pragma once

#include "compiler/optimise/passes.h"

#include <string>
#include <vector>

namespace capibara {

struct OptimiseOptions {
  // Equations that the backend runs directly; others are composed of simpler ones if their primitive has a lower rule.
  // Empty: all are kept.
  std::function<bool(const Program&, const Equation&)> keep = {};
  passes::OwnRule own_rule = {};  // the backend's own compositions
  // Replaces equations by fused operations that are equal up to rounding, if the backend has them. Empty: none.
  std::function<Program(const Program&)> fuse = {};
  int rounds = 3;          // the maximum; fewer if a round changes nothing
  std::string dump = {};   // a folder for the program after each pass; empty: the value of CAPIBARA_DUMP, if set
  std::string after = {};  // stop after the first run of this pass
};

// The same function of the same inputs, with bitwise identical results except for what `fuse` changes. Types are
// strong: a caller that promises weak types takes them from the original program. Only the outer program has constants.
Program optimise(const Program& program, const OptimiseOptions& options = {});

namespace passes {

struct Pass {
  const char* name;
  const char* doc;  // one line
  Program (*run)(const Program&, const OptimiseOptions&);
};
const std::vector<Pass>& list();  // in the order they run

}  // namespace passes

}  // namespace capibara
