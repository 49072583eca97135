"""Types of capibara.jax.errors. Made by tools/python/make_stubs.py."""
from capibara import _errors as _errors
from capibara._errors import ConcretizationTypeError as ConcretizationTypeError
from capibara._errors import DistributedError as DistributedError
from capibara._errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from capibara._errors import JAXError as JAXError
from capibara._errors import JAXIndexError as JAXIndexError
from capibara._errors import JAXTypeError as JAXTypeError
from capibara._errors import JaxRuntimeError as JaxRuntimeError
from capibara._errors import JaxprTypeError as JaxprTypeError
from capibara._errors import KeyReuseError as KeyReuseError
from capibara._errors import NonConcreteBooleanIndexError as NonConcreteBooleanIndexError
from capibara._errors import TracerArrayConversionError as TracerArrayConversionError
from capibara._errors import TracerBoolConversionError as TracerBoolConversionError
from capibara._errors import TracerIntegerConversionError as TracerIntegerConversionError
from capibara._errors import TypePromotionError as TypePromotionError
from capibara._errors import UnexpectedTracerError as UnexpectedTracerError

JAXRuntimeError = _errors.JaxRuntimeError
