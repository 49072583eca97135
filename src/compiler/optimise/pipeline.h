// The pipeline: what happens to a program between the transforms and a compiling backend.
#pragma once

#include "compiler/optimise/passes.h"

#include <string>
#include <vector>

namespace capibara {

struct OptimiseOptions {
  // Equations that the backend runs as they are; others are composed of simpler ones where their primitive has a lower
  // rule. Empty: everything is kept.
  std::function<bool(const Program&, const Equation&)> keep = {};
  passes::OwnRule own_rule = {};  // the backend's own compositions
  // Fused operations in place of what means the same up to rounding, where the backend has them. Empty: none.
  std::function<Program(const Program&)> fuse = {};
  int rounds = 3;          // at most; fewer where a round changes nothing
  std::string dump = {};   // a folder for the program after each pass; empty: what CAPIBARA_DUMP names, if anything
  std::string after = {};  // stop after the first run of this pass
};

// The same function of the same inputs, with the same results bit by bit, but for what `fuse` changes. Types are
// strong: a caller that promises weak types takes them from the program it gave. Only the outer program has constants.
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
