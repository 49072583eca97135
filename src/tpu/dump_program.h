// A scheduled program of libtpu as text, split into computations and instructions.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace capibara::tpu {

struct DumpedInstruction {
  std::string_view name, opcode, shape;
  std::vector<std::string_view> operands;
  std::vector<std::string_view> called;  // body of a loop, branches, the computation of a call
  std::string_view condition;            // of a loop
  std::string_view scope;                // op_name
  int frame = 0;                         // stack_frame_id
  double cycles = 0;
  std::string_view text;
};

struct DumpedComputation {
  std::vector<DumpedInstruction> instructions;
  bool entry = false;
};

// Views into the text, which must outlive it. Unrecognized lines are skipped.
class DumpedProgram {
 public:
  explicit DumpedProgram(std::string_view text);

  const std::map<std::string_view, DumpedComputation>& computations() const { return computations_; }
  const DumpedInstruction* find(std::string_view name) const;
  std::string source_of(const DumpedInstruction& instruction) const;  // file:line, or empty
  // How often each computation runs per run of the program; those of fusions and reductions are not included.
  std::map<std::string_view, double> runs() const;

 private:
  void read_frames(std::string_view text);
  double trips(std::string_view condition) const;
  void count(std::string_view computation, double times, int depth, std::map<std::string_view, double>& runs) const;

  std::map<std::string_view, DumpedComputation> computations_;
  std::map<std::string_view, const DumpedInstruction*> instructions_;
  std::map<int, std::string_view> files_;
  std::map<int, std::pair<int, int>> places_;  // file, line
  std::map<int, int> frames_;
};

}  // namespace capibara::tpu
