// Profiles as files of other programs: XPlane for xprof and TensorBoard, JSON for Perfetto, pprof for memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <capibara/profile.h>

namespace capibara::profile {

// A profile as a serialized XSpace: what .xplane.pb files hold. The planes of plugins and of `spaces`, serialized
// XSpaces of others, come after ours; where one of them has device planes, ours has none. Without `host_spans` the host
// has its steps and its memory alone.
std::string to_xspace(const Profile& profile, const std::vector<std::string>& spaces = {}, bool host_spans = true);

// The planes of hosts in a serialized XSpace, under another name: for one file with several processes.
std::string host_planes(std::string_view xspace, const std::string& name);

// A serialized XSpace as JSON of Chrome's trace viewer and of Perfetto. Raises ValueError where the bytes are none.
std::string to_trace_json(std::string_view xspace);

// Writes FOLDER/plugins/profile/RUN/HOST.xplane.pb, where xprof and TensorBoard look for it, and beside it
// HOST.trace.json.gz; returns the path of the first. `run` is named by the time where it is empty.
std::string save_tensorboard(const Profile& profile, const std::string& folder, const std::string& run = "");
// The same for an XSpace.
std::string save_tensorboard(std::string_view xspace, const std::string& host, const std::string& folder,
                             const std::string& run = "");

// Blocks of memory that are alike.
struct LiveMemory {
  std::string name;    // "float32[64,64]"
  std::string kind;    // "buffer" or "executable"
  std::string device;  // "cpu:0"
  int64_t count = 0;
  int64_t bytes = 0;  // of all of them
};
// They as a pprof profile, not compressed: samples are counted in allocations and in bytes.
std::string to_pprof(const std::vector<LiveMemory>& blocks);

// The bytes as a gzip file. They are stored, not compressed: the core links no compressor.
std::string to_gzip(std::string_view bytes);

}  // namespace capibara::profile
