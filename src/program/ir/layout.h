// Text layout: documents of breakable groups, laid out within a line width.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace capibara::layout {

// A piece of text that may be broken. A group whose flat form fits the rest of the line is printed flat; otherwise its
// own breaks become new lines.
class Doc {
 public:
  Doc(std::string text = "");
  Doc(const char* text) : Doc(std::string(text)) {}

  friend Doc concat(std::vector<Doc> parts);
  friend Doc nest(int indent, Doc inner);
  friend Doc group(Doc inner);
  friend Doc line_break(std::string flat);  // `flat` if the group is not broken

  std::string render(int width) const;

  struct Node;

 private:
  explicit Doc(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

Doc concat(std::vector<Doc> parts);
Doc nest(int indent, Doc inner);
Doc group(Doc inner);
Doc line_break(std::string flat = " ");
Doc join(const Doc& separator, const std::vector<Doc>& parts);

}  // namespace capibara::layout
