// The modules of the library and the families of functions in each.
#include "library/table/families.h"

namespace capibara::library {

const std::vector<Module>& modules() {
  static const std::vector<Module> all = {
      {"numpy",
       {numpy_elementwise(), numpy_creation(), numpy_manipulation(), numpy_indexing(), numpy_contraction(),
        numpy_windows(), numpy_reductions(), numpy_statistics(), numpy_sorting(), numpy_sets(), numpy_polynomial()}},
      {"numpy.linalg", {numpy_linalg()}},
      {"numpy.fft", {numpy_fft()}},
      {"ops", {ops_segments()}},
      {"image", {image_resampling()}},
      {"lax", {lax_elementwise(), lax_shape(), lax_index(), lax_reduce(), lax_contract(), lax_collective()}},
      {"lax.linalg", {lax_linalg()}},
      {"random", {random_draws()}},
      {"scipy.linalg", {scipy_linalg()}},
      {"scipy.signal", {scipy_signal()}},
      {"scipy.fft", {scipy_fft()}},
      {"scipy.ndimage", {scipy_ndimage()}},
      {"nn", {nn_functions()}},
      {"nn.initializers", {nn_initializers()}},
      {"custom_activations", {custom_activations()}},
      {"capibara.kernels",
       {fused_attention(), fused_dense(), fused_experts(), fused_norms(), fused_quantization(), fused_recurrence(),
        fused_spiking()}},
      {"scipy.special", {scipy_special()}},
      {"scipy.stats", {scipy_stats()}},
      {"scipy.stats.bernoulli", {scipy_stats_distribution("bernoulli")}},
      {"scipy.stats.beta", {scipy_stats_distribution("beta")}},
      {"scipy.stats.betabinom", {scipy_stats_distribution("betabinom")}},
      {"scipy.stats.binom", {scipy_stats_distribution("binom")}},
      {"scipy.stats.cauchy", {scipy_stats_distribution("cauchy")}},
      {"scipy.stats.chi2", {scipy_stats_distribution("chi2")}},
      {"scipy.stats.dirichlet", {scipy_stats_distribution("dirichlet")}},
      {"scipy.stats.expon", {scipy_stats_distribution("expon")}},
      {"scipy.stats.gamma", {scipy_stats_distribution("gamma")}},
      {"scipy.stats.gennorm", {scipy_stats_distribution("gennorm")}},
      {"scipy.stats.geom", {scipy_stats_distribution("geom")}},
      {"scipy.stats.gumbel_l", {scipy_stats_distribution("gumbel_l")}},
      {"scipy.stats.gumbel_r", {scipy_stats_distribution("gumbel_r")}},
      {"scipy.stats.laplace", {scipy_stats_distribution("laplace")}},
      {"scipy.stats.logistic", {scipy_stats_distribution("logistic")}},
      {"scipy.stats.multinomial", {scipy_stats_distribution("multinomial")}},
      {"scipy.stats.multivariate_normal", {scipy_stats_distribution("multivariate_normal")}},
      {"scipy.stats.nbinom", {scipy_stats_distribution("nbinom")}},
      {"scipy.stats.norm", {scipy_stats_distribution("norm")}},
      {"scipy.stats.pareto", {scipy_stats_distribution("pareto")}},
      {"scipy.stats.poisson", {scipy_stats_distribution("poisson")}},
      {"scipy.stats.t", {scipy_stats_distribution("t")}},
      {"scipy.stats.truncnorm", {scipy_stats_distribution("truncnorm")}},
      {"scipy.stats.uniform", {scipy_stats_distribution("uniform")}},
      {"scipy.stats.vonmises", {scipy_stats_distribution("vonmises")}},
      {"scipy.stats.wrapcauchy", {scipy_stats_distribution("wrapcauchy")}},
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
