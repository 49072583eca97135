// Zstandard, which readers of other programs' checkpoints need; opened at first use.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace capibara {

// Decompresses one frame that fills `to` exactly; the text says why it does not, and is empty where it does. Raises
// CheckpointError where the machine has no libzstd.
std::string zstd_decompress(std::span<const std::byte> from, std::span<std::byte> to);
// The same for a frame of at most `max_bytes`, which `to` becomes.
std::string zstd_decompress_whole(std::span<const std::byte> from, std::size_t max_bytes, std::string& to);

}  // namespace capibara
