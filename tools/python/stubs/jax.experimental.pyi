from contextlib import AbstractContextManager

from capibara.jax._config import Setting as _Setting

def disable_x64() -> AbstractContextManager[None]: ...
