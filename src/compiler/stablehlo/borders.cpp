// Collects the requirements of sharding_constraint, and the devices of shard_map.
#include "compiler/stablehlo/borders.h"
#include "program/ir/handles.h"
#include "program/ir/nested.h"
#include "program/ir/views.h"

#include <algorithm>
#include <set>

namespace capibara::stablehlo {

namespace {

class Search {
 public:
  explicit Search(Borders& found) : found_(found) {}

  void operator()(const Program& program) {
    if (!seen_.insert(program.identity()).second) return;
    for (const Equation& equation : program.equations()) {
      if (equation.primitive == prim::sharding_constraint())
        note(equation.attrs.opaque<PlacementAttr>("sharding")->placement);
      if (const NamedSharding* devices = mapped_devices(equation)) note_map(*devices);
      for_each_program(equation.attrs, [this](const Program& nested) { (*this)(nested); });
    }
  }

 private:
  // CPU devices are lanes of one program.
  void note_map(const NamedSharding& devices) {
    if (devices.devices.size() > 1 && devices.platform != "cpu") note(std::make_shared<const NamedSharding>(devices));
  }

  void note(const std::shared_ptr<const NamedSharding>& placement) {
    if (placement->platform.empty()) return;  // any platform: no requirement
    if (!found_.first) {
      found_.first = placement;
      found_.devices = placement->devices;
    } else if (placement->devices != found_.devices) {
      throw ValueError(concat("Received incompatible devices for jitted computation: the program has constraints for ",
                              to_string(*found_.first), " and for ", to_string(*placement), ", whose devices differ"));
    } else if (found_.first->mesh.axis_names.empty() && !placement->mesh.axis_names.empty()) {
      found_.first = placement;
    }
  }

  Borders& found_;
  std::set<const void*> seen_;
};

}  // namespace

Borders find_borders(const Program& program) {
  Borders found;
  Search{found}(program);
  if (!found.first) return found;
  for (const Equation& equation : program.equations()) {
    if (equation.primitive != prim::sharding_constraint()) continue;
    const auto demand = equation.attrs.opaque<PlacementAttr>("sharding");
    if (demand->border == PlacementAttr::Border::argument && !equation.inputs[0].is_literal()) {
      const auto it = std::find(program.invars().begin(), program.invars().end(), equation.inputs[0].var());
      if (it == program.invars().end()) continue;
      found.arguments.push_back({static_cast<std::size_t>(it - program.invars().begin()), demand->placement});
      found.equations.push_back(&equation);
    } else if (demand->border == PlacementAttr::Border::result) {
      bool is_result = false;
      for (std::size_t i = 0; i < program.outputs().size(); ++i) {
        if (!(program.outputs()[i] == Atom(equation.outputs[0]))) continue;
        found.results.push_back({i, demand->placement});
        is_result = true;
      }
      if (is_result) found.equations.push_back(&equation);
    }
  }
  return found;
}

}  // namespace capibara::stablehlo
