// The precision of dot products and convolutions: by name, or by the name of an algorithm.
#include "lax/contract/precision.h"

#include <capibara/config.h>

#include <algorithm>

namespace capibara {

namespace {

const DotAlgorithm algorithms[] = {
    {"DEFAULT", std::nullopt, DType::float32},
    {"ANY_F8_ANY_F8_F32", std::nullopt, DType::float32},
    {"ANY_F8_ANY_F8_F32_FAST_ACCUM", std::nullopt, DType::float32},
    {"ANY_F8_ANY_F8_ANY", std::nullopt, DType::float32},
    {"ANY_F8_ANY_F8_ANY_FAST_ACCUM", std::nullopt, DType::float32},
    {"F16_F16_F16", DType::float16, DType::float16},
    {"F16_F16_F32", DType::float16, DType::float32},
    {"BF16_BF16_BF16", DType::bfloat16, DType::bfloat16},
    {"BF16_BF16_F32", DType::bfloat16, DType::float32},
    {"BF16_BF16_F32_X3", DType::float32, DType::float32},
    {"BF16_BF16_F32_X6", DType::float32, DType::float32},
    {"BF16_BF16_F32_X9", DType::float32, DType::float32},
    {"TF32_TF32_F32", DType::float32, DType::float32},
    {"TF32_TF32_F32_X3", DType::float32, DType::float32},
    {"F32_F32_F32", DType::float32, DType::float32},
    {"F64_F64_F64", DType::float64, DType::float64},
};

std::optional<std::string> canonical_precision(const std::string& text) {
  static const std::pair<const char*, const char*> names[] = {
      {"default", "default"}, {"fastest", "default"},  {"bfloat16", "default"},   {"0", "default"},
      {"high", "high"},       {"bfloat16_3x", "high"}, {"tensorfloat32", "high"}, {"1", "high"},
      {"highest", "highest"}, {"float32", "highest"},  {"2", "highest"}};
  for (const auto& [name, canonical] : names) {
    if (text == name) return canonical;
  }
  return std::nullopt;
}

}  // namespace

const DotAlgorithm* find_algorithm(const std::string& name) {
  for (const DotAlgorithm& algorithm : algorithms) {
    if (name == algorithm.name) return &algorithm;
  }
  return nullptr;
}

std::optional<std::string> print_precision(const std::string& name, const Attr& attr) {
  if (name != "precision") return std::nullopt;
  const auto* list = attr.get_if<std::shared_ptr<const Attr::List>>();
  if (!list) return std::nullopt;
  std::string text = "(";
  for (std::size_t i = 0; i < (*list)->size(); ++i) {
    std::string word = *(**list)[i].get_if<std::string>();
    std::transform(word.begin(), word.end(), word.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
    text += concat(i ? ", " : "", "Precision.", word);
  }
  return text + ")";
}

Attr precision_attr(const std::string& op, const std::string& precision) {
  if (precision.empty()) {
    const std::string& fallback = config().default_matmul_precision;
    return fallback.empty() ? Attr() : precision_attr(op, fallback);
  }
  if (std::optional<std::string> canonical = canonical_precision(precision)) return Attr::List{*canonical, *canonical};
  if (find_algorithm(precision)) return precision;
  if (std::size_t comma = precision.find(','); comma != std::string::npos) {
    auto first = canonical_precision(precision.substr(0, comma)),
         second = canonical_precision(precision.substr(comma + 1));
    if (first && second) return Attr::List{*first, *second};
  }
  throw ValueError(
      concat(op,
             ": precision must be 'default', 'high', 'highest', a pair like 'high,highest', or the name of "
             "a dot algorithm like 'BF16_BF16_F32', got '",
             precision, "' (argument 'precision')"));
}

}  // namespace capibara
