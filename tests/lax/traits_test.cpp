// Traits against the behaviour of primitives: each is tested on the samples of every record that claims it.
#include "rule_checks.h"

#include <algorithm>
#include <set>

#include "lax/reduce/monoid.h"

namespace capibara {
namespace {

using rule_checks::describe;
using rule_checks::random_inputs;

// Calls check(primitive, sample, inputs, outputs) for the samples of the primitives selected by `chosen`, in float32
// if they accept it.
template <class Chosen, class Check>
void for_each_sample(Chosen chosen, Check check) {
  ConfigScope reference([] {
    Config settings = config();
    settings.platform = "reference";
    return settings;
  }());
  int count = 0;
  for (const Primitive& primitive : catalog()) {
    if (!chosen(primitive->traits) || !primitive->samples) continue;
    const std::vector<DType>& dtypes = primitive->dtypes;
    const bool floats = dtypes.empty() || std::find(dtypes.begin(), dtypes.end(), DType::float32) != dtypes.end();
    for (const Sample& sample : primitive->samples(floats ? DType::float32 : dtypes[0])) {
      const Arrays inputs = random_inputs(sample, 7);
      check(primitive, sample, inputs, capibara::bind(primitive, inputs, sample.attrs));
      ++count;
    }
  }
  EXPECT_GT(count, 10);
}

bool is_elementwise(const Traits& traits) { return traits.elementwise != Elementwise::no; }

Array reversed(const Array& x) {
  if (x.ndim() == 0) return x;
  Ints all;
  for (int64_t d = 0; d < x.ndim(); ++d) all.push_back(d);
  return jax::lax::rev(x, all);
}

std::multiset<std::string> elements(const Array& x) {
  const auto size = static_cast<std::size_t>(storage_size(x.dtype()));
  std::multiset<std::string> all;
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.size()); ++i) {
    all.emplace(reinterpret_cast<const char*>(x.raw_data()) + i * size, size);
  }
  return all;
}

TEST(Traits, ElementwisePrimitivesComputeEachElementByItself) {
  for_each_sample(is_elementwise,
                  [](const Primitive& primitive, const Sample& sample, const Arrays& inputs, const Arrays& outputs) {
                    ASSERT_EQ(outputs.size(), 1u) << primitive.name();
                    Arrays backwards;
                    for (const Array& input : inputs) backwards.push_back(reversed(input));
                    const Array result = capibara::bind(primitive, backwards, sample.attrs)[0];
                    EXPECT_TRUE(rule_checks::same_bytes(result, reversed(outputs[0]))) << describe(primitive, sample);
                  });
}

TEST(Traits, ElementwisePrimitivesTakeTheScalarsTheyName) {
  for_each_sample(is_elementwise, [](const Primitive& primitive, const Sample& sample, const Arrays& inputs,
                                     const Arrays& outputs) {
    const Elementwise kind = primitive->traits.elementwise;
    for (std::size_t i = 0; i < inputs.size() && inputs.size() > 1; ++i) {
      const bool may = kind == Elementwise::any_scalar || (kind == Elementwise::scalar_choice && i == 0) ||
                       (kind == Elementwise::scalar_bounds && i != 1);
      const bool spread = std::any_of(inputs.begin(), inputs.end(), [&](const Array& x) {
        return &x != &inputs[i] && x.shape() == outputs[0].shape();
      });
      if (!may || !spread || inputs[i].size() == 0) continue;
      Types types = sample.inputs;
      types[i].shape = {};
      EXPECT_EQ(primitive->type(types, sample.attrs).types[0].shape, outputs[0].shape())
          << describe(primitive, sample) << ", operand " << i;
    }
  });
}

TEST(Traits, PrimitivesThatMoveElementsMakeNoNewOnes) {
  for_each_sample([](const Traits& traits) { return traits.moves != Moves::no; },
                  [](const Primitive& primitive, const Sample& sample, const Arrays& inputs, const Arrays& outputs) {
                    std::multiset<std::string> known;
                    for (const Array& input : inputs) known.merge(elements(input));
                    for (const Array& output : outputs) {
                      for (const std::string& element : elements(output))
                        EXPECT_TRUE(known.contains(element)) << describe(primitive, sample);
                    }
                  });
}

TEST(Traits, MonoidsHaveTheirOperationAndTheirReduction) {
  for (Monoid monoid :
       {Monoid::add, Monoid::mul, Monoid::max, Monoid::min, Monoid::bit_and, Monoid::bit_or, Monoid::bit_xor}) {
    for (Combines kind : {Combines::operands, Combines::axes}) {
      const auto count = std::count_if(catalog().begin(), catalog().end(), [&](const Primitive& primitive) {
        return primitive->traits.combines == kind && primitive->traits.monoid == monoid;
      });
      EXPECT_EQ(count, 1) << "monoid " << static_cast<int>(monoid);
    }
    EXPECT_EQ(recognise_monoid(monoid_region(monoid, DType::int32)), monoid);
  }
}

TEST(Traits, OperationsOfMonoidsCommuteAndKeepTheirIdentity) {
  for (const Primitive& primitive : catalog()) {
    if (primitive->traits.combines != Combines::operands) continue;
    const Array x = array<int32_t>({-7, 0, 5}), y = array<int32_t>({3, 1, -2});
    EXPECT_TRUE(rule_checks::same_bytes(bind1(primitive, {x, y}), bind1(primitive, {y, x}))) << primitive.name();
    EXPECT_TRUE(
        rule_checks::same_bytes(bind1(primitive, {x, identity_element(*primitive->traits.monoid, DType::int32)}), x))
        << primitive.name();
  }
}

TEST(Traits, CallsNameTheAttributeOfTheirProgram) {
  for (const Primitive& primitive : catalog()) {
    EXPECT_EQ(primitive->traits.control == Control::call, primitive->traits.called_program != nullptr)
        << primitive.name();
  }
}

TEST(Traits, OneMapOfDevicesBindsMeshAxesAndPartitionsItself) {
  int count = 0;
  for (const Primitive& primitive : catalog()) {
    if (primitive->traits.control != Control::device_map) continue;
    EXPECT_EQ(primitive->traits.mesh_axes, MeshAxes::named) << primitive.name();
    EXPECT_TRUE(primitive->traits.own_partition) << primitive.name();
    ++count;
  }
  EXPECT_EQ(count, 1);
}

TEST(Traits, CastsAlongMeshAxesAreTheIdentity) {
  const Array x = array<float>({1, 2});
  for (const Primitive& primitive : catalog()) {
    if (primitive->traits.mesh_axes != MeshAxes::cast) continue;
    EXPECT_TRUE(primitive->lower({&x, 1}, {})[0].same_as(x)) << primitive.name();
  }
}

TEST(Traits, WhatMayBeRecomputedHasNoEffects) {
  for_each_sample(
      [](const Traits& traits) { return traits.free_to_recompute || traits.expands; },
      [](const Primitive& primitive, const Sample& sample, const Arrays&, const Arrays&) {
        EXPECT_TRUE(primitive->traits.repeatable && primitive->type(sample.inputs, sample.attrs).effects.empty())
            << primitive.name();
      });
}

}  // namespace
}  // namespace capibara
