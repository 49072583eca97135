// Contraction orders of einsum: cheap for few and many operands, checked against all orders, and for more labels than a
// word has bits.
#include <capibara/numpy.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <set>

namespace capibara {
namespace {

using jax::numpy::ContractionPath;
using Term = std::set<char>;

struct Equation {
  std::vector<Term> terms;
  Term output;
  std::map<char, int64_t> sizes;

  std::string text() const {
    std::string out;
    for (const Term& term : terms) out += (out.empty() ? "" : ",") + std::string(term.begin(), term.end());
    return out + "->" + std::string(output.begin(), output.end());
  }
  std::vector<Shape> shapes() const {
    std::vector<Shape> out;
    for (const Term& term : terms) {
      out.emplace_back();
      for (char label : term) out.back().push_back(sizes.at(label));
    }
    return out;
  }
};

// A random tree of operands with some additional labels.
Equation random_equation(int count, std::mt19937& random) {
  Equation equation;
  equation.terms.resize(static_cast<std::size_t>(count));
  auto below = [&](int limit) { return static_cast<std::size_t>(random() % static_cast<unsigned>(limit)); };
  char label = 'a';
  for (int place = 1; place < count; ++place, ++label) {
    equation.terms[static_cast<std::size_t>(place)].insert(label);
    equation.terms[below(place)].insert(label);
  }
  for (int more = 0; more < 4; ++more, ++label) {
    for (int k = 0; k < 3; ++k) equation.terms[below(count)].insert(label);
  }
  for (char l = 'a'; l < label; ++l) equation.sizes[l] = 2 + static_cast<int64_t>(below(6));
  equation.output = {'a', static_cast<char>('a' + below(count - 1))};
  return equation;
}

// Multiplications of the best order, found by exhaustive search.
double least_cost(std::vector<Term> terms, const Equation& equation) {
  if (terms.size() == 1) return 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t a = 0; a < terms.size(); ++a) {
    for (std::size_t b = a + 1; b < terms.size(); ++b) {
      std::vector<Term> rest;
      Term needed = equation.output, joined = terms[a], kept;
      joined.insert(terms[b].begin(), terms[b].end());
      for (std::size_t other = 0; other < terms.size(); ++other) {
        if (other == a || other == b) continue;
        rest.push_back(terms[other]);
        needed.insert(terms[other].begin(), terms[other].end());
      }
      double cost = 1;
      for (char label : joined) {
        cost *= static_cast<double>(equation.sizes.at(label));
        if (needed.count(label)) kept.insert(label);
      }
      rest.push_back(kept);
      least = std::min(least, cost + least_cost(rest, equation));
    }
  }
  return least;
}

double cost_of(const Equation& equation, const ContractionPath& path) {
  std::vector<Term> terms = equation.terms;
  double total = 0;
  for (const Ints& pair : path) {
    EXPECT_EQ(pair.size(), 2u);
    Term joined;
    for (std::size_t k = 2; k-- > 0;) {
      const Term& term = terms.at(static_cast<std::size_t>(pair[k]));
      joined.insert(term.begin(), term.end());
      terms.erase(terms.begin() + pair[k]);
    }
    double cost = 1;
    Term needed = equation.output, kept;
    for (const Term& term : terms) needed.insert(term.begin(), term.end());
    for (char label : joined) {
      cost *= static_cast<double>(equation.sizes.at(label));
      if (needed.count(label)) kept.insert(label);
    }
    total += cost;
    terms.push_back(kept);
  }
  EXPECT_EQ(terms.size(), 1u);
  EXPECT_EQ(terms[0], equation.output);
  return total;
}

double path_cost(const Equation& equation, const std::string& method) {
  return cost_of(equation, jax::numpy::einsum_path(equation.text(), equation.shapes(), {.optimize = method}).path);
}

TEST(EinsumPath, OfFewOperandsIsTheBestOfAll) {
  std::mt19937 random(5);
  for (int round = 0; round < 30; ++round) {
    const Equation equation = random_equation(5 + round % 2, random);
    EXPECT_EQ(path_cost(equation, "auto"), least_cost(equation.terms, equation)) << equation.text();
  }
}

TEST(EinsumPath, OfManyOperandsIsNoWorseThanGreedyAndNoBetterThanTheBest) {
  std::mt19937 random(6);
  for (int round = 0; round < 60; ++round) {
    const Equation equation = random_equation(9 + round % 10, random);
    const double found = path_cost(equation, "auto");
    EXPECT_LE(found, path_cost(equation, "greedy")) << equation.text();
    if (equation.terms.size() <= 11) {
      EXPECT_GE(found, path_cost(equation, "optimal")) << equation.text();
    }
  }
}

TEST(EinsumPath, TakesOperandsWithoutCommonLabels) {
  Equation equation;
  for (char label = 'a'; label < 'a' + 10; ++label) {
    equation.terms.push_back({label});
    equation.sizes[label] = 2;
  }
  equation.output = {'a', 'j'};
  EXPECT_LE(path_cost(equation, "auto"), path_cost(equation, "greedy"));
}

TEST(EinsumPath, TakesMoreLabelsThanAWordHasBits) {
  // A chain of 80 matrices: labels are characters from U+0100 on.
  auto label = [](int i) { return std::string{static_cast<char>(0xc4 + i / 64), static_cast<char>(0x80 + i % 64)}; };
  std::string text;
  std::vector<Shape> shapes;
  for (int i = 0; i < 80; ++i) {
    text += (i ? "," : "") + label(i) + label(i + 1);
    shapes.push_back({2, 2});
  }
  const auto found =
      jax::numpy::einsum_path(text + "->" + label(0) + label(80), shapes, {.optimize = std::string("auto")});
  EXPECT_EQ(found.path.size(), 79u);
  EXPECT_EQ(found.largest_intermediate, 4);
}

}  // namespace
}  // namespace capibara
