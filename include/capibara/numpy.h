// jax.numpy: NumPy's functions on arrays, with JAX's promotion; includes jax::numpy::linalg and jax::numpy::fft.
#pragma once

#include <capibara/numpy/contraction.h>
#include <capibara/numpy/creation.h>
#include <capibara/numpy/elementwise.h>
#include <capibara/numpy/fft.h>
#include <capibara/numpy/indexing.h>
#include <capibara/numpy/linalg.h>
#include <capibara/numpy/manipulation.h>
#include <capibara/numpy/polynomial.h>
#include <capibara/numpy/reductions.h>
#include <capibara/numpy/sets.h>
#include <capibara/numpy/sorting.h>
#include <capibara/numpy/statistics.h>
#include <capibara/numpy/windows.h>
