// The device that runs computations whose arguments are not placed: jax.default_device.
#pragma once

#include <capibara/device.h>

#include <optional>

namespace capibara {

// The platform of the backend that needs no plugin: "cpu", or "reference" in a build without the code generator.
std::string native_platform();

// The default device of this thread; absent if it is the first device of the configured platform. Part of
// config_key().
const std::optional<Device>& chosen_device();
// Sets the process's default device.
void set_default_device(std::optional<Device> device);

// Overrides the default device of this thread until the end of the scope.
class [[nodiscard]] DefaultDeviceScope {
 public:
  explicit DefaultDeviceScope(std::optional<Device> device);
  ~DefaultDeviceScope();
  DefaultDeviceScope(const DefaultDeviceScope&) = delete;
  DefaultDeviceScope& operator=(const DefaultDeviceScope&) = delete;

 private:
  std::optional<std::optional<Device>> previous_;
};

namespace jax {
// Places new arrays and unplaced computations on a device while the scope lives.
inline DefaultDeviceScope default_device(const Device& device) { return DefaultDeviceScope(device); }
}  // namespace jax

}  // namespace capibara
