"""The blocks of seed 001 that speak of operating a training, each as a test."""

import capibara.jax as jax
import capibara.jax.numpy as jnp
import numpy as np


# --- Checkpointing en TPU ----------------------------------------------------------------------------------------------


def test_checkpointing(tmp_path):
    params = {"dense": {"kernel": jnp.arange(12.0).reshape(3, 4), "bias": jnp.zeros(4, jnp.bfloat16)}}
    opt_state = (jnp.int32(1000), jax.tree.map(jnp.ones_like, params))

    from capibara.core.tpu import TPUCheckpointer

    checkpointer = TPUCheckpointer(
        checkpoint_dir=str(tmp_path / "checkpoints/"),
        max_to_keep=3,
        async_checkpointing=True  # No bloquea training
    )

    # Guardar checkpoint
    checkpointer.save(
        step=1000,
        params=params,
        opt_state=opt_state
    )

    # Restaurar
    restored = checkpointer.restore(step=1000)

    assert jax.tree.structure(restored) == jax.tree.structure({"params": params, "opt_state": opt_state})
    for got, expected in zip(jax.tree.leaves(restored), jax.tree.leaves({"params": params, "opt_state": opt_state})):
        assert got.dtype == expected.dtype and np.asarray(got).tobytes() == np.asarray(expected).tobytes()
