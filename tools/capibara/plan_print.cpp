// Tables and JSON of capibara plan; each figure with its origin.
#include "plan_print.h"

#include <algorithm>
#include <cstdio>

#include <capibara/error.h>

namespace capibara::command {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  }
  return out + "\"";
}

std::string six(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string compiled_json(const tpu::CompiledProgram& program) {
  if (!program.done) return concat("{\"origin\": \"not compiled\", \"problem\": ", quoted(program.problem), "}");
  std::string buffers, collectives, parts, timeline;
  for (const tpu::CompiledBuffer& one : program.memory.largest)
    buffers += concat(buffers.empty() ? "" : ", ", "{\"gib\": ", six(one.gib), ", \"shape\": ", quoted(one.shape),
                      ", \"operation\": ", quoted(one.operation), ", \"source\": ", quoted(one.source), "}");
  for (const tpu::CompiledCollective& one : program.collectives)
    collectives +=
        concat(collectives.empty() ? "" : ", ", "{\"kind\": ", quoted(one.kind), ", \"times\": ", six(one.times),
               ", \"gib\": ", six(one.gib), ", \"open_gib\": ", six(one.open_gib), "}");
  for (const auto& [name, cycles] : program.cycles.parts)
    parts += concat(parts.empty() ? "" : ", ", quoted(name), ": ", six(cycles));
  for (const double gib : program.memory.timeline) timeline += concat(timeline.empty() ? "" : ", ", six(gib));
  return concat("{\"origin\": \"compiled\", \"memory_gib\": ", six(program.memory.total_gib),
                ", \"argument_gib\": ", six(program.memory.argument_gib),
                ", \"host_gib\": ", six(program.memory.host_gib), ", \"fits\": ", program.fits ? "true" : "false",
                ", \"compile_seconds\": ", six(program.seconds), ", \"peak_at\": ", quoted(program.memory.moment),
                ", \"buffers\": [", buffers, "], \"collectives\": [", collectives, "], \"timeline_gib\": [", timeline,
                "], \"cycles\": ", six(program.cycles.total), ", \"cycles_by_part\": {", parts, "}}");
}

std::string candidate_json(const tpu::Candidate& one) {
  return concat(
      "\"mesh\": ", quoted(one.training.mesh.text()), ", \"batch_per_device\": ", six(one.training.batch_per_device),
      ", \"remat\": ", quoted(one.training.remat), ", \"flags\": ", quoted(step_flags(one.training)),
      ", \"memory_gib\": ", six(one.memory.total_gib), ", \"verdict\": ", quoted(verdict_text(one.memory.verdict)),
      ", \"tokens_per_second\": ", six(one.step.tokens_per_second));
}

}  // namespace

void print_serving(const tpu::Serving& serving, const tpu::ServingPlan& plan) {
  std::printf("serving %s, %.2f billion parameters, on %s: %d x tensor=%d, weights %s, KV cache %s\n",
              serving.model.name.c_str(), serving.model.parameters() / 1e9, serving.slice.name().c_str(), plan.replicas,
              serving.slice.devices() / plan.replicas, serving.weights.c_str(), serving.cache.c_str());
  std::printf("%lld sequences each, prompts of %lld tokens, %lld generated\n", static_cast<long long>(serving.batch),
              static_cast<long long>(serving.prompt), static_cast<long long>(serving.output));
  std::printf(
      "every figure below is modelled by capibara, nothing was run on a TPU, and no measured server was at hand "
      "to judge them: no band is known\n\n");
  std::printf("memory        %10.2f GiB of %.2f on each device: %s\n", plan.total_gib, plan.limit_gib,
              plan.fits ? "fits" : "does not fit");
  std::printf(
      "  weights              %10.2f GiB\n  KV cache             %10.2f GiB, %.0f bytes for each token\n"
      "  activations          %10.2f GiB\n  room for             %10lld sequences\n",
      plan.weights_gib, plan.cache_gib, plan.cache_bytes_per_token, plan.work_gib,
      static_cast<long long>(plan.max_batch));
  std::printf("first token   %10.2f ms for a prompt\n", 1e3 * plan.prefill_seconds);
  std::printf("next tokens   %10.2f ms, bound by %s (weights and cache %.2f ms, collectives %.2f ms)\n",
              1e3 * plan.decode_seconds, plan.bound.c_str(), 1e3 * plan.decode_hbm_seconds,
              1e3 * plan.decode_collectives);
  std::printf("throughput    %10.0f tokens/s, %.1f for each chip\n", plan.tokens_per_second,
              plan.tokens_per_second_per_chip);
  if (serving.price > 0)
    std::printf("price         %10.4f for a million tokens, at %g for a chip and hour\n", plan.price_per_million,
                serving.price);
}

void print_serving_json(const tpu::Serving& serving, const tpu::ServingPlan& plan) {
  std::printf(
      "%s\n",
      concat("{\"origin\": \"modelled\", \"model\": ", quoted(serving.model.name), ", \"slice\": ",
             quoted(serving.slice.name()), ", \"replicas\": ", plan.replicas, ", \"memory_gib\": ", six(plan.total_gib),
             ", \"weights_gib\": ", six(plan.weights_gib), ", \"cache_gib\": ", six(plan.cache_gib),
             ", \"limit_gib\": ", six(plan.limit_gib), ", \"verdict\": ", quoted(plan.fits ? "fits" : "does not fit"),
             ", \"cache_bytes_per_token\": ", six(plan.cache_bytes_per_token), ", \"max_batch\": ", plan.max_batch,
             ", \"prefill_seconds\": ", six(plan.prefill_seconds), ", \"decode_seconds\": ", six(plan.decode_seconds),
             ", \"decode_hbm_seconds\": ", six(plan.decode_hbm_seconds), ", \"bound\": ", quoted(plan.bound),
             ", \"tokens_per_second\": ", six(plan.tokens_per_second), ", \"tokens_per_second_per_chip\": ",
             six(plan.tokens_per_second_per_chip), ", \"price_per_million\": ", six(plan.price_per_million), "}")
          .c_str());
}

void print_plan(const tpu::Training& training, double price) {
  const tpu::MemoryPlan memory = plan_memory(training);
  const tpu::StepPlan step = plan_step(training);
  std::printf("%s, %.2f billion parameters, on %s (%d chips, %d devices, %s)\n", training.model.name.c_str(),
              training.model.parameters() / 1e9, training.slice.name().c_str(), training.slice.chips(),
              training.slice.devices(), training.slice.topology().c_str());
  std::printf("mesh %s, %g %s of %lld tokens on each device, remat %s\n", training.mesh.text().c_str(),
              training.batch_per_device, training.batch_per_device == 1 ? "sequence" : "sequences",
              static_cast<long long>(training.sequence), training.remat.c_str());
  if (const std::string flags = step_flags(training); !flags.empty()) std::printf("flags %s\n", flags.c_str());
  std::printf("every figure below is modelled by capibara; nothing was run on a TPU\n\n");
  std::printf("step          %10.3f s      %.0f tokens/s; %.3f to %.3f s, cross-validated\n", step.seconds,
              step.tokens_per_second, step.low_seconds, step.high_seconds);
  std::printf("model FLOP/s  %10.1f T/chip %.1f %% of the peak (attention counted causally; %.1f for all pairs)\n",
              step.model_tflops_per_chip, 100 * step.mfu, step.model_tflops_per_chip_noncausal);
  if (price > 0) {
    const double hour = price * training.slice.chips();
    std::printf("price         %10.2f for an hour, %.4f for a million tokens, at %g for a chip and hour\n", hour,
                hour / 3600 / step.tokens_per_second * 1e6, price);
  }
  std::printf("bound by      %s: compute %.0f %%, memory %.0f %%, communication %.0f %%\n", step.bound.c_str(),
              100 * step.compute_share, 100 * step.memory_share, 100 * step.communication_share);
  const std::pair<const char*, double> kinds[] = {{"matmuls", step.matmul},      {"computed again", step.recompute},
                                                  {"attention", step.attention}, {"elementwise", step.elementwise},
                                                  {"optimizer", step.optimizer}, {"collectives, exposed", step.ici},
                                                  {"between slices", step.dcn}};
  for (const auto& [name, seconds] : kinds) std::printf("  %-22s %10.3f s\n", name, seconds);
  if (training.remat == "offload") std::printf("  %-22s %10.3f s\n", "host copies, exposed", step.host);
  std::printf("\nmemory        %10.2f GiB of %.2f on each device, at the %s; %.2f to %.2f, cross-validated: %s\n",
              memory.total_gib, memory.limit_gib, memory.moment.c_str(), memory.low_gib, memory.high_gib,
              verdict_text(memory.verdict));
  for (const tpu::PlanBuffer& buffer : memory.buffers)
    std::printf("  %-30s %8.2f GiB\n", buffer.name.c_str(), buffer.gib);
  if (memory.host_gib > 0) std::printf("  %-30s %8.2f GiB\n", "in the host's memory", memory.host_gib);
  for (const tpu::Recommendation& one : recommend(training)) std::printf("try %s\n", one.text.c_str());
}

void print_json(const tpu::Training& training, double price, const tpu::CompiledProgram* compiled,
                const std::vector<tpu::Candidate>& found, const std::vector<tpu::CompiledProgram>& confirmed) {
  const tpu::MemoryPlan memory = plan_memory(training);
  const tpu::StepPlan step = plan_step(training);
  std::string text = concat(
      "{\"origin\": \"modelled\", \"model\": ", quoted(training.model.name),
      ", \"slice\": ", quoted(training.slice.name()), ", \"mesh\": ", quoted(training.mesh.text()),
      ", \"batch_per_device\": ", six(training.batch_per_device), ", \"sequence\": ", training.sequence,
      ", \"remat\": ", quoted(training.remat), ", \"flags\": ", quoted(step_flags(training)),
      ", \"step_seconds\": ", six(step.seconds), ", \"step_low_seconds\": ", six(step.low_seconds),
      ", \"step_high_seconds\": ", six(step.high_seconds), ", \"tokens_per_second\": ", six(step.tokens_per_second),
      ", \"tflops_per_chip\": ", six(step.model_tflops_per_chip), ", \"mfu\": ", six(step.mfu),
      ", \"bound\": ", quoted(step.bound), ", \"memory_gib\": ", six(memory.total_gib),
      ", \"host_gib\": ", six(memory.host_gib), ", \"limit_gib\": ", six(memory.limit_gib),
      ", \"low_gib\": ", six(memory.low_gib), ", \"high_gib\": ", six(memory.high_gib),
      ", \"verdict\": ", quoted(verdict_text(memory.verdict)));
  if (price > 0)
    text +=
        concat(", \"price_per_million\": ", six(price * training.slice.chips() / 3600 / step.tokens_per_second * 1e6));
  if (compiled) text += concat(", \"compiled\": ", compiled_json(*compiled));
  if (!found.empty()) {
    text += ", \"plans\": [";
    for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), 10); ++i) {
      text += concat(i ? ", {" : "{", candidate_json(found[i]));
      if (i < confirmed.size()) text += concat(", \"compiled\": ", compiled_json(confirmed[i]));
      text += "}";
    }
    text += concat("], \"plan_count\": ", found.size());
  }
  std::printf("%s}\n", text.c_str());
}

void print_search(const std::vector<tpu::Candidate>& found, const std::vector<tpu::CompiledProgram>& confirmed) {
  std::printf("\n%zu plans, best first (modelled):\n%-28s %8s %-8s %-8s %10s %12s %7s%s\n", found.size(), "mesh",
              "batch", "remat", "VMEM", "GiB", "tokens/s", "MFU", confirmed.empty() ? "" : "   compiled GiB");
  for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), 10); ++i) {
    const tpu::Candidate& one = found[i];
    std::printf("%-28s %8g %-8s %-8s %9.2f%s %12.0f %5.1f %%", one.training.mesh.text().c_str(),
                one.training.batch_per_device, one.training.remat.c_str(),
                one.training.large_vmem ? "large" : "default", one.memory.total_gib,
                one.memory.verdict == tpu::Verdict::fits          ? " "
                : one.memory.verdict == tpu::Verdict::cannot_tell ? "?"
                                                                  : "*",
                one.step.tokens_per_second, 100 * one.step.mfu);
    if (i >= confirmed.size())
      std::printf("\n");
    else if (confirmed[i].done)
      std::printf("   %.2f, %s\n", confirmed[i].memory.total_gib, confirmed[i].fits ? "fits" : "does not fit");
    else
      std::printf("   %s\n", confirmed[i].problem.c_str());
  }
  if (!found.empty() && found[0].memory.verdict == tpu::Verdict::does_not_fit) std::printf("* does not fit\n");
  for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), 10); ++i) {
    if (found[i].memory.verdict != tpu::Verdict::cannot_tell) continue;
    std::printf("? cannot tell without the compiler\n");
    break;
  }
  if (!found.empty()) {
    tpu::Training large = found[0].training;
    large.large_vmem = true;
    std::printf("VMEM large: the flag %s\n", step_flags(large).c_str());
  }
}

void print_compiled(const tpu::CompiledProgram& program, const tpu::Slice& slice, double modelled_gib,
                    double modelled_seconds) {
  if (!program.done) {
    std::printf("\nnot compiled: %s\n", program.problem.c_str());
    return;
  }
  std::printf("\ncompiled for %s by libtpu in %.1f s: %.4f GiB on each device, %s (modelled %.2f, %.2f of it)\n",
              slice.topology().c_str(), program.seconds, program.memory.total_gib,
              program.fits ? "fits" : "does not fit", modelled_gib,
              program.memory.total_gib > 0 ? modelled_gib / program.memory.total_gib : 0);
  std::printf("  arguments %.4f GiB, temporaries %.4f GiB%s%s\n", program.memory.argument_gib,
              program.memory.temporary_gib, program.memory.moment.empty() ? "" : ", most at ",
              program.memory.moment.c_str());
  if (program.memory.host_gib > 0) std::printf("  in the host's memory %.4f GiB\n", program.memory.host_gib);
  for (const tpu::CompiledBuffer& one : program.memory.largest)
    std::printf("  %8.3f GiB  %-28s %-32s %s\n", one.gib, one.shape.c_str(), one.operation.c_str(), one.source.c_str());
  for (const tpu::CompiledCollective& one : program.collectives)
    std::printf("  %-18s %6.0f times, %9.2f GiB on a device, %.2f of it in the open\n", one.kind.c_str(), one.times,
                one.gib, one.open_gib);
  if (program.cycles.total <= 0) return;
  const double seconds = program.cycles.total / slice.chip->clock_ghz / 1e9;
  std::printf("compiled cycles %.0f: %.3f ms at %.2f GHz, collectives and kernels not counted", program.cycles.total,
              1e3 * seconds, slice.chip->clock_ghz);
  if (modelled_seconds > 0) std::printf(" (modelled compute %.3f ms)", 1e3 * modelled_seconds);
  std::printf("\n");
  for (const auto& [name, cycles] : program.cycles.parts) {
    if (cycles > 0.01 * program.cycles.total)
      std::printf("  %-32s %5.1f %%\n", name.c_str(), 100 * cycles / program.cycles.total);
  }
}

}  // namespace capibara::command
