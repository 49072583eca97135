// Elements of drawings, and the compiled part of the report.
#include "tpu/drawing.h"

#include <capibara/error.h>

#include <algorithm>
#include <cstdio>

namespace capibara::tpu {

namespace drawing {

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

std::string frame(const std::string& inside, double height) {
  return concat("<svg viewBox='0 0 ", number(kWidth, 0), " ", number(height, 0), "' role='img'>", inside, "</svg>\n");
}

std::string label(double x, double y, const std::string& text, const char* anchor) {
  return concat("<text x='", number(x, 1), "' y='", number(y, 1), "' text-anchor='", anchor, "'>", escaped(text),
                "</text>");
}

std::string line(double x1, double y1, double x2, double y2, const char* kind) {
  return concat("<line class='", kind, "' x1='", number(x1, 1), "' y1='", number(y1, 1), "' x2='", number(x2, 1),
                "' y2='", number(y2, 1), "'/>");
}

}  // namespace drawing

using namespace drawing;

namespace {

std::string schedule_drawing(const std::vector<double>& timeline, double limit) {
  const double most = std::max(limit, *std::max_element(timeline.begin(), timeline.end()));
  auto y_of = [&](double gib) { return kHeight - kBottom - gib / (1.08 * most) * (kHeight - kBottom - 12); };
  const double step = (kWidth - kLeft - 20) / static_cast<double>(std::max<std::size_t>(timeline.size() - 1, 1));
  std::string points;
  for (std::size_t i = 0; i < timeline.size(); ++i)
    points += concat(number(kLeft + step * static_cast<double>(i), 1), ",", number(y_of(timeline[i]), 1), " ");
  std::string inside = concat("<polyline class='curve' points='", points, "'/>",
                              line(kLeft, y_of(limit), kWidth - 12, y_of(limit), "limit"));
  inside += label(kWidth - 12, y_of(limit) - 5, concat("HBM ", number(limit), " GiB"), "end");
  inside += label(4, y_of(0), "0 GiB") + label(kLeft, kHeight - 8, "first operation of the schedule");
  return frame(inside + label(kWidth - 12, kHeight - 8, "last", "end"));
}

}  // namespace

std::string compiled_html(const MemoryPlan& memory, const StepPlan& step, const Slice& slice,
                          const CompiledProgram& program) {
  std::string page = "<h2>Modelled and compiled, the whole step</h2>";
  if (!program.done) return concat(page, "<p>Not compiled: ", escaped(program.problem), "</p>");
  page += concat("<p class='origin'>Compiled for ", slice.topology(), " by libtpu in ", number(program.seconds, 1),
                 " s; nothing was run on a TPU.</p><div class='wide'><table><tr><th></th><th>modelled</th>"
                 "<th>compiled</th><th>ratio</th></tr>");
  auto row = [&](const char* name, double modelled, double compiled, int digits) {
    page += concat("<tr><th>", name, "</th><td>", number(modelled, digits), "</td><td>", number(compiled, digits),
                   "</td><td>", compiled > 0 ? number(modelled / compiled) : "", "</td></tr>");
  };
  row("memory of a device, GiB", memory.total_gib, program.memory.total_gib, 2);
  row("state, GiB", memory.state_gib, program.memory.argument_gib, 2);
  page += concat("<tr><th>fits in ", number(memory.limit_gib), " GiB</th><td>", verdict_text(memory.verdict),
                 "</td><td>", program.fits ? "yes" : "no", "</td><td></td></tr>");
  if (program.cycles.total > 0) {
    row("compute, s (collectives and kernels have no cycles)", step.seconds - step.ici - step.dcn - step.host,
        program.cycles.total / slice.chip->clock_ghz / 1e9, 3);
  }
  page += "</table></div>";
  if (program.memory.timeline.size() > 1)
    page += concat("<h2>Memory over the schedule, compiled</h2>",
                   schedule_drawing(program.memory.timeline, memory.limit_gib));
  if (!program.memory.largest.empty()) {
    page += concat("<h2>Largest buffers, compiled</h2><p class='origin'>At the peak",
                   program.memory.moment.empty() ? "" : concat(", ", escaped(program.memory.moment)),
                   ".</p><div class='wide'><table><tr><th>GiB</th><th>shape</th><th>operation</th><th>line</th></tr>");
    for (const CompiledBuffer& buffer : program.memory.largest) {
      page += concat("<tr><td>", number(buffer.gib, 3), "</td><td>", escaped(buffer.shape), "</td><td>",
                     escaped(buffer.operation), "</td><td>", escaped(buffer.source), "</td></tr>");
    }
    page += "</table></div>";
  }
  if (!program.collectives.empty()) {
    page +=
        "<h2>Collectives, compiled</h2><div class='wide'><table><tr><th>kind</th><th>times</th><th>GiB on a "
        "device</th><th>of it in the open</th></tr>";
    for (const CompiledCollective& one : program.collectives) {
      page += concat("<tr><td>", one.kind, "</td><td>", number(one.times, 0), "</td><td>", number(one.gib), "</td><td>",
                     number(one.open_gib), "</td></tr>");
    }
    page += "</table></div>";
  }
  if (program.cycles.total > 0) {
    page += "<h2>Cycles by part, compiled</h2><table><tr><th>part</th><th>share</th></tr>";
    for (const auto& [name, cycles] : program.cycles.parts) {
      if (cycles > 0.005 * program.cycles.total)
        page += concat("<tr><td>", escaped(name), "</td><td>", number(100 * cycles / program.cycles.total, 1),
                       " %</td></tr>");
    }
    page += "</table>";
  }
  return page;
}

}  // namespace capibara::tpu
