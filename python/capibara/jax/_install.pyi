"""Types of the functions that replace jax."""
from typing import Any

class Compatibility(dict[str, Any]):
    """The result of `check_compatibility`: true if nothing is missing; prints a summary."""
    def __bool__(self) -> bool: ...

def install() -> None:
    """From now on, `import jax` in this process imports capibara.jax."""
def check_compatibility(version: str = "0.10.2") -> Compatibility:
    """Which public names of a jax version, from 0.4.20 to 0.10.2, exist here: {'version', 'compatible', 'names', 'missing'}."""
