// Tokens as the bytes of a token file.
#pragma once

#include <string>
#include <string_view>

#include <capibara/training/data.h>

namespace capibara::training {

// Bytes per token: 1 or 2. ValueError if the tokenizer has more tokens than two bytes can hold.
int token_width(const Tokenizer& tokenizer);
// The tokens of a text, little-endian.
std::string token_bytes(std::string_view text, const Tokenizer& tokenizer);

}  // namespace capibara::training
