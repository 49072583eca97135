// Shape inference: equal dimensions share one number, and rules run until nothing changes.
#pragma once

#include "models/named/flatten.h"

namespace capibara::models {

class ShapeSystem {
 public:
  // `safe`: with the shapes recommended by models.
  explicit ShapeSystem(const FlatGraph& graph, bool safe = false);

  // A given shape; `source` is named in errors.
  void require(int edge, const ShapeTemplate& shape, const std::string& source);
  // Runs all rules to a fixed point. `values` has the known values of edges; operations whose inputs are known are
  // traced for the shapes of their results, and results that are not tensors become values.
  void solve(std::vector<Value>& values, DType dtype);

  const std::optional<std::vector<DimId>>& dims(int edge) const { return edges_[static_cast<std::size_t>(edge)]; }
  std::optional<int64_t> size(DimId dim) const;
  std::string text(int edge) const;  // "[2, N, V...]"; empty if nothing is known

  DimId fresh();
  DimId known(int64_t size);
  void equate(DimId a, DimId b, int edge, std::size_t axis);
  void set(int edge, const std::vector<DimId>& dims);

 private:
  // Dimensions known by their distance from the first or the last one, while the number of dimensions is unknown.
  struct Ends {
    std::map<std::size_t, DimId> head, tail;
  };
  struct Scope {
    std::string label;
    std::vector<std::pair<int, ShapeTemplate>> shapes;
    std::map<std::string, DimId> names;
    std::map<std::string, std::vector<DimId>> sequences;
    std::map<std::string, Ends> sequence_ends;
  };
  DimId find(DimId dim) const;
  void apply(Scope& scope);
  void apply_ends(Scope& scope, int edge, const ShapeTemplate& shape, std::size_t variadic);
  void note(std::map<std::size_t, DimId>& ends, std::size_t position, DimId dim, int edge);
  void apply_rule(const FlatOperation& operation, const std::vector<Value>& values);
  bool trace(const FlatOperation& operation, std::vector<Value>& values, DType dtype);
  DimId named(Scope& scope, const TemplateDim& dim);

  const FlatGraph& graph_;
  std::vector<std::optional<std::vector<DimId>>> edges_;
  std::vector<Ends> ends_;
  std::vector<Scope> scopes_;
  mutable std::vector<DimId> parents_;
  std::vector<std::optional<int64_t>> sizes_;
  std::vector<std::string> names_, sources_;  // of dimensions: their printed names, and the source of their sizes
  std::vector<std::string> rank_sources_;     // of edges: the source of the number of dimensions
  std::vector<bool> traced_;
  std::string source_;  // the source of the current facts, for errors
  bool changed_ = false;
};

}  // namespace capibara::models
