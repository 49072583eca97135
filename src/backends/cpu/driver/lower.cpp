// Lowers a whole program to its driver: inputs, constants and outputs, and the numbers of its buffers.
#include "backends/cpu/driver/lower.h"

#include <algorithm>

#include "backends/cpu/driver/lowering.h"
#include "program/ir/callback.h"
#include "program/ir/source.h"

namespace capibara::cpu {

namespace {

template <class F>
void renumber(Block& block, const F& number) {
  for (Statement& statement : block) {
    std::visit(
        [&](auto& own) {
          using T = std::remove_cvref_t<decltype(own)>;
          if constexpr (std::is_same_v<T, Load> || std::is_same_v<T, Store>) number(own.address.buffer);
          if constexpr (std::is_same_v<T, Invoke> || std::is_same_v<T, Host>) {
            for (Argument& argument : own.arguments) number(argument.address.buffer);
          }
          if constexpr (std::is_same_v<T, For>) renumber(own.body, number);
          if constexpr (std::is_same_v<T, While>) {
            renumber(own.condition, number);
            renumber(own.body, number);
          }
          if constexpr (std::is_same_v<T, Branch>) {
            renumber(own.yes, number);
            renumber(own.no, number);
          }
        },
        statement.what);
  }
}

}  // namespace

int32_t Lowered::add(HostKernel kernel, const Equation& equation) {
  kernels.push_back(std::move(kernel));
  const SourceInfo source = source_info(equation.source);
  kernel_names.push_back(
      concat(call_name(equation), source.file.empty() ? "" : concat(" at ", source.file, ":", source.line)));
  return static_cast<int32_t>(kernels.size()) - 1;
}

std::string to_string(const Lowered& lowered) {
  std::string text = to_string(lowered.module);
  for (std::size_t i = 0; i < lowered.kernel_names.size(); ++i)
    text += concat("\nhost ", i, " is ", lowered.kernel_names[i]);
  return text;
}

bool same(const Address& a, const Address& b) {
  if (a.buffer != b.buffer || a.offset != b.offset || a.terms.size() != b.terms.size()) return false;
  for (std::size_t i = 0; i < a.terms.size(); ++i) {
    if (a.terms[i].index != b.terms[i].index || a.terms[i].factor != b.terms[i].factor) return false;
  }
  return true;
}

Lowered Lowering::run() {
  driver_function_.name = "driver";
  Frame frame(program_);
  for (Var input : program_.invars()) {
    frame.place[at(input.id)] = Place{{driver_->parameter(bytes_of(program_.type(input)), false), 0, {}}};
  }
  // Constants and outputs become parameters when first used, the arena comes last: numbers are assigned at the end.
  for (std::size_t i = 0; i < program_.constvars().size(); ++i) {
    const Var var = program_.constvars()[i];
    frame.place[at(var.id)] = Place{{constant_buffer(program_.constants()[i]), 0, {}}};
  }
  std::map<int32_t, int> first_output;
  for (std::size_t i = 0; i < program_.outputs().size(); ++i) {
    const Atom atom = program_.outputs()[i];
    Lowered::Output output{Lowered::Output::From::driver, 0, program_.type(atom)};
    if (atom.is_literal()) {
      output.from = Lowered::Output::From::constant;
      output.index = constant_number(program_.literal(atom));
    } else if (auto known = first_output.find(atom.code); known != first_output.end()) {
      output.from = Lowered::Output::From::output;
      output.index = known->second;
    } else {
      first_output[atom.code] = static_cast<int>(i);
      const auto input = std::find(program_.invars().begin(), program_.invars().end(), atom.var());
      const auto constant = std::find(program_.constvars().begin(), program_.constvars().end(), atom.var());
      if (input != program_.invars().end()) {
        output.from = Lowered::Output::From::input;
        output.index = static_cast<int>(input - program_.invars().begin());
      } else if (constant != program_.constvars().end()) {
        output.from = Lowered::Output::From::constant;
        output.index = constant_number(program_.constants()[at(constant - program_.constvars().begin())]);
      } else if (const int given = donated_for(analyses_.of(program_), donated_, i); given >= 0) {
        output.from = Lowered::Output::From::donated;
        output.index = given;
        donated_[at(given)] = false;
        driver_function_.buffers[at(given)].written = true;
        frame.preferred[atom.code] = {given, 0, {}};
        if (may_replace(analyses_.of(program_), program_.invars()[at(given)], i))
          frame.replaces[atom.code] = program_.invars()[at(given)].id;
      } else {
        output.index = static_cast<int>(lowered_.output_bytes.size());
        lowered_.output_bytes.push_back(bytes_of(output.type));
        frame.preferred[atom.code] = {output_base + output.index, 0, {}};
      }
    }
    lowered_.outputs.push_back(std::move(output));
  }
  lower(frame);
  lowered_.arena_bytes = arena_.size();
  for (auto value = largest_.rbegin(); value != largest_.rend(); ++value) {
    lowered_.largest.push_back(concat(value->second, " (", value->first, " bytes)"));
  }
  number_buffers();
  lowered_.module.functions[0] = std::move(driver_function_);
  return std::move(lowered_);
}

// ---- buffers ----------------------------------------------------------------------------------------------------

int Lowering::constant_number(const Array& array) {
  const int next = static_cast<int>(lowered_.constants.size());
  int number;
  if (array.size() <= 8) {
    const std::string content(reinterpret_cast<const char*>(array.raw_data()), at(bytes_of(array.type())));
    number = small_constants_.try_emplace(concat(short_string(array.type()), " ", content), next).first->second;
  } else {
    number = large_constants_.try_emplace(array.body().get(), next).first->second;
  }
  if (number == next) lowered_.constants.push_back(array);
  return number;
}

void Lowering::number_buffers() {
  const int32_t inputs = static_cast<int32_t>(program_.invars().size());
  const int32_t constants = static_cast<int32_t>(lowered_.constants.size());
  const int32_t outputs = static_cast<int32_t>(lowered_.output_bytes.size());
  for (const Array& constant : lowered_.constants) driver_->parameter(bytes_of(constant.type()), false);
  for (int64_t bytes : lowered_.output_bytes) driver_->parameter(bytes, true);
  driver_->parameter(lowered_.arena_bytes, true);
  renumber(driver_function_.body, [&](int32_t& buffer) {
    if (buffer >= arena_buffer)
      buffer = inputs + constants + outputs;
    else if (buffer >= output_base)
      buffer = inputs + constants + buffer - output_base;
    else if (buffer >= constant_base)
      buffer = inputs + buffer - constant_base;
  });
}

Lowered lower_to_loops(const Program& program, const std::vector<bool>& donated) {
  return Lowering(program, donated).run();
}

Lowered lower_without_kernels(const Program& program) { return Lowering(program, {}, nullptr, false).run(); }

Marked lower_with_marks(const Program& program, const std::vector<bool>& donated) {
  Sites sites;
  Module module = Lowering(program, donated, &sites).run().module;
  return {std::move(module), sites.take()};
}

}  // namespace capibara::cpu
