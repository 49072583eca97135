"""Models that compute activations again in the backward pass instead of keeping them."""
from capibara import jax as _jax

_POLICIES = {"everything": "everything_saveable", "nothing_saveable": "nothing_saveable", "minimal": "dots_with_no_batch_dims_saveable",
             "offload": "offload_dot_with_no_batch_dims"}


def enable_gradient_checkpointing(model: object, checkpoint_every_n_layers: int = 1,
                                  checkpoint_policy: str = "nothing_saveable") -> object:
    """The model with groups of layers whose values are computed again in the backward pass.

    A model is a LanguageModel, a list of layers applied one after another, a function, or an object with `apply`.
    Policies: 'everything' keeps all values, 'nothing_saveable' none, 'minimal' those of matmuls without batch dimensions;
    'offload' keeps these in the host's memory, which on CPU devices is the same.
    """
    name = "enable_gradient_checkpointing"
    if checkpoint_policy not in _POLICIES:
        raise ValueError(f"{name}: checkpoint_policy is one of {', '.join(_POLICIES)}, got {checkpoint_policy!r}")
    if checkpoint_every_n_layers < 1:
        raise ValueError(f"{name}: checkpoint_every_n_layers is at least 1, got {checkpoint_every_n_layers}")
    if hasattr(model, "with_checkpointing"):
        return model.with_checkpointing(checkpoint_every_n_layers, checkpoint_policy)
    policy = getattr(_jax.checkpoint_policies, _POLICIES[checkpoint_policy])
    if checkpoint_policy == "offload":
        policy = policy("device", "pinned_host")
    if isinstance(model, (list, tuple)):
        groups = [model[i:i + checkpoint_every_n_layers] for i in range(0, len(model), checkpoint_every_n_layers)]
        return _chain([_jax.checkpoint(_chain(group), policy=policy) for group in groups])
    call = model if callable(model) else getattr(model, "apply", None)
    if call is None:
        raise TypeError(f"{name}: needs a LanguageModel, a function, a list of layers, or an object with apply, got {type(model)}")
    return _jax.checkpoint(call, policy=policy)


def _chain(layers):
    def apply(x):
        for layer in layers:
            x = layer(x)
        return x
    return apply
