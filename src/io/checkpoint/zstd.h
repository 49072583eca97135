// Zstandard, which readers of other programs' checkpoints need; opened at first use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace capibara {

// No frame decompresses to more than this many times its size: a block has four bytes at least and 128 KiB at most.
inline constexpr uint64_t max_zstd_ratio = 1 << 15;

// Decompresses frames that fill `to` exactly; the text says why they do not, and is empty where they do. Raises
// CheckpointError where the machine has no libzstd.
std::string zstd_decompress(std::span<const std::byte> from, std::span<std::byte> to);
// The same piece by piece, for frames of at most `max_bytes`: however much they claim to hold, memory is taken for a
// piece and for the window of the frame alone.
std::string zstd_decompress_pieces(std::span<const std::byte> from, uint64_t max_bytes,
                                   const std::function<void(std::span<const std::byte> piece)>& take);
// The same into `to`, which grows with what comes.
std::string zstd_decompress_whole(std::span<const std::byte> from, std::size_t max_bytes, std::string& to);

}  // namespace capibara
