// Zstandard, for readers of other programs' checkpoints; opened at first use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace capibara {

// No frame decompresses to more than this many times its size: a block has at least four bytes and at most 128 KiB.
inline constexpr uint64_t max_zstd_ratio = 1 << 15;

// Decompresses frames that fill `to` exactly; returns why they do not, or an empty text. Raises
// CheckpointError if the machine has no libzstd.
std::string zstd_decompress(std::span<const std::byte> from, std::span<std::byte> to);
// The same piece by piece, for frames of at most `max_bytes`: whatever size they claim, memory is taken only for a
// piece and for the frame's window.
std::string zstd_decompress_pieces(std::span<const std::byte> from, uint64_t max_bytes,
                                   const std::function<void(std::span<const std::byte> piece)>& take);
// The same into `to`, which grows as data arrives.
std::string zstd_decompress_whole(std::span<const std::byte> from, std::size_t max_bytes, std::string& to);

}  // namespace capibara
