// Running StableHLO texts on NumPy arrays, which cross the border by DLPack without copies.
#include <capibara/dlpack.h>
#include <capibara/program.h>

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "program/build.h"

namespace capibara::python {

namespace {

using HostArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

capibara::Array from_python(const HostArray& array) {
  capibara::DLDataType type{array.dtype().code, array.dtype().bits, array.dtype().lanes};
  auto* owner = new HostArray(array);
  auto* managed = new capibara::DLManagedTensor{};
  managed->dl_tensor = {const_cast<void*>(array.data()),
                        {1, 0},
                        static_cast<int32_t>(array.ndim()),
                        type,
                        const_cast<int64_t*>(array.shape_ptr()),
                        nullptr,
                        0};
  managed->manager_ctx = owner;
  managed->deleter = [](capibara::DLManagedTensor* self) {
    nb::gil_scoped_acquire gil;
    delete static_cast<HostArray*>(self->manager_ctx);
    delete self;
  };
  return capibara::jax::dlpack::from_dlpack(managed);
}

nb::ndarray<nb::numpy> to_python(const capibara::Array& array) {
  capibara::DLManagedTensor* managed = capibara::jax::dlpack::to_dlpack(array);
  nb::capsule owner(managed, [](void* tensor) noexcept {
    auto* self = static_cast<capibara::DLManagedTensor*>(tensor);
    self->deleter(self);
  });
  const capibara::DLTensor& tensor = managed->dl_tensor;
  std::vector<std::size_t> shape(tensor.shape, tensor.shape + tensor.ndim);
  nb::dlpack::dtype dtype{tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes};
  return nb::ndarray<nb::numpy>(tensor.data, shape.size(), shape.data(), owner, nullptr, dtype);
}

std::vector<nb::ndarray<nb::numpy>> run_stablehlo(const std::string& text, const std::vector<HostArray>& arguments) {
  std::vector<capibara::Array> inputs;
  for (const HostArray& argument : arguments) inputs.push_back(from_python(argument));
  capibara::Program program = capibara::from_stablehlo(text);
  std::vector<capibara::ArrayType> types = program.input_types();
  if (types.size() != inputs.size()) {
    throw capibara::TypeError(
        capibara::concat("run_stablehlo: the program takes ", types.size(), " arguments, got ", inputs.size()));
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i].shape == inputs[i].shape() && types[i].dtype == inputs[i].dtype()) continue;
    throw capibara::TypeError(capibara::concat("run_stablehlo: argument ", i, " must be ", to_string(types[i]),
                                               ", got ", to_string(inputs[i].type())));
  }
  std::vector<capibara::Array> outputs;
  {
    nb::gil_scoped_release release;
    outputs = capibara::evaluate_program(program, inputs);
  }
  std::vector<nb::ndarray<nb::numpy>> results;
  for (const capibara::Array& output : outputs) results.push_back(to_python(output));
  return results;
}

}  // namespace

void bind_stablehlo(nb::module_& m) {
  m.def("run_stablehlo", &run_stablehlo, nb::arg("text"), nb::arg("arguments"),
        "Runs the main function of a StableHLO text on NumPy arrays.");
}

}  // namespace capibara::python
