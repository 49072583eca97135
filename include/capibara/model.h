// The model protocol: parameters by name, apply and loss, and optionally layers, logical axes and sizes.
//
// Trainers, checkpointing, sharding and plans take an AnyModel and nothing else. A class becomes one by its members:
//
//     struct Regression {
//       Parameters init(const Array& key) const;                 // or a struct declared by CAPIBARA_TREE
//       Array apply(const Parameters& p, const Array& x) const;
//       Array loss(const Parameters& p, const Array& x, const Array& y) const;
//     };
//     training::Trainer trainer(AnyModel(Regression()), {.steps = 100});
#pragma once

#include <capibara/jit.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace capibara {

// Parameters by name. A tree, so that it passes through jit, grad, optimizers and checkpoints.
using Parameters = std::map<std::string, Array>;
using ParameterTypes = std::map<std::string, ArrayType>;

// A model as a sequence of layers: start makes the carry, each layer takes it and returns one of the same types, finish
// computes the loss from the last one.
struct ModelLayers {
  int64_t count = 0;
  std::function<Arrays(const Parameters& parameters, const Arrays& batch)> start = {};
  std::function<Arrays(const Parameters& parameters, int64_t layer, const Arrays& carry)> run = {};
  std::function<Array(const Parameters& parameters, const Arrays& carry, const Arrays& batch)> finish = {};
  // The output of apply from the last carry, if start takes the inputs of apply. Absent: apply is not split.
  std::function<Array(const Parameters& parameters, const Arrays& carry)> output = {};
  // The prefix of each layer's parameter names, such as "layers.3."; all others belong to start and finish.
  // Empty: unknown, and every layer may read every parameter.
  std::vector<std::string> prefixes = {};
  // The requested gradient checkpointing: groups of this many layers, 0 for none, and the policy. For code that
  // runs the layers itself, such as pipelines.
  int64_t checkpoint_every_n_layers = 0;
  std::string checkpoint_policy = {};
};

// Names of the dimensions of each parameter, by which rules choose mesh axes: "embed", "mlp", "heads", "vocab",
// "expert"; an empty name: no rule applies.
struct LogicalAxes {
  std::map<std::string, std::vector<std::string>> of;
  bool inferred = false;                      // from the names and shapes of the parameters
  std::vector<std::string> assumptions = {};  // as text
};

// Sizes that describe a model to plans; 0 if the model has no such dimension.
struct ModelSizes {
  int64_t layers = 0, width = 0, heads = 0, key_heads = 0, head_size = 0, hidden = 0, vocabulary = 0;
  int64_t experts = 0, experts_per_token = 0;
  bool gated = false;  // three matrices in the MLP, else two
  bool tied = false;   // the output matrix is the embedding
  int64_t parameters = 0;
  bool inferred = false;                      // from the names and shapes of the parameters
  std::vector<std::string> assumptions = {};  // as text
};

// The parts of an AnyModel. A function that needs an absent part names it in its error.
struct ModelParts {
  std::string name = "model";                             // in messages
  std::function<Parameters(const Array& key)> init = {};  // random parameters
  Parameters parameters = {};                             // given ones, instead of or in addition to init
  ParameterTypes types = {};                              // of the parameters; derived from init if absent
  using Function = std::function<Array(const Parameters& parameters, const Arrays& batch)>;
  Function apply = {}, loss = {};
  Function evaluate = {};  // of held-out data; absent: the loss
  // The name of the first intermediate result that is not finite; absent: found layer by layer, if there are layers.
  std::function<std::string(const Parameters& parameters, const Arrays& batch)> first_bad_value = {};
  std::optional<ModelLayers> layers = {};
  // The same model with gradient checkpointing; absent: by layers.
  std::function<ModelParts(int64_t every_n_layers, const std::string& policy)> checkpointed = {};
  std::optional<LogicalAxes> logical_axes = {};
  std::optional<ModelSizes> sizes = {};
  std::shared_ptr<const void> source = {};  // the object that it was made from
  const std::type_info* source_type = nullptr;
};

namespace detail {

// Names of the leaves of a tree: "layers.0.weight". ValueError if two are equal.
std::vector<std::string> parameter_names(const TreeDef& tree);
Parameters named_parameters(const std::vector<std::string>& names, std::span<const Array> leaves);
Arrays parameter_leaves(const char* operation, const std::vector<std::string>& names, const Parameters& parameters);
void require_batch(const char* operation, std::size_t expected, std::size_t got, bool first);

// A tree of parameters and its names.
template <class P>
struct NamedTree {
  TreeDef structure;
  std::vector<std::string> names;

  explicit NamedTree(const P& prototype) : structure(make_structure(prototype)), names(parameter_names(structure)) {}
  Parameters by_name(const P& tree) const {
    if constexpr (std::is_same_v<P, Parameters>) return tree;
    return named_parameters(names, leaves_of(tree));
  }
  P tree(const Parameters& parameters) const {
    if constexpr (std::is_same_v<P, Parameters>)
      return parameters;
    else
      return rebuild<P>(structure, parameter_leaves("AnyModel", names, parameters));
  }
};

// Calls f(parameters, ...) with the batch as Arrays or as up to six arrays, depending on the signature of f.
template <class P, class F>
constexpr int arrays_taken() {
  using A = const Array&;
  if constexpr (std::is_invocable_v<const F&, const P&, const Arrays&>)
    return -1;
  else if constexpr (std::is_invocable_v<const F&, const P&, A>)
    return 1;
  else if constexpr (std::is_invocable_v<const F&, const P&, A, A>)
    return 2;
  else if constexpr (std::is_invocable_v<const F&, const P&, A, A, A>)
    return 3;
  else if constexpr (std::is_invocable_v<const F&, const P&, A, A, A, A>)
    return 4;
  else if constexpr (std::is_invocable_v<const F&, const P&, A, A, A, A, A>)
    return 5;
  else if constexpr (std::is_invocable_v<const F&, const P&, A, A, A, A, A, A>)
    return 6;
  else
    return 0;
}
template <class P, class F>
Array call_with_batch(const char* operation, bool first, const F& f, const P& parameters, const Arrays& batch) {
  constexpr int count = arrays_taken<P, F>();
  static_assert(count != 0, "a model's function takes its parameters and a batch: Arrays, or one to six of Array");
  if constexpr (count < 0) {
    return f(parameters, batch);
  } else {
    require_batch(operation, count, batch.size(), first);
    return [&]<std::size_t... i>(std::index_sequence<i...>) { return f(parameters, batch[i]...); }
    (std::make_index_sequence<static_cast<std::size_t>(count)>());
  }
}

template <class M>
concept HasParts = requires(const M& model) {
  { model.parts() } -> std::convertible_to<ModelParts>;
};
template <class M>
concept HasInit = requires(const M& model, const Array& key) {
  model.init(key);
};
template <class M>
concept HasLayers = requires(const M& model) {
  { model.layer_count() } -> std::convertible_to<int64_t>;
};
template <class M>
concept HasLogicalAxes = requires(const M& model) {
  { model.logical_axes() } -> std::convertible_to<std::map<std::string, std::vector<std::string>>>;
};
template <class M>
concept HasSizes = requires(const M& model) {
  { model.sizes() } -> std::convertible_to<ModelSizes>;
};
template <class M>
concept HasPrefixes = requires(const M& model) {
  { model.layer_prefix(int64_t{}) } -> std::convertible_to<std::string>;
};
template <class M>
concept HasName = requires(const M& model) {
  { model.name() } -> std::convertible_to<std::string>;
};

template <class P, class M>
ModelLayers layers_of(const std::shared_ptr<const M>& model, const std::shared_ptr<const NamedTree<P>>& named) {
  ModelLayers layers;
  layers.count = model->layer_count();
  layers.start = [=](const Parameters& p, const Arrays& batch) -> Arrays {
    return model->start(named->tree(p), batch);
  };
  layers.run = [=](const Parameters& p, int64_t layer, const Arrays& carry) -> Arrays {
    return model->run_layer(named->tree(p), layer, carry);
  };
  layers.finish = [=](const Parameters& p, const Arrays& carry, const Arrays& batch) -> Array {
    return model->finish(named->tree(p), carry, batch);
  };
  if constexpr (requires(const P& p, const Arrays& carry) { model->output(p, carry); }) {
    layers.output = [=](const Parameters& p, const Arrays& carry) -> Array {
      return model->output(named->tree(p), carry);
    };
  }
  if constexpr (HasPrefixes<M>) {
    for (int64_t i = 0; i < layers.count; ++i) layers.prefixes.push_back(model->layer_prefix(i));
  }
  return layers;
}

// Members as function objects, whose signatures can be checked before a call.
template <class M>
struct CallApply {
  std::shared_ptr<const M> model;
  template <class P, class... B>
  requires requires(const M& m, const P& p, const B&... batch) { m.apply(p, batch...); }
  Array operator()(const P& p, const B&... batch) const { return model->apply(p, batch...); }
};
template <class M>
struct CallLoss {
  std::shared_ptr<const M> model;
  template <class P, class... B>
  requires requires(const M& m, const P& p, const B&... batch) { m.loss(p, batch...); }
  Array operator()(const P& p, const B&... batch) const { return model->loss(p, batch...); }
};
template <class M>
struct CallEvaluate {
  std::shared_ptr<const M> model;
  template <class P, class... B>
  requires requires(const M& m, const P& p, const B&... batch) { m.evaluate(p, batch...); }
  Array operator()(const P& p, const B&... batch) const { return model->evaluate(p, batch...); }
};

// The parts of a user's object whose parameters have the type and structure of `prototype`.
template <class P, class M>
ModelParts parts_of(std::shared_ptr<const M> model, const P& prototype) {
  auto named = std::make_shared<const NamedTree<P>>(prototype);
  ModelParts parts;
  if constexpr (HasName<M>) parts.name = model->name();
  for (const auto& [name, leaf] : named->by_name(prototype)) parts.types[name] = leaf.type();
  if constexpr (HasInit<M>) parts.init = [=](const Array& key) { return named->by_name(model->init(key)); };
  const CallApply<M> apply{model};
  const CallLoss<M> loss{model};
  const CallEvaluate<M> evaluate{model};
  if constexpr (arrays_taken<P, CallApply<M>>() != 0) {
    parts.apply = [=](const Parameters& p, const Arrays& batch) {
      return call_with_batch<P>("apply", true, apply, named->tree(p), batch);
    };
  }
  if constexpr (arrays_taken<P, CallLoss<M>>() != 0) {
    parts.loss = [=](const Parameters& p, const Arrays& batch) {
      return call_with_batch<P>("loss", false, loss, named->tree(p), batch);
    };
  }
  if constexpr (arrays_taken<P, CallEvaluate<M>>() != 0) {
    parts.evaluate = [=](const Parameters& p, const Arrays& batch) {
      return call_with_batch<P>("evaluate", false, evaluate, named->tree(p), batch);
    };
  }
  if constexpr (HasLayers<M>) parts.layers = layers_of<P, M>(model, named);
  if constexpr (HasLogicalAxes<M>) parts.logical_axes = LogicalAxes{model->logical_axes()};
  if constexpr (HasSizes<M>) parts.sizes = model->sizes();
  parts.source = model;
  parts.source_type = &typeid(M);
  return parts;
}

}  // namespace detail

// Any model, as a value that is cheap to copy.
class AnyModel {
 public:
  // ValueError if the parts are inconsistent.
  explicit AnyModel(ModelParts parts);

  // A model with parts(), such as LanguageModel, or a class with init, apply, loss. Optional members: evaluate;
  // layer_count, start, run_layer, finish, output, layer_prefix; logical_axes; sizes; name.
  template <class M>
  requires(!std::is_same_v<std::decay_t<M>, AnyModel> && (detail::HasParts<M> || detail::HasInit<M>)) AnyModel(M model)
      : AnyModel(parts_from(std::make_shared<const M>(std::move(model)))) {}

  // A class without init, with its parameters: a Parameters, or a struct declared by CAPIBARA_TREE.
  template <class M, class P>
  AnyModel(M model, const P& parameters)
      : AnyModel(with_parameters(detail::parts_of<P>(std::make_shared<const M>(std::move(model)), parameters),
                                 detail::NamedTree<P>(parameters).by_name(parameters))) {}

  // A plain function: loss(parameters, batch), and optionally apply(parameters, inputs).
  template <class P, class Loss>
  static AnyModel of(const P& parameters, Loss loss) {
    auto named = std::make_shared<const detail::NamedTree<P>>(parameters);
    return AnyModel(function_parts(named, parameters, std::move(loss)));
  }
  template <class P, class Loss, class Apply>
  static AnyModel of(const P& parameters, Loss loss, Apply apply) {
    auto named = std::make_shared<const detail::NamedTree<P>>(parameters);
    ModelParts parts = function_parts(named, parameters, std::move(loss));
    parts.apply = [named, apply = std::move(apply)](const Parameters& p, const Arrays& batch) {
      return detail::call_with_batch<P>("apply", true, apply, named->tree(p), batch);
    };
    return AnyModel(std::move(parts));
  }

  const std::string& name() const;
  const ModelParts& parts() const { return *parts_; }
  // The object that the model was made from if it has this type; null otherwise.
  template <class M>
  const M* target() const {
    return parts_->source_type && *parts_->source_type == typeid(M) ? static_cast<const M*>(parts_->source.get())
                                                                    : nullptr;
  }

  // The given parameters, or random ones if none were given.
  Parameters init(const Array& key) const;
  // The type of each parameter.
  const ParameterTypes& types() const;
  int64_t parameter_count() const;

  // Each raises ValueError if the model has no such function.
  Array apply(const Parameters& parameters, const Arrays& batch) const;
  Array loss(const Parameters& parameters, const Arrays& batch) const;
  Array evaluate(const Parameters& parameters, const Arrays& batch) const;
  // The loss, as float32, computed with the floating-point parameters and batch arrays in this dtype.
  Array loss_in(DType compute, const Parameters& parameters, const Arrays& batch) const;

  // Null if the model has none.
  const ModelLayers* layers() const;
  // Those of the model, or inferred ones if it has none.
  LogicalAxes logical_axes() const;
  ModelSizes sizes() const;

  // The name of the first parameter or intermediate result that has a NaN or an infinity; empty if none has.
  std::string first_bad_value(const Parameters& parameters, const Arrays& batch) const;

 private:
  template <class M>
  static ModelParts parts_from(std::shared_ptr<const M> model) {
    if constexpr (detail::HasParts<M>) {
      ModelParts parts = model->parts();
      parts.source = model;
      parts.source_type = &typeid(M);
      return parts;
    } else {
      return detail::parts_of(model, jax::eval_shape([&](const Array& key) { return model->init(key); }, some_key()));
    }
  }
  template <class P, class Loss>
  static ModelParts function_parts(const std::shared_ptr<const detail::NamedTree<P>>& named, const P& parameters,
                                   Loss loss) {
    ModelParts parts;
    parts.name = "function";
    parts.parameters = named->by_name(parameters);
    parts.loss = [named, loss = std::move(loss)](const Parameters& p, const Arrays& batch) {
      return detail::call_with_batch<P>("loss", false, loss, named->tree(p), batch);
    };
    return parts;
  }
  static ModelParts with_parameters(ModelParts parts, Parameters parameters) {
    parts.parameters = std::move(parameters);
    return parts;
  }
  static Array some_key();

  std::shared_ptr<const ModelParts> parts_;
};

// The model with gradient checkpointing: groups of this many layers whose values the backward pass recomputes
// unless the policy keeps them. ValueError if the model has no layers.
AnyModel enable_gradient_checkpointing(const AnyModel& model, int64_t checkpoint_every_n_layers,
                                       const std::string& checkpoint_policy = "nothing_saveable");

// Names of dimensions, as far as parameter names reveal them.
LogicalAxes infer_logical_axes(const ParameterTypes& types);
// Sizes of a transformer, as far as the names and shapes of its parameters reveal them; ValueError if none is a matrix.
ModelSizes infer_sizes(const ParameterTypes& types);

}  // namespace capibara
