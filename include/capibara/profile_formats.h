// Profiles in the file formats of other tools: XPlane for xprof and TensorBoard, JSON for Perfetto, pprof for memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <capibara/profile.h>

namespace capibara::profile {

// A profile as a serialized XSpace: the contents of .xplane.pb files. The planes of plugins and of `spaces`, other
// serialized XSpaces, are appended; if one of them has device planes, ours are omitted. Without `host_spans` the host
// plane has only steps and memory.
std::string to_xspace(const Profile& profile, const std::vector<std::string>& spaces = {}, bool host_spans = true);

// The host planes of a serialized XSpace under another name: for one file with several processes.
std::string host_planes(std::string_view xspace, const std::string& name);

// A serialized XSpace as JSON for Chrome's trace viewer and Perfetto. Raises ValueError if the bytes are not an XSpace.
std::string to_trace_json(std::string_view xspace);

// Writes FOLDER/plugins/profile/RUN/HOST.xplane.pb, where xprof and TensorBoard look for it, and next to it
// HOST.trace.json.gz; returns the path of the first. If `run` is empty, it is the current time.
std::string save_tensorboard(const Profile& profile, const std::string& folder, const std::string& run = "");
// The same for an XSpace.
std::string save_tensorboard(std::string_view xspace, const std::string& host, const std::string& folder,
                             const std::string& run = "");

// Equal blocks of memory, counted together.
struct LiveMemory {
  std::string name;    // "float32[64,64]"
  std::string kind;    // "buffer" or "executable"
  std::string device;  // "cpu:0"
  int64_t count = 0;
  int64_t bytes = 0;  // of all of them together
};
// The blocks as a pprof profile, not compressed: samples are counted in allocations and in bytes.
std::string to_pprof(const std::vector<LiveMemory>& blocks);

// A gzip file of the bytes, stored without compression: the core links no compressor.
std::string to_gzip(std::string_view bytes);

}  // namespace capibara::profile
