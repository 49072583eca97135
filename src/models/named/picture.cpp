// The graph of a model as SVG: submodels in layers from top to bottom, with named connections.
#include "models/named/compiled.h"

#include <algorithm>
#include <sstream>

namespace capibara::models {

namespace {

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += c;
  }
  return result;
}

struct Box {
  std::string title, line;  // a name, and the text below it
  bool external = false;    // an input or output of the model
  int layer = 0;
  double x = 0, y = 0, width = 0;
};
struct Arrow {
  std::size_t from, to;
  std::string label;
};

constexpr double box_height = 40, layer_gap = 84, box_gap = 24, margin = 20;

std::string draw(std::vector<Box> boxes, const std::vector<Arrow>& arrows) {
  for (std::size_t pass = 0; pass < boxes.size(); ++pass) {
    bool moved = false;
    for (const Arrow& arrow : arrows) {
      if (boxes[arrow.to].layer > boxes[arrow.from].layer) continue;
      boxes[arrow.to].layer = boxes[arrow.from].layer + 1;
      moved = true;
    }
    if (!moved) break;
  }
  // An input is drawn just above its first reader.
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    bool source = true;
    int nearest = 1 << 20;
    for (const Arrow& arrow : arrows) {
      if (arrow.to == i) source = false;
      if (arrow.from == i) nearest = std::min(nearest, boxes[arrow.to].layer - 1);
    }
    if (source && nearest < (1 << 20)) boxes[i].layer = std::max(0, nearest);
  }
  std::map<int, std::vector<std::size_t>> layers;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    boxes[i].width = 18 + 7.2 * static_cast<double>(std::max(boxes[i].title.size(), boxes[i].line.size()));
    layers[boxes[i].layer].push_back(i);
  }
  double width = 0;
  for (auto& [layer, members] : layers) {
    double total = 0;
    for (std::size_t i : members) total += boxes[i].width + box_gap;
    width = std::max(width, total);
  }
  for (auto& [layer, members] : layers) {
    double total = -box_gap;
    for (std::size_t i : members) total += boxes[i].width + box_gap;
    double x = margin + (width - total) / 2;
    for (std::size_t i : members) {
      boxes[i].x = x;
      boxes[i].y = margin + layer * layer_gap;
      x += boxes[i].width + box_gap;
    }
  }
  double height = margin * 2 + box_height + layer_gap * (layers.empty() ? 0 : layers.rbegin()->first);
  std::ostringstream out;
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width + 2 * margin << "\" height=\"" << height
      << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
      << "<defs><marker id=\"tip\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"4\" orient=\"auto\">"
      << "<path d=\"M0,0 L8,4 L0,8 z\" fill=\"#555\"/></marker></defs>\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  for (const Arrow& arrow : arrows) {
    const Box &from = boxes[arrow.from], &to = boxes[arrow.to];
    double x1 = from.x + from.width / 2, y1 = from.y + box_height, x2 = to.x + to.width / 2, y2 = to.y;
    out << "<path d=\"M" << x1 << "," << y1 << " C" << x1 << "," << y1 + 24 << " " << x2 << "," << y2 - 24 << " " << x2
        << "," << y2 << "\" fill=\"none\" stroke=\"#555\" marker-end=\"url(#tip)\"/>\n";
    if (!arrow.label.empty()) {
      out << "<text x=\"" << (x1 + x2) / 2 + 4 << "\" y=\"" << (y1 + y2) / 2 << "\" fill=\"#555\" font-size=\"10\">"
          << escaped(arrow.label) << "</text>\n";
    }
  }
  for (const Box& box : boxes) {
    out << "<rect x=\"" << box.x << "\" y=\"" << box.y << "\" width=\"" << box.width << "\" height=\"" << box_height
        << "\" rx=\"" << (box.external ? 20 : 5) << "\" fill=\"" << (box.external ? "#eef3fb" : "#fdf3e3")
        << "\" stroke=\"#777\"/>\n"
        << "<text text-anchor=\"middle\" x=\"" << box.x + box.width / 2 << "\" y=\""
        << box.y + (box.line.empty() ? 24 : 17) << "\">" << escaped(box.title) << "</text>\n";
    if (!box.line.empty()) {
      out << "<text text-anchor=\"middle\" x=\"" << box.x + box.width / 2 << "\" y=\"" << box.y + 33
          << "\" font-size=\"10\" fill=\"#555\">" << escaped(box.line) << "</text>\n";
    }
  }
  out << "</svg>\n";
  return out.str();
}

// Submodels of a body as boxes; `shape` returns the known shape of an edge.
std::string draw_body(const ModelBody& body, const std::function<std::string(const Edge*)>& shape) {
  std::vector<Box> boxes;
  std::vector<Arrow> arrows;
  std::map<std::string, std::size_t> writers;
  for (const auto& child : body.children) {
    for (const auto& [inner, own] : child.names) {
      if (child.body->is_output(inner)) writers[body.resolve(own)] = boxes.size();
    }
    boxes.push_back({child.body->label(), {}, false, 0, 0, 0, 0});
  }
  std::size_t children = boxes.size();
  std::vector<std::string> outputs =
      Model(std::const_pointer_cast<ModelBody>(std::shared_ptr<const ModelBody>(&body, [](auto*) {}))).output_keys();
  for (std::size_t i = 0; i < children; ++i) {
    const auto& child = body.children[i];
    for (const auto& [inner, own] : child.names) {
      if (child.body->is_output(inner)) continue;
      std::string key = body.resolve(own);
      if (body.edge(key)->value.given() && !writers.count(key)) continue;  // constants are not drawn
      if (!writers.count(key)) {
        writers[key] = boxes.size();
        boxes.push_back({body.generated(key) ? inner : key, shape(body.edge(key).get()), true, 0, 0, 0, 0});
      }
      bool named = !body.generated(key) && writers[key] < children;
      arrows.push_back({writers[key], i, named ? key : std::string()});
    }
  }
  for (const std::string& key : outputs) {
    if (!writers.count(key)) continue;
    arrows.push_back({writers[key], boxes.size(), {}});
    boxes.push_back({body.generated(key) ? "output" : key, shape(body.edge(key).get()), true, 0, 0, 0, 0});
  }
  return draw(boxes, arrows);
}

}  // namespace

std::string Model::svg() const {
  FlatGraph graph = flatten(*body_);
  ShapeSystem system(graph);
  std::vector<Value> values;
  for (const FlatEdge& edge : graph.edges) {
    const Value& value = edge.source->value;
    values.push_back(value.is_tensor() ? Value(to_array(value, DType::float32)) : value);
  }
  system.solve(values, DType::float32);
  return draw_body(*body_, [&](const Edge* edge) { return system.text(graph.by_edge.at(edge)); });
}

std::string CompiledModel::svg() const {
  return draw_body(*body_->model.body(),
                   [&](const Edge* edge) { return body_->shapes->text(body_->graph.by_edge.at(edge)); });
}

}  // namespace capibara::models
