// jax.scipy.stats.gaussian_kde from Python: a pytree class in Python, with its arithmetic in the core.
#include <capibara/scipy/kde.h>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "calls.h"

namespace capibara::python {

namespace {

using jax::scipy::stats::GaussianKde;

// The leaves of the Python class, in the order of its tree_flatten.
nb::tuple leaves_of(const GaussianKde& kde) {
  return wrap_all({kde.neff, kde.dataset, kde.weights, kde.covariance, kde.inv_cov});
}

GaussianKde kde_of(nb::handle object) {
  nb::tuple leaves = nb::cast<nb::tuple>(object);
  GaussianKde kde;
  Array* const fields[] = {&kde.neff, &kde.dataset, &kde.weights, &kde.covariance, &kde.inv_cov};
  for (std::size_t i = 0; i < 5; ++i) *fields[i] = to_array(leaves[i], "gaussian_kde");
  return kde;
}

}  // namespace

void bind_kde(nb::module_& m) {
  m.def(
      "kde_fit",
      [](nb::handle dataset, nb::handle bw_method, nb::handle weights, nb::object make) {
        jax::scipy::stats::GaussianKdeOptions options;
        if (!weights.is_none()) options.weights = to_array(weights, "gaussian_kde");
        if (PyUnicode_Check(bw_method.ptr())) {
          options.bw_method = nb::cast<std::string>(bw_method);
        } else if (PyCallable_Check(bw_method.ptr())) {
          options.bw_method = [bw_method, make](const GaussianKde& kde) {
            nb::object seen =
                make(nb::make_tuple(wrap(kde.neff), wrap(kde.dataset), wrap(kde.weights), nb::none(), nb::none()));
            return to_array(call_python(bw_method, nb::make_tuple(seen)), "gaussian_kde");
          };
        } else if (!bw_method.is_none()) {
          std::optional<Array> factor = array_if(bw_method);
          if (!factor || factor->ndim() != 0)
            throw ValueError("gaussian_kde: bw_method should be 'scott', 'silverman', a scalar, or a callable.");
          options.bw_method = *factor;
        }
        return leaves_of(GaussianKde(to_array(dataset, "gaussian_kde"), options));
      },
      nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg());
  m.def("kde_evaluate",
        [](nb::handle kde, nb::handle points) { return wrap(kde_of(kde).evaluate(to_array(points, "evaluate"))); });
  m.def("kde_logpdf",
        [](nb::handle kde, nb::handle points) { return wrap(kde_of(kde).logpdf(to_array(points, "logpdf"))); });
  m.def("kde_integrate_gaussian", [](nb::handle kde, nb::handle mean, nb::handle cov) {
    return wrap(
        kde_of(kde).integrate_gaussian(to_array(mean, "integrate_gaussian"), to_array(cov, "integrate_gaussian")));
  });
  m.def("kde_integrate_box_1d", [](nb::handle kde, nb::handle low, nb::handle high) {
    return wrap(kde_of(kde).integrate_box_1d(to_array(low, "integrate_box_1d"), to_array(high, "integrate_box_1d")));
  });
  m.def("kde_integrate_kde",
        [](nb::handle kde, nb::handle other) { return wrap(kde_of(kde).integrate_kde(kde_of(other))); });
  m.def("kde_resample", [](nb::handle kde, nb::handle key, std::vector<int64_t> shape) {
    return wrap(kde_of(kde).resample(to_array(key, "resample"), Shape(shape.begin(), shape.end())));
  });
}

}  // namespace capibara::python
