"""jax.errors: the error classes."""
from capibara._errors import (  # noqa: F401
    ConcretizationTypeError,
    DistributedError,
    InconclusiveDimensionOperation,
    JAXError,
    JAXIndexError,
    JaxprTypeError,
    JaxRuntimeError,
    JAXTypeError,
    KeyReuseError,
    NonConcreteBooleanIndexError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    TypePromotionError,
    UnexpectedTracerError,
)
from capibara._modules import explain_missing

JAXRuntimeError = JaxRuntimeError
explain_missing(__name__)
