"""jax.experimental.pallas.ops: kernels that jax ships; see the modules for what exists of them."""
