// A client's compile request: read, and compiled for the devices of the client.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <capibara/placement.h>
#include <capibara/program.h>

#include "backends/backend.h"
#include "backends/pjrt/server/callbacks.h"
#include "backends/pjrt/server/objects.h"

namespace capibara::pjrt::server {

// An argument or a result of the module's main function, on each device.
struct Border {
  bool is_token = false;                  // represented by an empty array of booleans
  ArrayType whole, part;                  // over all devices, on one
  std::optional<NamedSharding> sharding;  // nullopt for programs of one device
  AxisList unreduced;                     // mesh axes over which the devices' values have yet to be summed
  std::string memory_kind;
  bool donated = false;
};

class Compiled {
 public:
  // Raises what the reader and the compiler raise, and Failure for unsupported options.
  Compiled(std::string module, std::string options, abi::Client& client);

  // Returns the results of each device, from the operands of each.
  std::vector<Arrays> run(const std::vector<Arrays>& operands, const std::vector<bool>& donated,
                          const std::vector<void*>& functions);

  const std::string& name() const { return name_; }
  const std::vector<int>& devices() const { return devices_; }  // ids by partition
  const std::vector<Border>& arguments() const { return arguments_; }
  const std::vector<Border>& results() const { return results_; }
  const std::string& fingerprint() const { return fingerprint_; }
  const std::string& options() const { return options_; }
  std::string serialized() const;
  // The module and the options of `serialized`; raises Failure for other bytes.
  static std::pair<std::string, std::string> deserialized(std::string_view bytes);
  // A DeviceAssignmentProto message.
  std::string assignment() const;

  MemoryUse memory() const;
  const std::vector<abi::NamedValue>& costs() const { return costs_.list(); }

  // Lists in the form that the C interface returns.
  struct Lists {
    std::vector<abi::Type> types;
    std::vector<int64_t> dims;
    std::vector<std::size_t> ranks;
    std::vector<const char*> kinds;
    std::vector<std::size_t> kind_sizes;
    std::vector<std::string> argument_shardings, result_shardings;  // messages OpSharding; empty: one device
    std::vector<const char*> argument_sharding_data, result_sharding_data;
    std::vector<std::size_t> argument_sharding_sizes, result_sharding_sizes;
  };
  const Lists& lists() const { return lists_; }

 private:
  void place(const stablehlo::Module& module, const stablehlo::Entry& entry);
  void fill_lists();

  std::string module_, options_, name_, fingerprint_;
  std::vector<int> devices_;
  std::vector<Border> arguments_, results_;
  Program program_;
  std::shared_ptr<CallTable> calls_;
  std::shared_ptr<capibara::Executable> executable_;
  std::vector<bool> donated_;  // by input of the program
  NamedValues costs_;
  Lists lists_;
};

}  // namespace capibara::pjrt::server
