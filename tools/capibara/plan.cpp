// capibara plan: the memory and time of a training step or a program on a TPU slice, modelled, and compiled where
// libtpu is installed.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>

#include <capibara/error.h>
#include <capibara/program.h>
#include <capibara/tpu.h>

#include "command.h"
#include "plan_print.h"
#include "tpu/compiled.h"

namespace capibara::command {

namespace {

double number_of(const Arguments& arguments, const char* name, double otherwise) {
  const std::string text = arguments.text(name, "");
  if (text.empty()) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != 0 || !(value > 0) || value > 1e9)
    throw UsageError{concat("--", name, " needs a number above 0, at most 1e9, got '", text, "'")};
  return value;
}

int64_t count_of(const Arguments& arguments, const char* name, double otherwise) {
  const double value = number_of(arguments, name, otherwise);
  if (value != std::floor(value))
    throw UsageError{concat("--", name, " needs a whole number, got '", arguments.text(name, ""), "'")};
  return static_cast<int64_t>(value);
}

// Checked before a compilation that takes minutes.
void require_writable(const std::string& path) {
  if (!path.empty() && !std::ofstream(path, std::ios::app)) throw RuntimeError(concat(path, " cannot be written"));
}

void check_flags(const std::string& text, const tpu::Chip& chip) {
  for (const auto& [name, value] : tpu::read_init_args(text)) {
    const tpu::FlagVerdict verdict = tpu::check_flag(name, value, tpu::FlagPlace::compile_option);
    if (!verdict.accepted) throw ValueError(verdict.message);
    if (name == "xla_tpu_scoped_vmem_limit_kib") tpu::check_vmem_limit(chip, value);
    std::fprintf(stderr, "flag %s=%s%s\n", name.c_str(), value.c_str(), verdict.is_default ? " (the default)" : "");
  }
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

tpu::CompileChoices choices_of(const Arguments& arguments) {
  tpu::CompileChoices choices;
  choices.command = own_path();
  choices.flags = tpu::read_init_args(arguments.text("flags", ""));
  choices.cycles = arguments.has("cycles");
  choices.seconds = number_of(arguments, "limit", choices.cycles ? 3600 : 600);
  return choices;
}

constexpr int kDoesNotFit = 3, kNoCompiler = 4, kInterrupted = 130;

// Of a compilation that was requested: 4 without libtpu, although the modelled figures have been printed.
int exit_code(const tpu::CompiledProgram& report) {
  if (report.interrupted) return kInterrupted;
  if (!report.done) return report.problem == tpu::libtpu_problem() ? kNoCompiler : 1;
  return report.fits ? 0 : kDoesNotFit;
}

// Raises UsageError for options that this request would ignore.
void refuse_options(const Arguments& arguments, const char* beside, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (arguments.has(name)) throw UsageError{concat("--", name, " has no effect beside ", beside)};
  }
}

int plan_file(const Arguments& arguments, const tpu::Slice& slice) {
  const std::string path = arguments.text("program", ""), text = read_text(path);
  const tpu::ProgramPlan plan = tpu::plan_program(*slice.chip, from_stablehlo(text));
  constexpr double gib = 1073741824;
  const bool fits = plan.peak_bytes / gib <= slice.hbm_gib();
  std::printf("%s on one device of %s, modelled; nothing was run on a TPU\n", path.c_str(), slice.name().c_str());
  std::printf("  arguments %10.4f GiB\n  results   %10.4f GiB\n  peak      %10.4f GiB of %.2f%s%s\n",
              plan.argument_bytes / gib, plan.output_bytes / gib, plan.peak_bytes / gib, slice.hbm_gib(),
              plan.peak_source.empty() ? "" : ", at ", plan.peak_source.c_str());
  std::printf("  matmuls   %10.3f TFLOP, %.3f ms\n  memory    %10.3f ms for arguments and results\n", plan.flops / 1e12,
              1e3 * plan.matmul_seconds, 1e3 * plan.memory_seconds);
  if (!arguments.has("compile") && !arguments.has("cycles")) return fits ? 0 : kDoesNotFit;
  const tpu::CompiledProgram report = [&] {
    const Waiting waiting(concat("compiling ", path));
    return compile_program(text, slice, choices_of(arguments));
  }();
  print_compiled(report, slice, plan.peak_bytes / gib, plan.matmul_seconds + plan.memory_seconds);
  return exit_code(report);
}

// Compiles the best plans of a search; progress goes to stderr.
std::vector<tpu::CompiledProgram> confirm(const std::vector<tpu::Candidate>& found,
                                          const tpu::CompileChoices& choices) {
  std::vector<tpu::CompiledProgram> all;
  for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), 10); ++i) {
    const tpu::Training& training = found[i].training;
    std::fprintf(stderr, "compiling %zu of 10: %s, batch %g, remat %s\n", i + 1, training.mesh.text().c_str(),
                 training.batch_per_device, training.remat.c_str());
    tpu::CompileChoices own = choices;
    own.cycles = false;
    for (const auto& [name, value] : tpu::read_init_args(step_flags(training))) own.flags.try_emplace(name, value);
    const Waiting waiting("compiling the training step");
    all.push_back(compile_step(training, own));
    if (all.back().interrupted) break;
  }
  return all;
}

// The files and NAME=VALUE words after --maxtext; later ones override earlier ones.
tpu::MaxTextPlan maxtext_of(const Arguments& arguments) {
  refuse_options(arguments, "--maxtext, whose files say it",
                 {"model", "program", "batch", "seq", "mesh", "remat", "precision", "search"});
  std::map<std::string, std::string> settings = tpu::read_settings(read_text(arguments.text("maxtext", "")));
  bool more = false;
  for (const std::string& word : arguments.words) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) {
      const std::string name = word.substr(0, equals);
      if (settings.count(name) == 0)
        throw ValueError(concat("maxtext: the files have no setting '", name, "' to override"));
      settings[name] = word.substr(equals + 1);
      continue;
    }
    more = true;
    for (auto& [name, value] : tpu::read_settings(read_text(word))) settings[name] = value;
  }
  const std::string model = settings.count("model_name") ? settings["model_name"] : "default";
  if (model != "default" && !more)
    throw ValueError(
        concat("maxtext: model_name is ", model, "; give its file too: --maxtext base.yml ", model, ".yml"));
  if (!arguments.has("tpu")) return tpu::maxtext_plan(settings);
  const tpu::Slice slice = tpu::find_slice(arguments.text("tpu", ""));
  return tpu::maxtext_plan(settings, &slice);
}

int serve(const Arguments& arguments, const tpu::Slice& slice) {
  refuse_options(
      arguments, "--serve",
      {"program", "maxtext", "seq", "remat", "precision", "search", "compile", "cycles", "html", "write", "flags"});
  if (!arguments.has("model")) throw UsageError{"--serve needs --model NAME"};
  tpu::Serving serving;
  serving.model = tpu::read_model(arguments.text("model", ""));
  serving.slice = slice;
  if (arguments.has("mesh")) {
    const tpu::PlanMesh mesh = tpu::read_mesh(arguments.text("mesh", ""));
    if (mesh.devices() != mesh.tensor) throw UsageError{"--serve splits over tensor alone: --mesh tensor=8"};
    serving.tensor = mesh.tensor;
  }
  serving.batch = count_of(arguments, "batch", 1);
  serving.prompt = count_of(arguments, "prompt", arguments.number("prompt"));
  serving.output = count_of(arguments, "output", arguments.number("output"));
  serving.weights = arguments.text("weights");
  serving.cache = arguments.text("cache");
  serving.page = count_of(arguments, "page", arguments.number("page"));
  serving.price = number_of(arguments, "price", 0);
  const tpu::ServingPlan plan = plan_serving(serving);
  if (arguments.has("json"))
    print_serving_json(serving, plan);
  else
    print_serving(serving, plan);
  return plan.fits ? 0 : kDoesNotFit;
}

}  // namespace

int plan(const Arguments& arguments) {
  if (!arguments.words.empty() && !arguments.has("maxtext"))
    throw UsageError{concat("unexpected '", arguments.words[0], "'")};
  if (arguments.has("models")) {
    refuse_options(arguments, "--models",
                   {"tpu", "model", "program", "maxtext", "serve", "search", "compile", "cycles"});
    for (const tpu::Architecture& model : tpu::model_presets())
      std::printf("%-16s %-10s %8.2f billion parameters\n", model.name.c_str(), model.kind.c_str(),
                  model.parameters() / 1e9);
    return 0;
  }
  tpu::Training training;
  if (arguments.has("maxtext")) {
    const tpu::MaxTextPlan read = maxtext_of(arguments);
    training = read.training;
    for (const std::string& remark : read.remarks) std::fprintf(stderr, "maxtext: %s\n", remark.c_str());
  } else {
    if (!arguments.has("tpu")) throw UsageError{"--tpu is needed, such as --tpu v6e-64"};
    training.slice = tpu::find_slice(arguments.text("tpu", ""));
  }
  if (arguments.has("serve")) return serve(arguments, training.slice);
  refuse_options(arguments, "a plan without --serve", {"prompt", "output", "weights", "cache", "page"});
  check_flags(arguments.text("flags", ""), *training.slice.chip);
  if (!arguments.has("compile") && !arguments.has("cycles"))
    refuse_options(arguments, "a plan without --compile or --cycles", {"limit"});
  if (arguments.has("program")) {
    refuse_options(arguments, "--program, which has its own sizes and shardings",
                   {"model", "batch", "seq", "mesh", "remat", "precision", "price", "search", "html", "write", "json"});
    return plan_file(arguments, training.slice);
  }
  if (!arguments.has("maxtext")) {
    if (!arguments.has("model"))
      throw UsageError{"--model NAME or --program FILE is needed; --models lists the presets"};
    training.model = tpu::read_model(arguments.text("model", ""));
    training.sequence = count_of(arguments, "seq", arguments.number("seq"));
    training.remat = arguments.text("remat");
    training.precision = arguments.text("precision");
    training.mesh.fsdp = training.slice.devices() / training.slice.slices;
    training.mesh.dcn_data = training.slice.slices;
    if (arguments.has("mesh")) training.mesh = tpu::read_mesh(arguments.text("mesh", ""));
  }
  for (const auto& [name, value] : tpu::read_init_args(arguments.text("flags", ""))) {
    if (name == "xla_tpu_scoped_vmem_limit_kib")
      training.large_vmem = std::atoll(value.c_str()) >= tpu::large_vmem_kib(*training.slice.chip);
  }
  const double price = number_of(arguments, "price", 0);
  const double batch = static_cast<double>(count_of(arguments, "batch", 0));
  const tpu::CompileChoices choices = choices_of(arguments);
  const std::string html = arguments.text("html", "");
  require_writable(html);
  if (!arguments.has("maxtext")) training.batch_per_device = batch > 0 ? batch / training.slice.devices() : 1;
  if (arguments.has("search"))
    refuse_options(arguments, "--search, which tries all of them", {"mesh"});
  else
    check_split(training);
  std::vector<tpu::Candidate> found;
  if (arguments.has("search")) {
    tpu::SearchOptions options;
    options.global_batch = batch;
    if (arguments.has("remat")) options.remats = {training.remat};
    found = search_plans(training, options);
    if (found.empty())
      throw ValueError(concat("plan: no mesh of ", training.slice.name(), " splits ", training.model.name,
                              " with a batch of ", batch));
    training = found[0].training;
  }
  if (const std::string path = arguments.text("write", ""); !path.empty()) {
    std::ofstream file(path);
    if (!(file << tpu::step_stablehlo(training))) throw RuntimeError(concat(path, " cannot be written"));
    std::fprintf(stderr, "%s: the training step as StableHLO\n", path.c_str());
  }
  const bool json = arguments.has("json"), compiles = arguments.has("compile") || arguments.has("cycles");
  if (!json) print_plan(training, price);
  std::vector<tpu::CompiledProgram> confirmed;
  std::optional<tpu::CompiledProgram> whole;
  if (compiles && !found.empty() && tpu::libtpu_problem().empty()) {
    confirmed = confirm(found, choices);
    // The first that fits according to the compiler; if none does, the first.
    std::size_t best = 0;
    for (std::size_t i = confirmed.size(); i-- > 0;)
      if (confirmed[i].done && confirmed[i].fits) best = i;
    training = found[best].training;
    if (!choices.cycles && confirmed[best].done) whole = confirmed[best];
  }
  const bool stopped = !confirmed.empty() && confirmed.back().interrupted;
  if (compiles && !whole && !stopped) {
    const Waiting waiting("compiling the training step");
    whole = compile_step(training, choices);
  }
  if (json) {
    print_json(training, price, whole ? &*whole : nullptr, found, confirmed);
  } else {
    if (!found.empty()) print_search(found, confirmed);
    if (!found.empty() && !compiles) std::printf("not confirmed by the compiler: give --compile\n");
    const tpu::StepPlan step = plan_step(training);
    if (whole)
      print_compiled(*whole, training.slice, plan_memory(training).total_gib,
                     step.seconds - step.ici - step.dcn - step.host);
  }
  const bool interrupted = stopped || (whole && whole->interrupted);
  if (interrupted) return kInterrupted;
  std::vector<tpu::CompiledFigure> matmuls;
  if (arguments.has("cycles") && whole && whole->done && !json) matmuls = compile_matmuls(training);
  if (!html.empty()) {
    std::ofstream file(html);
    if (!(file << plan_html(training, found, matmuls, whole ? &*whole : nullptr)))
      throw RuntimeError(concat(html, " cannot be written"));
    if (!json) std::printf("\n%s: the report\n", html.c_str());
  }
  if (whole) return exit_code(*whole);
  return plan_memory(training).verdict == tpu::Verdict::does_not_fit ? kDoesNotFit : 0;
}

}  // namespace capibara::command
