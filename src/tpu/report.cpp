// The report of a plan: one self-contained HTML page with drawings, without network access or scripts.
#include <capibara/error.h>
#include <capibara/tpu/costs.h>
#include <capibara/tpu/plan.h>

#include <algorithm>
#include <cmath>

#include "tpu/drawing.h"
#include "tpu/step.h"

namespace capibara::tpu {

using namespace drawing;

namespace {

// Horizontal bars with their values.
std::string bars(const std::vector<PlanBuffer>& rows, const char* unit) {
  double most = 1e-30;
  for (const PlanBuffer& row : rows) most = std::max(most, row.gib);
  std::string inside;
  double y = 8;
  for (const PlanBuffer& row : rows) {
    const double length = row.gib / most * (kWidth - 330);
    inside += label(210, y + 14, row.name, "end");
    inside += concat("<rect class='bar' x='220' y='", number(y, 1), "' height='18' width='",
                     number(std::max(length, 0.5), 1), "'/>");
    inside += label(226 + length, y + 14, concat(number(row.gib, 3), " ", unit));
    y += 26;
  }
  return frame(inside, y + 6);
}

// Memory over the step, with the limit of the device.
std::string memory_drawing(const MemoryPlan& memory) {
  double most = memory.limit_gib;
  for (const PlanBuffer& moment : memory.timeline) most = std::max(most, moment.gib);
  const double step = (kWidth - kLeft - 20) / static_cast<double>(memory.timeline.size() - 1),
               high = kHeight - kBottom - 12;
  auto y_of = [&](double gib) { return kHeight - kBottom - gib / (1.08 * most) * high; };
  std::string points, inside;
  for (std::size_t i = 0; i < memory.timeline.size(); ++i) {
    const double x = kLeft + step * static_cast<double>(i), y = y_of(memory.timeline[i].gib);
    points += concat(number(x, 1), ",", number(y, 1), " ");
    inside += concat("<circle class='dot' r='3.5' cx='", number(x, 1), "' cy='", number(y, 1), "'><title>",
                     escaped(memory.timeline[i].name), ": ", number(memory.timeline[i].gib), " GiB</title></circle>");
    inside += label(x, kHeight - (i % 2 ? 4 : 18), memory.timeline[i].name, "middle");
  }
  inside += concat("<polyline class='curve' points='", points, "'/>",
                   line(kLeft, y_of(memory.limit_gib), kWidth - 12, y_of(memory.limit_gib), "limit"));
  inside += label(kWidth - 12, y_of(memory.limit_gib) - 5, concat("HBM ", number(memory.limit_gib), " GiB"), "end");
  inside += label(4, y_of(memory.total_gib) + 4, number(memory.total_gib, 1)) + label(4, y_of(0), "0 GiB");
  return frame(inside);
}

// FLOPs per byte against FLOP/s, both logarithmic: the chip's roof and the matmuls of a layer.
std::string roofline(const Training& training) {
  const Chip& chip = *training.slice.chip;
  const double peak = chip.bf16_tflops / chip.devices, bandwidth = chip.hbm_gbps / chip.devices / 1e3;  // TFLOP/s, TB/s
  const Architecture& m = training.model;
  const double tensor = training.mesh.tensor, group = training.batch_per_device * as_number(training.sequence) * tensor;
  struct Shape {
    const char* name;
    double rows, columns, inner;
  };
  std::vector<Shape> shapes = {{"up", group, as_number(m.hidden) / tensor, as_number(m.width)},
                               {"down", group, as_number(m.width), as_number(m.hidden) / tensor},
                               {"vocabulary", group, as_number(m.vocab) / tensor, as_number(m.width)}};
  if (m.kind != "mamba") shapes.push_back({"q, k, v", group, m.qkv() / tensor, as_number(m.width)});
  auto x_of = [&](double intensity) { return kLeft + std::log10(intensity) / 4.2 * (kWidth - kLeft - 90); };
  auto y_of = [&](double tflops) {
    return kHeight - kBottom - (std::log10(tflops / peak) + 2.5) / 2.8 * (kHeight - kBottom - 10);
  };
  const double knee = peak / bandwidth;
  std::string inside = line(x_of(1), y_of(std::max(bandwidth, peak * 0.004)), x_of(knee), y_of(peak), "roof") +
                       line(x_of(knee), y_of(peak), kWidth - 10, y_of(peak), "roof");
  inside += label(kWidth - 10, y_of(peak) - 5, concat(number(peak, 0), " TFLOP/s, one device"), "end");
  double y = 60;
  for (const Shape& shape : shapes) {
    const Matmul matmul{1,
                        std::max<int64_t>(1, std::llround(shape.rows)),
                        std::max<int64_t>(1, std::llround(shape.columns)),
                        std::max<int64_t>(1, std::llround(shape.inner)),
                        Precision::bf16,
                        true,
                        false};
    const double bytes = 2 * (shape.rows * shape.inner + shape.inner * shape.columns + shape.rows * shape.columns);
    const MatmulCost cost = matmul_cost(chip, matmul);
    const double x = x_of(cost.flops / bytes);
    inside += concat("<circle class='dot' r='5' cx='", number(x, 1), "' cy='", number(y_of(cost.tflops()), 1),
                     "'><title>", shape.name, "</title></circle>");
    inside += label(kLeft + 8, y,
                    concat(shape.name, ": ", number(cost.tflops(), 0), " TFLOP/s at ", number(cost.flops / bytes, 0),
                           " FLOP/byte"));
    y += 18;
  }
  inside += label(kLeft, kHeight - 8, "FLOP for each byte of HBM, logarithmic; points: matmuls of the model, modelled");
  return frame(inside);
}

// Tokens per second of the same program on other slices of this chip.
std::string scaling(const Training& training) {
  std::vector<PlanBuffer> rows;
  for (const int size : slice_sizes(*training.slice.chip)) {
    if (rows.size() >= 9 || size * 16 < training.slice.chips_per_slice()) continue;
    Training other = training;
    other.slice = slice_of(*training.slice.chip, size);
    other.slice.slices = training.slice.slices;
    const int devices = other.slice.devices() / other.slice.slices / training.mesh.tensor / training.mesh.expert /
                        training.mesh.context;
    other.mesh.data = 1;
    other.mesh.fsdp = devices;
    if (devices < 1 || other.mesh.devices() != other.slice.devices()) continue;
    try {
      const Verdict verdict = plan_memory(other).verdict;
      rows.push_back(
          {concat(other.slice.name(), verdict == Verdict::fits ? "" : concat(" (", verdict_text(verdict), ")")),
           plan_step(other).tokens_per_second / 1e3});
    } catch (const ValueError&) {
      continue;
    }
  }
  return bars(rows, "k tokens/s");
}

const char* verdict_mark(Verdict verdict) {
  return verdict == Verdict::fits ? "" : verdict == Verdict::cannot_tell ? " (cannot tell)" : " (over)";
}

}  // namespace

std::string plan_html(const Training& training, const std::vector<Candidate>& others,
                      const std::vector<CompiledFigure>& compiled, const CompiledProgram* whole) {
  const MemoryPlan memory = plan_memory(training);
  const StepPlan step = plan_step(training);
  std::string page = concat(
      "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' "
      "content='width=device-width,initial-scale=1'><title>",
      escaped(training.model.name), " on ", training.slice.name(),
      "</title><style>:root{color-scheme:light dark}body{font:15px/1.45 "
      "system-ui,sans-serif;max-width:980px;margin:2em auto;padding:0 1em}"
      "svg{width:100%;max-width:760px;font-size:12px}text{fill:currentColor}.bar{fill:#4c78a8}.curve{fill:none;stroke:#"
      "4c78a8;stroke-width:2}"
      ".dot{fill:#4c78a8}.limit{stroke:#c44;stroke-dasharray:5 "
      "4}.roof{stroke:#888;stroke-width:2}table{border-collapse:collapse;display:block;overflow-x:auto}"
      "td,th{padding:.2em .8em .2em 0;text-align:left;border-bottom:1px solid "
      "#8884}.wide{overflow-x:auto}.origin{opacity:.7}</style>");
  page += concat("<h1>", escaped(training.model.name), " on ", training.slice.name(),
                 "</h1><p class='origin'>Modelled by capibara; nothing on this page was run on a TPU.</p>");
  page += "<table>";
  auto row = [&](const char* name, const std::string& value, const char* origin) {
    page += concat("<tr><th>", name, "</th><td>", escaped(value), "</td><td class='origin'>", origin, "</td></tr>");
  };
  row("parameters", concat(number(training.model.parameters() / 1e9), " billion"), "counted");
  row("mesh", training.mesh.text(), "given");
  row("batch",
      concat(number(training.batch_per_device * training.slice.devices(), 0), " sequences of ", training.sequence),
      "given");
  row("remat", training.remat, "given");
  row("step",
      concat(number(step.seconds, 3), " s (", number(step.low_seconds, 3), " to ", number(step.high_seconds, 3),
             ", cross-validated), ", number(step.tokens_per_second, 0), " tokens/s"),
      "modelled");
  row("model FLOP/s",
      concat(number(step.model_tflops_per_chip, 1), " TFLOP/s per chip, ", number(100 * step.mfu, 1), " % of the peak"),
      "modelled");
  row("bound by", step.bound, "modelled");
  row("memory",
      concat(number(memory.total_gib), " of ", number(memory.limit_gib), " GiB on each device (",
             number(memory.low_gib), " to ", number(memory.high_gib),
             ", cross-validated): ", verdict_text(memory.verdict)),
      "modelled");
  page += "</table>";
  page += concat("<h2>Memory over the step</h2>", memory_drawing(memory), "<h2>Largest buffers, at the ", memory.moment,
                 "</h2>", bars(memory.buffers, "GiB"));
  page += concat("<h2>Time by kind</h2>", bars({{"matmuls", step.matmul},
                                                {"computed again", step.recompute},
                                                {"attention", step.attention},
                                                {"elementwise", step.elementwise},
                                                {"optimizer", step.optimizer},
                                                {"collectives, exposed", step.ici},
                                                {"between slices", step.dcn},
                                                {"to the host and back, exposed", step.host}},
                                               "s"));
  page += concat("<h2>Roofline</h2>", roofline(training), "<h2>Scaling over chips</h2>", scaling(training));
  if (whole) page += compiled_html(memory, step, training.slice, *whole);
  if (!compiled.empty()) {
    page +=
        "<h2>Modelled and compiled, matmuls</h2><table><tr><th>operation</th><th>modelled</th><th>compiled by "
        "libtpu</th><th>ratio</th></tr>";
    for (const CompiledFigure& figure : compiled) {
      page += concat("<tr><td>", escaped(figure.name), "</td><td>", number(figure.modelled, 3), "</td><td>",
                     number(figure.compiled, 3), "</td><td>", number(figure.modelled / figure.compiled), "</td></tr>");
    }
    page += "</table>";
  } else if (!whole) {
    page +=
        "<h2>Modelled and compiled</h2><p>No compiled figures: give --compile or --cycles where libtpu is installed "
        "(x86_64 "
        "alone).</p>";
  }
  if (!others.empty()) {
    page +=
        "<h2>Other plans</h2><table><tr><th>mesh</th><th>batch per "
        "device</th><th>remat</th><th>GiB</th><th>tokens/s</th></tr>";
    for (std::size_t i = 0; i < std::min<std::size_t>(others.size(), 15); ++i) {
      const Candidate& other = others[i];
      page +=
          concat("<tr><td>", other.training.mesh.text(), "</td><td>", other.training.batch_per_device, "</td><td>",
                 other.training.remat, "</td><td>", number(other.memory.total_gib), verdict_mark(other.memory.verdict),
                 "</td><td>", number(other.step.tokens_per_second, 0), "</td></tr>");
    }
    page += "</table>";
  }
  return page + "</html>\n";
}

}  // namespace capibara::tpu
