// Recorders of devices: what only a plugin sees takes part in the profile.
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
  // Ends it and returns what was recorded as a serialized XSpace; adds the errors that it met and went on from.
  virtual std::string stop(std::vector<std::string>& errors) = 0;
};
// From now on it takes part in every profile, at once in one that is being taken. An error of it becomes one of the
// profile's refusals.
void add_device_recorder(std::unique_ptr<DeviceRecorder> recorder);

// All of them, as a session begins and ends.
void start_device_recorders();
void stop_device_recorders(Profile& profile);

}  // namespace capibara::profile
