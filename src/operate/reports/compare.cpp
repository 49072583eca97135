// Two profiles of the same work: which lines became slower.
#include <capibara/error.h>
#include <capibara/profile.h>

#include <algorithm>
#include <map>

#include "io/files/json.h"
#include "operate/reports/text.h"

namespace capibara::profile {

namespace {

struct Line {
  double nanoseconds = 0;  // per execution of its program
  double longest = 0;
  std::string what;
};

// By program and source. Sites without a source are distinguished by name.
std::map<std::pair<std::string, std::string>, Line> lines_of(const Profile& profile) {
  std::map<std::string, double> executions;
  for (const Event& event : profile.events) {
    if (event.kind == EventKind::module_execution)
      executions[profile.programs[static_cast<std::size_t>(event.program)].name] += 1;
  }
  std::map<std::pair<std::string, std::string>, Line> lines;
  for (const Slot& slot : profile.slots) {
    if (slot.calls == 0) continue;
    const std::string program = slot.program < 0 ? "" : profile.programs[static_cast<std::size_t>(slot.program)].name;
    std::string source = source_of(slot);
    if (source.empty()) source = concat("(", slot.name.substr(0, slot.name.rfind('.')), ")");
    const double times = slot.program < 0 ? static_cast<double>(slot.calls) : std::max(executions[program], 1.0);
    const double own = static_cast<double>(slot.nanoseconds) / times;
    Line& line = lines[{program, source}];
    line.nanoseconds += own;
    if (own >= line.longest) {
      line.longest = own;
      line.what = slot.name;
    }
  }
  return lines;
}

}  // namespace

std::vector<Change> compare(const Profile& before, const Profile& after) {
  const auto old = lines_of(before), now = lines_of(after);
  std::vector<Change> changes;
  for (const auto& [key, line] : now) {
    const auto it = old.find(key);
    changes.push_back(
        {key.second, key.first, line.what, it == old.end() ? 0 : it->second.nanoseconds, line.nanoseconds});
  }
  for (const auto& [key, line] : old) {
    if (!now.count(key)) changes.push_back({key.second, key.first, line.what, line.nanoseconds, 0});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.after - a.before > b.after - b.before; });
  return changes;
}

std::string to_string(const std::vector<Change>& changes, std::size_t max_rows) {
  std::string text =
      formatted("%10s %10s %11s %7s  %-34s %s\n", "before", "after", "difference", "ratio", "what", "source");
  std::size_t shown = 0;
  for (const Change& change : changes) {
    if (shown++ == max_rows) {
      text += concat("... and ", changes.size() - max_rows, " more\n");
      break;
    }
    const double difference = change.after - change.before;
    const std::string ratio = change.before > 0 && change.after > 0 ? formatted("%.2f", change.after / change.before)
                              : change.after > 0                    ? std::string("new")
                                                                    : std::string("gone");
    const std::string what = change.program.empty() ? change.what : concat(change.program, ": ", change.what);
    text += formatted(
        "%10s %10s %11s %7s  %-34s %s\n", readable_time(change.before).c_str(), readable_time(change.after).c_str(),
        concat(difference < 0 ? "-" : "+", readable_time(difference < 0 ? -difference : difference)).c_str(),
        ratio.c_str(), tail_of(what, 34).c_str(), tail_of(change.source, 60).c_str());
  }
  return text;
}

std::string to_json(const std::vector<Change>& changes) {
  Json::List list;
  for (const Change& change : changes) {
    list.push_back(Json::Object{{"source", change.source},
                                {"program", change.program},
                                {"what", change.what},
                                {"before", change.before},
                                {"after", change.after}});
  }
  return Json(std::move(list)).dump();
}

}  // namespace capibara::profile
