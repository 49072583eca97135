// The TPU toolbox from Python: chips, slices, flags, models, plans and findings, as plain dictionaries.
#include <capibara/program.h>
#include <capibara/tpu.h>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "backends/pjrt/plugin.h"
#include "tpu.h"
#include "tpu/compiled.h"

namespace capibara::python {

namespace {

nb::dict chip_dict(const tpu::Chip& chip) {
  nb::dict d;
  d["name"] = chip.name;
  d["device_kind"] = chip.device_kind;
  d["bf16_tflops"] = chip.bf16_tflops;
  d["int8_tops"] = chip.int8_tops;
  d["fp8_tflops"] = chip.fp8_tflops;
  d["hbm_gb"] = chip.hbm_gb;
  d["usable_hbm_gib"] = chip.usable_hbm_gib;
  d["hbm_gbps"] = chip.hbm_gbps;
  d["ici_link_gbps"] = chip.ici_link_gbps;
  d["dcn_gbps"] = chip.dcn_gbps;
  d["pcie_gbps"] = chip.pcie_gbps;
  d["dimensions"] = chip.dimensions;
  d["cores"] = chip.cores;
  d["devices"] = chip.devices;
  d["mxu_size"] = chip.mxu_size;
  d["vmem_mib"] = chip.vmem_mib;
  d["clock_ghz"] = chip.clock_ghz;
  d["pod_chips"] = chip.pod_chips;
  d["config"] = chip.config;
  d["sources"] = chip.sources;
  return d;
}

nb::dict slice_dict(const tpu::Slice& slice) {
  nb::dict d;
  d["chip"] = slice.chip->name;
  d["name"] = slice.name();
  d["shape"] = slice.shape;
  d["slices"] = slice.slices;
  d["chips"] = slice.chips();
  d["devices"] = slice.devices();
  d["hosts"] = slice.hosts();
  d["topology"] = slice.topology();
  d["wraps"] = slice.wraps();
  d["hbm_gib"] = slice.hbm_gib();
  d["links"] = slice.links();
  return d;
}

// Reads a value of a dictionary; keeps `to` if the key is missing or None.
template <class T>
void read(nb::dict from, const char* name, T& to) {
  if (!from.contains(name) || from[name].is_none()) return;
  if (nb::try_cast<T>(from[name], to)) return;
  const char* expected = std::is_same_v<T, std::string> ? "a text"
                         : std::is_same_v<T, bool>      ? "True or False"
                         : std::is_same_v<T, int64_t>   ? "a whole number"
                                                        : "a number";
  throw TypeError(concat("tpu: expected ", expected, " (argument '", name, "'), got ",
                         nb::cast<std::string>(nb::repr(from[name]))));
}

tpu::Architecture model_of(nb::handle given) {
  if (nb::isinstance<nb::str>(given)) return tpu::find_model(nb::cast<std::string>(given));
  return architecture_of(nb::cast<nb::dict>(given));
}

tpu::Training training_of(nb::dict from) {
  tpu::Training t;
  t.model = model_of(from["model"]);
  std::string slice, mesh;
  read(from, "tpu", slice);
  t.slice = tpu::find_slice(slice);
  t.mesh.fsdp = t.slice.devices() / t.slice.slices;
  t.mesh.dcn_data = t.slice.slices;
  read(from, "mesh", mesh);
  if (!mesh.empty()) t.mesh = tpu::read_mesh(mesh);
  read(from, "batch_per_device", t.batch_per_device);
  read(from, "sequence", t.sequence);
  read(from, "remat", t.remat);
  read(from, "precision", t.precision);
  read(from, "recompute", t.recompute);
  read(from, "flash", t.flash);
  read(from, "state_bytes", t.state_bytes);
  read(from, "hbm_gib", t.hbm_gib);
  read(from, "peak_tflops", t.peak_tflops);
  return t;
}

nb::list buffer_list(const std::vector<tpu::PlanBuffer>& buffers) {
  nb::list rows;
  for (const tpu::PlanBuffer& buffer : buffers) rows.append(nb::make_tuple(buffer.name, buffer.gib));
  return rows;
}

nb::dict candidate_dict(const tpu::Candidate& one) {
  nb::dict d;
  d["mesh"] = one.training.mesh.text();
  d["batch_per_device"] = one.training.batch_per_device;
  d["remat"] = one.training.remat;
  d["memory_gib"] = one.memory.total_gib;
  d["fits"] = one.memory.fits;
  d["tokens_per_second"] = one.step.tokens_per_second;
  d["tflops_per_chip"] = one.step.model_tflops_per_chip;
  d["mfu"] = one.step.mfu;
  return d;
}

tpu::Precision precision_of(const std::string& name) {
  if (name == "bf16") return tpu::Precision::bf16;
  if (name == "int8") return tpu::Precision::int8;
  if (name == "f32") return tpu::Precision::f32;
  if (name == "f32_highest") return tpu::Precision::f32_highest;
  throw ValueError(concat("tpu: a precision is bf16, int8, f32 or f32_highest, got '", name, "'"));
}

double collective_seconds(const std::string& kind, const std::string& chip, double bytes, double size, int axes,
                          bool wraps) {
  const tpu::Chip& one = tpu::find_chip(chip);
  const tpu::Ring ring{size, axes, wraps};
  if (kind == "all_gather") return all_gather_seconds(one, bytes, ring);
  if (kind == "reduce_scatter") return reduce_scatter_seconds(one, bytes, ring);
  if (kind == "all_reduce") return all_reduce_seconds(one, bytes, ring);
  if (kind == "all_to_all") return all_to_all_seconds(one, bytes, ring);
  if (kind == "dcn_all_reduce") return dcn_all_reduce_seconds(one, bytes, static_cast<int>(size));
  if (kind == "send") return send_seconds(one, bytes, static_cast<int>(size), axes);
  if (kind == "copy") return copy_seconds(one, bytes);
  throw ValueError(
      concat("tpu: no collective is called '", kind,
             "'; there are all_gather, reduce_scatter, all_reduce, all_to_all, dcn_all_reduce, send and copy"));
}

void bind_hardware(nb::module_& m) {
  m.def("chips", [] {
    nb::list rows;
    for (const tpu::Chip& chip : tpu::chips()) rows.append(chip_dict(chip));
    return rows;
  });
  m.def("chip", [](const std::string& name) { return chip_dict(tpu::find_chip(name)); });
  m.def("slice", [](const std::string& name) { return slice_dict(tpu::find_slice(name)); });
  m.def("slice_of", [](const std::string& chip, int chips, const std::string& topology) {
    return slice_dict(tpu::slice_of(tpu::find_chip(chip), chips, topology));
  });
  m.def("slice_sizes", [](const std::string& chip) { return tpu::slice_sizes(tpu::find_chip(chip)); });
  m.def("slice_devices", [](const std::string& name) {
    nb::list rows;
    for (const tpu::SliceDevice& d : tpu::slice_devices(tpu::find_slice(name))) {
      rows.append(nb::make_tuple(d.id, d.host, d.coordinates[0], d.coordinates[1], d.coordinates[2], d.core));
    }
    return rows;
  });
}

void bind_flags(nb::module_& m) {
  // (path, LIBTPU_INIT_ARGS at load time), or None before libtpu is loaded.
  m.def("loaded_libtpu", []() -> std::optional<std::pair<std::string, std::string>> {
    const std::optional<pjrt::LoadedLibtpu> loaded = pjrt::loaded_libtpu();
    if (!loaded) return std::nullopt;
    return std::pair(loaded->path, loaded->init_args);
  });
  m.def(
      "check_flag",
      [](const std::string& name, const std::string& value, bool compile_option) {
        const tpu::FlagVerdict verdict =
            tpu::check_flag(name, value, compile_option ? tpu::FlagPlace::compile_option : tpu::FlagPlace::init_args);
        nb::dict d;
        d["accepted"] = verdict.accepted;
        d["is_default"] = verdict.is_default;
        d["default"] = verdict.default_value;
        d["message"] = verdict.message;
        return d;
      },
      nb::arg("name"), nb::arg("value") = "", nb::arg("compile_option") = false);
  m.def("merge_init_args",
        [](const std::string& before, const tpu::FlagValues& values) { return tpu::merge_init_args(before, values); });
  m.def("read_init_args", [](const std::string& text) { return tpu::read_init_args(text); });
  m.def("chosen_flags", [](int level, bool fusion, bool async_collective, bool megacore, bool latency_hiding) {
    return tpu::chosen_flags({level, fusion, async_collective, megacore, latency_hiding});
  });
  m.def("diagnose", [](const std::string& root, const std::string& metadata, bool libraries) {
    tpu::DiagnosisOptions options;
    options.root = root;
    if (!metadata.empty()) options.metadata = metadata;
    options.libraries = libraries;
    std::vector<tpu::Finding> findings;
    {
      nb::gil_scoped_release other_threads_run;
      findings = tpu::diagnose(options);
    }
    nb::list rows;
    for (const tpu::Finding& finding : findings)
      rows.append(nb::make_tuple(finding.subject, finding.state, finding.text, finding.remedy));
    return nb::make_tuple(tpu::summary(findings), rows);
  });
  m.def("libtpu_problem", [] { return tpu::libtpu_problem(); });
}

void bind_plans(nb::module_& m) {
  m.def("models", [] {
    nb::list rows;
    for (const tpu::Architecture& model : tpu::model_presets()) rows.append(model_dict(model));
    return rows;
  });
  m.def("parameters", [](nb::object model) { return model_of(model).parameters(); });
  m.def("training_flops_per_token", [](nb::object model, int64_t sequence, bool causal) {
    return tpu::training_flops_per_token(model_of(model), sequence, causal);
  });
  m.def(
      "matmul",
      [](const std::string& chip, int64_t batch, int64_t rows, int64_t columns, int64_t inner,
         const std::string& precision, bool large_vmem, bool alone) {
        if (batch < 1 || rows < 1 || columns < 1 || inner < 1) throw ValueError("tpu: a matmul needs positive sizes");
        const tpu::MatmulCost cost = matmul_cost(
            tpu::find_chip(chip), {batch, rows, columns, inner, precision_of(precision), large_vmem, alone});
        nb::dict d;
        d["seconds"] = cost.seconds;
        d["low_seconds"] = cost.low_seconds;
        d["high_seconds"] = cost.high_seconds;
        d["tflops"] = cost.tflops();
        d["mxu_seconds"] = cost.mxu_seconds;
        d["hbm_seconds"] = cost.hbm_seconds;
        d["tile"] = nb::make_tuple(cost.tile[0], cost.tile[1], cost.tile[2]);
        return d;
      },
      nb::arg("chip"), nb::arg("batch"), nb::arg("rows"), nb::arg("columns"), nb::arg("inner"),
      nb::arg("precision") = "bf16", nb::arg("large_vmem") = false, nb::arg("alone") = true);
  m.def("collective", collective_seconds, nb::arg("kind"), nb::arg("chip"), nb::arg("bytes"), nb::arg("size") = 1.0,
        nb::arg("axes") = 1, nb::arg("wraps") = true);
  m.def("critical_batch", [](const std::string& chip, double weight_bytes) {
    return tpu::critical_batch(tpu::find_chip(chip), weight_bytes);
  });
  m.def("plan_memory", [](nb::dict training) { return memory_dict(plan_memory(training_of(training))); });
  m.def("plan_step", [](nb::dict training) { return step_dict(plan_step(training_of(training))); });
  m.def("check_split", [](nb::dict training) { check_split(training_of(training)); });
  m.def("recommend", [](nb::dict training) {
    nb::list rows;
    for (const tpu::Recommendation& one : recommend(training_of(training)))
      rows.append(nb::make_tuple(one.text, one.gain));
    return rows;
  });
  m.def("search", [](nb::dict training, double global_batch, double headroom) {
    tpu::SearchOptions options;
    options.global_batch = global_batch;
    options.headroom = headroom;
    nb::list rows;
    for (const tpu::Candidate& one : search_plans(training_of(training), options)) rows.append(candidate_dict(one));
    return rows;
  });
  m.def("html", [](nb::dict training) { return plan_html(training_of(training), {}, {}); });
  m.def("plan_program", [](const std::string& chip, const std::string& text) {
    const tpu::ProgramPlan plan = plan_program(tpu::find_chip(chip), from_stablehlo(text));
    nb::dict d;
    d["origin"] = "modelled";
    d["argument_bytes"] = plan.argument_bytes;
    d["output_bytes"] = plan.output_bytes;
    d["peak_bytes"] = plan.peak_bytes;
    d["flops"] = plan.flops;
    d["matmul_seconds"] = plan.matmul_seconds;
    d["memory_seconds"] = plan.memory_seconds;
    return d;
  });
}

}  // namespace

tpu::Architecture architecture_of(const nb::dict& from) {
  tpu::Architecture model;
  read(from, "name", model.name);
  read(from, "kind", model.kind);
  const std::pair<const char*, int64_t*> sizes[] = {{"layers", &model.layers},
                                                    {"width", &model.width},
                                                    {"heads", &model.heads},
                                                    {"kv_heads", &model.kv_heads},
                                                    {"head_size", &model.head_size},
                                                    {"hidden", &model.hidden},
                                                    {"vocab", &model.vocab},
                                                    {"experts", &model.experts},
                                                    {"active", &model.active},
                                                    {"state", &model.state},
                                                    {"shared", &model.shared},
                                                    {"window", &model.window},
                                                    {"dense_layers", &model.dense_layers},
                                                    {"dense_hidden", &model.dense_hidden},
                                                    {"global_every", &model.global_every},
                                                    {"kv_rank", &model.kv_rank},
                                                    {"q_rank", &model.q_rank},
                                                    {"rope_size", &model.rope_size},
                                                    {"value_size", &model.value_size}};
  for (const auto& [name, size] : sizes) read(from, name, *size);
  read(from, "gated", model.gated);
  read(from, "tied", model.tied);
  return model;
}

nb::dict model_dict(const tpu::Architecture& model) {
  nb::dict d;
  d["name"] = model.name;
  d["kind"] = model.kind;
  d["layers"] = model.layers;
  d["width"] = model.width;
  d["heads"] = model.heads;
  d["kv_heads"] = model.kv_heads;
  d["head_size"] = model.head_size;
  d["hidden"] = model.hidden;
  d["vocab"] = model.vocab;
  d["gated"] = model.gated;
  d["tied"] = model.tied;
  d["experts"] = model.experts;
  d["active"] = model.active;
  d["state"] = model.state;
  d["parameters"] = model.parameters();
  return d;
}

nb::dict training_dict(const tpu::Training& training) {
  nb::dict d;
  d["model"] = model_dict(training.model);
  const std::string shape = training.slice.topology();  // libtpu's family v5 is v5p in slice names
  d["tpu"] = training.slice.slices > 1    ? training.slice.name()
             : shape.rfind("v5:", 0) == 0 ? "v5p:" + shape.substr(3)
                                          : shape;
  d["mesh"] = training.mesh.text();
  d["sequence"] = training.sequence;
  d["remat"] = training.remat;
  d["batch_per_device"] = training.batch_per_device;
  d["flash"] = training.flash;
  d["state_bytes"] = training.state_bytes;
  d["hbm_gib"] = training.hbm_gib;
  d["peak_tflops"] = training.peak_tflops;
  return d;
}

nb::dict memory_dict(const tpu::MemoryPlan& memory) {
  nb::dict d;
  d["origin"] = "modelled";
  d["state_gib"] = memory.state_gib;
  d["total_gib"] = memory.total_gib;
  d["host_gib"] = memory.host_gib;
  d["limit_gib"] = memory.limit_gib;
  d["low_gib"] = memory.low_gib;
  d["high_gib"] = memory.high_gib;
  d["fits"] = memory.fits;
  d["verdict"] = verdict_text(memory.verdict);
  d["moment"] = memory.moment;
  d["buffers"] = buffer_list(memory.buffers);
  d["timeline"] = buffer_list(memory.timeline);
  return d;
}

nb::dict step_dict(const tpu::StepPlan& step) {
  nb::dict d;
  d["origin"] = "modelled";
  const std::pair<const char*, double> figures[] = {{"seconds", step.seconds},
                                                    {"low_seconds", step.low_seconds},
                                                    {"high_seconds", step.high_seconds},
                                                    {"matmul", step.matmul},
                                                    {"attention", step.attention},
                                                    {"elementwise", step.elementwise},
                                                    {"optimizer", step.optimizer},
                                                    {"recompute", step.recompute},
                                                    {"ici", step.ici},
                                                    {"dcn", step.dcn},
                                                    {"host", step.host},
                                                    {"ici_hidden", step.ici_hidden},
                                                    {"weight_collectives", step.weight_collectives},
                                                    {"activation_collectives", step.activation_collectives},
                                                    {"tokens_per_second", step.tokens_per_second},
                                                    {"tflops_per_chip", step.model_tflops_per_chip},
                                                    {"tflops_per_chip_noncausal", step.model_tflops_per_chip_noncausal},
                                                    {"mfu", step.mfu},
                                                    {"compute_share", step.compute_share},
                                                    {"memory_share", step.memory_share},
                                                    {"communication_share", step.communication_share}};
  for (const auto& [name, value] : figures) d[name] = value;
  d["bound"] = step.bound;
  return d;
}

void bind_tpu(nb::module_& m) {
  nb::module_ tools = m.def_submodule("tpu", "Plans for TPU slices.");
  bind_hardware(tools);
  bind_flags(tools);
  bind_plans(tools);
  bind_tpu_toolbox(tools);
  bind_tpu_measure(tools);
}

}  // namespace capibara::python
