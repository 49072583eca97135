// Types under Explicit axes: every call of the catalog with split operands gets consistent types, or is rejected by
// name.
#include "properties/property.h"

#include <capibara/explicit.h>

#include "program/ir/build.h"
#include "program/ir/explicit_types.h"

namespace capibara::properties {
namespace {

Mesh mesh_of(int64_t parts) { return {{"x", "y"}, {parts, 2}, {AxisType::Explicit, AxisType::Explicit}}; }

// The inconsistencies in the types of results; empty if there are none.
std::string misfit(const Types& results) {
  for (const ArrayType& type : results) {
    if (!type.sharding.is_explicit()) continue;
    const PartitionSpec& spec = type.sharding.spec();
    if (spec.dims.size() != type.shape.size())
      return concat(to_string(type), " has another rank than its specification");
    AxisList seen;
    for (std::size_t d = 0; d < spec.dims.size(); ++d) {
      for (const std::string& axis : spec.dims[d]) {
        if (std::find(seen.begin(), seen.end(), axis) != seen.end())
          return concat(to_string(type), " has an axis twice");
        seen.push_back(axis);
        if (type.shape[d] % type.sharding.mesh().axis_size(axis) != 0)
          return concat(to_string(type), " is cut unevenly");
      }
    }
  }
  return "";
}

class ExplicitTypes : public Property {};

TEST_P(ExplicitTypes, FitOrAreRefused) {
  for_each_call("explicit types", GetParam(), [&](const Call& call) -> std::string {
    if (call.body) return not_applicable;
    bool any = false;
    for (std::size_t i = 0; i < call.sample.inputs.size(); ++i) {
      for (std::size_t d = 0; d < call.sample.inputs[i].shape.size(); ++d) {
        const int64_t size = call.sample.inputs[i].shape[d];
        if (size < 2 || call.sample.inputs[i].ref) continue;
        any = true;
        Types types = call.sample.inputs;
        PartitionSpec spec;
        spec.dims.resize(types[i].shape.size());
        spec.dims[d] = {"x"};
        types[i].sharding = type_sharding(mesh_of(size), spec, types[i].shape.size());
        ProgramBuilder builder;
        std::vector<Atom> inputs;
        for (const ArrayType& type : types) inputs.push_back(builder.add_input(type));
        try {
          Types results;
          for (Var var : builder.add_equation(call.primitive, inputs, call.sample.attrs))
            results.push_back(builder.type(var));
          const std::string text = misfit(results);
          if (!text.empty()) return text;
        } catch (const ShardingTypeError&) {
        } catch (const ValueError&) {  // if a size is not divisible
        } catch (const NotImplementedError&) {
        }
      }
    }
    return any ? "" : not_applicable;
  });
}
INSTANTIATE_TEST_SUITE_P(Catalog, ExplicitTypes, testing::ValuesIn(primitive_names()), test_name);

// The types of a call's results as jax prints them, for operands f32[8,4] split by these axes.
std::string typed(const std::string& name, const std::vector<PartitionSpec>& specs, const Attrs& attrs,
                  Shape shape = {8, 4}) {
  ProgramBuilder builder;
  std::vector<Atom> inputs;
  for (const PartitionSpec& spec : specs) {
    ArrayType type{shape, DType::float32, false, false, {}};
    type.sharding = type_sharding(mesh_of(4), spec, shape.size());
    inputs.push_back(builder.add_input(type));
  }
  std::string text;
  try {
    for (Var var : builder.add_equation(primitive(name), inputs, attrs)) text += to_string(builder.type(var));
  } catch (const ShardingTypeError& error) {
    return concat("refused: ", error.what());
  }
  return text;
}

const PartitionSpec cells{{{"x"}, {"y"}}, {}, {}}, rows{{{"x"}, {}}, {}, {}}, columns{{{}, {"y"}}, {}, {}};

TEST(ExplicitTypes, AreTheAxesOnWhichOperandsAgree) {
  EXPECT_EQ(typed("sin", {cells}, {{"accuracy", Attr()}}), "float32[8@x,4@y]");
  EXPECT_EQ(typed("sub", {rows, columns}, {}), "float32[8@x,4@y]");
  EXPECT_EQ(typed("max", {cells, {{{"y"}, {"x"}}, {}, {}}}, {}),
            "refused: max got incompatible shardings for broadcasting: ('x', 'y'), ('y', 'x').");
}

TEST(ExplicitTypes, FollowDimensions) {
  EXPECT_EQ(typed("transpose", {cells}, {{"permutation", Ints{1, 0}}}), "float32[4@y,8@x]");
  EXPECT_EQ(typed("reduce_max", {cells}, {{"axes", Ints{0}}}), "float32[4@y]");
  EXPECT_EQ(typed("reshape", {cells}, {{"new_sizes", Ints{4, 2, 4}}, {"dimensions", Attr()}, {"sharding", Attr()}}),
            "float32[4@x,2,4@y]");
  const Attrs sort{{"dimension", 1}, {"is_stable", true}, {"num_keys", 1}};
  EXPECT_EQ(typed("sort", {rows}, sort), "float32[8@x,4]");
  EXPECT_EQ(typed("sort", {columns}, sort).substr(0, 75),
            "refused: Arguments to sort must be unsharded over the sorting dimension. Go");
}

TEST(ExplicitTypes, AreRefusedWhereAnAxisComesTwice) {
  const Attrs attrs{{"dimension_numbers", DotDimensionNumbers{{1}, {1}, {}, {}}},
                    {"precision", Attr()},
                    {"preferred_element_type", Attr()},
                    {"out_sharding", Attr()}};
  EXPECT_EQ(typed("dot_general", {rows, rows}, attrs),
            "refused: dot_general operation with inputs: f32[8@x,4], f32[8@x,4] produces an illegally sharded result: "
            "f32[8@x,8@x]");
  EXPECT_EQ(typed("dot_general", {cells, {}}, attrs), "float32[8@x,8]");
}

TEST(ExplicitTypes, PrintSumsThatAreToBeTaken) {
  ArrayType type{{8, 4}, DType::float32, false, false, {}};
  type.sharding = type_sharding(mesh_of(4), {{{"x"}, {}}, {"y"}, {}}, 2);
  EXPECT_EQ(short_string(type), "f32[8@x,4]{U:y}");
}

TEST(ExplicitTypes, AreThoseOfArraysOnAMesh) {
  const Mesh mesh = jax::make_mesh({1}, {"x"});
  const Array x = jax::device_put(array<float>({1, 2, 3}), jax::make_sharding(mesh, {{{"x"}}, {}, {}}));
  EXPECT_EQ(to_string(jax::type_of(x)), "float32[3@x]");
  EXPECT_EQ(to_string(jax::type_of(x + x)), "float32[3@x]");
  const jax::Scope scope = jax::set_mesh(mesh);
  const Array whole = jax::reshard(x * x, PartitionSpec{});
  EXPECT_EQ(to_string(jax::type_of(whole)), "float32[3]");
  EXPECT_EQ(whole.to_vector<float>(), (std::vector<float>{1, 4, 9}));
}

}  // namespace
}  // namespace capibara::properties
