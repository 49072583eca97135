// How results are placed: by simple rules from how their operands are.
#pragma once

#include <capibara/placement.h>
#include <capibara/primitive.h>

namespace capibara {

// Whether a program has equations that say how their results are placed: shard_map, a constraint over several devices.
bool says_placement(const Program& program);
// Results of operands that are on devices of the host other than the first, placed as the operation implies. Raises
// ValueError where operands are on different devices.
Arrays placed_results(const Program& program, std::span<const Array> inputs, Arrays outputs);
Arrays placed_results(const Primitive& primitive, std::span<const Array> inputs, const Attrs& attrs, Arrays outputs);
// How results on the host are placed for arguments that are placed so, null where they are anywhere: as their Explicit
// types say, else as the program implies. Empty: on the first device.
std::vector<std::shared_ptr<const NamedSharding>> result_placements(
    const Program& program, const Types& types, const std::vector<std::shared_ptr<const NamedSharding>>& inputs);
// Results placed as their Explicit types say: on the devices of the operands, else on those given, of the mesh in
// context or the first ones.
Arrays placed_by_types(const Types& types, std::span<const Array> inputs, Arrays outputs,
                       const std::shared_ptr<const NamedSharding>& devices = nullptr);
// The same array on a mesh whose Explicit axes are Auto.
Array left_to_compiler(const Array& x);
bool any_placed(std::span<const Array> inputs);
// Results that nothing places, on the default device where it is one of the host's other than the first.
Arrays placed_by_default(Arrays outputs);
// Results that nothing places, whole on each device of the mesh in context; as they are where there is none. Under
// Explicit axes a placement is part of a type: what a function makes on the way to its result has none, so that it
// joins operands of any.
enum class Places : uint8_t { results, steps };
Arrays placed_in_context(Arrays outputs, Places places = Places::results);
Array placed_in_context(Array output);
// Raises ValueError where a committed argument is split otherwise than the in_shardings of the program say.
void check_arguments(const Program& program, std::span<const Array> inputs);

}  // namespace capibara
