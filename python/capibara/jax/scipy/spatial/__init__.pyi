"""Types of jax.scipy.spatial."""
from capibara.jax.scipy.spatial import transform as transform
