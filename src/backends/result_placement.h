// Placement of results, derived by simple rules from the placement of their operands.
#pragma once

#include <capibara/placement.h>
#include <capibara/primitive.h>

namespace capibara {

// True if a program has equations that fix the placement of their results: shard_map, or a constraint over several
// devices.
bool says_placement(const Program& program);
// Places the results of operands on host devices other than the first, as the operation implies. Raises
// ValueError if operands are on different devices.
Arrays placed_results(const Program& program, std::span<const Array> inputs, Arrays outputs);
Arrays placed_results(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs, Arrays outputs);
// The placements of results on the host for arguments with these placements (null: anywhere): from their Explicit
// types, else as the program implies. Empty: on the first device.
std::vector<std::shared_ptr<const NamedSharding>> result_placements(
    const Program& program, const Types& types, const std::vector<std::shared_ptr<const NamedSharding>>& inputs);
// Places results by their Explicit types: on the devices of the operands, else on the given ones, else on those of the
// mesh in context, else on the first ones.
Arrays placed_by_types(const Types& types, std::span<const Array> inputs, Arrays outputs,
                       const std::shared_ptr<const NamedSharding>& devices = nullptr);
// The same array on a mesh with its Explicit axes made Auto.
Array left_to_compiler(const Array& x);
bool any_placed(std::span<const Array> inputs);
// Puts unplaced results on the default device if that is a host device other than the first.
Arrays placed_by_default(Arrays outputs);
// Replicates unplaced results over the mesh in context, if there is one. Under Explicit axes a placement is part of the
// type: intermediate values of a function (`steps`) get none, so that they combine with operands of any placement.
enum class Places : uint8_t { results, steps };
Arrays placed_in_context(Arrays outputs, Places places = Places::results);
Array placed_in_context(Array output);
// Raises ValueError if a committed argument is split differently from the program's in_shardings.
void check_arguments(const Program& program, std::span<const Array> inputs);

}  // namespace capibara
