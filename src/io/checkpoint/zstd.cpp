// Opens libzstd and calls it.
#include "io/checkpoint/zstd.h"

#include <dlfcn.h>

#include <type_traits>
#include <vector>

#include <capibara/checkpoint.h>

namespace capibara {

namespace {

// The types of the functions as zstd.h declares them, unchanged since version 1.0.
struct ZstdLibrary {
  std::size_t (*decompress)(void* to, std::size_t capacity, const void* from, std::size_t size) = nullptr;
  unsigned (*is_error)(std::size_t code) = nullptr;
  const char* (*error_name)(std::size_t code) = nullptr;
  struct Input {
    const void* from;
    std::size_t size, at;
  };
  struct Output {
    void* to;
    std::size_t size, at;
  };
  void* (*create_stream)() = nullptr;
  std::size_t (*free_stream)(void* stream) = nullptr;
  std::size_t (*decompress_stream)(void* stream, Output* out, Input* in) = nullptr;

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
    find(create_stream, "ZSTD_createDStream");
    find(free_stream, "ZSTD_freeDStream");
    find(decompress_stream, "ZSTD_decompressStream");
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

std::string zstd_decompress_pieces(std::span<const std::byte> from, uint64_t max_bytes,
                                   const std::function<void(std::span<const std::byte>)>& take) {
  struct Stream {
    void* state = zstd().create_stream();
    ~Stream() { zstd().free_stream(state); }
  } stream;
  if (!stream.state) throw CheckpointError("checkpoint: no memory to decompress by zstd");
  std::vector<std::byte> piece(1 << 17);  // a block
  ZstdLibrary::Input in{from.data(), from.size(), 0};
  uint64_t total = 0;
  while (true) {
    ZstdLibrary::Output out{piece.data(), piece.size(), 0};
    const std::size_t expected = zstd().decompress_stream(stream.state, &out, &in);
    if (zstd().is_error(expected) != 0) return concat("zstd says: ", zstd().error_name(expected));
    if (out.at > max_bytes - total) return concat("expected ", max_bytes, " bytes after decompression, got more");
    total += out.at;
    take(std::span(piece).first(out.at));
    if (in.at < in.size) continue;
    if (expected == 0) return "";  // the last frame has ended, and all of its content was passed on
    if (out.at < out.size) return "a zstd frame ends too early";
  }
}

std::string zstd_decompress_whole(std::span<const std::byte> from, std::size_t max_bytes, std::string& to) {
  to.clear();
  return zstd_decompress_pieces(from, max_bytes, [&](std::span<const std::byte> piece) {
    to.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
}

}  // namespace capibara
