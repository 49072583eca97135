"""Types of taking jax's place."""
from typing import Any

class Compatibility(dict[str, Any]):
    """What `check_compatibility` found: true where nothing is missing; it prints in words."""
    def __bool__(self) -> bool: ...

def install() -> None:
    """From here on `import jax` in this process means capibara.jax."""
def check_compatibility(version: str = "0.10.2") -> Compatibility:
    """Which public names of a jax version, from 0.4.20 to 0.10.2, exist here: {'version', 'compatible', 'names', 'missing'}."""
