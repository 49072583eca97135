"""jax.extend.core.primitives: every primitive of the catalog, under its name with the suffix _p."""
from capibara import _core
from capibara._modules import explain_missing

for _primitive in _core.catalog():
    globals()[f"{_primitive.name.replace('-', '_')}_p"] = _primitive
explain_missing(__name__)
