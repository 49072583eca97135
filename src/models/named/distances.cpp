// Distance models: distance matrices, multidimensional scaling and t-SNE.
#include "models/named/builder.h"

namespace capibara::models {

namespace {

Model encoder_distances(const Arguments& a) {
  Builder b(a);
  Term left = b.input("input1"), right = b.input("input2");
  Term norm = operate("NormModifier", b.input("norm"));
  Term powers = b.add("DistanceMatrix", {}, {{"left", left}, {"right", right}, {"norm", norm}});
  if (a.flag("get_final_distance")) powers = power(powers, Term(1.0) / norm, {{"robust", a["robust"]}});
  b.output("output", powers);
  return b.finish({"input1", "input2"});
}

// The stress of predicted distances: (sum |d - p|^n / sum d^n)^(1/n). Without exact distances, both are given as d^n.
Model mds_core(const Arguments& a) {
  Builder b(a);
  Entries robust = {{"robust", a["robust"]}};
  Term distances = b.input("distances"), predicted = b.input("pred_distances");
  Term norm = operate("NormModifier", b.input("norm"));
  Term root = operate("StableReciprocal", norm);
  bool exact = a.flag("exact_distances");
  Term known = exact ? distances : power(distances, root, robust);
  Term error = known - power(predicted, root, robust);
  Term errors = operate("Sum", power(operate("Absolute", error), norm, robust));
  Term total = operate("Sum", exact ? power(distances, norm, robust) : distances);
  b.output("output", power(errors * operate("StableReciprocal", total), root, robust));
  b.shapes({{"distances", "N, N"}, {"pred_distances", "N, N"}});
  return b.finish({"distances"}, {"output"});
}

// The divergence of the neighbour probabilities of the predicted distances from those of the data.
Model tsne_core(const Arguments& a) {
  Builder b(a);
  Term distances = b.input("distances"), predicted = b.input("pred_distances");
  Term joint = 0;
  if (a.flag("calculate_p_joint")) {
    Term squared = a.flag("exact_distances") ? operate("Square", distances) : distances;
    joint = b.add("TsnePJoint", {}, {{"squared_distances", squared}, {"target_perplexity", Term(a["perplexity"])}});
  } else {
    joint = b.input("p_joint");
  }
  Term near = Term(1.0) / (Term(1.0) + predicted);
  Term others = b.add("EyeComplement", {}, {{"N", operate("Size", distances, {{"dim", 0}})}});
  Term weights = near * others;
  Term shares = weights / operate("Sum", weights);
  Term divergence = b.add("KLDivergence", {}, {{"input", shares}, {"target", joint}});
  b.output("output", operate("Sum", divergence));
  b.shapes({{"distances", "N, N"}, {"pred_distances", "N, N"}});
  return b.finish({"distances"}, {"output"});
}

// Coordinates whose distances approximate those of the input: of points, of distances, or of powers of distances.
Model encoder(const Arguments& a, const Model& base) {
  Builder b(a);
  const std::string& kind = a["input_type"].text();
  if (kind != "points" && kind != "distances" && kind != "powered_distances") {
    throw ValueError(concat("models: ", a.model(),
                            ": input_type is 'points', 'distances' or 'powered_distances', got '", kind, "'"));
  }
  Term input = b.input("input"), coords = b.input("coords"), norm = b.input("norm");
  Entries plain = {{"get_final_distance", false}};
  Term distances = kind == "points"
                       ? b.add("EncoderDistanceMatrix", plain, {{"input1", input}, {"input2", input}, {"norm", norm}})
                       : input;
  Term predicted = b.add("EncoderDistanceMatrix", plain, {{"input1", coords}, {"input2", coords}, {"norm", norm}});
  std::vector<std::pair<std::string, Term>> inputs = {{"distances", distances}, {"pred_distances", predicted}};
  for (const std::string& key : base.input_keys()) {
    if (base.body()->generated(key) || key == "distances" || key == "pred_distances") continue;
    if (base.body()->edge(key)->value.given()) continue;
    inputs.emplace_back(key, key == "norm" ? norm : b.input(key));
  }
  b.output("output", b.add(base, inputs, "output"));
  b.output("predicted_coords", b.add("Buffer", {}, {{"input", coords}}));
  if (a.given("prediction_dim")) {
    ShapeTemplate shape("_, d");
    shape.dims[1] = {.size = a["prediction_dim"].integer()};
    b.shapes({{"coords", shape}});
  }
  return b.finish({"input"}, {"output"});
}

bool exact(const Arguments& a) { return a["input_type"].text() == "distances"; }

}  // namespace

Records distance_records() {
  return {
      {"EncoderDistanceMatrix",
       "get_final_distance=True, robust=True, input1, input2, norm",
       "",
       "Distances of rows in a norm.",
       {},
       {},
       encoder_distances},
      {"MDSCore",
       "exact_distances=True, robust=True, distances, pred_distances, norm",
       "",
       "The stress of predicted distances.",
       {},
       {},
       mds_core},
      {"TSNECore",
       "exact_distances=True, calculate_p_joint=False, perplexity=20.0, distances, pred_distances, p_joint",
       "",
       "The loss of t-SNE.",
       {},
       {},
       tsne_core},
      {"DistanceEncoder",
       "base_model, input_type='distances', input, coords, norm, predicted_coords",
       "",
       "Coordinates that keep distances.",
       {},
       {},
       [](const Arguments& a) { return encoder(a, model_argument(a["base_model"])); }},
      {"MDS",
       "prediction_dim, input_type='distances', input, coords, norm, predicted_coords",
       "",
       "Multidimensional scaling.",
       {},
       {},
       [](const Arguments& a) {
         return encoder(a, make("MDSCore", {{"exact_distances", exact(a)}}));
       }},
      {"TSNE",
       "prediction_dim, input_type='distances', preplexity=20.0, calculate_p_joint=False, input, coords, norm, "
       "predicted_coords, "
       "p_joint",
       "",
       "t-SNE.",
       {},
       {},
       [](const Arguments& a) {
         return encoder(a, make("TSNECore", {{"calculate_p_joint", a["calculate_p_joint"]},
                                             {"perplexity", a["preplexity"]},
                                             {"exact_distances", exact(a)}}));
       }},
  };
}

}  // namespace capibara::models
