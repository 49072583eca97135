// Parsing and printing of a plan's mesh.
#include <capibara/error.h>
#include <capibara/tpu/plan.h>

#include <algorithm>
#include <utility>

#include "tpu/words.h"

namespace capibara::tpu {

namespace {

struct Axis {
  const char* name;
  int PlanMesh::*size;
};
constexpr Axis kAxes[] = {{"dcn_data", &PlanMesh::dcn_data}, {"dcn_fsdp", &PlanMesh::dcn_fsdp},
                          {"data", &PlanMesh::data},         {"fsdp", &PlanMesh::fsdp},
                          {"expert", &PlanMesh::expert},     {"context", &PlanMesh::context},
                          {"tensor", &PlanMesh::tensor}};

}  // namespace

std::string PlanMesh::text() const {
  std::vector<std::string> words;
  for (const Axis& axis : kAxes) {
    if (this->*axis.size > 1) words.push_back(concat(axis.name, "=", this->*axis.size));
  }
  return words.empty() ? "data=1" : joined(words, ",");
}

PlanMesh read_mesh(std::string_view text) {
  PlanMesh mesh;
  std::vector<std::string> names = {"model"}, given;
  for (const Axis& axis : kAxes) names.emplace_back(axis.name);
  while (!text.empty()) {
    const std::size_t end = text.find(','), equals = text.find('=');
    const std::string_view word = text.substr(0, end);
    const std::vector<int> size = equals < word.size() ? read_shape(word.substr(equals + 1)) : std::vector<int>();
    if (size.size() != 1) throw ValueError(concat("plan: a mesh is written fsdp=16,tensor=4, got '", word, "'"));
    const std::string name = word.substr(0, equals) == "model" ? "tensor" : std::string(word.substr(0, equals));
    bool known = false;
    for (const Axis& axis : kAxes) {
      if (name != axis.name) continue;
      if (std::find(given.begin(), given.end(), name) != given.end())
        throw ValueError(concat("plan: the mesh names the axis ", name, " twice"));
      given.push_back(name);
      mesh.*axis.size = size[0];
      known = true;
    }
    if (!known)
      throw ValueError(
          concat("plan: a mesh has no axis '", name, "'; there are ", joined(names, ", "), hint_of(name, names)));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return mesh;
}

}  // namespace capibara::tpu
