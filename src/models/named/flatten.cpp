// Flattening: nested models become one list of operations in topological order.
#include "models/named/flatten.h"

#include <functional>

namespace capibara::models {

namespace {

class Flattener {
 public:
  explicit Flattener(const ModelBody& model) : model_(model) {}

  FlatGraph run() {
    visit(model_, "", 0);
    order();
    name();
    return std::move(graph_);
  }

 private:
  int number(const EdgePointer& edge) {
    auto [slot, added] = graph_.by_edge.try_emplace(edge.get(), static_cast<int>(graph_.edges.size()));
    if (added) {
      graph_.edges.push_back({{}, edge, -1, false});
      candidates_.push_back({});
    }
    return slot->second;
  }

  void visit(const ModelBody& body, const std::string& path, int depth) {
    for (const std::string& key : body.keys) {
      int edge = number(body.edge(key));
      if (!body.generated(key)) {
        // The name closest to the outermost model is used.
        auto& [best, level] = candidates_[at(edge)];
        if (best.empty() || depth < level) {
          best = key;
          level = depth;
        }
      }
    }
    for (const NamedShapes& shapes : body.templates) {
      FlatShapes flat{body.label(), {}};
      for (const auto& [key, shape] : shapes) flat.shapes.emplace_back(number(body.edge(key)), shape);
      graph_.templates.push_back(std::move(flat));
    }
    if (body.record) {
      FlatOperation operation;
      operation.body = &body;
      operation.record = body.record;
      Arguments arguments(body.type, body.arguments);
      operation.ports = parse_ports(body.record->keys_for ? body.record->keys_for(arguments) : body.record->keys);
      operation.label = path + body.label();
      for (std::size_t i = 0; i < operation.ports.all.size(); ++i) {
        int edge = number(body.edge(operation.ports.all[i].key));
        (i < operation.ports.inputs ? operation.inputs : operation.outputs).push_back(edge);
      }
      for (int edge : operation.outputs) {
        graph_.edges[at(edge)].writer = static_cast<int>(unordered_.size());
      }
      unordered_.push_back(std::move(operation));
      return;
    }
    std::string inner = depth == 0 ? "" : path + body.label() + ".";
    for (const auto& child : body.children) visit(*child.body, inner, depth + 1);
  }

  void order() {
    std::vector<int> state(unordered_.size(), 0);
    std::vector<int> place(unordered_.size(), -1);
    for (std::size_t start = 0; start < unordered_.size(); ++start) {
      std::vector<int> stack{static_cast<int>(start)};
      while (!stack.empty()) {
        std::size_t op = at(stack.back());
        if (state[op] == 2) {
          stack.pop_back();
          continue;
        }
        bool ready = true;
        for (int edge : unordered_[op].inputs) {
          int writer = graph_.edges[at(edge)].writer;
          if (writer >= 0 && state[at(writer)] != 2) {
            if (state[at(writer)] == 1 && state[op] == 1) {
              throw KeyError(concat("models: compile: ", unordered_[op].label, " and ", unordered_[at(writer)].label,
                                    " need each other's results"));
            }
            stack.push_back(writer);
            ready = false;
          }
        }
        state[op] = ready ? 2 : 1;
        if (ready) {
          place[op] = static_cast<int>(graph_.operations.size());
          graph_.operations.push_back(unordered_[op]);
          stack.pop_back();
        }
      }
    }
    for (FlatEdge& edge : graph_.edges) {
      if (edge.writer >= 0) edge.writer = place[at(edge.writer)];
    }
  }

  void name() {
    auto assign = [&](int edge, const std::string& name) {
      graph_.edges[at(edge)].name = name;
      graph_.by_name[name] = edge;
    };
    for (const std::string& key : model_.keys) {
      if (model_.generated(key)) continue;
      int edge = graph_.edge_of(model_, key);
      graph_.edges[at(edge)].named = true;
      assign(edge, key);
    }
    std::vector<int> unnamed;
    std::map<std::string, int> uses;
    auto collect = [&](int edge) {
      FlatEdge& flat = graph_.edges[at(edge)];
      if (!flat.name.empty()) return;
      flat.name = "?";
      unnamed.push_back(edge);
      ++uses[candidates_[at(edge)].first];
    };
    for (const FlatOperation& operation : graph_.operations) {
      for (int edge : operation.inputs) collect(edge);
      for (int edge : operation.outputs) collect(edge);
    }
    std::map<std::string, int> next;
    for (int edge : unnamed) {
      const std::string& base = candidates_[at(edge)].first;
      if (uses[base] == 1 && !graph_.by_name.count(base)) {
        assign(edge, base);
        continue;
      }
      std::string name;
      do {
        name = concat(base, "_", next[base]++);
      } while (graph_.by_name.count(name));
      assign(edge, name);
    }
  }

  const ModelBody& model_;
  FlatGraph graph_;
  std::vector<FlatOperation> unordered_;
  std::vector<std::pair<std::string, int>> candidates_;
};

}  // namespace

FlatGraph flatten(const ModelBody& model) { return Flattener(model).run(); }

}  // namespace capibara::models
