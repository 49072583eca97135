// What capibara plan prints: tables, one line of JSON.
#pragma once

#include <capibara/tpu.h>

#include <vector>

namespace capibara::command {

void print_plan(const tpu::Training& training);
void print_search(const std::vector<tpu::Candidate>& found, const std::vector<tpu::CompiledProgram>& confirmed);
// Memory, largest buffers with their lines, collectives and cycles, beside what is modelled.
void print_compiled(const tpu::CompiledProgram& program, const tpu::Slice& slice, double modelled_gib,
                    double modelled_seconds);
// `compiled` may be null. Candidates with what the compiler said of the first of them, where there are some.
void print_json(const tpu::Training& training, const tpu::CompiledProgram* compiled,
                const std::vector<tpu::Candidate>& found, const std::vector<tpu::CompiledProgram>& confirmed);

}  // namespace capibara::command
