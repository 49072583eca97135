// Recorders of devices: they add to the profile what only a plugin sees.
#pragma once

#include <capibara/profile_data.h>

#include <memory>
#include <string>
#include <vector>

namespace capibara::profile {

// Records what happens on a device that only a plugin sees, while a profile is being taken.
class DeviceRecorder {
 public:
  virtual ~DeviceRecorder() = default;
  virtual void start() = 0;
  // Stops, and returns the recording as a serialized XSpace; appends the errors that it recovered from.
  virtual std::string stop(std::vector<std::string>& errors) = 0;
};
// From now on it takes part in every profile, including one in progress. Its error becomes one of the
// profile's refusals.
void add_device_recorder(std::unique_ptr<DeviceRecorder> recorder);

// All of them, as a session begins and ends.
void start_device_recorders();
void stop_device_recorders(Profile& profile);

}  // namespace capibara::profile
