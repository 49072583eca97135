// Reads operations between processes. interpreter.run_parallel becomes plain equations: the processes are read
// interleaved, each until it waits for others, and their exchanges are computed from the operands of all of them.
#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>

#include <capibara/error.h>
#include <capibara/lax.h>

#include "compiler/stablehlo/read_body.h"
#include "compiler/stablehlo/read_groups.h"

namespace capibara::stablehlo {

namespace {

namespace lax = jax::lax;

// A process waiting in an exchange.
struct Member {
  ProcessId id;
  BodyReader* body;
  const Operation* operation;
  Arrays operands;
};

// ---- exchanges ---------------------------------------------------------------------------------------------------

// Results of each member from the operands of all.
using Exchange = std::vector<Arrays> (*)(const std::vector<Member>&);

Arrays zeros_like(const Arrays& operands) {
  Arrays zeros;
  for (const NdArray& operand : operands) zeros.push_back(lax::zeros(operand.type()));
  return zeros;
}

NdArray slice_part(const NdArray& x, int64_t dim, int64_t parts, int64_t part) {
  Ints start(x.shape().size(), 0), limit = x.shape();
  const int64_t size = x.shape(dim) / parts;
  start[static_cast<std::size_t>(dim)] = part * size;
  limit[static_cast<std::size_t>(dim)] = (part + 1) * size;
  return lax::slice(x, start, limit);
}

int64_t checked_dim(const Operation& operation, std::string_view name, const NdArray& x) {
  const int64_t dim = integer_attribute(operation, name);
  if (dim < 0 || dim >= x.ndim()) fail(operation, concat("there is no dimension ", dim, " in ", to_string(x.type())));
  return dim;
}

std::vector<Arrays> all_gather(const std::vector<Member>& members) {
  Arrays joined;
  for (std::size_t k = 0; k < members[0].operands.size(); ++k) {
    Arrays parts;
    for (const Member& member : members) parts.push_back(member.operands.at(k));
    joined.push_back(lax::concatenate(parts, checked_dim(*members[0].operation, "all_gather_dim", parts[0])));
  }
  return std::vector<Arrays>(members.size(), joined);
}

Arrays folded(const std::vector<Member>& members) {
  const Operation& operation = *members[0].operation;
  if (operation.regions.size() != 1) fail(operation, "expected one region");
  const Program region = members[0].body->closed_region(operation, operation.regions[0]);
  Arrays totals = members[0].operands;
  for (std::size_t i = 1; i < members.size(); ++i) {
    for (std::size_t k = 0; k < totals.size(); ++k) {
      Ints dimensions;
      for (int64_t d = 0; d < totals[k].ndim(); ++d) dimensions.push_back(d);
      totals[k] =
          bind_named("map", {totals[k], members[i].operands.at(k)}, {{"jaxpr", region}, {"dimensions", dimensions}})[0];
    }
  }
  return totals;
}

std::vector<Arrays> all_reduce(const std::vector<Member>& members) {
  return std::vector<Arrays>(members.size(), folded(members));
}

std::vector<Arrays> reduce_scatter(const std::vector<Member>& members) {
  const Arrays totals = folded(members);
  const int64_t dim = checked_dim(*members[0].operation, "scatter_dimension", totals.at(0));
  std::vector<Arrays> results;
  for (std::size_t i = 0; i < members.size(); ++i) {
    results.push_back({slice_part(totals[0], dim, static_cast<int64_t>(members.size()), static_cast<int64_t>(i))});
  }
  return results;
}

std::vector<Arrays> collective_reduce(const std::vector<Member>& members) {
  std::vector<Arrays> results(members.size());
  for (std::size_t i = 1; i < members.size(); ++i) results[i] = zeros_like(members[i].operands);
  results[0] = folded(members);
  return results;
}

std::vector<Arrays> collective_broadcast(const std::vector<Member>& members) {
  return std::vector<Arrays>(members.size(), members[0].operands);
}

std::vector<Arrays> all_to_all(const std::vector<Member>& members) {
  const Operation& operation = *members[0].operation;
  const auto parts = static_cast<int64_t>(members.size());
  std::vector<Arrays> results(members.size());
  for (std::size_t k = 0; k < members[0].operands.size(); ++k) {
    const int64_t split = checked_dim(operation, "split_dimension", members[0].operands[k]);
    const int64_t concat_dim = checked_dim(operation, "concat_dimension", members[0].operands[k]);
    for (int64_t receiver = 0; receiver < parts; ++receiver) {
      Arrays pieces;
      for (const Member& sender : members) pieces.push_back(slice_part(sender.operands.at(k), split, parts, receiver));
      results[static_cast<std::size_t>(receiver)].push_back(lax::concatenate(pieces, concat_dim));
    }
  }
  return results;
}

// Members are all replicas of one partition, or all partitions of one replica.
std::vector<Arrays> collective_permute(const std::vector<Member>& members) {
  const Operation& operation = *members[0].operation;
  const Ints pairs = integers_attribute(operation, "source_target_pairs");
  std::vector<Arrays> results;
  for (const Member& member : members) results.push_back(zeros_like(member.operands));
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const auto source = static_cast<std::size_t>(pairs[i]), target = static_cast<std::size_t>(pairs[i + 1]);
    if (source >= members.size() || target >= members.size()) {
      throw UnsupportedError(
          concat(place_of(operation), ": needs ", std::max(source, target) + 1, " processes, got ", members.size()));
    }
    results[target] = members[source].operands;
  }
  return results;
}

Exchange find_exchange(std::string_view operation) {
  static const std::unordered_map<std::string_view, Exchange> exchanges = {
      {"stablehlo.all_gather", all_gather},
      {"stablehlo.all_reduce", all_reduce},
      {"stablehlo.all_to_all", all_to_all},
      {"stablehlo.collective_broadcast", collective_broadcast},
      {"stablehlo.collective_permute", collective_permute},
      {"stablehlo.collective_reduce", collective_reduce},
      {"stablehlo.reduce_scatter", reduce_scatter},
  };
  const auto it = exchanges.find(operation);
  return it == exchanges.end() ? nullptr : it->second;
}

// ---- processes ---------------------------------------------------------------------------------------------------

bool is_local(const std::string& operation) {
  return operation == "stablehlo.partition_id" || operation == "stablehlo.replica_id";
}
bool is_transfer(const std::string& operation) {
  return operation == "stablehlo.send" || operation == "stablehlo.recv" || operation == "stablehlo.infeed" ||
         operation == "stablehlo.outfeed";
}

NdArray id_array(int64_t id) {
  const auto value = static_cast<uint32_t>(id);
  return NdArray::from_host(DType::uint32, {}, &value);
}

// The function that one process runs, and how far it has been read.
struct Process {
  ProcessId id;
  const Function* function;
  BodyReader body;
  std::size_t next = 0;
  bool done = false;
  Arrays results;

  Process(ProcessId i, ModuleReader& module, const Function& f) : id(i), function(&f), body(module, f) {}
  const Operation& operation() const { return function->body.operations[next]; }
};

class ParallelRun {
 public:
  ParallelRun(Grid grid, std::vector<const Function*> infeed) : grid_(grid), infeed_(infeed.begin(), infeed.end()) {}

  void add(std::unique_ptr<Process> process) { processes_.push_back(std::move(process)); }

  void run(const Operation& place) {
    for (;;) {
      bool moved = false, open = false;
      for (auto& process : processes_) moved |= advance(*process);
      for (auto& process : processes_) moved |= !process->done && meet(*process);
      for (auto& process : processes_) open |= !process->done;
      if (!open) return;
      if (!moved) fail(place, "the processes wait for each other for ever");
    }
  }

  const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }

 private:
  // Reads until the process finishes or waits.
  bool advance(Process& process) {
    bool moved = false;
    while (!process.done) {
      if (process.next >= process.function->body.operations.size()) {
        process.done = true;
        return true;
      }
      const Operation& operation = process.operation();
      if (operation.name == "func.return") {
        process.results = process.body.operands_of(operation);
        process.done = true;
        return true;
      }
      if (find_exchange(operation.name)) return moved;
      if (is_local(operation.name)) {
        const bool partition = operation.name == "stablehlo.partition_id";
        process.body.set_results(operation, {id_array(partition ? process.id.partition : process.id.replica)});
      } else if (is_transfer(operation.name)) {
        if (!transfer(process, operation)) return moved;
      } else {
        process.body.read(operation);
      }
      ++process.next;
      moved = true;
    }
    return moved;
  }

  // False if the value to be received has not been sent yet.
  bool transfer(Process& process, const Operation& operation) {
    const Arrays operands = process.body.operands_of(operation);
    Arrays results;
    if (operation.name == "stablehlo.send") {
      channels_[channel_of(operation)].push_back(operands);
    } else if (operation.name == "stablehlo.recv") {
      std::deque<Arrays>& queue = channels_[channel_of(operation)];
      if (queue.empty()) return false;
      results = queue.front();
      queue.pop_front();
    } else if (operation.name == "stablehlo.infeed") {
      if (infeed_.empty()) fail(operation, "the infeed is empty");
      results = process.body.module().call(*infeed_.front(), {});
      infeed_.pop_front();
    }
    process.body.set_results(operation, results);
    return true;
  }

  // Completes the exchange that a process waits in, if all other members of its group have reached it.
  bool meet(Process& process) {
    const Operation& operation = process.operation();
    if (!find_exchange(operation.name)) return false;
    const bool permutes = operation.name == "stablehlo.collective_permute";
    Group group;
    if (permutes) {
      const bool across_partitions = channel_of(operation) > 0;
      const int64_t count = across_partitions ? grid_.partitions : grid_.replicas;
      for (int64_t i = 0; i < count; ++i) {
        group.push_back(across_partitions ? ProcessId{process.id.replica, i} : ProcessId{i, process.id.partition});
      }
    } else {
      for (const Group& candidate : process_groups(operation, grid_)) {
        if (std::find(candidate.begin(), candidate.end(), process.id) != candidate.end()) group = candidate;
      }
    }
    if (group.empty()) {  // does not take part: zeros
      process.body.set_results(operation, zeros_like(process.body.operands_of(operation)));
      ++process.next;
      return true;
    }
    std::vector<Member> members;
    std::vector<Process*> waiting;
    for (ProcessId id : group) {
      const auto it = std::find_if(processes_.begin(), processes_.end(), [&](const auto& p) { return p->id == id; });
      if (it == processes_.end()) {
        fail(operation, concat("there is no process of replica ", id.replica, " and partition ", id.partition));
      }
      Process& member = **it;
      if (member.done || member.operation().name != operation.name ||
          channel_of(member.operation()) != channel_of(operation)) {
        return false;
      }
      members.push_back({id, &member.body, &member.operation(), member.body.operands_of(member.operation())});
      waiting.push_back(&member);
    }
    const std::vector<Arrays> results = find_exchange(operation.name)(members);
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      waiting[i]->body.set_results(waiting[i]->operation(), results[i]);
      ++waiting[i]->next;
    }
    return true;
  }

  Grid grid_;
  std::deque<const Function*> infeed_;
  std::map<int64_t, std::deque<Arrays>> channels_;
  std::vector<std::unique_ptr<Process>> processes_;
};

// programs = [[@f, @g], [@h, @i]]: a row per replica, with a function per partition.
Arrays run_parallel(BodyReader& body, const Operation& operation, const Arrays&) {
  const Attribute programs = operation.attributes.find("programs");
  const auto* rows = programs.as<Array>();
  if (!rows || rows->elements.empty()) fail(operation, "expected lists of functions as attribute 'programs'");
  const auto* first = rows->elements[0].as<Array>();
  if (!first) fail(operation, "expected lists of functions as attribute 'programs'");
  std::vector<const Function*> infeed;
  const Attribute queue = operation.attributes.find("infeed");
  if (const auto* symbols = queue.as<Array>()) {
    for (const Attribute& symbol : symbols->elements) infeed.push_back(&body.module().function_of(operation, symbol));
  }
  ParallelRun run({static_cast<int64_t>(rows->elements.size()), static_cast<int64_t>(first->elements.size())}, infeed);
  const Arrays operands = body.operands_of(operation);
  std::size_t next = 0;
  for (std::size_t r = 0; r < rows->elements.size(); ++r) {
    const auto* row = rows->elements[r].as<Array>();
    if (!row) fail(operation, "expected lists of functions as attribute 'programs'");
    for (std::size_t p = 0; p < row->elements.size(); ++p) {
      const Function& function = body.module().function_of(operation, row->elements[p]);
      auto process = std::make_unique<Process>(ProcessId{static_cast<int64_t>(r), static_cast<int64_t>(p)},
                                               body.module(), function);
      std::size_t count = 0;
      for (const FunctionArgument& argument : function.arguments) count += flat_types(operation, argument.type).size();
      if (next + count > operands.size()) fail(operation, "expected an operand for each argument of the processes");
      process->body.define_arguments(function, std::span(operands).subspan(next, count));
      next += count;
      run.add(std::move(process));
    }
  }
  run.run(operation);
  Arrays results;
  for (const auto& process : run.processes()) {
    results.insert(results.end(), process->results.begin(), process->results.end());
  }
  return results;
}

// Outside of run_parallel there is one process.
Arrays read_alone(BodyReader& body, const Operation& operation, const Arrays& operands) {
  if (body.module().manual() && operation.name != "stablehlo.replica_id" && !is_transfer(operation.name))
    return read_between_devices(body, operation, operands);
  if (is_local(operation.name)) return {id_array(0)};
  if (operation.name == "stablehlo.outfeed") return {};
  if (is_transfer(operation.name)) {
    throw UnsupportedError(
        concat(place_of(operation), ": transfers are supported within interpreter.run_parallel only"));
  }
  if (operation.name != "stablehlo.collective_permute") {
    for (const Group& group : process_groups(operation, {})) {
      if (group.size() != 1 || !(group[0] == ProcessId{})) {
        throw UnsupportedError(concat(place_of(operation), ": needs several processes; one runs"));
      }
    }
  }
  return find_exchange(operation.name)({{ProcessId{}, &body, &operation, operands}})[0];
}

}  // namespace

OperationRule find_exchange_rule(std::string_view operation) {
  if (operation == "interpreter.run_parallel") return run_parallel;
  const std::string name(operation);
  return is_local(name) || is_transfer(name) || find_exchange(operation) ? read_alone : nullptr;
}

}  // namespace capibara::stablehlo
