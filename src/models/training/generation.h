// Checks and sizes shared by the generation of one text and of many.
#pragma once

#include <capibara/training/language_model.h>

#include <span>

namespace capibara::training {

// ValueError that begins with `what` unless the parameters, or codes of them, fit the model and the model the capacity.
void require_generates(const char* what, const LanguageModel& model, const Parameters& parameters, int64_t capacity);

// ValueError that begins with `what` for a prompt that is empty, leaves no room, or has tokens out of range.
void require_prompt(const char* what, std::span<const int32_t> prompt, int64_t vocabulary, int64_t capacity);

// How many of the tokens of a prompt that are left to read are read next: powers of four, so that few programs cover
// prompts of any length.
int64_t prompt_chunk(int64_t left);

}  // namespace capibara::training
