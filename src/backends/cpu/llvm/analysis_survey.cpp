// One walk over a function: where values are defined and how often they are used, which buffers
// are stored to, what is called.
#include <algorithm>

#include "backends/cpu/llvm/analysis.h"

namespace capibara::cpu {

void Analysis::use(Value value) {
  if (value != no_value) ++uses_[index(value)];
}

void Analysis::use(const Address& address) {
  for (const Term& term : address.terms) use(term.index);
}

void Analysis::survey(const Block& block) {
  const int here = blocks_++;
  auto use_carries = [this](const std::vector<Carry>& carries) {
    for (const Carry& carry : carries) {
      for (Value value : {carry.initial, carry.next, carry.identity}) use(value);
    }
  };
  auto pass = [this](const std::vector<Argument>& arguments) {
    calls_ = true;
    max_arguments_ = std::max(max_arguments_, arguments.size());
    for (const Argument& argument : arguments) {
      use(argument.address);
      constant_buffers_[static_cast<std::size_t>(argument.address.buffer)] = false;
    }
  };
  for (const Statement& statement : block) {
    if (const auto* compute = std::get_if<Compute>(&statement.what)) {
      definitions_[index(compute->result)] = compute;
      block_of_[index(compute->result)] = here;
      for (Value value : {compute->a, compute->b, compute->c}) use(value);
    } else if (const auto* load = std::get_if<Load>(&statement.what)) {
      use(load->address);
    } else if (const auto* store = std::get_if<Store>(&statement.what)) {
      use(store->value);
      use(store->address);
      constant_buffers_[static_cast<std::size_t>(store->address.buffer)] = false;
    } else if (const auto* loop = std::get_if<For>(&statement.what)) {
      use(loop->extent_value);
      use_carries(loop->carries);
      polls_ |= loop->poll;
      survey(loop->body);
    } else if (const auto* repeat = std::get_if<While>(&statement.what)) {
      use_carries(repeat->carries);
      use(repeat->go);
      polls_ |= repeat->poll;
      survey(repeat->condition);
      survey(repeat->body);
    } else if (const auto* branch = std::get_if<Branch>(&statement.what)) {
      use(branch->condition);
      for (const Branch::Result& result : branch->results) {
        use(result.yes);
        use(result.no);
      }
      survey(branch->yes);
      survey(branch->no);
    } else if (const auto* invoke = std::get_if<Invoke>(&statement.what)) {
      pass(invoke->arguments);
    } else if (const auto* host = std::get_if<Host>(&statement.what)) {
      pass(host->arguments);
    }
  }
}

}  // namespace capibara::cpu
