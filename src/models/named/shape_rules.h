// Rules of shape inference: relations between the shapes of an operation's keys, applied in every direction.
#pragma once

#include <capibara/models.h>

#include <functional>

namespace capibara::models {

using DimId = int;
class ShapeSystem;

// The shapes of one operation's keys, as seen by a rule.
class RuleScope {
 public:
  RuleScope(ShapeSystem& system, const std::map<std::string, int>& keys, const std::vector<Value>& values,
            const Entries& arguments)
      : system_(system), keys_(keys), values_(values), arguments_(arguments) {}
  bool has(const std::string& key) const { return keys_.count(key) != 0; }
  // The dimensions of a key; absent if even their number is unknown.
  const std::optional<std::vector<DimId>>& dims(const std::string& key) const;
  const Value& value(const std::string& key) const;  // of a key that is not a tensor
  const Value& argument(const std::string& name) const;
  std::optional<int64_t> size(DimId dim) const;
  DimId fresh();
  DimId known(int64_t size);
  void equate(DimId a, DimId b, const std::string& key);
  void set(const std::string& key, const std::vector<DimId>& dims);

 private:
  ShapeSystem& system_;
  const std::map<std::string, int>& keys_;
  const std::vector<Value>& values_;
  const Entries& arguments_;
};

using ShapeRule = std::function<void(RuleScope&)>;

// left and right broadcast to output, in every direction.
ShapeRule broadcast_rule(std::string left, std::string right, std::string output);
ShapeRule matmul_rule();
ShapeRule reduce_rule();
ShapeRule transpose_rule();
ShapeRule flatten_rule();
ShapeRule swap_axes_rule();

}  // namespace capibara::models
