// capibara compile: compiles a file ahead of time, for a topology by name, for a plugin's own devices, or to an object.
#include <cstdio>
#include <fstream>
#include <memory>

#include <capibara/error.h>
#include <capibara/object_code.h>

#include "backends/pjrt/backend.h"
#include "backends/pjrt/topology.h"
#include "command.h"
#include "program_file.h"

namespace capibara::command {

namespace {

// Numbers, lists such as 2x2x1, true and false, and texts.
pjrt::TopologyOptions topology_options(const Arguments& arguments) {
  pjrt::TopologyOptions options;
  for (const auto& [name, value] : arguments.named_values("options")) {
    if (value == "true" || value == "false") {
      options[name] = value == "true";
    } else if (!value.empty() && value.find_first_not_of("0123456789") == std::string::npos) {
      options[name] = static_cast<int64_t>(std::stoll(value));
    } else if (!value.empty() && value.find_first_not_of("0123456789x") == std::string::npos && name != "topology") {
      std::vector<int64_t> list;
      for (const std::string& size : split(value, 'x')) list.push_back(std::atoll(size.c_str()));
      options[name] = std::move(list);
    } else {
      options[name] = value;
    }
  }
  return options;
}

int compile_to_object(const Arguments& arguments) {
  const std::string object = arguments.text("object", ""), header = arguments.text("header", "");
  if (object.empty() || header.empty()) throw UsageError{"--object and --header belong together"};
  for (const char* other : {"topology", "platform", "options", "output"}) {
    if (arguments.has(other)) throw UsageError{concat("--object does not go with --", other)};
  }
  const Sizes sizes = sizes_of(arguments);
  const ProgramFile file = read_closed_file(arguments.words[0], sizes);
  const std::string weights = arguments.text("weights", "");
  const jax::ObjectOptions options{arguments.text("name", ""), split(arguments.text("target"), ','), !weights.empty(),
                                   sizes};
  auto waiting = std::make_unique<Waiting>(concat("compiling ", arguments.words[0]));
  const jax::ObjectCode code =
      file.exported ? jax::compile_object(*file.exported, options) : jax::compile_object(file.program, options);
  waiting.reset();
  code.write(object, header, weights);
  std::printf("%s: %zu bytes, function %s, arena %lld bytes\n%s\n", object.c_str(), code.object.size(),
              code.name.c_str(), static_cast<long long>(code.arena_bytes), header.c_str());
  if (!weights.empty()) std::printf("%s: %zu bytes\n", weights.c_str(), code.weights.size());
  return 0;
}

}  // namespace

int compile(const Arguments& arguments) {
  if (arguments.words.size() != 1) throw UsageError{"one file is needed"};
  if (arguments.has("object") || arguments.has("header")) return compile_to_object(arguments);
  for (const char* own : {"target", "name", "weights"}) {
    if (arguments.has(own)) throw UsageError{concat("--", own, " goes with --object")};
  }
  const std::string text = stablehlo_text_of(arguments.words[0], sizes_of(arguments)),
                    name = arguments.text("topology", "");
  std::unique_ptr<pjrt::Topology> topology;
  if (name.empty()) {
    topology = std::make_unique<pjrt::Topology>(pjrt::client(arguments.text("platform", "pjrt")));
  } else {
    const std::string platform = arguments.text("platform", "");
    topology = std::make_unique<pjrt::Topology>(platform.empty() ? pjrt::topology_platform(name) : platform, name,
                                                topology_options(arguments));
  }
  const std::vector<pjrt::DeviceInfo>& devices = topology->devices();
  pjrt::CompileOptions options = pjrt::standard_options(topology->plugin().platform());
  options.partitions = pjrt::partition_count(text);
  if (options.partitions > static_cast<int64_t>(devices.size())) {
    throw ValueError(
        concat(arguments.words[0], " is for ", options.partitions, " devices, but the topology has ", devices.size()));
  }
  for (int64_t i = 0; i < options.partitions; ++i) options.devices.push_back(devices[static_cast<std::size_t>(i)].id);
  auto waiting = std::make_unique<Waiting>(concat("compiling ", arguments.words[0]));
  const std::shared_ptr<const pjrt::Compiled> compiled =
      topology->compile(text, options, concat("compile of ", arguments.words[0]));
  waiting.reset();
  std::printf("%s, %s\n%zu x %s, the program runs on %lld\n", topology->plugin().version().c_str(),
              topology->platform_version().c_str(), devices.size(),
              devices.empty() ? "device" : devices[0].kind.c_str(), static_cast<long long>(options.partitions));
  const MemoryUse use = compiled->memory_analysis();
  const std::pair<const char*, int64_t> rows[] = {{"arguments", use.argument},  {"results", use.output},
                                                  {"aliased", use.alias},       {"temporaries", use.temp},
                                                  {"code", use.generated_code}, {"peak", use.peak}};
  for (const auto& [what, bytes] : rows)
    std::printf("  %-12s %14lld bytes on each device\n", what, static_cast<long long>(bytes));
  const std::string output = arguments.text("output", "");
  if (output.empty()) return 0;
  const std::optional<std::string> bytes = compiled->serialized();
  if (!bytes) throw RuntimeError(concat("the plugin ", topology->plugin().path(), " does not serialize programs"));
  std::ofstream file(output, std::ios::binary);
  if (!file.write(bytes->data(), static_cast<std::streamsize>(bytes->size())))
    throw RuntimeError(concat(output, " cannot be written"));
  std::printf("%s: %zu bytes\n", output.c_str(), bytes->size());
  return 0;
}

}  // namespace capibara::command
