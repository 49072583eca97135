"""jax._src.random: generators of random bits by their names."""
from capibara._modules import explain_missing

explain_missing(__name__, later=dict.fromkeys(("prng", "rbg", "threefry2x32")))
