// Opens libzstd and calls it.
#include "checkpoint/zstd.h"

#include <dlfcn.h>

#include <algorithm>
#include <string_view>

#include <capibara/checkpoint.h>

namespace capibara {

namespace {

// The functions' types as zstd.h declares them, unchanged since version 1.0.
struct ZstdLibrary {
  std::size_t (*decompress)(void* to, std::size_t capacity, const void* from, std::size_t size) = nullptr;
  unsigned (*is_error)(std::size_t code) = nullptr;
  const char* (*error_name)(std::size_t code) = nullptr;
  unsigned long long (*content_size)(const void* from, std::size_t size) = nullptr;

  ZstdLibrary() {
    void* library = ::dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
      throw CheckpointError(
          "checkpoint: this file is compressed by zstd, and the machine has no libzstd.so.1; install libzstd1");
    auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      if (!function) throw CheckpointError(concat("checkpoint: libzstd.so.1 has no function ", name));
    };
    find(decompress, "ZSTD_decompress");
    find(is_error, "ZSTD_isError");
    find(error_name, "ZSTD_getErrorName");
    find(content_size, "ZSTD_getFrameContentSize");
  }
};

const ZstdLibrary& zstd() {
  static const ZstdLibrary library;
  return library;
}

}  // namespace

std::string zstd_decompress(std::span<const std::byte> from, std::span<std::byte> to) {
  const std::size_t got = zstd().decompress(to.data(), to.size(), from.data(), from.size());
  if (zstd().is_error(got) != 0) return concat("zstd says: ", zstd().error_name(got));
  return got == to.size() ? "" : concat("expected ", to.size(), " bytes after decompression, got ", got);
}

std::string zstd_decompress_whole(std::span<const std::byte> from, std::size_t max_bytes, std::string& to) {
  constexpr unsigned long long unknown = 0ULL - 1;
  const unsigned long long size = zstd().content_size(from.data(), from.size());
  if (size != unknown) {
    if (size > max_bytes) return "a zstd frame that is damaged, or larger than a node may be";
    to.assign(size, '\0');
    return zstd_decompress(from, std::as_writable_bytes(std::span(to)));
  }
  for (std::size_t capacity = std::max<std::size_t>(from.size() * 8, 1 << 16);; capacity *= 2) {
    to.assign(std::min(capacity, max_bytes), '\0');
    const std::size_t got = zstd().decompress(to.data(), to.size(), from.data(), from.size());
    const bool failed = zstd().is_error(got) != 0;
    if (failed && capacity < max_bytes &&
        std::string_view(zstd().error_name(got)).find("too small") != std::string_view::npos)
      continue;
    if (failed) return concat("zstd says: ", zstd().error_name(got));
    to.resize(got);
    return "";
  }
}

}  // namespace capibara
