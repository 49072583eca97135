// Factors as values: their text, and the types of the parts that they are split into.
#include <capibara/factors.h>

namespace capibara {

namespace {

std::string factor_name(int id) {
  const std::string letter(1, static_cast<char>('a' + id % 26));
  return id < 26 ? letter : concat(letter, id / 26);
}

std::string dimension_text(const DimensionFactors& dimension) {
  if (dimension.empty()) return "1";
  std::string text;
  for (int id : dimension) text += concat(text.empty() ? "" : " ", factor_name(id));
  return dimension.size() == 1 ? text : concat("(", text, ")");
}

std::string values_text(const std::vector<ValueFactors>& values) {
  std::string text;
  for (const ValueFactors& value : values) {
    text += text.empty() ? "(" : " (";
    for (std::size_t d = 0; d < value.size(); ++d) text += concat(d ? " " : "", dimension_text(value[d]));
    text += ")";
  }
  return text;
}

const char* monoid_name(Monoid monoid) {
  static constexpr const char* names[] = {"sum", "product", "maximum", "minimum", "all", "any", "parity"};
  return names[static_cast<std::size_t>(monoid)];
}

Types cut_types(std::span<const ArrayType> types, const std::vector<ValueFactors>& values, int factor, int64_t parts) {
  Types cut(types.begin(), types.end());
  for (std::size_t v = 0; v < cut.size(); ++v) {
    for (std::size_t d = 0; d < values[v].size(); ++d) {
      for (int id : values[v][d]) cut[v].shape[d] /= id == factor ? parts : 1;
    }
  }
  return cut;
}

}  // namespace

int Factors::add(int64_t size, FactorUse use, Monoid monoid) {
  factors.push_back({size, use, monoid});
  return static_cast<int>(factors.size()) - 1;
}

std::string to_string(const Factors& factors) {
  std::string text = concat(values_text(factors.operands), " -> ", values_text(factors.results));
  for (std::size_t i = 0; i < factors.factors.size(); ++i) {
    const Factor& factor = factors.factors[i];
    if (factor.use == FactorUse::free) continue;
    text += concat(", ", factor_name(static_cast<int>(i)), ": ",
                   factor.use == FactorUse::whole ? "whole" : monoid_name(factor.monoid));
  }
  return text;
}

PartTypes part_types(const EquationTypes& equation, const Factors& factors, int factor, int64_t parts) {
  return {cut_types(equation.operands, factors.operands, factor, parts),
          cut_types(equation.results, factors.results, factor, parts)};
}

}  // namespace capibara
