// Laying out documents: groups are printed flat where they fit.
#include "program/ir/layout.h"

namespace capibara::layout {

struct Doc::Node {
  enum Kind { text, concat, nest, group, line_break } kind = text;
  std::string content;  // text, or the flat form of a break
  std::vector<Doc> parts;
  int indent = 0;
  std::size_t flat_width = 0;
};

Doc::Doc(std::string content) {
  auto node = std::make_shared<Node>();
  node->flat_width = content.size();
  node->content = std::move(content);
  node_ = std::move(node);
}

Doc concat(std::vector<Doc> parts) {
  auto node = std::make_shared<Doc::Node>();
  node->kind = Doc::Node::concat;
  for (const Doc& part : parts) node->flat_width += part.node_->flat_width;
  node->parts = std::move(parts);
  return Doc(std::shared_ptr<const Doc::Node>(std::move(node)));
}

namespace {

std::shared_ptr<Doc::Node> wrap(Doc::Node::Kind kind, Doc inner, std::size_t width) {
  auto node = std::make_shared<Doc::Node>();
  node->kind = kind;
  node->flat_width = width;
  node->parts.push_back(std::move(inner));
  return node;
}

}  // namespace

Doc nest(int indent, Doc inner) {
  std::size_t width = inner.node_->flat_width;
  auto node = wrap(Doc::Node::nest, std::move(inner), width);
  node->indent = indent;
  return Doc(std::shared_ptr<const Doc::Node>(std::move(node)));
}

Doc group(Doc inner) {
  std::size_t width = inner.node_->flat_width;
  return Doc(std::shared_ptr<const Doc::Node>(wrap(Doc::Node::group, std::move(inner), width)));
}

Doc line_break(std::string flat) {
  auto node = std::make_shared<Doc::Node>();
  node->kind = Doc::Node::line_break;
  node->flat_width = flat.size();
  node->content = std::move(flat);
  return Doc(std::shared_ptr<const Doc::Node>(std::move(node)));
}

Doc join(const Doc& separator, const std::vector<Doc>& parts) {
  std::vector<Doc> all;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i) all.push_back(separator);
    all.push_back(parts[i]);
  }
  return concat(std::move(all));
}

std::string Doc::render(int width) const {
  struct Item {
    const Node* node;
    int indent;
    bool flat;
  };
  std::string out;
  std::size_t column = 0;
  std::vector<Item> stack = {{node_.get(), 0, false}};
  while (!stack.empty()) {
    Item item = stack.back();
    stack.pop_back();
    switch (item.node->kind) {
      case Node::text:
        out += item.node->content;
        column += item.node->content.size();
        break;
      case Node::line_break:
        if (item.flat) {
          out += item.node->content;
          column += item.node->content.size();
        } else {
          out += '\n';
          out.append(static_cast<std::size_t>(item.indent), ' ');
          column = static_cast<std::size_t>(item.indent);
        }
        break;
      case Node::concat:
        for (std::size_t i = item.node->parts.size(); i-- > 0;) {
          stack.push_back({item.node->parts[i].node_.get(), item.indent, item.flat});
        }
        break;
      case Node::nest:
        stack.push_back({item.node->parts[0].node_.get(), item.indent + item.node->indent, item.flat});
        break;
      case Node::group: {
        bool fits = item.flat || column + item.node->flat_width <= static_cast<std::size_t>(width);
        stack.push_back({item.node->parts[0].node_.get(), item.indent, fits});
        break;
      }
    }
  }
  return out;
}

}  // namespace capibara::layout
