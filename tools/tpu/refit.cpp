// Fits the constants of the matmul model to compiled cycles by differential evolution, and cross-validates them.
//
//     g++ -std=c++20 -O2 -Iinclude -Isrc tools/tpu/refit.cpp src/tpu/{chips,words,matmul,constants,bands}.cpp -o
//     build/refit xz -dc tests/tpu/tables/compiled_matmuls.tsv.xz | build/refit /dev/stdin tests/tpu/drawn_matmuls.tsv
//     [GENERATIONS]
//
// Every third row of both files, the first included, is held out. Prints the lines for src/tpu/constants.cpp and, for
// both parts, the median error and the share of rows within 15 %; then the bands for src/tpu/bands.cpp, for which each
// third is held out in turn.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "tpu/matmul.h"

using namespace capibara::tpu;

namespace {

struct Row {
  const Chip* chip;
  Matmul matmul;
  double seconds;
  int part;
};

// Rows of a table whose first column, if `labelled`, is the label of a draw; each belongs to one of three parts.
void read_rows(const char* path, bool labelled, std::vector<Row>& rows) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  for (int number = 0; std::getline(file, line); ++number) {
    std::vector<std::string> cells;
    std::stringstream stream(line);
    for (std::string cell; std::getline(stream, cell, '\t');) cells.push_back(cell);
    const std::size_t first = labelled ? 1 : 0;
    const std::string& type = cells[first + 1];
    Row row{&find_chip(cells[first]), {}, std::stod(cells[9]) * 1e-6, number % 3};
    Matmul& m = row.matmul;
    m = {std::stoll(cells[first + 2]), std::stoll(cells[first + 3]), std::stoll(cells[first + 4]),
         std::stoll(cells[first + 5])};
    m.precision = type == "bf16"   ? Precision::bf16
                  : type == "int8" ? Precision::int8
                  : type == "f32"  ? Precision::f32
                                   : Precision::f32_highest;
    m.large_vmem = cells[first + 6] != "default";
    const double in = type == "bf16" ? 2 : type == "int8" ? 1 : 4, out = type == "bf16" ? 2 : 4;
    const double bytes =
        static_cast<double>(m.batch) * (in * static_cast<double>(m.rows * m.inner + m.inner * m.columns) +
                                        out * static_cast<double>(m.rows * m.columns));
    row.seconds = std::max(row.seconds, bytes / (row.chip->hbm_gbps * 1e9 / row.chip->devices));
    rows.push_back(row);
  }
}

constexpr int kCount = 13;
using Point = std::array<double, kCount>;
const Point kLow = {.7, .5, 0, 4, 8, 0, 0, 0, 0, 0, .7, 2, 0},
            kHigh = {1.1, 1.3, 12, 40, 110, 6, 1, 1, 130, 64, 2.4, 8, 20};

MatmulConstants constants_of(const Point& p) {
  return {p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12]};
}

std::vector<double> errors(const std::vector<Row>& rows, const Point& p) {
  std::vector<double> all;
  for (const Row& row : rows)
    all.push_back(std::abs(std::log(matmul_cost(*row.chip, row.matmul, constants_of(p)).seconds / row.seconds)));
  std::sort(all.begin(), all.end());
  return all;
}

double loss(const std::vector<Row>& rows, const Point& p) {
  const std::vector<double> all = errors(rows, p);
  double sum = 0;
  for (const double e : all) sum += std::min(e, .5) + 2 * std::max(0.0, std::min(e, .4) - .12);
  return sum / static_cast<double>(all.size());
}

void report(const char* what, const std::vector<Row>& rows, const Point& p) {
  const std::vector<double> all = errors(rows, p);
  const auto within = std::count_if(all.begin(), all.end(), [](double e) { return std::expm1(e) < .15; });
  std::printf("//   %s: %zu rows, median %.1f %%, within 15 %%: %.0f %%\n", what, all.size(), 100 * all[all.size() / 2],
              100.0 * static_cast<double>(within) / static_cast<double>(all.size()));
}

// Differential evolution, started from the same seed for every chip and part.
Point fitted_point(const std::vector<Row>& rows, int generations) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  constexpr int kPoints = 36;
  std::vector<Point> points(kPoints);
  std::vector<double> losses(kPoints);
  for (int i = 0; i < kPoints; ++i) {
    for (int d = 0; d < kCount; ++d) points[i][d] = kLow[d] + uniform(random) * (kHigh[d] - kLow[d]);
    losses[i] = loss(rows, points[i]);
  }
  for (int g = 0; g < generations; ++g) {
    const int best = static_cast<int>(std::min_element(losses.begin(), losses.end()) - losses.begin());
    for (int i = 0; i < kPoints; ++i) {
      const Point &a = points[random() % kPoints], &b = points[random() % kPoints],
                  &base = g % 2 ? points[best] : points[random() % kPoints];
      Point trial = points[i];
      const double scale = .4 + .5 * uniform(random);
      for (int d = 0; d < kCount; ++d) {
        if (uniform(random) < .6) trial[d] = std::clamp(base[d] + scale * (a[d] - b[d]), kLow[d], kHigh[d]);
      }
      const double value = loss(rows, trial);
      if (value <= losses[i]) points[i] = trial, losses[i] = value;
    }
  }
  return points[static_cast<std::size_t>(std::min_element(losses.begin(), losses.end()) - losses.begin())];
}

// The factors on modelled seconds between which nine of ten true ones are.
void print_band(const char* what, std::vector<double> ratios) {
  if (ratios.size() < 8) return;
  std::sort(ratios.begin(), ratios.end());
  const std::size_t cut = ratios.size() / 20;
  const auto within = std::count_if(ratios.begin(), ratios.end(), [](double r) { return std::abs(1 / r - 1) < .15; });
  std::printf("//   cross-validated, %s: %zu rows, within 15 %%: %.0f %%, band {%.3f, %.3f}\n", what, ratios.size(),
              100.0 * static_cast<double>(within) / static_cast<double>(ratios.size()), ratios[cut],
              ratios[ratios.size() - 1 - cut]);
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return std::fprintf(stderr, "usage: refit compiled_matmuls.tsv drawn_matmuls.tsv [GENERATIONS]\n"), 2;
  std::vector<Row> rows;
  read_rows(words[1], false, rows);
  const std::size_t drawn_from = rows.size();
  read_rows(words[2], true, rows);
  const int generations = count > 3 ? std::atoi(words[3]) : 200;
  std::vector<double> all, drawn;
  for (const char* name : {"v4", "v5e", "v5p", "v6e", "tpu7x"}) {
    std::vector<double> narrow, wide;
    for (int part = 0; part < 3; ++part) {
      std::vector<Row> fitted, held;
      std::vector<bool> is_drawn;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].chip != &find_chip(name)) continue;
        (rows[i].part == part ? held : fitted).push_back(rows[i]);
        if (rows[i].part == part) is_drawn.push_back(i >= drawn_from);
      }
      const Point p = fitted_point(fitted, generations);
      for (std::size_t i = 0; i < held.size(); ++i) {
        const double ratio = held[i].seconds / matmul_cost(*held[i].chip, held[i].matmul, constants_of(p)).seconds;
        all.push_back(ratio);
        if (is_drawn[i]) drawn.push_back(ratio);
        (held[i].matmul.precision == Precision::int8 ? narrow : wide).push_back(ratio);
      }
      if (part > 0) continue;
      std::printf("{\"%s\", {", name);
      for (int d = 0; d < kCount; ++d) std::printf("%s%.4g", d ? ", " : "", p[d]);
      std::printf("}},\n");
      report("fitted", fitted, p);
      report("held out", held, p);
    }
    print_band("int8", narrow);
    print_band("others", wide);
    std::fflush(stdout);
  }
  print_band("all chips", all);
  print_band("drawn", drawn);
  return 0;
}
