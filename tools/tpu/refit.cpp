// Fits the constants of the matmul model to compiled cycles, by differential evolution over the rows that are not
// held out.
//
//     g++ -std=c++20 -O2 -Iinclude -Isrc tools/tpu/refit.cpp src/tpu/{chips,words,matmul,constants}.cpp -o build/refit
//     xz -dc tests/tpu/tables/compiled_matmuls.tsv.xz | build/refit /dev/stdin [GENERATIONS OF THE SEARCH]
//
// Every third row of the file, the first included, is held out. Prints the lines for src/tpu/constants.cpp and, for
// both parts, the median error and the share of rows within 15 %.
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
  bool held_out;
};

std::vector<Row> read_rows(const char* path) {
  std::vector<Row> rows;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  for (int number = 0; std::getline(file, line); ++number) {
    std::vector<std::string> cells;
    std::stringstream stream(line);
    for (std::string cell; std::getline(stream, cell, '\t');) cells.push_back(cell);
    Row row{&find_chip(cells[0]), {}, std::stod(cells[9]) * 1e-6, number % 3 == 0};
    Matmul& m = row.matmul;
    m = {std::stoll(cells[2]), std::stoll(cells[3]), std::stoll(cells[4]), std::stoll(cells[5])};
    m.precision = cells[1] == "bf16"   ? Precision::bf16
                  : cells[1] == "int8" ? Precision::int8
                  : cells[1] == "f32"  ? Precision::f32
                                       : Precision::f32_highest;
    m.large_vmem = cells[6] != "default";
    const double in = cells[1] == "bf16" ? 2 : cells[1] == "int8" ? 1 : 4, out = cells[1] == "bf16" ? 2 : 4;
    const double bytes =
        static_cast<double>(m.batch) * (in * static_cast<double>(m.rows * m.inner + m.inner * m.columns) +
                                        out * static_cast<double>(m.rows * m.columns));
    row.seconds = std::max(row.seconds, bytes / (row.chip->hbm_gbps * 1e9 / row.chip->devices));
    rows.push_back(row);
  }
  return rows;
}

constexpr int kCount = 12;
using Point = std::array<double, kCount>;
const Point kLow = {.7, .5, 0, 4, 8, 0, 0, 0, 0, 0, .7, 2}, kHigh = {1.1, 1.3, 12, 40, 110, 6, 1, 1, 130, 64, 2.4, 8};

MatmulConstants constants_of(const Point& p) {
  return {p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11]};
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

}  // namespace

int main(int count, char** words) {
  if (count < 2) return std::fprintf(stderr, "usage: refit compiled_matmuls.tsv [GENERATIONS]\n"), 2;
  const std::vector<Row> rows = read_rows(words[1]);
  const int generations = count > 2 ? std::atoi(words[2]) : 200;
  for (const char* name : {"v4", "v5e", "v5p", "v6e", "tpu7x"}) {
    std::vector<Row> fitted, held;
    for (const Row& row : rows) {
      if (row.chip == &find_chip(name)) (row.held_out ? held : fitted).push_back(row);
    }
    std::mt19937 random(7);
    std::uniform_real_distribution<double> uniform(0, 1);
    constexpr int kPoints = 36;
    std::vector<Point> points(kPoints);
    std::vector<double> losses(kPoints);
    for (int i = 0; i < kPoints; ++i) {
      for (int d = 0; d < kCount; ++d) points[i][d] = kLow[d] + uniform(random) * (kHigh[d] - kLow[d]);
      losses[i] = loss(fitted, points[i]);
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
        const double value = loss(fitted, trial);
        if (value <= losses[i]) points[i] = trial, losses[i] = value;
      }
    }
    const Point& p = points[static_cast<std::size_t>(std::min_element(losses.begin(), losses.end()) - losses.begin())];
    std::printf("{\"%s\", {", name);
    for (int d = 0; d < kCount; ++d) std::printf("%s%.4g", d ? ", " : "", p[d]);
    std::printf("}},\n");
    report("fitted", fitted, p);
    report("held out", held, p);
    std::fflush(stdout);
  }
  return 0;
}
