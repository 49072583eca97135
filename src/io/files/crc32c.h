// CRC-32C (Castagnoli): the checksum that zarr, tensorstore and object stores put on data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace capibara {

// The checksum of bytes that continue those whose checksum is `before`.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace capibara
