// Factors: computing a primitive part by part along each of its factors gives its whole result.
#include "properties/property.h"

#include <capibara/factors.h>

#include "program/trace/stage.h"

namespace capibara::properties {
namespace {

using Indices = std::vector<int64_t>;

// The indices of a dimension whose index along one factor is in part `part` of `parts`.
Indices kept_indices(const DimensionFactors& dimension, int64_t size, const Factors& factors, int factor, int64_t parts,
                     int64_t part) {
  Indices kept;
  for (int64_t index = 0; index < size; ++index) {
    int64_t rest = index;
    bool inside = true;
    for (std::size_t i = dimension.size(); i-- > 0;) {
      const int64_t count = factors.factors[static_cast<std::size_t>(dimension[i])].size;
      if (dimension[i] == factor) inside = inside && rest % count / (count / parts) == part;
      rest /= count;
    }
    if (inside) kept.push_back(index);
  }
  return kept;
}

// The row-major positions of an array's elements that are in a part.
Indices kept_positions(const ArrayType& type, const ValueFactors& value, const Factors& factors, int factor,
                       int64_t parts, int64_t part) {
  Indices positions{0};
  for (std::size_t d = 0; d < type.shape.size(); ++d) {
    const Indices kept = kept_indices(value[d], type.shape[d], factors, factor, parts, part);
    Indices next;
    for (int64_t position : positions) {
      for (int64_t index : kept) next.push_back(position * type.shape[d] + index);
    }
    positions = std::move(next);
  }
  return positions;
}

bool has_factor(const ValueFactors& value, int factor) {
  return std::any_of(value.begin(), value.end(), [&](const DimensionFactors& dimension) {
    return std::find(dimension.begin(), dimension.end(), factor) != dimension.end();
  });
}

Array taken(const Array& whole, const ArrayType& type, const Indices& positions) {
  const auto bytes = static_cast<std::size_t>(storage_size(type.dtype));
  Buffer buffer = Buffer::allocate(positions.size() * bytes);
  for (std::size_t i = 0; i < positions.size(); ++i)
    std::memcpy(buffer.mutable_data() + i * bytes, whole.raw_data() + static_cast<std::size_t>(positions[i]) * bytes,
                bytes);
  return Array::from_buffer(type, std::move(buffer));
}

Array put(const Array& whole, const Array& part, const Indices& positions) {
  const auto bytes = static_cast<std::size_t>(storage_size(whole.dtype()));
  const auto total = static_cast<std::size_t>(whole.size()) * bytes;
  Buffer buffer = Buffer::allocate(total);
  if (total > 0) std::memcpy(buffer.mutable_data(), whole.raw_data(), total);
  for (std::size_t i = 0; i < positions.size(); ++i)
    std::memcpy(buffer.mutable_data() + static_cast<std::size_t>(positions[i]) * bytes, part.raw_data() + i * bytes,
                bytes);
  return Array::from_buffer(whole.type(), std::move(buffer));
}

// An array filled with bytes that no part produces.
Array blank(const ArrayType& type) {
  const auto bytes = static_cast<std::size_t>(type.size() * storage_size(type.dtype));
  Buffer buffer = Buffer::allocate(bytes);
  if (bytes > 0) std::memset(buffer.mutable_data(), 0x5a, bytes);
  return Array::from_buffer(type, std::move(buffer));
}

Array combined(Monoid monoid, const Array& a, const Array& b) {
  static constexpr const char* names[] = {"add", "mul", "max", "min", "and", "or", "xor"};
  const Array both[] = {a, b};
  return capibara::bind(primitive(names[static_cast<std::size_t>(monoid)]), both)[0];
}

// One equation on whole operands, and its factors.
struct Split {
  Primitive primitive;
  Attrs attrs;
  Types operands, results;
  Factors factors;

  EquationTypes types() const { return {primitive, operands, results, attrs}; }

  // The results assembled from parts.
  Arrays by_parts(const Arrays& inputs, const Arrays& whole, int factor, int64_t parts) const {
    const Factor& cut = factors.factors[static_cast<std::size_t>(factor)];
    const PartTypes part_of = part_types(types(), factors, factor, parts);
    Attrs local = attrs;
    if (primitive->localise) local = primitive->localise({primitive, part_of.operands, part_of.results, attrs});
    Arrays joined;
    for (std::size_t i = 0; i < whole.size(); ++i)
      joined.push_back(has_factor(factors.results[i], factor) ? blank(results[i]) : whole[i]);
    for (int64_t part = 0; part < parts; ++part) {
      Arrays operands_part;
      for (std::size_t i = 0; i < inputs.size(); ++i)
        operands_part.push_back(taken(inputs[i], part_of.operands[i],
                                      kept_positions(operands[i], factors.operands[i], factors, factor, parts, part)));
      const Arrays got = capibara::bind(primitive, operands_part, local);
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (got[i].shape() != part_of.results[i].shape)
          throw InternalError(concat("part of output ", i, " is ", to_string(got[i].type())));
        if (cut.use == FactorUse::combined)
          joined[i] = part == 0 ? got[i] : combined(cut.monoid, joined[i], got[i]);
        else if (has_factor(factors.results[i], factor))
          joined[i] =
              put(joined[i], got[i], kept_positions(results[i], factors.results[i], factors, factor, parts, part));
        else if (difference(joined[i], whole[i], 64).empty())
          joined[i] = got[i];  // keeps the first wrong one
      }
    }
    return joined;
  }
};

// A composed call is tested as a call of its staged program.
Split split_of(const Call& call) {
  Split split{call.primitive, call.sample.attrs, call.sample.inputs, {}, {}};
  if (call.body) {
    const Staged staged = stage_open(call.function(), call.sample.inputs, "f");
    if (!staged.captured.empty()) return split;
    split.primitive = primitive("closed_call");
    split.attrs = {{"call_jaxpr", staged.program}};
  }
  split.results = split.primitive->type(split.operands, split.attrs).types;
  split.factors = factors_of(split.types());
  return split;
}

// Partial sums in small types round more often than the whole.
bool rounds_parts(const Split& split) {
  return std::any_of(split.results.begin(), split.results.end(),
                     [](const ArrayType& type) { return is_floating(type.dtype) && bits(type.dtype) < 32; });
}

class SplitFactors : public Property {};

TEST_P(SplitFactors, GiveTheWhole) {
  for_each_call("by parts = whole", GetParam(), [&](const Call& call) -> std::string {
    const Split split = split_of(call);
    const Arrays inputs = prepared(call, Values(seed_of(call)).operands(call.sample));
    Arrays whole;
    bool any = false;
    for (std::size_t f = 0; f < split.factors.factors.size(); ++f) {
      const Factor& factor = split.factors.factors[f];
      for (int64_t parts = 2; parts <= 5; ++parts) {
        if (factor.use == FactorUse::whole || factor.size % parts != 0) continue;
        if (factor.use == FactorUse::combined && rounds_parts(split)) continue;
        any = true;
        if (whole.empty()) whole = capibara::bind(split.primitive, inputs, split.attrs);
        const std::string text = difference(split.by_parts(inputs, whole, static_cast<int>(f), parts), whole, 64);
        if (!text.empty()) return concat(to_string(split.factors), ", factor ", f, " in ", parts, " parts: ", text);
      }
    }
    return any ? "" : not_applicable;
  });
}
INSTANTIATE_TEST_SUITE_P(Catalog, SplitFactors, testing::ValuesIn(primitive_names()), test_name);

TEST(Factors, AreInEveryRecord) {
  for (const Primitive& primitive : catalog()) EXPECT_TRUE(has_factors(primitive.record())) << primitive.name();
}

Factors factors_of_sample(const char* name, const Sample& sample) {
  const Primitive p = primitive(name);
  const Types results = p->type(sample.inputs, sample.attrs).types;
  return factors_of({p, sample.inputs, results, sample.attrs});
}

ArrayType f32(Shape shape) { return {std::move(shape), DType::float32, false, false, {}}; }

TEST(Factors, OfAMatmulContractTheInnerDimension) {
  const Attrs attrs{{"dimension_numbers", DotDimensionNumbers{{1}, {0}, {}, {}}},
                    {"precision", Attr()},
                    {"preferred_element_type", Attr()},
                    {"out_sharding", Attr()}};
  EXPECT_EQ(to_string(factors_of_sample("dot_general", {{f32({4, 8}), f32({8, 3})}, attrs})),
            "(a b) (b c) -> (a c), b: sum");
}

TEST(Factors, OfAReshapeCutDimensions) {
  const Attrs attrs{{"new_sizes", Ints{2, 4, 3}}, {"dimensions", Attr()}, {"sharding", Attr()}};
  EXPECT_EQ(to_string(factors_of_sample("reshape", {{f32({8, 3})}, attrs})), "((a b) c) -> (a b c)");
}

TEST(Factors, OfASortKeepItsDimensionWhole) {
  const Attrs attrs{{"dimension", 1}, {"is_stable", true}, {"num_keys", 1}};
  EXPECT_EQ(to_string(factors_of_sample("sort", {{f32({4, 8})}, attrs})), "(a b) -> (a b), b: whole");
}

}  // namespace
}  // namespace capibara::properties
