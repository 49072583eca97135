// Measurements of the TPU toolbox from Python: kernels that the core traces, compiles and times, and device loads; also
// integer quantization of matrices.
#include <capibara/kernels/quantized.h>
#include <capibara/tpu/loads.h>
#include <capibara/tpu/measure.h>
#include <capibara/tpu/quantize.h>
#include <capibara/training/weights.h>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "calls.h"
#include "interpreter_lock.h"
#include "tpu.h"
#include "training_models.h"

namespace capibara::python {

namespace {

// Runs function(list of arrays), which returns a list of arrays.
nb::tuple run_measured(tpu::TPUv4Kernels& self, nb::handle function, nb::handle arrays,
                       const std::optional<std::string>& precision, bool donated) {
  tpu::KernelMeter::Call call;
  if (precision) call.precision = tpu::kernel_precision(*precision);
  call.compiled = self.options().enable_xla_fusion;
  call.donated = donated;
  const Arrays results = self.meter().run(
      call,
      [kept = std::make_shared<const KeptObject>(function)](const Arrays& given) {
        const InterpreterLock lock;
        return batch_of(call_python(kept->get(), nb::make_tuple(wrap_all(given))), "TPUv4Kernels");
      },
      batch_of(arrays, "TPUv4Kernels"));
  return wrap_all(results);
}

nb::dict benchmark(tpu::TPUv4Kernels& self, const std::optional<std::vector<std::string>>& names, double seconds) {
  nb::dict all;
  if (names && names->empty()) return all;
  for (const tpu::KernelFigures& figures :
       self.benchmark_kernels(names.value_or(std::vector<std::string>()), seconds)) {
    nb::dict row;
    row["throughput"] = figures.throughput;
    row["latency_ms"] = figures.latency_ms;
    row["memory_efficiency"] =
        figures.memory_efficiency ? nb::object(nb::float_(*figures.memory_efficiency)) : nb::none();
    row["problem"] = figures.problem;
    all[figures.kernel.c_str()] = row;
  }
  return all;
}

// {parameter name: dimension of its experts}; checks their order.
std::map<std::string, std::size_t> dimensions_of_experts(const nb::list& types,
                                                         const std::map<std::string, std::vector<std::string>>& axes,
                                                         const std::string& prefix, const std::vector<int64_t>& order) {
  ParameterTypes own;
  for (nb::handle row : types) own[nb::cast<std::string>(row[0])] = leaf_type(row[1], "reorder_experts").strong();
  const std::map<std::string, std::size_t> dimensions =
      tpu::expert_dimensions(own, LogicalAxes{axes, false, {}}, prefix);
  tpu::require_order(order, own.at(dimensions.begin()->first).shape.at(dimensions.begin()->second));
  return dimensions;
}

nb::tuple fitted(const std::vector<AxisList>& spec, const std::vector<int64_t>& shape,
                 const std::vector<std::string>& axis_names, const std::vector<int64_t>& axis_sizes) {
  nb::list entries;
  const PartitionSpec found = tpu::fitted_spec({spec, {}, {}}, Shape(shape), Mesh{axis_names, axis_sizes, {}});
  for (const AxisList& axes : found.dims) entries.append(nb::tuple(nb::cast(axes)));
  return nb::tuple(entries);
}

void bind_loads(nb::module_& m) {
  m.def("device_load", [](const std::vector<double>& amounts, int64_t rows, int64_t columns, double headroom) {
    return wrap(tpu::device_load(amounts, rows, columns, headroom));
  });
  m.def("tokens_by_device", [](nb::handle counts, int64_t devices) {
    return tpu::tokens_by_device(to_array(counts, "tokens_by_device"), devices);
  });
  m.def("device_seconds", [](nb::handle function, nb::handle array, int repeats) {
    auto run = [&](const Array& part) {
      return to_array(call_python(function, nb::make_tuple(wrap(part))), "device_seconds");
    };
    return tpu::device_seconds(run, to_array(array, "device_seconds"), repeats);
  });
  m.def("balance_experts", [](nb::handle counts, int64_t devices) {
    return tpu::balance_experts(to_array(counts, "balance_experts"), devices);
  });
  m.def("expert_dimensions", dimensions_of_experts);
  m.def("fitted_spec", fitted);
}

kernels::QuantizedMatrix matrix_of(nb::handle codes, nb::handle scale, nb::handle codebook, int64_t inputs,
                                   nb::handle input_scale = nb::none()) {
  kernels::QuantizedMatrix matrix{to_array(codes, "QuantizedWeight"), to_array(scale, "QuantizedWeight"), {}, inputs};
  if (!codebook.is_none()) matrix.codebook = to_array(codebook, "QuantizedWeight");
  if (!input_scale.is_none()) matrix.input_scale = to_array(input_scale, "QuantizedWeight");
  return matrix;
}

nb::tuple wrap_matrix(const kernels::QuantizedMatrix& matrix) {
  const nb::object codebook = matrix.codebook ? nb::object(wrap(*matrix.codebook)) : nb::object(nb::none());
  return nb::make_tuple(wrap(matrix.codes), wrap(matrix.scale), codebook, matrix.inputs);
}

void bind_quantized(nb::module_& m) {
  m.def("is_quantized", [](const std::string& name, nb::handle leaf) {
    return tpu::is_quantized(name, leaf_type(leaf, "quantize_for_tpu"));
  });
  m.def("quantize_matrix", [](nb::handle matrix, int bits) {
    return wrap_matrix(tpu::quantize_matrix(to_array(matrix, "quantize_for_tpu"), bits));
  });
  // None if the matrix does not split into vectors or is too small for codebooks, as in training::quantize_model.
  m.def("quantize_vectors", [](nb::handle matrix) -> nb::object {
    const Array array = to_array(matrix, "quantize_model");
    const kernels::QuantizeVectorsOptions options = training::QuantizeModelOptions().vectors;
    if (!training::fits_codebooks(array.shape(), options.axis, options)) return nb::none();
    return wrap_matrix(kernels::quantize_vectors(array, options));
  });
  m.def("quantize", [](nb::handle matrix, const std::string& format, int64_t block, int64_t axis) {
    return wrap_matrix(
        kernels::quantize(to_array(matrix, "quantize"), {.format = format, .block = block, .axis = axis}));
  });
  m.def(
      "dequantize",
      [](nb::handle codes, nb::handle scale, nb::handle codebook, int64_t inputs) {
        return wrap(kernels::dequantize(matrix_of(codes, scale, codebook, inputs)));
      },
      nb::arg("codes"), nb::arg("scale"), nb::arg("codebook").none(), nb::arg("inputs"));
  m.def(
      "quantized_matmul",
      [](nb::handle x, nb::handle codes, nb::handle scale, nb::handle codebook, int64_t inputs, nb::handle input_scale,
         bool transposed) {
        const kernels::QuantizedMatrix matrix = matrix_of(codes, scale, codebook, inputs, input_scale);
        return wrap(kernels::quantized_matmul(to_array(x, "quantized_matmul"), matrix, {.transposed = transposed}));
      },
      nb::arg("x"), nb::arg("codes"), nb::arg("scale"), nb::arg("codebook").none(), nb::arg("inputs"),
      nb::arg("input_scale").none(), nb::arg("transposed"));
}

}  // namespace

void bind_tpu_measure(nb::module_& m) {
  bind_loads(m);
  bind_quantized(m);
  nb::class_<tpu::TPUv4Kernels>(m, "TPUv4Kernels")
      .def("__init__",
           [](tpu::TPUv4Kernels* self, const std::string& precision, const std::string& level, bool fusion, bool layout,
              uint64_t seed) {
             new (self) tpu::TPUv4Kernels({precision, level, fusion, layout, seed});
           })
      .def("run", run_measured, nb::arg("function"), nb::arg("arrays"), nb::arg("precision").none(), nb::arg("donated"))
      .def("next_key", [](tpu::TPUv4Kernels& self, const std::string& method,
                          const std::string& argument) { return wrap(self.next_key(method, argument)); })
      .def_static("is_staged",
                  [](nb::handle arrays) { return tpu::KernelMeter::is_staged(batch_of(arrays, "TPUv4Kernels")); })
      .def("get_memory_usage", &tpu::TPUv4Kernels::get_memory_usage)
      .def("get_tflops", &tpu::TPUv4Kernels::get_tflops)
      .def("benchmark_kernels", benchmark, nb::arg("names").none(), nb::arg("seconds"));
}

}  // namespace capibara::python
