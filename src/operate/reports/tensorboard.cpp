// The files of a profile, in the folders where xprof and TensorBoard look for them.
#include <capibara/profile_formats.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>

#include <capibara/error.h>

namespace capibara::profile {

namespace {

uint32_t crc32(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? value >> 1 ^ 0xEDB88320u : value >> 1;
      made[i] = value;
    }
    return made;
  }();
  uint32_t value = ~uint32_t{0};
  for (const char c : bytes) value = value >> 8 ^ table[(value ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~value;
}

void append_little(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw RuntimeError(concat("profile: cannot write ", path.string(), ": ", std::strerror(errno)));
}

std::string name_of_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y_%m_%d_%H_%M_%S", &parts);
  return text.data();
}

// A host's name as a file name: prevents path traversal.
std::string file_name(const std::string& host) {
  std::string name = host.empty() ? "localhost" : host;
  for (char& c : name) {
    if (c == '/' || c == '\0') c = '_';
  }
  return name == "." || name == ".." ? "localhost" : name;
}

}  // namespace

std::string to_gzip(std::string_view bytes) {
  std::string out("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", 10);
  std::size_t at = 0;
  do {
    const std::size_t size = std::min<std::size_t>(bytes.size() - at, 0xFFFF);
    out += static_cast<char>(at + size == bytes.size() ? 1 : 0);  // a stored block, and whether it is the last
    append_little(out, size, 2);
    append_little(out, ~size, 2);
    out += bytes.substr(at, size);
    at += size;
  } while (at < bytes.size());
  append_little(out, crc32(bytes), 4);
  append_little(out, bytes.size(), 4);
  return out;
}

std::string save_tensorboard(std::string_view xspace, const std::string& host, const std::string& folder,
                             const std::string& run) {
  // xprof caches its results next to the file: each profile needs its own folder.
  const std::filesystem::path parent = std::filesystem::path(folder) / "plugins" / "profile";
  const std::string wanted = run.empty() ? name_of_now() : run;
  std::filesystem::path target = parent / wanted;
  std::error_code error;
  for (int i = 1; run.empty() && std::filesystem::exists(target, error); ++i)
    target = parent / (wanted + "_" + std::to_string(i));
  std::filesystem::create_directories(target, error);
  if (error) throw RuntimeError(concat("profile: cannot make the folder ", target.string(), ": ", error.message()));
  const std::filesystem::path path = target / (file_name(host) + ".xplane.pb");
  write_file(path, xspace);
  write_file(target / (file_name(host) + ".trace.json.gz"), to_gzip(to_trace_json(xspace)));
  return path.string();
}

std::string save_tensorboard(const Profile& profile, const std::string& folder, const std::string& run) {
  return save_tensorboard(to_xspace(profile), profile.host, folder, run);
}

}  // namespace capibara::profile
