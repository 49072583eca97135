// Regularizers, kernels, support vector machines and Gaussian processes.
#include "models/named/builder.h"

#include <cmath>
#include <numbers>

namespace capibara::models {

namespace {

Model l1(const Arguments& a) {
  Builder b(a);
  b.output("output", operate("Sum", operate("Absolute", b.input("input"))));
  return b.finish();
}

Model l2(const Arguments& a) {
  Builder b(a);
  b.output("output", operate("Sum", operate("Square", b.input("input"))) * Term(0.5));
  return b.finish();
}

Model quadratic_form(const Arguments& a) {
  Builder b(a);
  Term input = b.input("input"), kernel = b.input("kernel");
  Term left = matmul(input, kernel);
  b.output("output", matmul(left, transpose(input)) * Term(0.5));
  b.shapes({{"input", "1, N"}, {"kernel", "N, N"}});
  return b.finish();
}

// l_scale^2 exp(-|x - y|^2 / (2 sigma^2))
Model rbf_kernel(const Arguments& a) {
  Builder b(a);
  Term left = b.input("input1"), right = b.input("input2"), scale = b.input("l_scale"), sigma = b.input("sigma");
  Term difference = b.add("CartesianDifference", {}, {{"left", left}, {"right", right}});
  Term squares = operate("Sum", operate("Square", difference), {{"axis", 2}});
  Term exponent = (squares * Term(-0.5)) / operate("Square", sigma);
  Term bell = operate("Exponential", exponent);
  b.output("output", (scale * scale) * bell);
  b.shapes({{"input1", "N, d"}, {"input2", "M, d"}, {"l_scale", "1"}, {"sigma", "1"}, {"output", "N, M"}});
  return b.finish({"input1", "input2"});
}

Model polynomial_kernel(const Arguments& a) {
  Builder b(a);
  Term left = b.input("input1"), right = b.input("input2"), offset = b.input("poly_coef"), degree = b.input("degree");
  Term sum = matmul(left, transpose(right)) + offset;
  b.output("output", power(sum, degree, {{"robust", a["robust"]}}));
  b.shapes({{"input1", "N, d"}, {"input2", "M, d"}, {"output", "N, M"}});
  return b.finish({"input1", "input2"});
}

Model kernelized_svm(const Arguments& a) {
  Builder b(a);
  Model kernel = model_argument(a["kernel"]);
  std::vector<std::pair<std::string, Term>> inputs;
  for (const std::string& key : kernel.input_keys()) {
    if (!kernel.body()->generated(key) && !kernel.body()->edge(key)->value.given())
      inputs.emplace_back(key, b.input(key));
  }
  if (inputs.size() < 2) throw ValueError("models: KernelizedSVM: the kernel needs at least two inputs");
  Term values = b.add(kernel, inputs);
  b.output("kernel", values);
  Term weight = b.weight("weight"), bias = b.weight("bias");
  b.output("output", b.add("Linear", {}, {{"input", values}, {"weight", weight}, {"bias", bias}}));
  b.shapes({{"input1", "N, d"},
            {"input2", "M, d"},
            {"weight", "1, M"},
            {"bias", "1"},
            {"output", "N, 1"},
            {"kernel", "N, M"}});
  return b.finish({"input1", "input2"}, {"output"});
}

// -log likelihood of labels: (y - mu)^T alpha / 2 + sum(log L_ii) + n log(2 pi) / 2
Model process_loss(const Arguments& a) {
  Builder b(a);
  Term labels = b.input("labels"), mu = b.input("mu"), factor = b.input("L"), term = b.input("K_term"),
       alpha = b.input("alpha");
  Term fit = operate("Squeeze", matmul(transpose(labels - mu), alpha)) * Term(0.5);
  Term values = b.add("Eigvalsh", {}, {{"K_term", term}, {"L", factor}});
  Term volume = operate("Sum", operate("Log", values, {{"robust", a["robust"]}}));
  Term constant = operate("Length", labels) * Term(std::log(2 * std::numbers::pi) / 2);
  b.output("output", (fit + volume) + constant);
  b.shapes({{"labels", "N, 1"}, {"mu", "N, 1"}, {"L", "N, N"}, {"K_term", "N, N"}, {"alpha", "N, 1"}});
  return b.finish({"labels"});
}

Model process_regression(const Arguments& a) {
  Builder b(a);
  Term label = b.weight("label"), noise = b.weight("s"), k = b.weight("k"), k_star = b.weight("k_star"),
       mu = b.weight("mu");
  Term count = operate("Size", k, {{"dim", 0}});
  Term eye = b.add("Eye", {}, {{"N", count}});
  Term term = k + noise * eye;
  Term factor = b.add("Cholesky", {}, {{"input", term}});
  Term difference = label - mu;
  Term alpha = b.add("GPRAlpha", {}, {{"label_mu_diff", difference}, {"L", factor}, {"K_term", term}});
  Term loss = b.add("GPRLoss", {}, {{"labels", label}, {"mu", mu}, {"L", factor}, {"K_term", term}, {"alpha", alpha}});
  b.output("loss", operate("AtLeast1D", loss));
  b.output("prediction", mu + matmul(transpose(k), alpha));
  Term outer = b.add("GPRVOuter", {}, {{"K", k}, {"K_term", term}, {"L", factor}});
  Term rest = operate("Absolute", operate("TransposedDiagonal", k_star - outer));
  b.output("confidence", noise + rest);
  b.shapes({{"label", "N, 1"}, {"s", "1"}, {"k", "N, M"}, {"k_star", "N, T"}, {"mu", "N, 1"}});
  return b.finish({"k"}, {"prediction"});
}

}  // namespace

Records kernel_method_records() {
  return {
      {"L1", "input", "", "The sum of absolute values.", {}, {}, l1},
      {"L2", "input", "", "Half the sum of squares.", {}, {}, l2},
      {"QuadraticFormRegularizer", "input, kernel", "", "input kernel input^T / 2.", {}, {}, quadratic_form},
      {"RBFKernel", "input1, input2, l_scale, sigma", "", "A Gaussian of distances of rows.", {}, {}, rbf_kernel},
      {"PolynomialKernel",
       "robust=True, input1, input2, poly_coef, degree",
       "",
       "A power of inner products of rows.",
       {},
       {},
       polynomial_kernel},
      {"KernelizedSVM",
       "kernel, weight, bias, input1, input2",
       "",
       "A linear layer on a kernel.",
       {},
       {},
       kernelized_svm},
      {"GPRLoss",
       "robust=False, labels, mu, L, K_term, alpha",
       "",
       "The negative log likelihood of a Gaussian process.",
       {},
       {},
       process_loss},
      {"GaussProcessRegressionCore",
       "s, k, k_star, mu, label, loss, prediction, confidence",
       "",
       "A Gaussian process: loss, prediction and confidence.",
       {},
       {},
       process_regression},
  };
}

}  // namespace capibara::models
