// Training plans from MaxText's configuration files.
#pragma once

#include <capibara/tpu/plan.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace capibara::tpu {

// The settings of a file, `name: value` at the start of a line; nested tables and lists over several lines are left
// out.
std::map<std::string, std::string> read_settings(std::string_view yaml);

struct MaxTextPlan {
  Training training;
  std::vector<std::string> remarks;  // what was assumed or is not modelled
};
// The plan of these settings on a slice; without one, that of compile_topology. Raises ValueError, naming the setting,
// for what cannot be planned.
MaxTextPlan maxtext_plan(const std::map<std::string, std::string>& settings, const Slice* slice = nullptr);

}  // namespace capibara::tpu
