// Matrix decompositions with LAPACK: each matrix of a batch is copied to column-major order, factored and copied back.
#include "backends/reference/linalg_batch.h"
#include "backends/reference/linalg_module.h"
#include "core/runtime/interrupt.h"

#include <algorithm>
#include <cmath>

namespace capibara::reference {

namespace {

template <class F>
Arrays visit_lapack(const char* operation, const KernelArgs& args, F&& f) {
  DType dtype = args.inputs[0].dtype();
  for (const Array& input : args.inputs) {
    for (int64_t size : input.shape()) {
      if (size > std::numeric_limits<int>::max())
        throw ValueError(concat(operation, ": dimensions up to 2^31 - 1 are supported, got ", to_string(input.type())));
    }
  }
  if (dtype == DType::float32) return f(Type<float>{}, require_lapack(operation).s);
  if (dtype == DType::float64) return f(Type<double>{}, require_lapack(operation).d);
  if (dtype == DType::complex64) return f(Type<std::complex<float>>{}, require_lapack(operation).c);
  if (dtype == DType::complex128) return f(Type<std::complex<double>>{}, require_lapack(operation).z);
  throw NotImplementedError(
      concat(operation, ": Unsupported dtype ", to_string(dtype),
             "; LAPACK computes in float32, float64, complex64 and complex128: convert the operand first"));
}

int as_int(int64_t size) { return static_cast<int>(size); }

// One output for the whole batch, written matrix by matrix.
template <class T>
struct Result {
  Output output;
  int64_t size = 0;  // elements per matrix of the batch

  Result(const ArrayType& type, int64_t count) : output(allocate(type)), size(count == 0 ? 0 : type.size() / count) {}
  T* at(int64_t i) { return reinterpret_cast<T*>(output.data) + i * size; }
  void set_nan(int64_t i) { std::fill(at(i), at(i) + size, not_a_number<T>()); }
};

// A column-major copy of one matrix of an operand.
template <class T>
std::vector<T> column_major(const Array& x, int64_t i, int64_t rows, int64_t cols) {
  std::vector<T> copy(static_cast<std::size_t>(std::max<int64_t>(rows * cols, 1)));
  transpose_matrix(reinterpret_cast<const T*>(x.raw_data()) + i * rows * cols, rows, cols, copy.data());
  return copy;
}

template <class T>
void store_rows(const std::vector<T>& columns, int64_t rows, int64_t cols, T* out) {
  transpose_matrix(columns.data(), cols, rows, out);
}

template <class T>
bool all_finite(const std::vector<T>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](const T& x) { return std::isfinite(std::real(x)) && std::isfinite(std::imag(x)); });
}

// The size of a scratch buffer that LAPACK may access even when it is not used.
std::size_t at_least_one(int64_t count) { return static_cast<std::size_t>(std::max<int64_t>(count, 1)); }

Arrays run_geqrf(const KernelArgs& args) {
  MatrixBatch batch(args.inputs[0].shape());
  return visit_lapack("geqrf", args, [&]<class T>(Type<T>, const lapack::Routines<T>& routines) {
    Result<T> out(args.output_types[0], batch.count), taus(args.output_types[1], batch.count);
    for (int64_t i = 0; i < batch.count && batch.size() > 0; ++i) {
      poll_stop();
      auto a = column_major<T>(args.inputs[0], i, batch.rows, batch.cols);
      routines.geqrf(as_int(batch.rows), as_int(batch.cols), a.data(), taus.at(i));
      store_rows(a, batch.rows, batch.cols, out.at(i));
    }
    return Arrays{out.output.array, taus.output.array};
  });
}

Arrays run_geqp3(const KernelArgs& args) {
  MatrixBatch batch(args.inputs[0].shape());
  if (args.inputs[1].dtype() != DType::int32) {
    throw NotImplementedError(concat("geqp3: pivots must be int32, got ", to_string(args.inputs[1].dtype())));
  }
  return visit_lapack("geqp3", args, [&]<class T>(Type<T>, const lapack::Routines<T>& routines) {
    Result<T> out(args.output_types[0], batch.count), taus(args.output_types[2], batch.count);
    Result<int> pivots(args.output_types[1], batch.count);
    const int* given = reinterpret_cast<const int*>(args.inputs[1].raw_data());
    std::copy(given, given + args.inputs[1].size(), pivots.at(0));
    for (int64_t i = 0; i < batch.count && batch.size() > 0; ++i) {
      poll_stop();
      auto a = column_major<T>(args.inputs[0], i, batch.rows, batch.cols);
      routines.geqp3(as_int(batch.rows), as_int(batch.cols), a.data(), pivots.at(i), taus.at(i));
      store_rows(a, batch.rows, batch.cols, out.at(i));
    }
    return Arrays{out.output.array, pivots.output.array, taus.output.array};
  });
}

Arrays run_householder_product(const KernelArgs& args) {
  MatrixBatch batch(args.inputs[0].shape());
  int64_t reflectors = args.inputs[1].shape().back();
  return visit_lapack("householder_product", args, [&]<class T>(Type<T>, const lapack::Routines<T>& routines) {
    Result<T> out(args.output_types[0], batch.count);
    const T* taus = reinterpret_cast<const T*>(args.inputs[1].raw_data());
    for (int64_t i = 0; i < batch.count && batch.size() > 0; ++i) {
      poll_stop();
      auto a = column_major<T>(args.inputs[0], i, batch.rows, batch.cols);
      routines.orgqr(as_int(batch.rows), as_int(batch.cols), as_int(reflectors), a.data(), taus + i * reflectors);
      store_rows(a, batch.rows, batch.cols, out.at(i));
    }
    return Arrays{out.output.array};
  });
}

Arrays run_ormqr(const KernelArgs& args) {
  MatrixBatch a_batch(args.inputs[0].shape()), batch(args.inputs[2].shape());
  int64_t reflectors = args.inputs[1].shape().back();
  char side = args.attrs.boolean("left") ? 'L' : 'R', trans = args.attrs.boolean("transpose") ? 'T' : 'N';
  return visit_lapack("ormqr", args, [&]<class T>(Type<T>, const lapack::Routines<T>& routines) {
    Result<T> out(args.output_types[0], batch.count);
    const T* taus = reinterpret_cast<const T*>(args.inputs[1].raw_data());
    for (int64_t i = 0; i < batch.count && batch.size() > 0; ++i) {
      poll_stop();
      auto a = column_major<T>(args.inputs[0], i, a_batch.rows, a_batch.cols);
      auto c = column_major<T>(args.inputs[2], i, batch.rows, batch.cols);
      routines.ormqr(side, trans, as_int(batch.rows), as_int(batch.cols), as_int(reflectors), a.data(),
                     taus + i * reflectors, c.data());
      store_rows(c, batch.rows, batch.cols, out.at(i));
    }
    return Arrays{out.output.array};
  });
}

void refuse_subset(const char* operation, const Attrs& attrs, int64_t whole) {
  const Ints* subset = attrs["subset_by_index"].get_if<Ints>();
  if (subset && *subset != Ints{0, whole}) {
    throw NotImplementedError(concat(operation, ": subset_by_index is not implemented on this backend, got (",
                                     (*subset)[0], ", ", (*subset)[1], ") of ", whole));
  }
}

Arrays run_eigh(const KernelArgs& args) {
  MatrixBatch batch(args.inputs[0].shape());
  refuse_subset("eigh", args.attrs, batch.cols);
  const std::string* algorithm = args.attrs["algorithm"].get_if<std::string>();
  if (algorithm && *algorithm != "EighImplementation.QR") {
    throw NotImplementedError(
        concat("eigh: ", *algorithm, " is not implemented on this backend; use EighImplementation.QR"));
  }
  char uplo = args.attrs.boolean("lower") ? 'L' : 'U';
  return visit_lapack("eigh", args, [&]<class T>(Type<T>, const lapack::Routines<T>& routines) {
    Result<T> vectors(args.output_types[0], batch.count);
    Result<lapack::Real<T>> values(args.output_types[1], batch.count);
    for (int64_t i = 0; i < batch.count && batch.size() > 0; ++i) {
      poll_stop();
      auto a = column_major<T>(args.inputs[0], i, batch.rows, batch.cols);
      if (all_finite(a) && routines.syevd(uplo, as_int(batch.rows), a.data(), values.at(i)) == 0) {
        store_rows(a, batch.rows, batch.cols, vectors.at(i));
      } else {
        vectors.set_nan(i);
        values.set_nan(i);
      }
    }
    return Arrays{vectors.output.array, values.output.array};
  });
}

template <class T>
void set_identity(T* matrix, int64_t order) {
  std::fill(matrix, matrix + order * order, T(0));
  for (int64_t i = 0; i < order; ++i) matrix[i * order + i] = T(1);
}

Arrays run_svd(const KernelArgs& args) {
  MatrixBatch batch(args.inputs[0].shape());
  int64_t m = batch.rows, n = batch.cols, least = std::min(m, n);
  refuse_subset("svd", args.attrs, least);
  bool vectors = args.attrs.boolean("compute_uv"), full = args.attrs.boolean("full_matrices");
  const std::string* algorithm = args.attrs["algorithm"].get_if<std::string>();
  bool by_qr = algorithm && *algorithm == "SvdAlgorithm.QR";
  if (algorithm && !by_qr && *algorithm != "SvdAlgorithm.DEFAULT" && *algorithm != "SvdAlgorithm.DIVIDE_AND_CONQUER") {
    throw NotImplementedError(
        concat("svd: ", *algorithm, " is not implemented on this backend; use DEFAULT, QR or DIVIDE_AND_CONQUER"));
  }
  char mode = !vectors ? 'N' : full ? 'A' : 'S';
  int64_t u_cols = full ? m : least, vt_rows = full ? n : least;
  return visit_lapack("svd", args, [&]<class T>(Type<T>, const lapack::Routines<T>& routines) {
    Result<lapack::Real<T>> values(args.output_types[0], batch.count);
    std::vector<Result<T>> sides;
    for (std::size_t i = 1; i < args.output_types.size(); ++i) sides.emplace_back(args.output_types[i], batch.count);
    std::vector<T> u(at_least_one(vectors ? m * u_cols : 0)), vt(at_least_one(vectors ? vt_rows * n : 0));
    for (int64_t i = 0; i < batch.count; ++i) {
      poll_stop();
      if (batch.size() == 0) {
        if (vectors && full) {
          set_identity(sides[0].at(i), m);
          set_identity(sides[1].at(i), n);
        }
        continue;
      }
      auto a = column_major<T>(args.inputs[0], i, m, n);
      auto routine = by_qr ? routines.gesvd : routines.gesdd;
      if (all_finite(a) && routine(mode, as_int(m), as_int(n), a.data(), values.at(i), u.data(), vt.data()) == 0) {
        if (vectors) {
          store_rows(u, m, u_cols, sides[0].at(i));
          store_rows(vt, vt_rows, n, sides[1].at(i));
        }
      } else {
        values.set_nan(i);
        for (Result<T>& side : sides) side.set_nan(i);
      }
    }
    Arrays outputs = {values.output.array};
    for (Result<T>& side : sides) outputs.push_back(side.output.array);
    return outputs;
  });
}

Arrays run_eig(const KernelArgs& args) {
  MatrixBatch batch(args.inputs[0].shape());
  bool left = args.attrs.boolean("compute_left_eigenvectors"), right = args.attrs.boolean("compute_right_eigenvectors");
  const std::string* implementation = args.attrs["implementation"].get_if<std::string>();
  if (implementation && *implementation != "EigImplementation.LAPACK") {
    throw ValueError(concat("eig: only EigImplementation.LAPACK is supported on this backend, got ", *implementation));
  }
  return visit_lapack("eig", args, [&]<class T>(Type<T>, const lapack::Routines<T>& routines) {
    using Complex = lapack::Complex<T>;
    Result<Complex> values(args.output_types[0], batch.count);
    std::vector<Result<Complex>> sides;
    for (std::size_t i = 1; i < args.output_types.size(); ++i) sides.emplace_back(args.output_types[i], batch.count);
    std::vector<Complex> vl(at_least_one(left ? batch.size() : 0)), vr(at_least_one(right ? batch.size() : 0));
    for (int64_t i = 0; i < batch.count && batch.size() > 0; ++i) {
      poll_stop();
      auto a = column_major<T>(args.inputs[0], i, batch.rows, batch.cols);
      bool ok = all_finite(a) &&
                routines.geev(left, right, as_int(batch.rows), a.data(), values.at(i), vl.data(), vr.data()) == 0;
      std::size_t next = 0;
      if (ok && left) store_rows(vl, batch.rows, batch.cols, sides[next++].at(i));
      if (ok && right) store_rows(vr, batch.rows, batch.cols, sides[next].at(i));
      if (!ok) {
        values.set_nan(i);
        for (Result<Complex>& side : sides) side.set_nan(i);
      }
    }
    Arrays outputs = {values.output.array};
    for (Result<Complex>& side : sides) outputs.push_back(side.output.array);
    return outputs;
  });
}

Arrays run_schur(const KernelArgs& args) {
  MatrixBatch batch(args.inputs[0].shape());
  if (args.attrs.boolean("sort_eig_vals")) throw NotImplementedError("schur: sort_eig_vals=True is not implemented");
  bool wanted = args.attrs.boolean("compute_schur_vectors");
  return visit_lapack("schur", args, [&]<class T>(Type<T>, const lapack::Routines<T>& routines) {
    std::vector<Result<T>> results;
    for (const ArrayType& type : args.output_types) results.emplace_back(type, batch.count);
    std::vector<T> vectors(at_least_one(wanted ? batch.size() : 0));
    for (int64_t i = 0; i < batch.count && batch.size() > 0; ++i) {
      poll_stop();
      auto a = column_major<T>(args.inputs[0], i, batch.rows, batch.cols);
      if (all_finite(a) && routines.gees(wanted, as_int(batch.rows), a.data(), vectors.data()) == 0) {
        store_rows(a, batch.rows, batch.cols, results[0].at(i));
        if (wanted) store_rows(vectors, batch.rows, batch.cols, results[1].at(i));
      } else {
        for (Result<T>& result : results) result.set_nan(i);
      }
    }
    Arrays outputs;
    for (Result<T>& result : results) outputs.push_back(result.output.array);
    return outputs;
  });
}

Arrays run_hessenberg(const KernelArgs& args) {
  MatrixBatch batch(args.inputs[0].shape());
  return visit_lapack("hessenberg", args, [&]<class T>(Type<T>, const lapack::Routines<T>& routines) {
    Result<T> out(args.output_types[0], batch.count), taus(args.output_types[1], batch.count);
    for (int64_t i = 0; i < batch.count && batch.size() > 0; ++i) {
      poll_stop();
      auto a = column_major<T>(args.inputs[0], i, batch.rows, batch.cols);
      if (routines.gehrd(as_int(batch.rows), a.data(), taus.at(i)) == 0) {
        store_rows(a, batch.rows, batch.cols, out.at(i));
      } else {
        out.set_nan(i);
        taus.set_nan(i);
      }
    }
    return Arrays{out.output.array, taus.output.array};
  });
}

Arrays run_tridiagonal(const KernelArgs& args) {
  MatrixBatch batch(args.inputs[0].shape());
  char uplo = args.attrs.boolean("lower") ? 'L' : 'U';
  return visit_lapack("tridiagonal", args, [&]<class T>(Type<T>, const lapack::Routines<T>& routines) {
    using Real = lapack::Real<T>;
    Result<T> out(args.output_types[0], batch.count), taus(args.output_types[3], batch.count);
    Result<Real> diagonal(args.output_types[1], batch.count), beside(args.output_types[2], batch.count);
    for (int64_t i = 0; i < batch.count && batch.size() > 0; ++i) {
      poll_stop();
      auto a = column_major<T>(args.inputs[0], i, batch.rows, batch.cols);
      if (routines.sytrd(uplo, as_int(batch.rows), a.data(), diagonal.at(i), beside.at(i), taus.at(i)) == 0) {
        store_rows(a, batch.rows, batch.cols, out.at(i));
      } else {
        out.set_nan(i);
        taus.set_nan(i);
        diagonal.set_nan(i);
        beside.set_nan(i);
      }
    }
    return Arrays{out.output.array, diagonal.output.array, beside.output.array, taus.output.array};
  });
}

}  // namespace

KernelList lapack_linalg_kernels() {
  return {{"geqrf", run_geqrf},
          {"geqp3", run_geqp3},
          {"householder_product", run_householder_product},
          {"ormqr", run_ormqr},
          {"eigh", run_eigh},
          {"svd", run_svd},
          {"eig", run_eig},
          {"schur", run_schur},
          {"hessenberg", run_hessenberg},
          {"tridiagonal", run_tridiagonal}};
}

}  // namespace capibara::reference
