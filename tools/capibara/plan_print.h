// The output of capibara plan: tables, or one line of JSON.
#pragma once

#include <capibara/tpu.h>

#include <vector>

namespace capibara::command {

// `price`: of a chip and hour, 0 if unknown.
void print_plan(const tpu::Training& training, double price);
void print_serving(const tpu::Serving& serving, const tpu::ServingPlan& plan);
void print_serving_json(const tpu::Serving& serving, const tpu::ServingPlan& plan);
void print_search(const std::vector<tpu::Candidate>& found, const std::vector<tpu::CompiledProgram>& confirmed);
// Memory, the largest buffers with their source lines, collectives and cycles, next to the modelled figures.
void print_compiled(const tpu::CompiledProgram& program, const tpu::Slice& slice, double modelled_gib,
                    double modelled_seconds);
// `compiled` may be null. `confirmed` holds the compiler's reports on the first of the candidates in `found`.
void print_json(const tpu::Training& training, double price, const tpu::CompiledProgram* compiled,
                const std::vector<tpu::Candidate>& found, const std::vector<tpu::CompiledProgram>& confirmed);

}  // namespace capibara::command
