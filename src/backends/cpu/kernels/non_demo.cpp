// The kernels that training a language model does without: the demo is built without these files.
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/fft/fft.h"
#include "backends/cpu/kernels/linalg/small_matrices.h"
#include "backends/cpu/kernels/linalg/small_spectra.h"

namespace capibara::cpu {

KernelMakers non_demo_makers() {
  KernelMakers all;
  for (const KernelMakers& list :
       {convolution_makers(), fft_makers(), function_makers(), order_makers(), select_and_scatter_makers(),
        small_matrix_makers(), small_spectrum_makers(), window_makers()}) {
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

}  // namespace capibara::cpu
