// Models as text: tables of keys and shapes, and the operations line by line.
#include "models/named/compiled.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

namespace capibara::models {

namespace {

using Row = std::vector<std::string>;

std::string table(const std::string& title, const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::ostringstream out;
  out << title << "\n";
  auto line = [&] {
    for (std::size_t width : widths) out << std::string(width + 2, '-');
    out << "\n";
  };
  line();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      out << rows[r][i] << std::string(widths[i] - rows[r][i].size() + 2, ' ');
    }
    out << "\n";
    if (r == 0) line();
  }
  line();
  return out.str();
}

std::string with_commas(int64_t number) {
  std::string digits = concat(number), text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

// Shapes of an uncompiled model.
struct LogicalShapes {
  FlatGraph graph;
  std::unique_ptr<ShapeSystem> system;

  explicit LogicalShapes(const ModelBody& body) : graph(flatten(body)) {
    std::vector<Value> values;
    for (const FlatEdge& edge : graph.edges) {
      const Value& value = edge.source->value;
      values.push_back(value.is_tensor() ? Value(to_array(value, DType::float32)) : value);
    }
    system = std::make_unique<ShapeSystem>(graph);
    system->solve(values, DType::float32);
  }
};

}  // namespace

std::vector<std::pair<std::string, std::string>> Model::shapes() const {
  LogicalShapes shapes(*body_);
  std::vector<std::pair<std::string, std::string>> result;
  for (const std::string& key : body_->keys) {
    result.emplace_back(key, shapes.system->text(shapes.graph.edge_of(*body_, key)));
  }
  return result;
}

std::string Model::summary() const {
  LogicalShapes shapes(*body_);
  std::vector<Row> rows = {{"model", "key", "shape", "connection"}};
  auto describe = [&](const ModelBody& body, const std::map<std::string, std::string>* names) {
    std::string label = body.label();
    for (const std::string& key : body.keys) {
      if (names && !names->count(key)) continue;
      std::string connection = names ? names->at(key) : std::string(body.is_output(key) ? "output" : "input");
      const EdgePointer edge = body.edge(key);
      if (edge->value.given() && edge->writer.empty()) connection = edge->value.to_string();
      rows.push_back({label, key, shapes.system->text(shapes.graph.edge_of(body, key)), connection});
      label.clear();
    }
  };
  if (body_->children.empty()) describe(*body_, nullptr);
  for (const auto& child : body_->children) describe(*child.body, &child.names);
  return table(body_->label(), rows);
}

std::string CompiledModel::summary() const {
  std::vector<Row> rows = {{"operation", "inputs", "output", "shape", "parameters"}};
  std::set<int> counted;
  for (std::size_t i = 0; i < body_->graph.operations.size(); ++i) {
    if (!body_->live[i]) continue;
    const FlatOperation& operation = body_->graph.operations[i];
    std::string inputs;
    int64_t parameters = 0;
    for (int edge : operation.inputs) {
      int source = body_->same[at(edge)];
      const std::string& name = body_->graph.edges[at(source)].name;
      const Value& value = body_->values[at(source)];
      bool plain = value.given() && !value.is_array();
      inputs += (inputs.empty() ? "" : ", ") + (plain ? value.to_string() : name);
      bool trained = std::find(body_->trainable.begin(), body_->trainable.end(), name) != body_->trainable.end();
      std::optional<Shape> shape = body_->full_shape(source);
      if (trained && shape && counted.insert(source).second) parameters += element_count(*shape);
    }
    int output = operation.outputs[0];
    rows.push_back({operation.label, inputs, body_->graph.edges[at(output)].name, body_->shapes->text(output),
                    parameters ? with_commas(parameters) : ""});
  }
  std::string text = table(body_->model.body()->label(), rows);
  bool all = true;
  for (const std::string& key : body_->trainable)
    all = all && body_->full_shape(body_->graph.by_name.at(key)).has_value();
  text +=
      concat("parameters: ", with_commas(parameter_count()), all ? "" : " and those whose shapes are not known", "\n");
  return text;
}

std::string CompiledModel::text() const {
  std::ostringstream out;
  auto list = [&](const char* title, const std::vector<std::string>& keys) {
    out << "# " << title << ":";
    for (const std::string& key : keys) out << " " << key << body_->shapes->text(body_->graph.by_name.at(key));
    out << "\n";
  };
  out << "# " << body_->model.body()->label() << ", " << dtype_name(body_->backend.dtype) << "\n";
  list("params", body_->trainable);
  list("data", body_->data);
  for (std::size_t i = 0; i < body_->graph.operations.size(); ++i) {
    if (!body_->live[i]) continue;
    const FlatOperation& operation = body_->graph.operations[i];
    int output = operation.outputs[0];
    out << body_->graph.edges[at(output)].name << body_->shapes->text(output) << " = " << operation.record->name << "(";
    for (std::size_t k = 0; k < operation.inputs.size(); ++k) {
      int source = body_->same[static_cast<std::size_t>(operation.inputs[k])];
      const Value& value = body_->values[at(source)];
      bool plain = value.given() && !value.is_array();
      out << (k ? ", " : "") << operation.ports.all[k].key << "="
          << (plain ? value.to_string() : body_->graph.edges[at(source)].name);
    }
    out << ")\n";
  }
  out << "return";
  for (std::size_t i = 0; i < body_->output_keys.size(); ++i) {
    int source = body_->same[static_cast<std::size_t>(body_->outputs[i])];
    out << (i ? ", " : " ") << body_->output_keys[i];
    const std::string& name = body_->graph.edges[at(source)].name;
    if (name != body_->output_keys[i]) out << "=" << name;
  }
  out << "\n";
  return out.str();
}

}  // namespace capibara::models
