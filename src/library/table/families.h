// The families of the table, each defined in the file of the same name.
#pragma once

#include "library/table/function.h"

namespace capibara::library {

Family numpy_elementwise();
Family numpy_creation();
Family numpy_reductions();
Family numpy_statistics();
Family numpy_sorting();
Family numpy_sets();
Family numpy_polynomial();
Family numpy_manipulation();
Family numpy_indexing();
Family numpy_contraction();
Family numpy_windows();
Family numpy_fft();
Family ops_segments();
Family image_resampling();
Family lax_linalg();
Family numpy_linalg();
Family scipy_fft();
Family scipy_linalg();
Family scipy_ndimage();
Family scipy_signal();
Family lax_elementwise();
Family lax_shape();
Family lax_index();
Family lax_reduce();
Family lax_contract();
Family lax_collective();
Family random_draws();
Family nn_functions();
Family nn_initializers();
Family custom_activations();
Family fused_attention();
Family fused_dense();
Family fused_experts();
Family fused_norms();
Family fused_quantization();
Family fused_recurrence();
Family fused_spiking();
Family scipy_special();
Family scipy_stats();
Family scipy_stats_distribution(std::string_view name);

}  // namespace capibara::library
