// JSON text as values of models: objects keep the order of their keys.
#include <capibara/models.h>

#include <unordered_set>

#include "io/files/json_reader.h"

namespace capibara::models {

namespace {

struct Members {
  Entries entries;
  std::unordered_set<std::string> keys;
};

// A value during parsing: a list of pairs is not a dictionary.
struct ReadValue {
  ReadValue() : value(None{}) {}
  ReadValue(bool given) : value(given) {}
  ReadValue(int64_t given) : value(given) {}
  ReadValue(double given) : value(given) {}
  ReadValue(std::string given) : value(std::move(given)) {}
  ReadValue(std::vector<ReadValue> given) : value(None{}) {
    List list;
    list.reserve(given.size());
    for (ReadValue& element : given) list.push_back(std::move(element.value));
    value = std::move(list);
  }
  ReadValue(Members given) : value(Value::dictionary(std::move(given.entries))) {}

  Value value;
};

struct ModelValues {
  using Value = ReadValue;
  using List = std::vector<ReadValue>;
  using Object = Members;

  static bool add(Members& members, std::string key, ReadValue value) {
    if (!members.keys.insert(key).second) return false;
    members.entries.emplace_back(std::move(key), std::move(value.value));
    return true;
  }
};

}  // namespace

Value parse_json(const std::string& text) { return JsonReader<ModelValues>(text, "json").whole().value; }

}  // namespace capibara::models
