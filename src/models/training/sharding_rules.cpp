// How mesh axes split the dimensions of parameters: by patterns on names, and by logical axes.
#include <capibara/training/mesh.h>

#include <algorithm>
#include <regex>

#include "core/array/format.h"
#include "core/sharding/mesh_attr.h"

namespace capibara::training {

namespace {

constexpr const char* whole_everywhere = "whole on every device";

const char* const widens =
    "(^|[/.])(q|k|v|qkv|query|key|value|up|gate|gate_up|wi|w1|w3|fc1|c_fc|in_proj|c_attn)(_proj)?([/.]|$)";
const char* const narrows = "(^|[/.])(o|out|down|wo|w2|fc2|c_proj|out_proj)(_proj)?([/.]|$)";

std::vector<ShardingRule> megatron_rules() {
  const std::string bias = "(.*[/.])?(b|bias)$";
  return {{widens + bias, {"model"}, "", "a bias of split columns"},
          {widens, {"", "model"}, "", "columns: each device computes some of the outputs"},
          {narrows + bias, {}, "", "added once, after the sum"},
          {narrows, {"model", ""}, "", "rows: each device sums over some of the inputs"},
          {"embed|(^|[/.])(wte|lm_head)([/.]|$)", {"model", ""}, "", "some of the vocabulary on each device"}};
}

const ShardingRule whole_rule = {"", {}, "", "everything else is whole on every device"};

int64_t devices_along(const Mesh& mesh, const std::string& axis) { return mesh.has(axis) ? mesh.axis_size(axis) : 1; }

bool divides(const Mesh& mesh, const std::string& axis, int64_t size) {
  const int64_t devices = devices_along(mesh, axis);
  return devices > 1 && size % devices == 0;
}

int64_t parts_of(const Mesh& mesh, const PartitionSpec& spec) {
  int64_t parts = 1;
  for (const AxisList& entry : spec.dims) {
    for (const std::string& axis : entry) parts *= mesh.axis_size(axis);
  }
  return parts;
}

ParameterSharding finished(const std::string& name, const ArrayType& type, const Mesh& mesh, PartitionSpec spec,
                           const std::string& why, const std::string& undivided) {
  const int64_t parts = parts_of(mesh, spec);
  std::string reason = parts > 1 ? why : whole_everywhere;
  if (!undivided.empty()) reason += "; " + undivided;
  return {name, type, std::move(spec), element_count(type.shape) * storage_size(type.dtype) / parts, std::move(reason)};
}

void add_to(std::string& list, const std::string& more) { list += list.empty() ? more : "; " + more; }

std::string undivided_text(const std::string& dimension, int64_t size, const std::string& axis, const Mesh& mesh) {
  return concat(dimension, " of ", size, " stays whole, ", axis, "=", mesh.axis_size(axis), " does not divide it");
}

}  // namespace

// ---- tables ------------------------------------------------------------------------------------------------------

int64_t ShardingTable::bytes() const {
  int64_t sum = 0;
  for (const ParameterSharding& parameter : parameters) sum += parameter.bytes;
  return sum;
}

const ParameterSharding& ShardingTable::at(const std::string& name) const {
  const auto it = std::find_if(parameters.begin(), parameters.end(),
                               [&](const ParameterSharding& parameter) { return parameter.name == name; });
  if (it != parameters.end()) return *it;
  throw ValueError(concat("ShardingTable: there is no parameter '", name, "' among ", parameters.size()));
}

bool ShardingTable::uses(const std::string& axis) const {
  return std::any_of(parameters.begin(), parameters.end(), [&](const ParameterSharding& parameter) {
    return std::any_of(parameter.spec.dims.begin(), parameter.spec.dims.end(), [&](const AxisList& entry) {
      return std::find(entry.begin(), entry.end(), axis) != entry.end();
    });
  });
}

std::string ShardingTable::text() const {
  auto with_commas = [](int64_t number) {
    std::string digits = std::to_string(number);
    for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
      digits.insert(static_cast<std::size_t>(at), ",");
    return digits;
  };
  std::vector<std::vector<std::string>> lines = {{"parameter", "shape", "spec", "bytes/device", "why"}};
  for (const ParameterSharding& parameter : parameters) {
    std::string shape;
    for (int64_t size : parameter.type.shape) shape += concat(shape.empty() ? "" : "x", size);
    lines.push_back({parameter.name, shape.empty() ? "()" : shape, spec_text(parameter.spec),
                     with_commas(parameter.bytes), parameter.why});
  }
  lines.push_back({"all", "", "", with_commas(bytes()), ""});
  std::vector<std::size_t> widths(4, 0);
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (std::size_t i = 0; i < widths.size(); ++i) row += line[i] + std::string(widths[i] - line[i].size() + 2, ' ');
    row += line[4];
    row.erase(row.find_last_not_of(' ') + 1);
    text += (text.empty() ? "" : "\n") + row;
  }
  return text;
}

// ---- patterns ----------------------------------------------------------------------------------------------------

namespace {

struct Strategy {
  std::string name;
  std::vector<ShardingRule> rules;
};

const std::vector<Strategy>& all_strategies() {
  static const std::vector<Strategy> strategies = [] {
    std::vector<ShardingRule> megatron = megatron_rules();
    megatron.push_back(whole_rule);
    std::vector<ShardingRule> expert = megatron;
    expert.insert(expert.begin(), {"expert", {"expert", "", ""}, "", "some of the experts on each device"});
    return std::vector<Strategy>{{"fsdp", {{"", {}, "data", "every parameter in parts, gathered where it is used"}}},
                                 {"megatron", std::move(megatron)},
                                 {"expert", std::move(expert)}};
  }();
  return strategies;
}

ParameterSharding by_rule(const std::string& name, const ArrayType& type, const Mesh& mesh, const ShardingRule& rule) {
  const Shape& shape = type.shape;
  PartitionSpec spec;
  spec.dims.resize(shape.size());
  std::string undivided;
  if (!rule.largest.empty()) {
    std::size_t best = shape.size();
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
      if (divides(mesh, rule.largest, shape[dim]) && (best == shape.size() || shape[dim] > shape[best])) best = dim;
    }
    if (best < shape.size()) spec.dims[best] = {rule.largest};
  }
  const std::size_t last = std::min(shape.size(), rule.dimensions.size());
  for (std::size_t i = 0; i < last; ++i) {
    const std::size_t dim = shape.size() - last + i;
    const std::string& axis = rule.dimensions[rule.dimensions.size() - last + i];
    if (!axis.empty() && divides(mesh, axis, shape[dim])) spec.dims[dim] = {axis};
  }
  return finished(name, type, mesh, std::move(spec), rule.why, undivided);
}

}  // namespace

std::vector<std::string> sharding_strategies() {
  std::vector<std::string> names;
  for (const Strategy& strategy : all_strategies()) names.push_back(strategy.name);
  return names;
}

const std::vector<ShardingRule>& sharding_strategy(const std::string& name) {
  std::string names;
  for (const Strategy& strategy : all_strategies()) {
    if (strategy.name == name) return strategy.rules;
    names += (names.empty() ? "" : ", ") + strategy.name;
  }
  throw ValueError(concat("shard_model: strategy must be one of ", names, ", got '", name, "'"));
}

ShardingTable shard_by_rules(const ParameterTypes& types, const Mesh& mesh, const std::vector<ShardingRule>& rules) {
  std::vector<std::regex> patterns;
  for (const ShardingRule& rule : rules) {
    try {
      patterns.emplace_back(rule.pattern);
    } catch (const std::regex_error& error) {
      throw ValueError(
          concat("ShardingRule: pattern is a regular expression, got '", rule.pattern, "': ", error.what()));
    }
  }
  ShardingTable table{mesh, {}};
  for (const auto& [name, type] : types) {
    const ShardingRule* chosen = &whole_rule;
    for (std::size_t i = 0; i < rules.size(); ++i) {
      if (!std::regex_search(name, patterns[i])) continue;
      chosen = &rules[i];
      break;
    }
    table.parameters.push_back(by_rule(name, type, mesh, *chosen));
  }
  return table;
}

// ---- logical axes ------------------------------------------------------------------------------------------------

ShardingTable shard_by_axes(const AnyModel& model, const Mesh& mesh, const MeshRules& rules) {
  const LogicalAxes axes = model.logical_axes();
  ShardingTable table{mesh, {}};
  for (const auto& [name, type] : model.types()) {
    PartitionSpec spec;
    spec.dims.resize(type.shape.size());
    std::string why, undivided;
    Shape rest = type.shape;  // size of each dimension on one device
    AxisList used;
    auto split = [&](std::size_t dim, const std::string& axis, const std::string& reason) {
      spec.dims[dim].push_back(axis);
      rest[dim] /= mesh.axis_size(axis);
      used.push_back(axis);
      add_to(why, reason);
    };
    const auto named = axes.of.find(name);
    for (std::size_t dim = 0; named != axes.of.end() && dim < std::min(rest.size(), named->second.size()); ++dim) {
      const std::string& logical = named->second[dim];
      const auto rule = std::find_if(rules.logical.begin(), rules.logical.end(), [&](const LogicalRule& one) {
        return !logical.empty() && one.logical == logical;
      });
      if (rule == rules.logical.end()) continue;
      for (const std::string& axis : rule->axes) {
        if (devices_along(mesh, axis) < 2 || std::find(used.begin(), used.end(), axis) != used.end()) continue;
        if (divides(mesh, axis, rest[dim])) {
          split(dim, axis, concat(logical, " over ", axis));
          break;
        }
        add_to(undivided, undivided_text(logical, rest[dim], axis, mesh));
      }
    }
    for (const std::string& axis : rules.largest) {
      if (devices_along(mesh, axis) < 2) continue;
      std::size_t best = rest.size();
      for (std::size_t dim = 0; dim < rest.size(); ++dim) {
        if (divides(mesh, axis, rest[dim]) && (best == rest.size() || rest[dim] > rest[best])) best = dim;
      }
      if (best < rest.size()) {
        split(best, axis, concat("dimension ", best, " over ", axis));
      } else if (!rest.empty()) {
        add_to(undivided, concat(axis, "=", mesh.axis_size(axis), " divides no dimension"));
      }
    }
    table.parameters.push_back(finished(name, type, mesh, std::move(spec), why, undivided));
  }
  return table;
}

// ---- meshes ------------------------------------------------------------------------------------------------------

namespace {

struct MeshField {
  const char* name;
  int64_t TrainingMesh::*size;
};
// In mesh order: the axes with the most communication come last, next to each other.
constexpr MeshField mesh_fields[] = {{"data", &TrainingMesh::data},     {"fsdp", &TrainingMesh::fsdp},
                                     {"expert", &TrainingMesh::expert}, {"sequence", &TrainingMesh::sequence},
                                     {"stages", &TrainingMesh::stages}, {"tensor", &TrainingMesh::tensor}};

}  // namespace

TrainingMesh training_mesh_from_text(const std::string& text) {
  TrainingMesh mesh;
  std::string names;
  for (const MeshField& field : mesh_fields) names += concat(names.empty() ? "" : ", ", field.name);
  std::vector<std::string> seen;
  for (std::size_t begin = 0; !text.empty() && begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size()), equals = text.find('=', begin);
    const std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    const std::string name = word.substr(0, equals < end ? word.find('=') : word.size());
    const std::string digits = name.size() < word.size() ? word.substr(name.size() + 1) : "";
    const bool is_number = !digits.empty() && digits.size() < 10 &&
                           std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    int64_t TrainingMesh::*size = nullptr;
    for (const MeshField& field : mesh_fields) {
      if (name == field.name) size = field.size;
    }
    if (name == "microbatches") size = &TrainingMesh::microbatches;
    const bool twice = std::find(seen.begin(), seen.end(), name) != seen.end();
    if (!size || !is_number || std::stoll(digits) < 1 || twice) {
      throw ValueError(concat("mesh: expected axes with their devices, as data=2,fsdp=4, of ", names,
                              ", and microbatches; got '", word, twice ? "' twice" : "'"));
    }
    seen.push_back(name);
    mesh.*size = std::stoll(digits);
  }
  return mesh;
}

std::string to_string(const TrainingMesh& mesh) {
  std::string text;
  for (const MeshField& field : mesh_fields) {
    if (mesh.*field.size > 1) text += concat(text.empty() ? "" : ",", field.name, "=", mesh.*field.size);
  }
  if (mesh.microbatches > 0) text += concat(text.empty() ? "" : ",", "microbatches=", mesh.microbatches);
  return text;
}

Mesh make_mesh(const TrainingMesh& mesh) {
  Mesh made;
  for (const MeshField& field : mesh_fields) {
    if (mesh.*field.size < 1) {
      throw ValueError(
          concat("TrainingMesh: ", field.name, " is a number of devices, 1 or more, got ", mesh.*field.size));
    }
    if (mesh.*field.size == 1) continue;
    made.axis_names.push_back(field.name);
    made.axis_sizes.push_back(mesh.*field.size);
  }
  if (mesh.microbatches < 0) {
    throw ValueError(concat("TrainingMesh: microbatches must not be negative, got ", mesh.microbatches));
  }
  if (mesh.microbatches > 0 && mesh.stages == 1) {
    throw ValueError(
        concat("TrainingMesh: microbatches are of a pipeline, which needs stages of 2 or more, got "
               "microbatches=",
               mesh.microbatches, " with stages=1"));
  }
  return made;
}

}  // namespace capibara::training
