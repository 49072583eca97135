// A minimal JSON reader that compares two texts regardless of whitespace and field order.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace capibara::pjrt {

// The leaves of a JSON text by their paths: {"a": {"b": ["3"]}} is {"a.b.0": "3"}; an empty list or object is a leaf.
class Leaves {
 public:
  explicit Leaves(const std::string& text) : text_(text) {
    value("");
    EXPECT_EQ(at_, text_.size()) << text_;
  }
  std::map<std::string, std::string> found;

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == ',' || text_[at_] == ':')) ++at_;
  }
  std::string quoted() {
    const std::size_t end = text_.find('"', at_ + 1);
    const std::string inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }
  void value(const std::string& path) {
    skip();
    if (text_.at(at_) == '"') {
      found[path] = quoted();
    } else if (text_[at_] == '{' || text_[at_] == '[') {
      const bool is_object = text_[at_++] == '{';
      int count = 0;
      for (skip(); text_.at(at_) != '}' && text_[at_] != ']'; skip(), ++count) {
        value(path + (path.empty() ? "" : ".") + (is_object ? quoted() : std::to_string(count)));
      }
      if (count == 0) found[path] = is_object ? "{}" : "[]";
      ++at_;
    } else {
      const std::size_t end = text_.find_first_of(",]}", at_);
      found[path] = text_.substr(at_, end - at_);
      at_ = end;
    }
  }

  const std::string text_;
  std::size_t at_ = 0;
};

}  // namespace capibara::pjrt
