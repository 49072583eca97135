"""jax.experimental.pallas.ops: kernels shipped with jax; the modules describe what exists here."""
