"""TPUConfig and its error, under the path of configurations."""
from capibara.core.tpu.tpu_config import ScalingConfig, TPUConfig, TPUError  # noqa: F401
