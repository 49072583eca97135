// A model as a list of primitive operations on numbered edges, each with a unique name.
#pragma once

#include "models/named/catalog.h"

namespace capibara::models {

// Edges and operations are numbered; -1 means none.
inline std::size_t at(int number) { return static_cast<std::size_t>(number); }

struct FlatEdge {
  std::string name;
  EdgePointer source;
  int writer = -1;     // operation
  bool named = false;  // by the outermost model
};

struct FlatOperation {
  const ModelBody* body = nullptr;
  const Record* record = nullptr;
  Ports ports;
  std::vector<int> inputs, outputs;  // edges, in the order of the ports
  std::string label;                 // "Linear.MatrixMultiply"
};

struct FlatShapes {
  std::string label;
  std::vector<std::pair<int, ShapeTemplate>> shapes;
};

struct FlatGraph {
  std::vector<FlatEdge> edges;
  std::vector<FlatOperation> operations;  // each after the operations it depends on
  std::vector<FlatShapes> templates;      // shape declarations of the models
  std::map<std::string, int> by_name;
  std::map<const Edge*, int> by_edge;

  int edge_of(const ModelBody& body, const std::string& key) const { return by_edge.at(body.edge(key).get()); }
};

FlatGraph flatten(const ModelBody& model);

}  // namespace capibara::models
