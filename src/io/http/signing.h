// Signatures by libcrypto, which libcurl brings along.
#pragma once

#include <cstddef>

// RSASSA-PKCS1-v1_5 with SHA-256 by a private key in PEM. Returns the size of the signature; 0 and a reason if there is
// none.
std::size_t capibara_sign_rs256(const char* key, std::size_t key_size, const char* text, std::size_t size,
                                unsigned char* to, std::size_t capacity, char* reason, std::size_t reason_size);
