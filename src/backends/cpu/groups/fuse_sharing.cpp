// Decides how large a nest may become by the inputs it still lacks, and whether two results have inputs in common.
#include "backends/cpu/groups/fuse_sharing.h"

#include <algorithm>
#include <set>

namespace capibara::cpu {

namespace {

constexpr int max_wide_group = 160;          // equations of a nest that lacks many inputs
constexpr std::size_t many_waiting = 4;      // how many those are
constexpr std::size_t near_equations = 512;  // after an equation, among which its readers are searched
constexpr std::size_t max_makers = 64;

// The equation whose loops compute an operand; -1 if it comes from elsewhere or is a scalar.
int maker_of(const Program& program, const Fusion& fusion, Atom input) {
  if (input.is_literal() || program.type(input).size() < 2) return -1;
  const int definition = fusion.definition[at(input.code)];
  if (definition < 0 || work_of(program, program.equations()[at(definition)]) != Work::loops) return -1;
  return definition;
}

// Equations and the nearest ones that they are computed from, as far as loops can compute these.
std::vector<int> makers_of(const Program& program, const Fusion& fusion, std::vector<int> makers) {
  for (std::size_t i = 0; i < makers.size() && makers.size() < max_makers; ++i) {
    for (Atom input : program.equations()[at(makers[i])].inputs) {
      const int maker = maker_of(program, fusion, input);
      if (maker >= 0 && std::find(makers.begin(), makers.end(), maker) == makers.end()) makers.push_back(maker);
    }
  }
  return makers;
}

}  // namespace

bool has_room(const Program& program, const Fusion& fusion, int equation, int group) {
  const int size = fusion.groups[at(group)].size;
  if (size < max_group) return true;
  if (size >= max_wide_group) return false;
  std::set<int32_t> waiting;
  const std::size_t end = std::min(program.equations().size(), at(equation) + near_equations);
  for (std::size_t e = at(equation); e < end; ++e) {
    if (fusion.home[e] != group) continue;
    for (Atom input : program.equations()[e].inputs) {
      const int maker = maker_of(program, fusion, input);
      if (maker >= 0 && fusion.home[at(maker)] < 0) waiting.insert(input.code);
    }
  }
  return waiting.size() >= many_waiting;
}

bool reads_with(const Program& program, const Fusion& fusion, const std::vector<std::vector<int>>& readers,
                int equation, int group) {
  const std::vector<int> own = makers_of(program, fusion, {equation});
  for (int maker : own) {
    for (Atom input : program.equations()[at(maker)].inputs) {
      if (input.is_literal() || program.type(input).size() < 2) continue;
      for (int reader : readers[at(input.code)]) {
        if (fusion.home[at(reader)] == group) return true;
      }
    }
  }
  const Group& other = fusion.groups[at(group)];
  const std::vector<int> others = makers_of(program, fusion, other.results);
  return std::any_of(own.begin() + 1, own.end(), [&](int maker) {
    return fusion.home[at(maker)] < 0 && program.type(program.equations()[at(maker)].outputs[0]).shape == other.space &&
           std::find(others.begin(), others.end(), maker) != others.end();
  });
}

}  // namespace capibara::cpu
