"""Types of taking jax's place."""
from typing import Any

def install() -> None:
    """From here on `import jax` in this process means capibara.jax."""
def check_compatibility(version: str = "0.10.2") -> dict[str, Any]:
    """Which public names of a jax version exist here: {'version', 'compatible', 'missing'}."""
