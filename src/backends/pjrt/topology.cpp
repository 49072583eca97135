// Compiles for devices that are described, not present.
#include "backends/pjrt/topology.h"

#include <sys/utsname.h>

#include <cstdlib>

#include <capibara/error.h>

#include "backends/pjrt/named_values.h"
#include "backends/pjrt/tpu_environment.h"

namespace capibara::pjrt {

using abi::Args;
using abi::Function;

namespace {

Candidate plugin_for(const std::string& platform, const std::string& name) {
  try {
    return choose(platform);
  } catch (const RuntimeError& error) {
    utsname machine{};
    uname(&machine);
    const std::string note =
        platform == "tpu" && std::string_view(machine.machine) != "x86_64"
            ? concat("\nThe compiler of TPUs, libtpu, exists for x86_64 only; this machine is ", machine.machine, ".")
            : "";
    throw RuntimeError(concat("topology '", name, "': its compiler is the PJRT plugin for '", platform,
                              "', which is not available. ", error.what(), note));
  }
}

}  // namespace

std::string topology_platform(const std::string& name) {
  const std::size_t colon = name.find(':');
  const std::string sizes = colon == std::string::npos ? name : name.substr(colon + 1);
  const bool numbers = !sizes.empty() && sizes.find_first_not_of("0123456789x") == std::string::npos &&
                       sizes.back() != 'x' && sizes.front() != 'x';
  if (numbers && colon == std::string::npos && sizes.find('x') != std::string::npos) return "cuda";
  if (numbers && colon != std::string::npos && (name[0] == 'v' || name.rfind("tpu", 0) == 0)) return "tpu";
  throw ValueError(
      concat("topology: expected a TPU's generation and shape such as v5e:4x4 or v4:2x2x4, or slices, hosts and GPUs "
             "such as 1x1x4, got '",
             name, "'"));
}

Topology::Topology(const std::string& platform, const std::string& name, const TopologyOptions& options) {
  const Candidate candidate = plugin_for(platform, name);
  setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);
  if (candidate.platform == "tpu") set_tpu_environment(name);
  plugin_ = std::make_shared<const Plugin>(candidate.platform, candidate.path);
  NamedValues values;
  for (const auto& [key, value] : options) {
    if (const auto* flag = std::get_if<bool>(&value))
      values.boolean(key, *flag);
    else if (const auto* number = std::get_if<int64_t>(&value))
      values.integer(key, *number);
    else if (const auto* numbers = std::get_if<std::vector<int64_t>>(&value))
      values.integers(key, *numbers);
    else
      values.text(key, std::get<std::string>(value));
  }
  // CUDA's plugin reads the shape from an option; the name is arbitrary.
  if (candidate.platform == "cuda" && !options.count("topology") && !name.empty()) values.text("topology", name);
  Args<abi::TopologyCreate> args;
  args.name = name.data();
  args.name_size = name.size();
  args.options = values.list().data();
  args.option_count = values.list().size();
  plugin_->call(Function::topology_create, args, concat("topology '", name, "' of ", candidate.path));
  topology_ = args.topology;
  list_devices();
}

Topology::Topology(Client& client) : plugin_(std::shared_ptr<const Plugin>(), &client.plugin()), client_(&client) {
  Args<abi::ClientTopology> args;
  args.client = client.handle();
  plugin_->call(Function::client_topology, args, concat("topology of ", client.platform()));
  topology_ = args.topology;
  list_devices();
}

Topology::~Topology() {
  if (client_) return;  // owned by the client
  Args<abi::TopologyDestroy> args;
  args.topology = topology_;
  if (abi::Error* error = plugin_->try_call(Function::topology_destroy, args)) plugin_->take_message(error);
}

void Topology::list_devices() {
  Args<abi::TopologyDevices> all;
  all.topology = topology_;
  plugin_->call(Function::topology_devices, all, "topology");
  for (std::size_t i = 0; i < all.count; ++i) {
    DeviceInfo info;
    Args<abi::DescriptionId> id, process;
    id.description = process.description = all.descriptions[i];
    plugin_->call(Function::description_id, id, "topology");
    plugin_->call(Function::description_process, process, "topology");
    info.id = id.id;
    info.process = process.id;
    Args<abi::DescriptionText> kind, text;
    kind.description = text.description = all.descriptions[i];
    plugin_->call(Function::description_kind, kind, "topology");
    plugin_->call(Function::description_debug_string, text, "topology");
    info.kind.assign(kind.text, kind.size);
    info.text.assign(text.text, text.size);
    devices_.push_back(std::move(info));
  }
}

std::string Topology::platform_version() const {
  Args<abi::TopologyText> args;
  args.topology = topology_;
  plugin_->call(Function::topology_version, args, "topology");
  return std::string(args.text, args.size);
}

std::shared_ptr<const Compiled> Topology::compile(const std::string& text, const CompileOptions& options,
                                                  const std::string& what) const {
  if (client_) {
    std::shared_ptr<Loaded> loaded = client_->compile(text, options, what);
    return {loaded, &loaded->compiled()};  // the compiled description does not outlive the loaded program
  }
  CompileArguments arguments(text, options);
  Args<abi::Compile> args;
  args.topology = topology_;
  arguments.give_to(args);
  plugin_->call(Function::compile, args, what);
  return std::make_shared<const Compiled>(*plugin_, args.executable);
}

int64_t partition_count(const std::string& text) {
  constexpr std::string_view key = "mhlo.num_partitions = ";
  const std::size_t position = text.find(key);
  return position == std::string::npos ? 1 : std::max<int64_t>(1, std::atoll(text.c_str() + position + key.size()));
}

}  // namespace capibara::pjrt
