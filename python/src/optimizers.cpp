// capibara.optimizers from Python: pairs of init and update on the leaves of trees, and schedules.
#include <capibara/training/optimizers.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "calls.h"

namespace capibara::python {

namespace {

using namespace capibara::optimizers;

// A number, a schedule of the core, or any function of the count.
LearningRate to_rate(nb::handle object) {
  if (nb::isinstance<Schedule>(object)) return nb::cast<Schedule>(object);
  if (PyCallable_Check(object.ptr())) {
    auto kept = std::make_shared<KeptObject>(object);
    return Schedule([kept](const Array& count) {
      return to_array(call_python(kept->get(), nb::make_tuple(wrap(count))), "learning_rate");
    });
  }
  if (!PyFloat_Check(object.ptr()) && !PyLong_Check(object.ptr())) {
    throw TypeError("optimizers: learning_rate is a number or a function of the count");
  }
  return nb::cast<double>(object);
}

Arrays leaves_in(nb::handle sequence) {
  Arrays arrays;
  for (nb::handle entry : sequence) arrays.push_back(to_array(entry, "optimizers"));
  return arrays;
}

OptimizerState state_of(nb::handle sequence) {
  OptimizerState state;
  for (nb::handle entry : sequence) state.push_back(leaves_in(entry));
  return state;
}

nb::tuple wrap_state(const OptimizerState& state) {
  nb::list lists;
  for (const Arrays& arrays : state) lists.append(wrap_all(arrays));
  return nb::tuple(lists);
}

Schedule to_schedule(nb::handle object) {
  const LearningRate rate = to_rate(object);
  if (rate.constant()) return constant_schedule(rate.value());
  return [rate](const Array& count) { return rate.at(count); };
}

void bind_schedules(nb::module_& m) {
  nb::class_<Schedule>(m, "Schedule", "From the count of steps to a value.")
      .def("__call__",
           [](const Schedule& schedule, nb::handle count) { return wrap(schedule(to_array(count, "schedule"))); });
  m.def("constant_schedule", &constant_schedule, nb::arg("value"));
  m.def(
      "polynomial_schedule",
      [](double init_value, double end_value, double power, int64_t transition_steps, int64_t transition_begin) {
        return polynomial_schedule(init_value, end_value, transition_steps, {power, transition_begin});
      },
      nb::arg("init_value"), nb::arg("end_value"), nb::arg("power"), nb::arg("transition_steps"),
      nb::arg("transition_begin") = 0);
  m.def("linear_schedule", &linear_schedule, nb::arg("init_value"), nb::arg("end_value"), nb::arg("transition_steps"),
        nb::arg("transition_begin") = 0);
  m.def(
      "cosine_decay_schedule",
      [](double init_value, int64_t decay_steps, double alpha, double exponent) {
        return cosine_decay_schedule(init_value, decay_steps, {alpha, exponent});
      },
      nb::arg("init_value"), nb::arg("decay_steps"), nb::arg("alpha") = 0.0, nb::arg("exponent") = 1.0);
  m.def(
      "warmup_cosine_decay_schedule",
      [](double init_value, double peak_value, int64_t warmup_steps, int64_t decay_steps, double end_value,
         double exponent) {
        return warmup_cosine_decay_schedule(init_value, peak_value, warmup_steps, decay_steps, {end_value, exponent});
      },
      nb::arg("init_value"), nb::arg("peak_value"), nb::arg("warmup_steps"), nb::arg("decay_steps"),
      nb::arg("end_value") = 0.0, nb::arg("exponent") = 1.0);
  m.def("exponential_decay", &exponential_decay, nb::arg("init_value"), nb::arg("transition_steps"),
        nb::arg("decay_rate"));
  m.def(
      "join_schedules",
      [](nb::sequence schedules, const std::vector<int64_t>& boundaries) {
        std::vector<Schedule> all;
        for (nb::handle schedule : schedules) all.push_back(to_schedule(schedule));
        return join_schedules(std::move(all), boundaries);
      },
      nb::arg("schedules"), nb::arg("boundaries"));
}

void bind_links(nb::module_& m) {
  m.def("chain", [](nb::args links) {
    std::vector<Optimizer> all;
    for (nb::handle link : links) all.push_back(nb::cast<Optimizer>(link));
    return chain(std::move(all));
  });
  m.def("clip_by_global_norm", &clip_by_global_norm, nb::arg("max_norm"));
  m.def("clip", &clip, nb::arg("max_delta"));
  m.def("scale", &scale, nb::arg("step_size"));
  m.def("add_decayed_weights", &add_decayed_weights, nb::arg("weight_decay") = 0.0);
  m.def(
      "trace",
      [](double decay, bool nesterov) {
        return optimizers::trace({decay, nesterov});
      },
      nb::arg("decay"), nb::arg("nesterov") = false);
  m.def(
      "scale_by_learning_rate",
      [](nb::handle rate, bool flip_sign) { return scale_by_learning_rate(to_rate(rate), flip_sign); },
      nb::arg("learning_rate"), nb::arg("flip_sign") = true);
  m.def(
      "scale_by_adam",
      [](double b1, double b2, double eps, double eps_root, bool nesterov) {
        return scale_by_adam({b1, b2, eps, eps_root, nesterov});
      },
      nb::arg("b1") = 0.9, nb::arg("b2") = 0.999, nb::arg("eps") = 1e-8, nb::arg("eps_root") = 0.0,
      nb::arg("nesterov") = false);
}

void bind_named(nb::module_& m) {
  m.def(
      "sgd",
      [](nb::handle rate, std::optional<double> momentum, bool nesterov) {
        return sgd(to_rate(rate), {momentum, nesterov});
      },
      nb::arg("learning_rate"), nb::arg("momentum").none() = nb::none(), nb::arg("nesterov") = false);
  m.def(
      "adam",
      [](nb::handle rate, double b1, double b2, double eps, double eps_root, bool nesterov) {
        return adam(to_rate(rate), {b1, b2, eps, eps_root, nesterov});
      },
      nb::arg("learning_rate"), nb::arg("b1") = 0.9, nb::arg("b2") = 0.999, nb::arg("eps") = 1e-8,
      nb::arg("eps_root") = 0.0, nb::arg("nesterov") = false);
  m.def(
      "adamw",
      [](nb::handle rate, double b1, double b2, double eps, double eps_root, double weight_decay, bool nesterov) {
        return adamw(to_rate(rate), {b1, b2, eps, eps_root, nesterov, weight_decay});
      },
      nb::arg("learning_rate"), nb::arg("b1") = 0.9, nb::arg("b2") = 0.999, nb::arg("eps") = 1e-8,
      nb::arg("eps_root") = 0.0, nb::arg("weight_decay") = 1e-4, nb::arg("nesterov") = false);
  m.def(
      "lion",
      [](nb::handle rate, double b1, double b2, double weight_decay) {
        return lion(to_rate(rate), {b1, b2, weight_decay});
      },
      nb::arg("learning_rate"), nb::arg("b1") = 0.9, nb::arg("b2") = 0.99, nb::arg("weight_decay") = 1e-3);
  m.def(
      "adafactor",
      [](nb::handle rate, int64_t min_dim, double decay_rate, int64_t decay_offset, bool by_scale,
         std::optional<double> clipping, std::optional<double> momentum, std::optional<double> weight_decay, double eps,
         bool factored) {
        return adafactor(to_rate(rate), {min_dim, decay_rate, decay_offset, by_scale, clipping, momentum, weight_decay,
                                         eps, factored});
      },
      nb::arg("learning_rate"), nb::arg("min_dim_size_to_factor") = 128, nb::arg("decay_rate") = 0.8,
      nb::arg("decay_offset") = 0, nb::arg("multiply_by_parameter_scale") = true,
      nb::arg("clipping_threshold").none() = 1.0, nb::arg("momentum").none() = nb::none(),
      nb::arg("weight_decay_rate").none() = nb::none(), nb::arg("eps") = 1e-30, nb::arg("factored") = true);
  m.def(
      "muon",
      [](nb::handle rate, int64_t ns_steps, double beta, double eps, double weight_decay, bool nesterov, double adam_b1,
         double adam_b2, double adam_eps_root, double adam_weight_decay) {
        return muon(to_rate(rate),
                    {ns_steps, beta, eps, weight_decay, nesterov, adam_b1, adam_b2, adam_eps_root, adam_weight_decay});
      },
      nb::arg("learning_rate"), nb::arg("ns_steps") = 5, nb::arg("beta") = 0.95, nb::arg("eps") = 1e-8,
      nb::arg("weight_decay") = 0.0, nb::kw_only(), nb::arg("nesterov") = true, nb::arg("adam_b1") = 0.9,
      nb::arg("adam_b2") = 0.999, nb::arg("adam_eps_root") = 0.0, nb::arg("adam_weight_decay") = 0.0);
}

}  // namespace

void bind_optimizers(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("optimizers", "Optimizers and schedules.");
  nb::class_<Optimizer>(m, "Optimizer", "A pair of init and update on lists of arrays.")
      .def("init_leaves",
           [](const Optimizer& optimizer, nb::handle leaves) { return wrap_state(optimizer.init(leaves_in(leaves))); })
      .def("update_leaves", [](const Optimizer& optimizer, nb::handle gradients, nb::handle state,
                               nb::handle parameters) {
        auto [updates, next] = optimizer.update_leaves(leaves_in(gradients), state_of(state), leaves_in(parameters));
        return nb::make_tuple(wrap_all(updates), wrap_state(next));
      });
  m.def("add_updates", [](nb::handle parameters, nb::handle updates) {
    return wrap_all(add_updates(leaves_in(parameters), leaves_in(updates)));
  });
  m.def("global_norm", [](nb::handle leaves) { return wrap(global_norm(leaves_in(leaves))); });
  bind_schedules(m);
  bind_links(m);
  bind_named(m);
}

}  // namespace capibara::python
