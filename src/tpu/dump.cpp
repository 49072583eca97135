// Buffers, collectives and cycles of a compilation, from libtpu's text dumps.
#include "tpu/dump.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <tuple>

#include "tpu/dump_program.h"

namespace capibara::tpu {

namespace {

constexpr double kDumpGiB = 1073741824;

struct HeapValue {
  std::string_view name;  // without its index
  double size = 0, offset = 0;
  std::string_view shape;
  int64_t first = 0, last = -1;
};

struct Alike {
  int count = 0, first = 0;
  double gib = 0;
};

template <class Visit>
void for_lines(std::string_view text, Visit visit) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    visit(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

double number_at(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  return at == std::string_view::npos ? 0 : std::strtod(std::string(line.substr(at + key.size(), 24)).c_str(), nullptr);
}

std::string_view without_layout(std::string_view shape) { return shape.substr(0, shape.find('{')); }

// "name{1}:3-9" under BufferLiveRange.
std::map<std::string_view, std::pair<int64_t, int64_t>> read_ranges(std::string_view text) {
  std::map<std::string_view, std::pair<int64_t, int64_t>> ranges;
  bool inside = false;
  for_lines(text, [&](std::string_view line) {
    if (line.starts_with("  ") && line.size() > 2 && line[2] != ' ')
      inside = line.find("BufferLiveRange") != std::string_view::npos;
    const std::size_t colon = line.rfind(':'), dash = line.rfind('-');
    if (!inside || colon == std::string_view::npos || dash == std::string_view::npos || dash < colon || colon < 4)
      return;
    ranges[line.substr(4, colon - 4)] = {std::atoll(std::string(line.substr(colon + 1, dash - colon - 1)).c_str()),
                                         std::atoll(std::string(line.substr(dash + 1)).c_str())};
  });
  return ranges;
}

// Bytes of the heap occupied by values that are alive at this moment.
double occupied(const std::vector<HeapValue>& by_offset, int64_t moment) {
  double bytes = 0, reached = -1;
  for (const HeapValue& value : by_offset) {
    if (moment < value.first || moment > value.last) continue;
    const double end = value.offset + value.size, begin = std::max(reached, value.offset);
    if (end > begin) bytes += end - begin;
    reached = std::max(reached, end);
  }
  return bytes;
}

// The instruction that gives the source of a value: its own, or that of the first operand with a line.
const DumpedInstruction* with_source(const DumpedProgram& program, std::string_view name, int depth = 0) {
  const DumpedInstruction* one = program.find(name);
  if (!one || depth > 4 || one->frame > 0 || one->operands.empty()) return one;
  const DumpedInstruction* other = with_source(program, one->operands[0], depth + 1);
  return other && other->frame > 0 ? other : one;
}

const char* const kCollectives[] = {"all-gather", "all-reduce",         "reduce-scatter",
                                    "all-to-all", "collective-permute", "ragged-all-to-all"};

// Bytes of a shape given as text; tuples are summed.
double shape_bytes(std::string_view shape) {
  double bytes = 0;
  for (std::size_t open = shape.find('['); open != std::string_view::npos; open = shape.find('[', open + 1)) {
    std::size_t word = open;
    while (word > 0 && (std::isalnum(static_cast<unsigned char>(shape[word - 1])))) --word;
    const std::string_view type = shape.substr(word, open - word);
    const std::size_t digit = type.find_first_of("0123456789");
    double elements = type == "pred"                    ? 8
                      : digit == std::string_view::npos ? 0
                                                        : std::atof(std::string(type.substr(digit)).c_str());
    for (std::size_t at = open + 1; at < shape.size() && shape[at] != ']';) {
      elements *= std::strtod(std::string(shape.substr(at, 20)).c_str(), nullptr);
      const std::size_t comma = shape.find_first_of(",]", at);
      if (comma == std::string_view::npos || shape[comma] == ']') break;
      at = comma + 1;
    }
    bytes += elements / 8;
  }
  return bytes;
}

}  // namespace

CompiledMemory read_buffers(const std::string& assignment, const std::string& live_ranges, const std::string& program,
                            std::size_t most) {
  CompiledMemory report;
  const auto ranges = read_ranges(live_ranges);
  const DumpedProgram dumped(program);
  std::vector<HeapValue> values;
  bool counted = false, heap = false;
  std::map<std::string, Alike> arguments;  // by shape
  for_lines(assignment, [&](std::string_view line) {
    if (line.starts_with("allocation ")) {
      const std::size_t color = line.find("color ");
      const bool shared = line.find("thread-local") == std::string_view::npos;
      counted = shared && (color == std::string_view::npos || line.substr(color, 8) == "color 0,");
      if (shared && color != std::string_view::npos && line.substr(color, 8) == "color 5,")
        report.host_gib += number_at(line, "size ") / kDumpGiB;
      heap = counted && line.find("preallocated-temp") != std::string_view::npos;
      if (!counted) return;
      const double size = number_at(line, "size ");
      report.total_gib += size / kDumpGiB;
      if (line.find("parameter ") != std::string_view::npos) {
        report.argument_gib += size / kDumpGiB;
        const std::size_t open = line.find("shape |"), close = line.find('|', open + 7);
        if (open == std::string_view::npos) return;
        Alike& alike = arguments[std::string(without_layout(line.substr(open + 7, close - open - 7)))];
        if (alike.count++ == 0) alike.first = static_cast<int>(number_at(line, "parameter "));
        alike.gib += size / kDumpGiB;
      }
      return;
    }
    const std::size_t open = line.find('<'), at = line.find(" @", open), shape = line.find("): ");
    if (!heap || !line.starts_with(" value: ") || at == std::string_view::npos || shape == std::string_view::npos)
      return;
    std::string_view name = line.substr(line.find(' ', open) + 1);
    name = name.substr(0, name.find(' '));
    HeapValue value{name.substr(0, name.find('{')), number_at(line, "(size="), number_at(line, ",offset="),
                    without_layout(line.substr(shape + 3))};
    auto range = ranges.find(name);
    const std::string whole = std::string(name) + "{}";
    if (range == ranges.end()) range = ranges.find(std::string_view(whole));
    if (range != ranges.end()) std::tie(value.first, value.last) = range->second;
    values.push_back(value);
  });
  report.temporary_gib = report.total_gib - report.argument_gib;
  for (const auto& [shape, alike] : arguments) {
    const std::string first = std::to_string(alike.first), others = std::to_string(alike.count - 1);
    report.largest.push_back(
        {alike.gib, shape, alike.count == 1 ? "argument " + first : "argument " + first + " and " + others + " alike",
         ""});
  }
  std::stable_sort(values.begin(), values.end(),
                   [](const HeapValue& a, const HeapValue& b) { return a.offset < b.offset; });
  int64_t length = 0, peak = 0;
  double highest = -1, heap_bytes = 0;
  for (const HeapValue& value : values) {
    length = std::max(length, value.last + 1);
    heap_bytes = std::max(heap_bytes, value.offset + value.size);
  }
  std::vector<int64_t> starts;
  for (const HeapValue& value : values) {
    if (value.last >= value.first && value.size > heap_bytes / 1e4) starts.push_back(value.first);
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  const double always = report.total_gib - heap_bytes / kDumpGiB;
  const int64_t step = std::max<int64_t>(1, (length + 199) / 200);
  report.timeline.assign(static_cast<std::size_t>((length + step - 1) / step), always);
  for (const int64_t moment : starts) {
    const double bytes = occupied(values, moment);
    if (bytes > highest) highest = bytes, peak = moment;
    double& place = report.timeline[static_cast<std::size_t>(moment / step)];
    place = std::max(place, always + bytes / kDumpGiB);
  }
  for (int64_t moment = 0; moment < length; moment += step) {
    double& place = report.timeline[static_cast<std::size_t>(moment / step)];
    place = std::max(place, always + occupied(values, moment) / kDumpGiB);
  }
  // Values at the same heap offset are one buffer; the one with a source line names it.
  std::map<double, CompiledBuffer> places;
  for (const HeapValue& value : values) {
    if (peak < value.first || peak > value.last) continue;
    const DumpedInstruction* one = with_source(dumped, value.name);
    CompiledBuffer buffer{value.size / kDumpGiB, std::string(value.shape),
                          one && !one->scope.empty() ? std::string(one->scope) : std::string(value.name),
                          one ? dumped.source_of(*one) : ""};
    CompiledBuffer& place = places[value.offset];
    const bool better = buffer.gib > place.gib || (buffer.gib == place.gib && place.source.empty());
    if (better) place = buffer;
    if (value.first == peak && !buffer.source.empty()) report.moment = buffer.source + " (" + buffer.operation + ")";
  }
  for (auto& [offset, buffer] : places) report.largest.push_back(std::move(buffer));
  std::stable_sort(report.largest.begin(), report.largest.end(),
                   [](const CompiledBuffer& a, const CompiledBuffer& b) { return a.gib > b.gib; });
  if (report.largest.size() > most) report.largest.resize(most);
  return report;
}

std::vector<CompiledCollective> read_collectives(const std::string& text) {
  const DumpedProgram program(text);
  std::map<std::string, CompiledCollective> found;
  const auto runs = program.runs();
  for (const auto& [name, times] : runs) {
    for (const DumpedInstruction& one : program.computations().at(name).instructions) {
      auto add = [&](std::string_view opcode, std::string_view shape, bool open) {
        for (const char* kind : kCollectives) {
          const bool starts = opcode == std::string(kind) + "-start";
          if (opcode != kind && !starts) continue;
          CompiledCollective& entry = found[kind];
          entry.kind = kind;
          entry.times += times;
          const double gib = times * shape_bytes(shape) / (starts ? 2 : 1) / kDumpGiB;  // of operands and results
          entry.gib += gib;
          if (open && !starts) entry.open_gib += gib;
        }
      };
      add(one.opcode, one.shape, true);
      if (one.opcode != "fusion") continue;
      for (const std::string_view callee : one.called) {
        const auto inside = program.computations().find(callee);
        if (inside == program.computations().end()) continue;
        for (const DumpedInstruction& inner : inside->second.instructions) add(inner.opcode, inner.shape, false);
      }
    }
  }
  std::vector<CompiledCollective> all;
  for (auto& [kind, entry] : found) all.push_back(std::move(entry));
  std::stable_sort(all.begin(), all.end(),
                   [](const CompiledCollective& a, const CompiledCollective& b) { return a.gib > b.gib; });
  return all;
}

CompiledCycles read_cycles(const std::string& text) {
  const DumpedProgram program(text);
  CompiledCycles report;
  std::map<std::string, double> parts;
  for (const auto& [name, times] : program.runs()) {
    for (const DumpedInstruction& one : program.computations().at(name).instructions) {
      if (one.cycles <= 0) continue;
      report.total += times * one.cycles;
      std::string scope(one.scope.starts_with("layers/") ? one.scope.substr(7) : one.scope);
      const std::size_t slash = scope.find('/');
      if (slash != std::string::npos) scope.resize(std::min(scope.find('/', slash + 1), scope.size()));
      parts[scope.empty() ? "(the compiler's own)" : scope] += times * one.cycles;
    }
  }
  report.parts.assign(parts.begin(), parts.end());
  std::stable_sort(report.parts.begin(), report.parts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return report;
}

}  // namespace capibara::tpu
