// qr, its Householder steps, eigh and svd of batches of small matrices: groups of matrices distributed to threads.
//
// Every matrix goes through the same operations in the same order, whatever the batch and the number of threads.
#include "backends/cpu/kernels/linalg/small_spectra.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>
#include <vector>

#include "backends/cpu/kernels/scratch.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/thread_pool.h"

namespace capibara::cpu {

namespace small_matrices {

namespace {

struct Batch {
  int64_t count = 1, rows, cols;

  explicit Batch(const ArrayType& type) : rows(type.shape[type.shape.size() - 2]), cols(type.shape.back()) {
    for (std::size_t i = 0; i + 2 < type.shape.size(); ++i) count *= type.shape[i];
  }
};

// Calls one(first, used, work) for groups of `lanes` matrices; `cost`: nanoseconds per group. `work_size` is in
// vectors.
template <class R, class F>
void each_lane_group(int64_t batch, int64_t lanes, double cost, int64_t work_size, F&& one) {
  parallel_for_cost((batch + lanes - 1) / lanes, cost, [&](int64_t begin, int64_t end) {
    Scratch<R> work(work_size * lanes, "small matrices as vectors");
    for (int64_t g = begin; g < end; ++g) {
      poll_stop();
      one(g * lanes, std::min(lanes, batch - g * lanes), work.data());
    }
    return 0;
  });
}

double product_cost(int64_t lanes, int64_t rows, int64_t cols, int64_t steps) {
  return 50 + static_cast<double>(lanes * rows * cols) + static_cast<double>(rows * cols * steps) / 2;
}

// Runs LAPACK on one matrix of a batch, for those that the lanes leave out.
class OneMatrix {
 public:
  // `ranks`: rank of one matrix's part of each buffer, inputs first; optional buffers come last and may be absent.
  OneMatrix(const char* name, const KernelRequest& request, std::initializer_list<std::size_t> ranks) {
    Types inputs, outputs;
    for (std::size_t rank : ranks) {
      const bool is_input = inputs.size() < request.inputs.size();
      if (!is_input && outputs.size() == request.outputs.size()) break;
      ArrayType type = is_input ? request.inputs[inputs.size()] : request.outputs[outputs.size()];
      type.shape.erase(type.shape.begin(), type.shape.end() - static_cast<std::ptrdiff_t>(rank));
      bytes_.push_back(type.size() * storage_size(type.dtype));
      (is_input ? inputs : outputs).push_back(std::move(type));
    }
    kernel_ = reference_kernel(primitive(name), inputs, outputs, request.attrs);
  }

  void run(std::byte* const* buffers, int64_t matrix) const {
    std::vector<std::byte*> own;
    for (std::size_t i = 0; i < bytes_.size(); ++i) own.push_back(buffers[i] + matrix * bytes_[i]);
    kernel_(own.data());
  }

 private:
  std::vector<int64_t> bytes_;
  HostKernel kernel_;
};

template <class R>
bool all_finite(const R* elements, int64_t count) {
  return std::all_of(elements, elements + count, [](R element) { return std::isfinite(element); });
}

// Buffers: the matrices, then Q and R, or R with reflectors and their factors. Matrices with infinities or NaNs are
// left to LAPACK: how these spread depends on the order of operations.
template <class R>
HostKernel qr_kernel(const KernelRequest& request, bool packed, const OneMatrix& alone) {
  const Batch batch(request.inputs[0]);
  const int64_t rows = batch.rows, cols = batch.cols, steps = std::min(rows, cols), lanes = qr_code<R>().lanes;
  const int64_t q_cols = packed ? 0 : request.outputs[0].shape.back(), r_rows = q_cols;
  const double cost = product_cost(lanes, rows, cols + q_cols, steps);
  return [=](std::byte* const* buffers) {
    const R* in = reinterpret_cast<const R*>(buffers[0]);
    R *one = reinterpret_cast<R*>(buffers[1]), *two = reinterpret_cast<R*>(buffers[2]);
    each_lane_group<R>(batch.count, lanes, cost, QrGroup<R>::work_size(rows, cols, q_cols),
                       [&](int64_t first, int64_t used, R* work) {
                         QrGroup<R> group{rows,    cols,    q_cols,  r_rows,  used, in + first * rows * cols,
                                          nullptr, nullptr, nullptr, nullptr, work};
                         if (packed) {
                           group.packed = one + first * rows * cols;
                           group.taus = two + first * steps;
                         } else {
                           group.q = one + first * rows * q_cols;
                           group.r = two + first * r_rows * cols;
                         }
                         qr_code<R>().qr(group);
                         for (int64_t at = first; at < first + used; ++at) {
                           if (!all_finite(in + at * rows * cols, rows * cols)) alone.run(buffers, at);
                         }
                       });
  };
}

template <class R>
HostKernel reflectors_kernel(const KernelRequest& request, const OneMatrix& alone) {
  const Batch batch(request.inputs[0]);
  const int64_t rows = batch.rows, cols = batch.cols, count = request.inputs[1].shape.back(),
                lanes = qr_code<R>().lanes;
  const int64_t work_size = rows * cols + 2 * column_stride(rows) * cols + count;
  return [=, cost = product_cost(lanes, rows, cols, count)](std::byte* const* buffers) {
    const R *packed = reinterpret_cast<const R*>(buffers[0]), *taus = reinterpret_cast<const R*>(buffers[1]);
    R* out = reinterpret_cast<R*>(buffers[2]);
    each_lane_group<R>(batch.count, lanes, cost, work_size, [&](int64_t first, int64_t used, R* work) {
      qr_code<R>().multiply({rows, cols, count, used, packed + first * rows * cols, taus + first * count,
                             out + first * rows * cols, work});
      for (int64_t at = first; at < first + used; ++at) {
        const bool finite = all_finite(packed + at * rows * cols, rows * cols) && all_finite(taus + at * count, count);
        if (!finite) alone.run(buffers, at);
      }
    });
  };
}

template <class R>
HostKernel eigh_kernel(const KernelRequest& request) {
  const Batch batch(request.inputs[0]);
  const int64_t n = batch.cols, lanes = eigh_code<R>().lanes;
  const double cost = 200 + static_cast<double>(n * n) * (60 + 3 * static_cast<double>(n));
  return [=](std::byte* const* buffers) {
    const R* in = reinterpret_cast<const R*>(buffers[0]);
    R *vectors = reinterpret_cast<R*>(buffers[1]), *values = reinterpret_cast<R*>(buffers[2]);
    each_lane_group<R>(batch.count, lanes, cost, EighGroup<R>::work_size(n), [&](int64_t first, int64_t used, R* work) {
      eigh_code<R>().eigh({n, used, in + first * n * n, vectors + first * n * n, values + first * n, work});
    });
  };
}

// Outputs: the values, and if requested the vectors of both sides.
template <class R>
HostKernel svd_kernel(const KernelRequest& request, const OneMatrix& alone) {
  const Batch batch(request.inputs[0]);
  const bool vectors = request.attrs.boolean("compute_uv"), tall = batch.rows >= batch.cols;
  const int64_t size = std::max(batch.rows, batch.cols), count = std::min(batch.rows, batch.cols);
  const int64_t u_size = batch.rows * count, vt_size = count * batch.cols, lanes = svd_code<R>().lanes;
  const double cost = 200 + static_cast<double>(count * count) * (100 + 12 * static_cast<double>(size));
  return [=](std::byte* const* buffers) {
    const R* in = reinterpret_cast<const R*>(buffers[0]);
    R* values = reinterpret_cast<R*>(buffers[1]);
    R* u = vectors ? reinterpret_cast<R*>(buffers[2]) : nullptr;
    R* vt = vectors ? reinterpret_cast<R*>(buffers[3]) : nullptr;
    each_lane_group<R>(
        batch.count, lanes, cost, SvdGroup<R>::work_size(size, count), [&](int64_t first, int64_t used, R* work) {
          bool left_out[64 / sizeof(R)] = {};
          auto part = [](R* start, int64_t at) { return start ? start + at : nullptr; };
          svd_code<R>().svd({size, count, used, tall, vectors, in + first * size * count, values + first * count,
                             part(u, first * u_size), part(vt, first * vt_size), left_out, work});
          for (int64_t at = first; at < first + used; ++at) {
            if (left_out[at - first]) alone.run(buffers, at);
          }
        });
  };
}

// Leaves other types, large matrices and small batches of middle-sized ones to the reference kernels (LAPACK).
template <class Make>
HostKernel of_real_batches(const KernelRequest& request, Make&& make) {
  const ArrayType& type = request.inputs[0];
  if (type.size() == 0 || (type.dtype != DType::float32 && type.dtype != DType::float64)) return {};
  const Batch batch(type);
  const int64_t order = std::max(batch.rows, batch.cols);
  const int64_t lanes = type.dtype == DType::float32 ? qr_code<float>().lanes : qr_code<double>().lanes;
  if (order > max_spectrum_order || (order > 12 && 4 * batch.count < lanes)) return {};
  return type.dtype == DType::float32 ? make.template operator()<float>() : make.template operator()<double>();
}

HostKernel make_qr(const KernelRequest& request) {
  if (request.attrs.boolean("pivoting") || Batch(request.outputs[0]).cols > max_spectrum_order) return {};
  return of_real_batches(request, [&]<class R>() {
    return qr_kernel<R>(request, false, OneMatrix("qr", request, {2, 2, 2}));
  });
}
HostKernel make_geqrf(const KernelRequest& request) {
  return of_real_batches(request, [&]<class R>() {
    return qr_kernel<R>(request, true, OneMatrix("geqrf", request, {2, 2, 1}));
  });
}
HostKernel make_householder_product(const KernelRequest& request) {
  return of_real_batches(request, [&]<class R>() {
    return reflectors_kernel<R>(request, OneMatrix("householder_product", request, {2, 1, 2}));
  });
}
// LAPACK reduces upper triangles from their end, with other signs.
HostKernel make_eigh(const KernelRequest& request) {
  const Attrs& attrs = request.attrs;
  const std::string* algorithm = attrs["algorithm"].get_if<std::string>();
  if (!attrs.boolean("lower") || (algorithm && *algorithm != "EighImplementation.QR")) return {};
  if (const Ints* subset = attrs["subset_by_index"].get_if<Ints>();
      subset && *subset != Ints{0, request.inputs[0].shape.back()})
    return {};
  return of_real_batches(request, [&]<class R>() { return eigh_kernel<R>(request); });
}

// Jacobi rotations yield other signs than LAPACK, whose signs a single matrix keeps.
HostKernel make_svd(const KernelRequest& request) {
  constexpr int64_t min_batch = 16;
  const Attrs& attrs = request.attrs;
  const Batch batch(request.inputs[0]);
  const std::string* algorithm = attrs["algorithm"].get_if<std::string>();
  if (batch.count < min_batch || (algorithm && *algorithm != "SvdAlgorithm.DEFAULT")) return {};
  if (attrs.boolean("compute_uv") && attrs.boolean("full_matrices") && batch.rows != batch.cols) return {};
  if (const Ints* subset = attrs["subset_by_index"].get_if<Ints>();
      subset && *subset != Ints{0, std::min(batch.rows, batch.cols)})
    return {};
  return of_real_batches(request, [&]<class R>() {
    return svd_kernel<R>(request, OneMatrix("svd", request, {2, 1, 2, 2}));
  });
}

}  // namespace

}  // namespace small_matrices

KernelMakers small_spectrum_makers() {
  return {{"qr", small_matrices::make_qr},
          {"geqrf", small_matrices::make_geqrf},
          {"householder_product", small_matrices::make_householder_product},
          {"eigh", small_matrices::make_eigh},
          {"svd", small_matrices::make_svd}};
}

}  // namespace capibara::cpu
