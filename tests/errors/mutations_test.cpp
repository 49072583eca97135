// Wrong calls of every primitive: each sample with one operand or attribute changed is either still valid or is
// rejected with a user error that names the operation; nothing crashes.
#include <capibara/config.h>
#include <capibara/primitive.h>

#include "core/array/element.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>

namespace capibara {
namespace {

struct Spoilt {
  std::string what;
  Types inputs;
  Attrs attrs;
};

Array ones(const ArrayType& type) {
  int64_t bytes = type.size() * storage_size(type.dtype);
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(bytes));
  std::fill_n(buffer.mutable_data(), bytes, std::byte{0});
  if (is_numeric(type.dtype) || is_bool(type.dtype)) {
    std::vector<double> values(static_cast<std::size_t>(type.size()), 1.0);
    convert_elements(DType::float64, values.data(), type.dtype, buffer.mutable_data(), type.size());
  }
  return Array::from_buffer(type, std::move(buffer));
}

std::vector<Spoilt> operand_mutations(const Sample& sample) {
  std::vector<Spoilt> list;
  auto add = [&](std::string what, Types inputs) {
    list.push_back({std::move(what), std::move(inputs), sample.attrs});
  };
  Types fewer = sample.inputs, more = sample.inputs;
  if (!fewer.empty()) {
    fewer.pop_back();
    add("one operand fewer", fewer);
    more.push_back(more[0]);
    add("one operand more", more);
  }
  add("no operands", {});
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
    auto with = [&](std::string what, ArrayType type) {
      Types inputs = sample.inputs;
      inputs[i] = std::move(type);
      add(concat("operand ", i, " ", what), std::move(inputs));
    };
    const ArrayType& type = sample.inputs[i];
    for (DType dtype :
         {DType::bool_, DType::int32, DType::uint8, DType::float32, DType::complex64, DType::key_fry, DType::float0}) {
      if (dtype != type.dtype) with("of another dtype", type.with_dtype(dtype));
    }
    Shape longer = type.shape, shorter = type.shape;
    longer.push_back(2);
    with("of a higher rank", type.with_shape(longer));
    if (!shorter.empty()) {
      shorter.erase(shorter.begin());
      with("of a lower rank", type.with_shape(shorter));
    }
    for (std::size_t d = 0; d < type.shape.size(); ++d) {
      for (int64_t size : {int64_t{0}, int64_t{1}, type.shape[d] + 1}) {
        if (size == type.shape[d]) continue;
        Shape shape = type.shape;
        shape[d] = size;
        with(concat("with size ", size, " of dimension ", d), type.with_shape(shape));
      }
    }
  }
  return list;
}

std::vector<Spoilt> attribute_mutations(const Sample& sample) {
  std::vector<Spoilt> list;
  for (const auto& [name, attr] : sample.attrs.entries()) {
    auto with = [&, &name = name](std::string what, Attr value) {
      list.push_back({concat("attribute ", name, " ", what), sample.inputs, sample.attrs.with(name, std::move(value))});
    };
    if (const Ints* ints = attr.get_if<Ints>()) {
      Ints longer = *ints, shorter = *ints;
      longer.push_back(1);
      with("longer", longer);
      if (shorter.empty()) continue;
      shorter.pop_back();
      with("shorter", shorter);
      for (std::size_t i = 0; i < ints->size(); ++i) {
        for (int64_t value : {int64_t{-1}, int64_t{0}, int64_t{99}, int64_t{-99}}) {
          Ints changed = *ints;
          changed[i] = value;
          with(concat("[", i, "] = ", value), changed);
        }
      }
    } else if (attr.get_if<int64_t>()) {
      for (int64_t value : {int64_t{-1}, int64_t{0}, int64_t{99}, int64_t{-99}}) with(concat("= ", value), value);
    } else if (attr.get_if<DType>()) {
      for (DType dtype : {DType::bool_, DType::float32, DType::complex64, DType::key_fry}) with("another dtype", dtype);
    } else if (attr.get_if<std::string>()) {
      with("an unknown word", "no such word");
    }
  }
  return list;
}

// True if a message names the operation in some form: scatter-add as scatter_add, fft as RFFT. Some of jax's messages
// name the subject instead.
bool names_operation(std::string text, const Primitive& primitive) {
  for (const char* matter : {"PRNG key", "symmetric eigendecomposition", "Output permutation size"}) {
    if (text.find(matter) != std::string::npos) return true;
  }
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string name = primitive.name();
  std::replace(name.begin(), name.end(), '-', '_');
  if (text.find(name) != std::string::npos || text.find(primitive.name()) != std::string::npos) return true;
  std::string stem = name.substr(0, name.find('_'));
  return stem.size() > 2 && text.find(stem) != std::string::npos;
}

bool small(const Types& types) {
  return std::all_of(types.begin(), types.end(),
                     [](const ArrayType& type) { return type.size() >= 0 && type.size() < 100000; });
}

class Mutations : public testing::TestWithParam<std::string> {};

TEST_P(Mutations, AreRefusedOrMeaningful) {
  Primitive p = primitive(GetParam());
  if (!p->samples) return;
  int failures = 0, refused = 0, accepted = 0;
  std::vector<DType> dtypes = p->dtypes.empty() ? std::vector<DType>{DType::float32} : p->dtypes;
  // All dtypes share one type rule, so a few represent them.
  std::vector<DType> some = {dtypes.front()};
  for (DType dtype : {DType::int32, DType::float32}) {
    if (std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end() && some[0] != dtype) some.push_back(dtype);
  }
  for (DType dtype : some) {
    for (const Sample& sample : p->samples(dtype)) {
      std::vector<Spoilt> all = operand_mutations(sample);
      for (Spoilt& spoilt : attribute_mutations(sample)) all.push_back(std::move(spoilt));
      for (const Spoilt& spoilt : all) {
        if (failures > 5) return;
        std::string call = p.name() + " " + spoilt.what + ":";
        for (const ArrayType& type : spoilt.inputs) call += " " + to_string(type);
        try {
          TypeResult types = p->type(spoilt.inputs, spoilt.attrs);
          ++accepted;
          if (!small(types.types)) continue;
          Arrays inputs;
          for (const ArrayType& type : spoilt.inputs) inputs.push_back(ones(type));
          Arrays outputs = capibara::bind(p, inputs, spoilt.attrs);
          ASSERT_EQ(outputs.size(), types.types.size()) << call;
          for (std::size_t i = 0; i < outputs.size(); ++i) {
            EXPECT_EQ(to_string(outputs[i].type()), to_string(types.types[i])) << call;
          }
        } catch (const Error& error) {
          ++refused;
          if (!names_operation(error.what(), p)) {
            ++failures;
            ADD_FAILURE() << call << "\n  the error does not name the operation: " << error.what();
          }
        } catch (const std::exception& error) {
          ++failures;
          ADD_FAILURE() << call << "\n  not an error of the user's kind: " << error.what();
        }
      }
    }
  }
  RecordProperty("refused", refused);
  RecordProperty("accepted", accepted);
}

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const Primitive& p : catalog()) list.push_back(p.name());
  return list;
}
INSTANTIATE_TEST_SUITE_P(Catalog, Mutations, testing::ValuesIn(names()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           std::string name = info.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
                           return name;
                         });

}  // namespace
}  // namespace capibara
