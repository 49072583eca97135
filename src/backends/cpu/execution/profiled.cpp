// Compiles the marked twin of a program.
#include "backends/cpu/execution/profiled.h"

#include <capibara/analysis.h>

#include "backends/cpu/driver/lower.h"
#include "backends/cpu/execution/backend.h"

namespace capibara::cpu {

struct Profiled::State {
  std::string name;
  Program optimised;
  std::vector<bool> donated;
  Once once;
  std::shared_ptr<const Code> code;
  Entry driver = nullptr;
  std::shared_ptr<const profile::SiteTable> table;
};

Profiled::Profiled(std::string name, Program optimised, std::vector<bool> donated)
    : state_(new State{std::move(name), std::move(optimised), std::move(donated), {}, nullptr, nullptr, nullptr}) {}
Profiled::Profiled(Profiled&&) noexcept = default;
Profiled::~Profiled() = default;

Entry Profiled::prepare() {
  State& own = *state_;
  own.once.run([&own] {
    profile::Timed timed(profile::EventKind::compile, "compile with marks");
    timed.argument("program", own.name);
    Marked marked = lower_with_marks(own.optimised, own.donated);
    auto table = std::make_shared<profile::SiteTable>();
    table->program = own.name;
    table->backend = "cpu";
    table->flops = count_cost(own.optimised).flops;
    table->sites = std::move(marked.sites);
    own.code = code_of(marked.module);
    own.driver = own.code->driver();
    own.table = std::move(table);
  });
  return own.driver;
}

const std::shared_ptr<const profile::SiteTable>& Profiled::table() const { return state_->table; }

}  // namespace capibara::cpu
