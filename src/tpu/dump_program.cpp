// Parses the text of a scheduled program: computations, instructions, the tables of source lines.
#include "tpu/dump_program.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace capibara::tpu {

namespace {

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-'; }

std::string_view name_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_name(text[end])) ++end;
  return text.substr(at, end - at);
}

// The names after `key`, one or {a, b}, without percent signs.
void names_after(std::string_view line, std::string_view key, std::vector<std::string_view>& names) {
  const std::size_t found = line.find(key);
  if (found == std::string_view::npos) return;
  std::size_t at = found + key.size();
  const std::size_t end = at < line.size() && line[at] == '{' ? line.find('}', at) : line.find(',', at);
  for (at = line.find('%', at); at < std::min(end, line.size()); at = line.find('%', at + 1))
    names.push_back(name_at(line, at + 1));
}

int number_after(std::string_view line, std::string_view key) {
  const std::size_t found = line.find(key);
  if (found == std::string_view::npos) return 0;
  return std::atoi(std::string(line.substr(found + key.size(), 12)).c_str());
}

bool read_instruction(std::string_view line, DumpedInstruction& one) {
  std::size_t at = line.find_first_not_of(' ');
  if (at == std::string_view::npos) return false;
  if (line.substr(at, 5) == "ROOT ") at += 5;
  if (at < line.size() && line[at] == '%') ++at;
  one.text = line;
  one.name = name_at(line, at);
  const std::size_t equals = line.find(" = ", at);
  if (one.name.empty() || equals != at + one.name.size()) return false;
  // The opcode is the first lower-case word that follows a space and precedes an opening parenthesis.
  for (std::size_t space = equals + 2; space < line.size(); space = line.find(' ', space + 1)) {
    if (space == std::string_view::npos) return false;
    std::size_t end = space + 1;
    while (end < line.size() && (std::islower(static_cast<unsigned char>(line[end])) || line[end] == '-' ||
                                 std::isdigit(static_cast<unsigned char>(line[end]))))
      ++end;
    if (end == space + 1 || end >= line.size() || line[end] != '(') continue;
    one.opcode = line.substr(space + 1, end - space - 1);
    one.shape = line.substr(equals + 3, space - equals - 3);
    const std::size_t close = line.find(')', end);
    for (std::size_t operand = line.find('%', end); operand < std::min(close, line.size());
         operand = line.find('%', operand + 1))
      one.operands.push_back(name_at(line, operand + 1));
    break;
  }
  if (one.opcode.empty()) return false;
  std::vector<std::string_view> condition;
  names_after(line, " condition=", condition);
  if (!condition.empty()) one.condition = condition[0];
  for (const char* key :
       {" body=", " branch_computations=", " true_computation=", " false_computation=", " calls=", " to_apply="})
    names_after(line, key, one.called);
  if (const std::size_t scope = line.find("op_name=\""); scope != std::string_view::npos)
    one.scope = line.substr(scope + 9, line.find('"', scope + 9) - scope - 9);
  one.frame = number_after(line, "stack_frame_id=");
  static constexpr std::string_view key = "\"estimated_cycles\":\"";
  if (const std::size_t cycles = line.find(key); cycles != std::string_view::npos)
    one.cycles = std::strtod(std::string(line.substr(cycles + key.size(), 24)).c_str(), nullptr);
  return true;
}

}  // namespace

DumpedProgram::DumpedProgram(std::string_view text) {
  DumpedComputation* open = nullptr;
  read_frames(text);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line == "}") {
      open = nullptr;
    } else if (!line.empty() && (line[0] == '%' || line.starts_with("ENTRY ")) && line.ends_with("{")) {
      const bool entry = line[0] == 'E';
      const std::size_t at = line.find('%');
      if (at == std::string_view::npos) continue;
      open = &computations_[name_at(line, at + 1)];
      open->entry = entry;
    } else if (open) {
      DumpedInstruction one;
      if (read_instruction(line, one)) open->instructions.push_back(std::move(one));
    }
  }
  for (const auto& [name, computation] : computations_) {
    for (const DumpedInstruction& one : computation.instructions) instructions_.try_emplace(one.name, &one);
  }
}

// FileNames, FileLocations and StackFrames: numbered lines before the first computation.
void DumpedProgram::read_frames(std::string_view text) {
  std::string_view section;
  const std::size_t last = std::min(text.find("\n%"), text.size());
  for (std::size_t begin = 0; begin < last;) {
    const std::size_t end = std::min(text.find('\n', begin), last);
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line == "FileNames" || line == "FunctionNames" || line == "FileLocations" || line == "StackFrames")
      section = line;
    const int id = std::atoi(std::string(line.substr(0, 12)).c_str());
    if (id <= 0) continue;
    if (section == "FileNames") {
      const std::size_t open = line.find('"'), close = line.rfind('"');
      if (open < close && close != std::string_view::npos) files_[id] = line.substr(open + 1, close - open - 1);
    } else if (section == "FileLocations") {
      places_[id] = {number_after(line, "file_name_id="), number_after(line, " line=")};
    } else if (section == "StackFrames") {
      frames_[id] = number_after(line, "file_location_id=");
    }
  }
}

const DumpedInstruction* DumpedProgram::find(std::string_view name) const {
  const auto it = instructions_.find(name);
  return it == instructions_.end() ? nullptr : it->second;
}

std::string DumpedProgram::source_of(const DumpedInstruction& instruction) const {
  const auto frame = frames_.find(instruction.frame);
  if (frame == frames_.end()) return "";
  const auto place = places_.find(frame->second);
  if (place == places_.end()) return "";
  const auto file = files_.find(place->second.first);
  return file == files_.end() ? "" : std::string(file->second) + ":" + std::to_string(place->second.second);
}

double DumpedProgram::trips(std::string_view condition) const {
  const auto it = computations_.find(condition);
  if (it == computations_.end()) return 1;
  double most = 0;
  for (const DumpedInstruction& one : it->second.instructions) {
    if (one.opcode != "constant" || !(one.shape.starts_with("s32[]") || one.shape.starts_with("s64[]"))) continue;
    const std::size_t at = one.text.find("constant(");
    most = std::max(most, std::strtod(std::string(one.text.substr(at + 9, 20)).c_str(), nullptr));
  }
  return most > 0 ? most : 1;
}

void DumpedProgram::count(std::string_view computation, double times, int depth,
                          std::map<std::string_view, double>& runs) const {
  const auto it = computations_.find(computation);
  if (it == computations_.end() || depth > 64) return;
  runs[computation] += times;
  for (const DumpedInstruction& one : it->second.instructions) {
    if (one.opcode == "while") {
      for (const std::string_view body : one.called) count(body, times * trips(one.condition), depth + 1, runs);
    } else if (one.opcode == "conditional") {
      for (const std::string_view branch : one.called)
        count(branch, times / static_cast<double>(one.called.size()), depth + 1, runs);
    } else if (one.opcode == "call" || one.opcode == "async-start") {
      for (const std::string_view callee : one.called) count(callee, times, depth + 1, runs);
    }
  }
}

std::map<std::string_view, double> DumpedProgram::runs() const {
  std::map<std::string_view, double> runs;
  for (const auto& [name, computation] : computations_) {
    if (computation.entry) count(name, 1, 0, runs);
  }
  return runs;
}

}  // namespace capibara::tpu
