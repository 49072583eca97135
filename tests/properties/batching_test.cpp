// Batching: vmap of a primitive against a loop over the batch, for every choice of mapped operands and positions.
#include "properties/property.h"

#include "program/derive/derive.h"

#include <capibara/lax.h>

namespace capibara::properties {
namespace {

// Stacks arrays of the same type along a new axis, byte by byte: any dtype, including keys.
Array stacked(const Arrays& parts, int64_t dim) {
  ArrayType type = parts[0].type();
  int64_t outer = 1, inner = storage_size(type.dtype);
  for (int64_t i = 0; i < type.rank(); ++i) (i < dim ? outer : inner) *= type.shape[static_cast<std::size_t>(i)];
  type.shape.insert(type.shape.begin() + dim, static_cast<int64_t>(parts.size()));
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(type.size() * storage_size(type.dtype)));
  std::byte* out = buffer.mutable_data();
  for (int64_t o = 0; o < outer; ++o) {
    for (const Array& part : parts) {
      if (inner > 0) std::memcpy(out, part.raw_data() + o * inner, static_cast<std::size_t>(inner));
      out += inner;
    }
  }
  return Array::from_buffer(type, std::move(buffer));
}

Array row(const Array& array, int64_t index) {
  ArrayType type = array.type();
  type.shape.erase(type.shape.begin());
  std::size_t bytes = static_cast<std::size_t>(type.size() * storage_size(type.dtype));
  Buffer buffer = Buffer::allocate(bytes);
  if (bytes > 0) std::memcpy(buffer.mutable_data(), array.raw_data() + static_cast<std::size_t>(index) * bytes, bytes);
  return Array::from_buffer(type, std::move(buffer));
}

// The subsets of mapped operands: all subsets of up to four operands; of more, each alone and all together.
std::vector<std::vector<bool>> subsets(std::size_t count) {
  std::vector<std::vector<bool>> result;
  if (count <= 4) {
    for (std::size_t bits = 1; bits < (std::size_t{1} << count); ++bits) {
      std::vector<bool> mapped;
      for (std::size_t i = 0; i < count; ++i) mapped.push_back((bits >> i) & 1);
      result.push_back(std::move(mapped));
    }
    return result;
  }
  result.push_back(std::vector<bool>(count, true));
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<bool> mapped(count, false);
    mapped[i] = true;
    result.push_back(std::move(mapped));
  }
  return result;
}

// The mapped axis of every mapped operand: position p modulo the operand's positions; `skew` gives the operands
// different positions.
std::vector<int64_t> positions(const Call& call, const std::vector<bool>& mapped, int64_t p, int64_t skew) {
  std::vector<int64_t> dims;
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    int64_t places = call.sample.inputs[i].rank() + 1;
    dims.push_back(mapped[i] ? (p + skew * static_cast<int64_t>(i)) % places : not_mapped);
  }
  return dims;
}

std::vector<std::vector<int64_t>> all_positions(const Call& call, const std::vector<bool>& mapped, bool every) {
  int64_t rank = 0;
  for (const ArrayType& type : call.sample.inputs) rank = std::max(rank, type.rank());
  std::vector<std::vector<int64_t>> result;
  for (int64_t p = 0; p <= rank; ++p) {
    for (int64_t skew : {0, 1}) {
      std::vector<int64_t> dims = positions(call, mapped, p, skew);
      if (std::find(result.begin(), result.end(), dims) == result.end()) result.push_back(std::move(dims));
    }
  }
  // One unusual choice is enough if another dtype has tried them all.
  if (!every) result = {result.back()};
  return result;
}

std::string show(const std::vector<int64_t>& dims) {
  std::string text = "in_axes (";
  for (int64_t dim : dims) text += dim == not_mapped ? "None," : concat(dim, ",");
  return text + ")";
}

Program staged_vmap(const Call& call, const std::vector<int64_t>& dims, int64_t size) {
  Types types = call.sample.inputs;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (dims[i] != not_mapped) types[i].shape.insert(types[i].shape.begin() + dims[i], size);
  }
  return stage(
             [&](std::span<const Array> in) {
               return vmap_flat(call.function(), in, dims, {}, {"", size});
             },
             types, "f")
      .program;
}

class Batching : public Property {};

TEST_P(Batching, IsALoop) {
  const int64_t size = 3;
  for (Points points : {Points::plain, hard_points(primitive(GetParam()))}) {
    DType first = dtypes_of(primitive(GetParam()).record()).front();
    std::vector<DType> dtypes = dtypes_of(primitive(GetParam()).record());
    if (std::find(dtypes.begin(), dtypes.end(), DType::float32) != dtypes.end()) first = DType::float32;
    std::string property = points == Points::plain ? "vmap = loop" : "vmap = loop at hard points";
    for_each_call(property, GetParam(), [&](const Call& call) -> std::string {
      FlatFunction f = call.function();
      std::size_t count = call.sample.inputs.size();
      if (count == 0) return not_applicable;
      Values values(seed_of(call));
      std::vector<Arrays> instances;
      for (int64_t b = 0; b < size; ++b) instances.push_back(prepared(call, values.operands(call.sample, points)));
      Arrays shared = prepared(call, values.operands(call.sample, points));
      for (const std::vector<bool>& mapped : subsets(count)) {
        std::vector<Arrays> rows, outputs;
        for (const Arrays& instance : instances) {
          Arrays inputs = shared;
          for (std::size_t i = 0; i < count; ++i) {
            if (mapped[i]) inputs[i] = instance[i];
          }
          outputs.push_back(f(inputs));
          rows.push_back(std::move(inputs));
        }
        try {
          for (const std::vector<int64_t>& dims :
               all_positions(call, mapped, call.dtype == first && points == Points::plain)) {
            Arrays batched = shared;
            for (std::size_t i = 0; i < count; ++i) {
              if (!mapped[i]) continue;
              Arrays parts;
              for (const Arrays& inputs : rows) parts.push_back(inputs[i]);
              batched[i] = stacked(parts, dims[i]);
            }
            Arrays got = vmap_flat(f, batched, dims, {}, {"", size});
            for (int64_t b = 0; b < size; ++b) {
              Arrays part;
              for (const Array& output : got) part.push_back(row(output, b));
              std::string text = difference(part, outputs[static_cast<std::size_t>(b)], 32);
              if (!text.empty()) return concat(show(dims), ", instance ", b, ": ", text);
            }
          }
        } catch (const NotImplementedError& error) {
          // Mapping other operands may still work.
          if (!is_known_refusal(call, error.what())) throw;
          Tally::of(property).lack(call, error.what());
        }
      }
      return "";
    });
  }
}

TEST_P(Batching, ProgramDoesNotGrowWithTheBatch) {
  for_each_call("size of the vmapped program", GetParam(), [&](const Call& call) -> std::string {
    if (call.sample.inputs.empty()) return not_applicable;
    // The loops of a fused operation's composition, which a batch may run instead.
    const auto composition = [&](std::span<const Array> inputs) {
      return call.primitive->lower(inputs, call.sample.attrs);
    };
    const int loops = size_of((is_fused(call.primitive) && !call.primitive.is("composed_tangent")
                                   ? stage(composition, call.sample.inputs, "f")
                                   : stage(call.function(), call.sample.inputs, "f"))
                                  .program)
                          .loops;
    for (const std::vector<bool>& mapped : subsets(call.sample.inputs.size())) {
      std::vector<int64_t> dims = positions(call, mapped, 1, 1);
      Program two, five;
      try {
        two = staged_vmap(call, dims, 2);
        five = staged_vmap(call, dims, 5);
      } catch (const NotImplementedError&) {
        continue;  // counted above
      }
      verify(two);
      verify(five);
      Size a = size_of(two), b = size_of(five);
      if (a.equations != b.equations)
        return concat(show(dims), ": ", a.equations, " equations for a batch of 2, ", b.equations, " for 5");
      if (b.loops > loops) return concat(show(dims), ": ", b.loops, " loops, ", loops, " before vmap");
    }
    return "";
  });
}

INSTANTIATE_TEST_SUITE_P(Catalog, Batching, testing::ValuesIn(primitive_names()), test_name);

}  // namespace
}  // namespace capibara::properties
