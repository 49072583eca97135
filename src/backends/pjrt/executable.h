// PjrtExecutable: a program on a plugin, compiled once per placement of its inputs.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backends/backend.h"
#include "backends/pjrt/prepare.h"
#include "backends/pjrt/sharded_buffer.h"
#include "compiler/stablehlo/borders.h"
#include "core/profile/recorder.h"

namespace capibara::pjrt {

class PjrtExecutable final : public Executable {
 public:
  // Compiles a text; `devices` are ids, empty for the first device.
  using Compiler = std::function<std::shared_ptr<Loaded>(const Prepared& prepared, const std::vector<int>& devices)>;

  // Unplaced inputs go to the device `first`.
  PjrtExecutable(Client& client, const Program& program, std::vector<bool> donated, Extras extras, int first,
                 Compiler compile);

  Arrays execute(std::span<const Array> inputs, const std::vector<bool>& donated) override;
  ExecutableDetails details(std::span<const std::shared_ptr<const NamedSharding>> inputs) override;
  const Loaded& loaded();  // for inputs without placements

 private:
  using Placed = std::shared_ptr<const NamedSharding>;

  // The program compiled for one placement of its inputs.
  struct Variant {
    std::vector<Placed> inputs;      // null: on the first device
    Placed partitions;               // the devices; null: the first one
    std::vector<std::size_t> local;  // positions of the devices of this process
    std::shared_ptr<HostCalls> calls;
    std::shared_ptr<Loaded> loaded;
    std::vector<std::vector<std::shared_ptr<DeviceBuffer>>> constants;  // one for each local device
    std::vector<Placed> outputs;                                        // null: on the one device
  };
  using Memories = std::vector<std::shared_ptr<DeviceMemory>>;

  std::shared_ptr<const Variant> plain();
  std::shared_ptr<const Variant> find(std::span<const Array> inputs, const Memories& memories);
  std::shared_ptr<const Variant> find(std::span<const ArrayType> types, std::vector<Placed> own);
  std::shared_ptr<const Variant> make(std::vector<Placed> inputs, Placed partitions) const;
  Placed partitions_of(std::span<const ArrayType> types, const std::vector<Placed>& own) const;
  std::vector<abi::Buffer*> start(const Variant& variant, std::span<abi::Buffer* const* const> arguments,
                                  std::size_t count, std::span<const int64_t> kept) const;
  std::vector<int64_t> kept_positions(const std::vector<bool>& donated) const;
  Arrays dispatch(std::span<const Array> inputs, const std::vector<bool>& donated);
  Arrays execute_on(const Variant& variant, std::span<const Array> inputs, const Memories& memories,
                    const std::vector<bool>& donated);

  Client& client_;
  const Program program_;
  const Types types_;  // of the outputs
  const std::vector<bool> donated_;
  const Extras extras_;
  const int first_;
  const Compiler compile_;
  const std::shared_ptr<const std::string> name_;
  profile::WholeProgram profiled_;
  const stablehlo::Borders borders_;
  std::mutex mutex_;
  std::shared_ptr<const Variant> plain_;
  std::vector<std::shared_ptr<const Variant>> variants_;  // all except the plain one
};

}  // namespace capibara::pjrt
