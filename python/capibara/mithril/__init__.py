"""Named models in the style of Mithril: `import capibara.mithril as ml`.

A model is a graph of named connections; `ml.compile(model, backend)` compiles it for evaluation and differentiation.
"""
from capibara._core.models import TBD, Call, Connection, IOKey, Tensor
from capibara.mithril import models
from capibara.mithril._backend import JaxBackend
from capibara.mithril._compile import compile, compiled_text
from capibara.mithril._dtypes import bfloat16, bool, float16, float32, float64, int8, int16, int32, int64, uint8
from capibara.mithril.models import Model, TrainModel

__all__ = [
    "TBD", "Call", "Connection", "IOKey", "JaxBackend", "Model", "Tensor", "TrainModel", "bfloat16", "bool", "compile",
    "compiled_text", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "models", "uint8",
]
