// einsum's subscripts: parsing as NumPy does, and the search for a cheap order of contraction.
#include "library/numpy/einsum_subscripts.h"

#include <algorithm>
#include <limits>
#include <set>

#include "primitives/shape.h"

namespace capibara {

using jax::numpy::ContractionPath;

namespace {

bool has(const Labels& labels, char32_t label) { return labels.find(label) != Labels::npos; }

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

// The letters that stand for the axes of an ellipsis: the first that the subscripts do not use.
Labels unused_letters(const Labels& used, std::size_t count) {
  Labels letters;
  for (char32_t i = 0; letters.size() < count; ++i) {
    const char32_t letter = i < 26 ? U'a' + i : i < 52 ? U'A' + (i - 26) : i + 140;
    if (!has(used, letter)) letters.push_back(letter);
  }
  return letters;
}

Labels with_ellipsis(const char* name, const Labels& term, const Labels& letters) {
  const std::size_t place = term.find(U"...");
  if (place == Labels::npos || std::count(term.begin(), term.end(), U'.') != 3) {
    throw ValueError(concat(name, ": an ellipsis is written '...', once in each term, got '", to_text(term), "'"));
  }
  return term.substr(0, place) + letters + term.substr(place + 3);
}

// The labels that occur once in all inputs, sorted.
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
  for (char32_t label : labels) size *= static_cast<double>(sizes.at(label));
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
  return equation;
}

// ---- the order of contraction ------------------------------------------------------------------------------------

namespace {

using LabelSet = std::set<char32_t>;

// Operands by number: inputs first, then the result of each step.
struct PathSearch {
  const Subscripts& equation;
  std::vector<LabelSet> operands;
  LabelSet output;
  double best_cost = std::numeric_limits<double>::infinity();
  std::vector<std::pair<std::size_t, std::size_t>> steps, best_steps;

  explicit PathSearch(const Subscripts& e) : equation(e), output(e.output.begin(), e.output.end()) {
    for (const Labels& input : e.inputs) operands.emplace_back(input.begin(), input.end());
  }

  double size_of(const LabelSet& labels) const { return equation.size_of(Labels(labels.begin(), labels.end())); }

  // What is left of two operands when they are contracted: labels that the output or another operand needs.
  LabelSet contracted(std::size_t i, std::size_t j, const std::vector<std::size_t>& remaining, double& cost) const {
    LabelSet either = operands[i], kept;
    either.insert(operands[j].begin(), operands[j].end());
    bool inner = false;
    for (char32_t label : either) {
      bool needed = output.count(label) > 0;
      for (std::size_t other : remaining) {
        needed = needed || (other != i && other != j && operands[other].count(label) > 0);
      }
      if (needed)
        kept.insert(label);
      else
        inner = inner || (operands[i].count(label) > 0 && operands[j].count(label) > 0);
    }
    cost = size_of(either) * (inner ? 2 : 1);
    return kept;
  }

  // Every order, except those that already cost more than the best one found.
  void search_all(std::vector<std::size_t> remaining, double cost) {
    if (remaining.size() == 1) {
      best_cost = cost;
      best_steps = steps;
      return;
    }
    for (std::size_t a = 0; a < remaining.size(); ++a) {
      for (std::size_t b = a + 1; b < remaining.size(); ++b) {
        const std::size_t i = remaining[a], j = remaining[b];
        double step_cost = 0;
        LabelSet result = contracted(i, j, remaining, step_cost);
        if (cost + step_cost >= best_cost) continue;
        std::vector<std::size_t> next;
        for (std::size_t other : remaining) {
          if (other != i && other != j) next.push_back(other);
        }
        next.push_back(operands.size());
        operands.push_back(std::move(result));
        steps.emplace_back(i, j);
        search_all(std::move(next), cost + step_cost);
        steps.pop_back();
        operands.pop_back();
      }
    }
  }

  // At each step the pair that shrinks what must be kept the most; pairs without a common label come last.
  void search_greedily(std::vector<std::size_t> remaining) {
    while (remaining.size() > 1) {
      std::tuple<bool, double, double> best{true, std::numeric_limits<double>::infinity(), 0};
      std::pair<std::size_t, std::size_t> chosen{remaining[0], remaining[1]};
      for (std::size_t a = 0; a < remaining.size(); ++a) {
        for (std::size_t b = a + 1; b < remaining.size(); ++b) {
          const std::size_t i = remaining[a], j = remaining[b];
          const bool apart = std::none_of(operands[i].begin(), operands[i].end(),
                                          [&](char32_t label) { return operands[j].count(label) > 0; });
          double cost = 0;
          LabelSet result = contracted(i, j, remaining, cost);
          std::tuple<bool, double, double> score{apart, size_of(result) - size_of(operands[i]) - size_of(operands[j]),
                                                 cost};
          if (score >= best) continue;
          best = score;
          chosen = {i, j};
        }
      }
      double cost = 0;
      LabelSet result = contracted(chosen.first, chosen.second, remaining, cost);
      std::erase_if(remaining, [&](std::size_t other) { return other == chosen.first || other == chosen.second; });
      remaining.push_back(operands.size());
      operands.push_back(std::move(result));
      best_steps.push_back(chosen);
    }
  }
};

// From numbers that never change to places in the list that shrinks at every step.
ContractionPath as_places(std::size_t count, const std::vector<std::pair<std::size_t, std::size_t>>& steps) {
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < count; ++i) list.push_back(i);
  ContractionPath path;
  std::size_t next = count;
  for (const auto& [i, j] : steps) {
    Ints places;
    for (std::size_t number : {i, j}) places.push_back(std::find(list.begin(), list.end(), number) - list.begin());
    std::sort(places.begin(), places.end());
    list.erase(list.begin() + places[1]);
    list.erase(list.begin() + places[0]);
    list.push_back(next++);
    path.push_back(places);
  }
  return path;
}

constexpr std::size_t exhaustive_limit = 6;  // operands; more would take too long to try in every order

}  // namespace

ContractionPath find_path(const char* name, const Subscripts& equation, const jax::numpy::EinsumOptions& options) {
  if (const auto* path = std::get_if<ContractionPath>(&options.optimize)) return *path;
  const std::string& method = std::get<std::string>(options.optimize);
  const std::size_t count = equation.inputs.size();
  if (count <= 2) return {range(static_cast<int64_t>(count))};
  if (method == "unoptimized") return ContractionPath(count - 1, Ints{0, 1});
  static const std::set<std::string> methods = {
      "auto",         "auto-hq",    "optimal",  "dp",       "dynamic-programming", "greedy",
      "eager",        "branch-all", "branch-1", "branch-2", "random-greedy",       "random-greedy-128",
      "opportunistic"};
  if (!methods.count(method)) {
    throw ValueError(
        concat(name, ": optimize must be True, False, a path, 'auto', 'optimal' or 'greedy', got '", method, "'"));
  }
  PathSearch search(equation);
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(i);
  if (count <= exhaustive_limit && method != "greedy")
    search.search_all(all, 0);
  else
    search.search_greedily(all);
  return as_places(count, search.best_steps);
}

std::vector<Contraction> contractions(const char* name, const Subscripts& equation, const ContractionPath& path) {
  std::vector<Labels> terms = equation.inputs;
  std::vector<Contraction> steps;
  for (std::size_t s = 0; s < path.size(); ++s) {
    Contraction step;
    step.places = path[s];
    std::sort(step.places.rbegin(), step.places.rend());
    Labels all;
    for (int64_t place : step.places) {
      if (place < 0 || place >= static_cast<int64_t>(terms.size())) {
        throw IndexError(
            concat(name, ": the path names operand ", place, " of ", terms.size(), " (argument 'optimize')"));
      }
      step.inputs.push_back(terms[static_cast<std::size_t>(place)]);
      all += step.inputs.back();
      terms.erase(terms.begin() + place);
    }
    for (char32_t label : all) {
      const bool needed = has(equation.output, label) ||
                          std::any_of(terms.begin(), terms.end(), [&](const Labels& term) { return has(term, label); });
      Labels& list = needed ? step.result : step.removed;
      if (!has(list, label)) list.push_back(label);
    }
    if (s + 1 == path.size()) step.result = equation.output;
    terms.push_back(step.result);
    steps.push_back(std::move(step));
  }
  if (terms.size() != 1) {
    throw ValueError(concat(name, ": the path leaves ", terms.size(), " operands uncontracted (argument 'optimize')"));
  }
  return steps;
}

}  // namespace capibara
