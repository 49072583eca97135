// The modules of the library and the families of functions they hold.
#include "library/table/families.h"

namespace capibara::library {

const std::vector<Module>& modules() {
  static const std::vector<Module> all = {
      {"numpy", {numpy_elementwise(), numpy_creation(), numpy_reductions(), numpy_statistics(), numpy_sorting(), numpy_sets(), numpy_polynomial()}},
      {"numpy.fft", {numpy_fft()}},
      {"ops", {ops_segments()}},
      {"image", {image_resampling()}},
      {"lax", {lax_elementwise(), lax_shape(), lax_index(), lax_reduce(), lax_contract(), lax_collective()}},
      {"lax.linalg", {lax_linalg()}},
      {"random", {random_draws()}},
      {"scipy.fft", {scipy_fft()}},
      {"scipy.ndimage", {scipy_ndimage()}},
      {"nn", {nn_functions()}},
      {"nn.initializers", {nn_initializers()}},
      {"custom_activations", {custom_activations()}},
  };
  return all;
}

const Function* find_function(std::string_view module, std::string_view name) {
  for (const Module& one : modules()) {
    if (one.name != module) continue;
    for (Family family : one.families) {
      for (const Function& function : family) {
        if (function.name == name) return &function;
      }
    }
  }
  return nullptr;
}

}  // namespace capibara::library
