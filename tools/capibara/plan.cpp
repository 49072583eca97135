// capibara plan: what a training step or a program will need and take on a TPU slice, modelled, and compiled where
// libtpu is.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <capibara/error.h>
#include <capibara/program.h>
#include <capibara/tpu.h>

#include "command.h"
#include "tpu/compiled.h"

namespace capibara::command {

namespace {

double number_of(const Arguments& arguments, const char* name, double otherwise) {
  const std::string text = arguments.text(name, "");
  if (text.empty()) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != 0 || !(value > 0) || value > 1e9)
    throw UsageError{concat("--", name, " needs a positive number, got '", text, "'")};
  return value;
}

void check_flags(const std::string& text) {
  for (const auto& [name, value] : tpu::read_init_args(text)) {
    const tpu::FlagVerdict verdict = tpu::check_flag(name, value, tpu::FlagPlace::compile_option);
    if (!verdict.accepted) throw ValueError(verdict.message);
    std::printf("flag %s=%s%s\n", name.c_str(), value.c_str(), verdict.is_default ? " (the default)" : "");
  }
}

void print_plan(const tpu::Training& training) {
  const tpu::MemoryPlan memory = plan_memory(training);
  const tpu::StepPlan step = plan_step(training);
  std::printf("%s, %.2f billion parameters, on %s (%d chips, %d devices, %s)\n", training.model.name.c_str(),
              training.model.parameters() / 1e9, training.slice.name().c_str(), training.slice.chips(),
              training.slice.devices(), training.slice.topology().c_str());
  std::printf("mesh %s, %g sequences of %lld on each device, remat %s\n", training.mesh.text().c_str(),
              training.batch_per_device, static_cast<long long>(training.sequence), training.remat.c_str());
  std::printf("every figure below is modelled by capibara; nothing was run on a TPU\n\n");
  std::printf("step          %10.3f s      %.0f tokens/s\n", step.seconds, step.tokens_per_second);
  std::printf("model FLOP/s  %10.1f T/chip %.1f %% of the peak (attention counted causally; %.1f for all pairs)\n",
              step.model_tflops_per_chip, 100 * step.mfu, step.model_tflops_per_chip_noncausal);
  std::printf("bound by      %s: compute %.0f %%, memory %.0f %%, communication %.0f %%\n", step.bound.c_str(),
              100 * step.compute_share, 100 * step.memory_share, 100 * step.communication_share);
  const std::pair<const char*, double> kinds[] = {{"matmuls", step.matmul},      {"computed again", step.recompute},
                                                  {"attention", step.attention}, {"elementwise", step.elementwise},
                                                  {"optimizer", step.optimizer}, {"collectives, exposed", step.ici},
                                                  {"between slices", step.dcn}};
  for (const auto& [name, seconds] : kinds) std::printf("  %-22s %10.3f s\n", name, seconds);
  std::printf("\nmemory        %10.2f GiB of %.2f on each device, at the %s: %s (room %.2f GiB)\n", memory.total_gib,
              memory.limit_gib, memory.moment.c_str(), memory.fits ? "fits" : "does not fit", memory.room_gib());
  for (const tpu::PlanBuffer& buffer : memory.buffers)
    std::printf("  %-30s %8.2f GiB\n", buffer.name.c_str(), buffer.gib);
  if (memory.host_gib > 0) std::printf("  %-30s %8.2f GiB\n", "in the host's memory", memory.host_gib);
  for (const tpu::Recommendation& one : recommend(training)) std::printf("try %s\n", one.text.c_str());
}

void print_json(const tpu::Training& training) {
  const tpu::MemoryPlan memory = plan_memory(training);
  const tpu::StepPlan step = plan_step(training);
  std::printf(
      "{\"origin\": \"modelled\", \"model\": \"%s\", \"slice\": \"%s\", \"mesh\": \"%s\", \"batch_per_device\": %g, "
      "\"sequence\": %lld, "
      "\"remat\": \"%s\", \"step_seconds\": %.6g, \"tokens_per_second\": %.6g, \"tflops_per_chip\": %.6g, \"mfu\": "
      "%.4g, \"bound\": \"%s\", "
      "\"memory_gib\": %.6g, \"limit_gib\": %.6g, \"fits\": %s}\n",
      training.model.name.c_str(), training.slice.name().c_str(), training.mesh.text().c_str(),
      training.batch_per_device, static_cast<long long>(training.sequence), training.remat.c_str(), step.seconds,
      step.tokens_per_second, step.model_tflops_per_chip, step.mfu, step.bound.c_str(), memory.total_gib,
      memory.limit_gib, memory.fits ? "true" : "false");
}

void print_search(const std::vector<tpu::Candidate>& found) {
  std::printf("\n%zu plans, best first (modelled):\n%-28s %8s %-8s %10s %12s %7s\n", found.size(), "mesh", "batch",
              "remat", "GiB", "tokens/s", "MFU");
  for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), 10); ++i) {
    const tpu::Candidate& one = found[i];
    std::printf("%-28s %8g %-8s %9.2f%s %12.0f %5.1f %%\n", one.training.mesh.text().c_str(),
                one.training.batch_per_device, one.training.remat.c_str(), one.memory.total_gib,
                one.memory.fits ? " " : "*", one.step.tokens_per_second, 100 * one.step.mfu);
  }
  if (!found.empty() && !found[0].memory.fits) std::printf("* does not fit\n");
}

// The distinct matmuls of a layer, modelled and compiled for the same chip.
std::vector<tpu::CompiledFigure> compile_matmuls(const tpu::Training& training) {
  std::vector<tpu::CompiledFigure> figures;
  const tpu::Chip& chip = *training.slice.chip;
  const tpu::Architecture& m = training.model;
  const int64_t tensor = training.mesh.tensor;
  const int64_t group =
      std::llround(training.batch_per_device * static_cast<double>(training.sequence) * static_cast<double>(tensor));
  const std::pair<const char*, std::pair<int64_t, int64_t>> shapes[] = {
      {"q, k, v", {std::llround(m.qkv()) / tensor, m.width}},
      {"up", {m.hidden / tensor, m.width}},
      {"down", {m.width, m.hidden / tensor}}};
  for (const auto& [name, sizes] : shapes) {
    if (sizes.first < 1) continue;
    const tpu::Matmul matmul{1, group, sizes.first, sizes.second, tpu::Precision::bf16, true, true};
    std::string problem;
    const double seconds = tpu::compiled_matmul_seconds(own_path(), chip, matmul, &problem);
    if (seconds <= 0) {
      std::printf("not compiled: %s\n", problem.c_str());
      break;
    }
    figures.push_back({concat(name, ": ", group, " x ", sizes.second, " x ", sizes.first, ", ms"),
                       1e3 * matmul_cost(chip, matmul).seconds, 1e3 * seconds});
  }
  if (!figures.empty())
    std::printf("\n%-44s %12s %12s\n", "compiled for one device (cycles of libtpu)", "modelled", "compiled");
  for (const tpu::CompiledFigure& figure : figures)
    std::printf("%-44s %9.3f ms %9.3f ms\n", figure.name.c_str(), figure.modelled, figure.compiled);
  return figures;
}

int plan_file(const Arguments& arguments, const tpu::Slice& slice) {
  const std::string path = arguments.text("program", ""), text = read_text(path);
  const tpu::ProgramPlan plan = tpu::plan_program(*slice.chip, from_stablehlo(text));
  constexpr double gib = 1073741824;
  std::printf("%s on one device of %s, modelled; nothing was run on a TPU\n", path.c_str(), slice.name().c_str());
  std::printf("  arguments %10.4f GiB\n  results   %10.4f GiB\n  peak      %10.4f GiB of %.2f%s%s\n",
              plan.argument_bytes / gib, plan.output_bytes / gib, plan.peak_bytes / gib, slice.hbm_gib(),
              plan.peak_source.empty() ? "" : ", at ", plan.peak_source.c_str());
  std::printf("  matmuls   %10.3f TFLOP, %.3f ms\n  memory    %10.3f ms for arguments and results\n", plan.flops / 1e12,
              1e3 * plan.matmul_seconds, 1e3 * plan.memory_seconds);
  if (!arguments.has("compile") && !arguments.has("cycles")) return 0;
  tpu::CompileRequest request;
  request.command = own_path();
  request.text = text;
  request.topology = slice.topology();
  request.config = slice.chip->config;
  request.only_memory = !arguments.has("cycles");
  request.options = tpu::read_init_args(arguments.text("flags", ""));
  const tpu::CompileReport report = tpu::compile_in_child(request);
  if (!report.done) {
    std::printf("not compiled: %s\n", report.problem.c_str());
    return report.problem == tpu::libtpu_problem() ? 0 : 1;
  }
  std::printf("compiled for %s by libtpu in %.1f s: %.4f GiB on each device, %s\n", slice.topology().c_str(),
              report.seconds, report.total_gib, report.fits ? "fits" : "does not fit");
  if (report.cycles > 0)
    std::printf("compiled cycles %.0f: %.3f ms at %.2f GHz, collectives not counted\n", report.cycles,
                report.cycles / slice.chip->clock_ghz / 1e6, slice.chip->clock_ghz);
  return 0;
}

}  // namespace

int plan(const Arguments& arguments) {
  if (!arguments.words.empty()) throw UsageError{concat("unexpected '", arguments.words[0], "'")};
  if (arguments.has("models")) {
    for (const tpu::Architecture& model : tpu::model_presets())
      std::printf("%-16s %-10s %8.2f billion parameters\n", model.name.c_str(), model.kind.c_str(),
                  model.parameters() / 1e9);
    return 0;
  }
  if (!arguments.has("tpu")) throw UsageError{"--tpu is needed, such as --tpu v6e-64"};
  tpu::Training training;
  training.slice = tpu::find_slice(arguments.text("tpu", ""));
  check_flags(arguments.text("flags", ""));
  if (arguments.has("program")) return plan_file(arguments, training.slice);
  if (!arguments.has("model")) throw UsageError{"--model NAME or --program FILE is needed; --models lists the presets"};
  training.model = tpu::find_model(arguments.text("model", ""));
  training.sequence = static_cast<int64_t>(number_of(arguments, "seq", 2048));
  training.remat = arguments.text("remat", "full");
  training.mesh.fsdp = training.slice.devices() / training.slice.slices;
  training.mesh.dcn_data = training.slice.slices;
  if (arguments.has("mesh")) training.mesh = tpu::read_mesh(arguments.text("mesh", ""));
  const double batch = number_of(arguments, "batch", 0);
  training.batch_per_device = batch > 0 ? batch / training.slice.devices() : 1;
  std::vector<tpu::Candidate> found;
  if (arguments.has("search")) {
    tpu::SearchOptions options;
    options.global_batch = batch;
    found = search_plans(training, options);
    if (found.empty())
      throw ValueError(concat("plan: no mesh of ", training.slice.name(), " splits ", training.model.name,
                              " with a batch of ", batch));
    training = found[0].training;
  }
  if (arguments.has("json")) {
    print_json(training);
    return 0;
  }
  print_plan(training);
  if (!found.empty()) print_search(found);
  std::vector<tpu::CompiledFigure> compiled;
  if (arguments.has("cycles") || arguments.has("compile")) compiled = compile_matmuls(training);
  const std::string html = arguments.text("html", "");
  if (html.empty()) return 0;
  std::ofstream file(html);
  if (!(file << plan_html(training, found, compiled))) throw RuntimeError(concat(html, " cannot be written"));
  std::printf("\n%s: the report\n", html.c_str());
  return 0;
}

}  // namespace capibara::command
