// Partitions: a primitive partitioned along any dimension of its operands and results gives the unpartitioned
// results. Devices run one at a time on the reference backend.
#include "properties/property.h"

#include <capibara/partition.h>

#include "backends/backend.h"
#include "program/trace/stage.h"

namespace capibara::properties {
namespace {

using sharding::MaybeShardings;

NamedSharding on(const Mesh& mesh, const PartitionSpec& spec) {
  NamedSharding sharding{"cpu", {}, mesh, spec, ""};
  for (int64_t i = 0; i < mesh.size(); ++i) sharding.devices.push_back(static_cast<int>(i));
  return sharding;
}

// A split: a dimension of an operand or a result over an axis, and another one over a second axis.
struct Split {
  Mesh mesh;
  MaybeShardings inputs, outputs;
  std::string text;
};

struct Place {
  bool result;
  std::size_t value, dim;
  int64_t size;
};

std::vector<Place> places_of(const Types& operands, const Types& results) {
  std::vector<Place> places;
  for (const bool result : {false, true}) {
    const Types& types = result ? results : operands;
    for (std::size_t i = 0; i < types.size(); ++i) {
      for (std::size_t d = 0; d < types[i].shape.size(); ++d) {
        if (types[i].shape[d] > 1) places.push_back({result, i, d, types[i].shape[d]});
      }
    }
  }
  return places;
}

bool add(Split& split, const Place& place, const std::string& axis, const Types& operands, const Types& results) {
  MaybeShardings& list = place.result ? split.outputs : split.inputs;
  list.resize(place.result ? results.size() : operands.size());
  std::optional<NamedSharding>& own = list[place.value];
  if (!own) own = on(split.mesh, {});
  own->spec.dims.resize(std::max(own->spec.dims.size(), place.dim + 1));
  own->spec.dims[place.dim].push_back(axis);
  split.text += concat(place.result ? " result " : " operand ", place.value, " dimension ", place.dim, " over ", axis);
  return place.size % own->parts(place.dim) == 0;
}

// Each dimension alone, and pairs of dimensions over two axes.
std::vector<Split> splits_of(const Types& operands, const Types& results) {
  std::vector<Split> splits;
  const std::vector<Place> places = places_of(operands, results);
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (const int64_t parts : {2, 3, 4, 5}) {
      if (places[i].size % parts != 0) continue;
      Split alone{Mesh{{"x", "y"}, {parts, 2}}, {}, {}, concat(parts, " x 2:")};
      add(alone, places[i], "x", operands, results);
      for (std::size_t j = 0; j < places.size(); ++j) {
        if ((i + j) % 3 != 0 && places.size() > 4) continue;
        Split both = alone;
        if (add(both, places[j], "y", operands, results)) splits.push_back(std::move(both));
      }
      splits.push_back(std::move(alone));
    }
  }
  return splits;
}

Arrays run_on_reference(const Program& program, const Arrays& inputs) {
  return backend("reference").compile(program)->execute(inputs, std::vector<bool>(inputs.size(), false));
}

// Partial sums are rounded to the type of the results, which matters for narrow types.
double units_of(const Types& results) {
  double units = 64;
  for (const ArrayType& type : results) {
    if (!is_floating(type.dtype) || bits(type.dtype) >= 32) continue;
    units = 65536;
  }
  return units;
}

// Partial sums in 8 bits are too inaccurate.
bool rounds_coarsely(const Types& results) {
  return std::any_of(results.begin(), results.end(),
                     [](const ArrayType& type) { return is_floating(type.dtype) && bits(type.dtype) < 16; });
}
bool adds(const sharding::PartitionedProgram& parts) {
  return std::any_of(parts.collectives.begin(), parts.collectives.end(),
                     [](const auto& one) { return one.operation.starts_with("psum"); });
}

class Partitions : public Property {};

TEST_P(Partitions, GiveTheWhole) {
  for_each_call("partitioned = whole", GetParam(), [&](const Call& call) -> std::string {
    const Staged staged = stage(call.function(), call.sample.inputs, "f");
    const Program& program = staged.program;
    if (!staged.captured.empty() || !program.effects().empty()) return not_applicable;
    const Types results = program.output_types();
    std::vector<Split> splits = splits_of(call.sample.inputs, results);
    // The arithmetic does not matter here: elementwise operations and unusual types try only a few splits, different
    // ones for each sample.
    const bool usual = call.dtype == DType::float32 || call.dtype == DType::int32 || call.dtype == DType::bool_;
    const std::size_t most = call.primitive->traits.elementwise != Elementwise::no ? 1 : usual ? 16 : 2;
    if (splits.size() > most) {
      const std::size_t step = splits.size() / most;
      std::vector<Split> chosen;
      for (std::size_t i = seed_of(call) % step; i < splits.size() && chosen.size() < most; i += step)
        chosen.push_back(splits[i]);
      splits = std::move(chosen);
    }
    if (splits.empty()) return not_applicable;
    const Arrays inputs = prepared(call, Values(seed_of(call)).operands(call.sample));
    const Arrays whole = run_on_reference(program, inputs);
    for (const Split& split : splits) {
      std::string text;
      sharding::PartitionedProgram parts;
      try {
        parts = sharding::partition(program, split.inputs, split.outputs);
        if (rounds_coarsely(results) && adds(parts)) continue;
        const Arrays got = run_on_reference(parts.whole(), inputs);
        text = difference(got, whole, units_of(results));
      } catch (const std::exception& error) {
        text = error.what();
      }
      if (!text.empty())
        return concat(split.text, ": ", text, "\n", program, "\n",
                      parts.local.defined() ? parts.local.to_string() : "");
    }
    return "";
  });
}
INSTANTIATE_TEST_SUITE_P(Catalog, Partitions, testing::ValuesIn(primitive_names()), test_name);

}  // namespace
}  // namespace capibara::properties
