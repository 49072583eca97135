// Normalisation layers.
#include "models/named/builder.h"

namespace capibara::models {

namespace {

Term squared_spread(const Term& input, const Value& axis) {
  return operate("Variance", input, {{"axis", axis}, {"correction", 0}, {"keepdim", true}});
}

// Scales and shifts with weight and bias, if enabled.
Term scaled(Builder& b, const Arguments& a, Term term) {
  if (a.flag("use_scale")) {
    Term weight = b.weight("weight");
    term = term * weight;
  }
  if (a.flag("use_bias")) {
    Term bias = b.weight("bias");
    term = term + bias;
  }
  return term;
}

void parameter_shapes(Builder& b, const Arguments& a, const char* input, const char* parameter) {
  NamedShapes shapes = {{"input", input}, {"output", input}};
  if (a.flag("use_scale")) shapes.emplace_back("weight", parameter);
  if (a.flag("use_bias")) shapes.emplace_back("bias", parameter);
  b.shapes(shapes);
}

Model layer_norm(const Arguments& a) {
  Builder b(a);
  Term input = b.input("input");
  Term centred = input - operate("Mean", input, {{"axis", -1}, {"keepdim", true}});
  Term spread = squared_spread(input, -1) + b.constant("eps", a["eps"]);
  b.output("output", scaled(b, a, centred / operate("Sqrt", spread)));
  parameter_shapes(b, a, "B, V..., d", "d");
  return b.finish();
}

// Channels in groups, each normalised over its elements: input [N, C, H, W].
Model group_norm(const Arguments& a) {
  Builder b(a);
  Term input = b.input("input");
  Term sizes = operate("Shape", input);
  Term groups = reshape(input, {index(sizes, 0), Term(a["num_groups"]), Term(-1)});
  Term centred = groups - operate("Mean", groups, {{"axis", -1}, {"keepdim", true}});
  Term spread = squared_spread(groups, -1) + b.constant("eps", a["eps"]);
  Term normal = b.add("Reshape", {}, {{"input", centred / operate("Sqrt", spread)}, {"shape", sizes}});
  b.output("output", scaled(b, a, normal));
  parameter_shapes(b, a, "B, C, H, W", "1, C, 1, 1");
  return b.finish();
}

// Uses running statistics at inference; training normalises by the batch and returns the updated statistics.
Model batch_norm(const Arguments& a) {
  Builder b(a);
  Term input = b.input("input"), mean = b.input("running_mean"), variance = b.input("running_var");
  Term sizes = operate("Shape", input);
  Term channels = index(sizes, 1);
  std::vector<Term> column = {Term(1), channels, Term(1), Term(1)};
  Term normal = 0;
  if (a.flag("inference")) {
    Term spread = reshape(variance, column) + Term(a["eps"]);
    normal = (input - reshape(mean, column)) / operate("Sqrt", spread);
  } else {
    List axes = {0, 2, 3};
    Term now = operate("Mean", input, {{"axis", axes}, {"keepdim", true}}), spread = squared_spread(input, axes);
    Term momentum = b.constant("momentum", a["momentum"]);
    Term rest = b.add("Subtract", {}, {{"left", Term(1)}, {"right", momentum}});
    Term count = index(sizes, 0) * index(sizes, 2) * index(sizes, 3);
    Term unbiased = spread * (count / (count - 1));
    b.output("running_mean_out", mean * rest + reshape(now, {channels}) * momentum);
    b.output("running_var_out", variance * rest + reshape(unbiased, {channels}) * momentum);
    normal = (input - now) / operate("Sqrt", spread + Term(a["eps"]));
  }
  b.output("output", scaled(b, a, normal));
  parameter_shapes(b, a, "N, C, H, W", "1, C, 1, 1");
  NamedShapes shapes = {{"input", "N, C, H, W"}, {"running_mean", "C"}, {"running_var", "C"}};
  if (a.given("num_features")) {
    TemplateDim size{.size = a["num_features"].integer()};
    shapes[0].second.dims[1] = shapes[1].second.dims[0] = shapes[2].second.dims[0] = size;
  }
  b.shapes(shapes);
  return b.finish();
}

// Divides by the root of the mean square along the last dimension.
Model rms_norm(const Arguments& a) {
  Builder b(a);
  Term input = b.input("input");
  Term mean = operate("Mean", operate("Square", input), {{"axis", -1}, {"keepdim", true}});
  Term root = operate("Sqrt", mean + b.constant("eps", a["eps"]));
  Term weight = b.weight("weight");
  b.output("output", (input / root) * weight);
  b.shapes({{"input", "V..., d"}, {"weight", "d"}, {"output", "V..., d"}});
  return b.finish();
}

}  // namespace

Records norm_records() {
  return {
      {"LayerNorm",
       "use_scale=True, use_bias=True, eps=1e-05, input, weight, bias",
       "",
       "Zero mean, unit variance along the last dimension.",
       {},
       {},
       layer_norm},
      {"GroupNorm",
       "num_groups=32, use_scale=True, use_bias=True, eps=1e-05, input, weight, bias",
       "",
       "Zero mean, unit variance of groups of channels.",
       {},
       {},
       group_norm},
      {"BatchNorm2D",
       "num_features=None, use_scale=True, use_bias=True, eps=1e-05, momentum=0.1, inference=True, input, weight, "
       "bias, "
       "running_mean, running_var",
       "",
       "Zero mean, unit variance of each channel.",
       {},
       {},
       batch_norm},
      {"RMSNorm", "eps=1e-05, input, weight", "", "Unit mean square along the last dimension.", {}, {}, rms_norm},
  };
}

}  // namespace capibara::models
