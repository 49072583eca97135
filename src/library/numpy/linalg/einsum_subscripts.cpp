// Parsing of einsum's subscripts, as in NumPy.
#include "library/numpy/linalg/einsum_subscripts.h"

#include <algorithm>

#include "lax/shape/shape.h"

namespace capibara {

namespace {

Labels decode(const std::string& text) {
  Labels out;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    char32_t code = length == 1 ? lead : lead & (0x7fu >> length);
    for (std::size_t k = 1; k < length && i + k < text.size(); ++k) {
      code = (code << 6) | (static_cast<unsigned char>(text[i + k]) & 0x3fu);
    }
    if (code != U' ') out.push_back(code);
    i += length;
  }
  return out;
}

std::vector<Labels> split_at_commas(const Labels& text) {
  std::vector<Labels> parts(1);
  for (char32_t c : text) {
    if (c == U',')
      parts.emplace_back();
    else
      parts.back().push_back(c);
  }
  return parts;
}

// The letters that represent the axes of an ellipsis: the first that the subscripts do not use.
Labels unused_letters(const Labels& used, std::size_t count) {
  Labels letters;
  for (char32_t i = 0; letters.size() < count; ++i) {
    const char32_t letter = i < 26 ? U'a' + i : i < 52 ? U'A' + (i - 26) : i + 140;
    if (!has(used, letter)) letters.push_back(letter);
  }
  return letters;
}

Labels with_ellipsis(const char* name, const Labels& term, const Labels& letters) {
  const std::size_t position = term.find(U"...");
  if (position == Labels::npos || std::count(term.begin(), term.end(), U'.') != 3) {
    throw ValueError(concat(name, ": an ellipsis is written '...', once in each term, got '", to_text(term), "'"));
  }
  return term.substr(0, position) + letters + term.substr(position + 3);
}

// The labels that occur once across all inputs, sorted.
Labels implicit_output(const std::vector<Labels>& inputs) {
  std::map<char32_t, int> counts;
  for (const Labels& input : inputs) {
    for (char32_t label : input) ++counts[label];
  }
  Labels output;
  for (const auto& [label, count] : counts) {
    if (count == 1) output.push_back(label);
  }
  return output;
}

void expand_ellipses(const char* name, Subscripts& equation, bool has_output, const std::vector<Shape>& shapes) {
  std::size_t rank = 0, longest = 0;
  for (const Shape& shape : shapes) rank = std::max(rank, shape.size());
  Labels used = equation.output;
  for (const Labels& input : equation.inputs) used += input;
  const Labels letters = unused_letters(used, rank);
  for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
    Labels& input = equation.inputs[i];
    if (!has(input, U'.')) continue;
    with_ellipsis(name, input, {});
    const std::size_t named = input.size() - 3;
    const std::size_t own = i < shapes.size() ? shapes[i].size() : 0;
    if (own < named) {
      throw ValueError(concat(name, ": term '", to_text(input), "' has more labels than operand ", i, " of shape ",
                              tuple(shapes[i]), " has axes"));
    }
    longest = std::max(longest, own - named);
    input = with_ellipsis(name, input, letters.substr(rank - (own - named)));
  }
  const Labels shared = letters.substr(rank - longest);
  if (has_output) {
    if (has(equation.output, U'.')) equation.output = with_ellipsis(name, equation.output, shared);
  } else {
    Labels once = implicit_output(equation.inputs);
    std::erase_if(once, [&](char32_t label) { return has(shared, label); });
    equation.output = shared + once;
  }
}

}  // namespace

double Subscripts::size_of(const Labels& labels) const {
  double size = 1;
  for (char32_t label : labels) size *= elements.at(label);
  return size;
}

std::string to_text(const Labels& labels) {
  std::string text;
  for (char32_t c : labels) {
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else {
      if (c < 0x800) {
        text += static_cast<char>(0xc0 | (c >> 6));
      } else {
        text += c < 0x10000 ? static_cast<char>(0xe0 | (c >> 12)) : static_cast<char>(0xf0 | (c >> 18));
        if (c >= 0x10000) text += static_cast<char>(0x80 | ((c >> 12) & 0x3f));
        text += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
      }
      text += static_cast<char>(0x80 | (c & 0x3f));
    }
  }
  return text;
}

Subscripts parse_subscripts(const char* name, const std::string& subscripts, const std::vector<Shape>& shapes) {
  const Labels text = decode(subscripts);
  const std::size_t arrow = text.find(U"->");
  const auto dashes = std::count(text.begin(), text.end(), U'-'), heads = std::count(text.begin(), text.end(), U'>');
  if ((dashes != 0 || heads != 0) && (dashes != 1 || heads != 1 || arrow == Labels::npos)) {
    throw ValueError(concat(name, ": subscripts can contain one '->', got '", subscripts, "'"));
  }
  const bool has_output = arrow != Labels::npos;
  Subscripts equation;
  equation.inputs = split_at_commas(text.substr(0, arrow));
  if (has_output) equation.output = text.substr(arrow + 2);
  if (has(text, U'.'))
    expand_ellipses(name, equation, has_output, shapes);
  else if (!has_output)
    equation.output = implicit_output(equation.inputs);

  for (char32_t label : equation.output) {
    if (std::count(equation.output.begin(), equation.output.end(), label) != 1) {
      throw ValueError(concat(name, ": label '", to_text({label}), "' appears more than once in the output"));
    }
    if (std::none_of(equation.inputs.begin(), equation.inputs.end(),
                     [&](const Labels& in) { return has(in, label); })) {
      throw ValueError(concat(name, ": output label '", to_text({label}), "' does not appear in any input"));
    }
  }
  if (equation.inputs.size() != shapes.size()) {
    throw ValueError(concat(name, ": '", subscripts, "' has ", equation.inputs.size(), " terms, but there are ",
                            shapes.size(), " operands"));
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Labels& term = equation.inputs[i];
    if (term.size() != shapes[i].size()) {
      throw ValueError(concat(name, ": term '", to_text(term), "' does not have one label per axis of operand ", i,
                              " of shape ", tuple(shapes[i])));
    }
    for (std::size_t d = 0; d < term.size(); ++d) {
      auto [known, is_new] = equation.sizes.try_emplace(term[d], shapes[i][d]);
      if (is_new || shapes[i][d] == known->second || shapes[i][d] == 1) continue;
      if (known->second != 1) {
        throw ValueError(concat(name, ": label '", to_text({term[d]}), "' has size ", known->second, ", but size ",
                                shapes[i][d], " in operand ", i));
      }
      known->second = shapes[i][d];
    }
  }
  for (const auto& [label, size] : equation.sizes) equation.elements[label] = static_cast<double>(size);
  return equation;
}

}  // namespace capibara
