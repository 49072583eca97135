"""Types of capibara.mithril.models. Made by tools/python/make_stubs.py."""
from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any, TypeAlias
import numpy as np
from capibara._core import Array

class _Operand:
    """What operators on connections, keys and calls of models give."""
    @property
    def shape(self) -> Call: ...
    @property
    def T(self) -> Call: ...
    def __add__(self, other: _Value) -> Call: ...
    def __radd__(self, other: _Value) -> Call: ...
    def __sub__(self, other: _Value) -> Call: ...
    def __rsub__(self, other: _Value) -> Call: ...
    def __mul__(self, other: _Value) -> Call: ...
    def __rmul__(self, other: _Value) -> Call: ...
    def __truediv__(self, other: _Value) -> Call: ...
    def __rtruediv__(self, other: _Value) -> Call: ...
    def __floordiv__(self, other: _Value) -> Call: ...
    def __matmul__(self, other: _Value) -> Call: ...
    def __pow__(self, other: _Value) -> Call: ...
    def __neg__(self) -> Call: ...
    def __invert__(self) -> Call: ...
    def __gt__(self, other: _Value) -> Call: ...
    def __ge__(self, other: _Value) -> Call: ...
    def __lt__(self, other: _Value) -> Call: ...
    def __le__(self, other: _Value) -> Call: ...
    def __getitem__(self, index: Any) -> Call: ...
    def mean(self, axis: _Value = None, keepdim: bool = False) -> Call: ...
    def sum(self, axis: _Value = None, keepdim: bool = False) -> Call: ...
    def max(self, axis: _Value = None, keepdim: bool = False) -> Call: ...
    def min(self, axis: _Value = None, keepdim: bool = False) -> Call: ...
    def prod(self, axis: _Value = None, keepdim: bool = False) -> Call: ...
    def var(self, axis: _Value = None, keepdim: bool = False) -> Call: ...
    def reshape(self, shape: _Value, /) -> Call: ...
    def transpose(self, axes: _Value = None) -> Call: ...
    def cast(self, dtype: _Value, /) -> Call: ...

class Connection(_Operand):
    """A key of a model that another one may be connected with."""
    @property
    def key(self) -> str: ...

class Call(_Operand):
    """A model with its connections, which another model takes in by |= and +=."""
    @property
    def model(self) -> Model: ...

class Model:
    """A graph of named connections."""
    def __init__(self, name: str | None = None) -> None: ...
    def __call__(self, *args: _Value, **kwargs: _Value) -> Call: ...
    def connect(self, *args: _Value, **kwargs: _Value) -> Call: ...
    def __ior__(self, other: Call | Model) -> Model: ...
    def __iadd__(self, other: Call | Model) -> Model: ...
    def __getattr__(self, key: str) -> Connection: ...
    @staticmethod
    def create(*args: _Value, **kwargs: _Value) -> Model: ...
    @property
    def input_keys(self) -> list[str]: ...
    @property
    def output_keys(self) -> list[str]: ...
    @property
    def keys(self) -> list[str]: ...
    @property
    def name(self) -> str: ...
    @property
    def type_name(self) -> str: ...
    @property
    def submodels(self) -> list[Model]: ...
    @property
    def shapes(self) -> dict[str, str]: ...
    def set_cin(self, *args: str | Connection) -> None: ...
    def set_cout(self, *args: str | Connection) -> None: ...
    def expose_keys(self, *args: str | Connection, **kwargs: Connection) -> None: ...
    def rename_key(self, connection: Connection, name: str, /) -> None: ...
    def merge_connections(self, *args: _Value) -> None: ...
    def set_shapes(self, **kwargs: Sequence[_Dimension]) -> None: ...
    def set_values(self, **kwargs: _Value) -> None: ...
    def set_types(self, **kwargs: Sequence[str]) -> None: ...
    def set_differentiability(self, **kwargs: bool) -> None: ...
    def summary(self) -> str: ...
    def svg(self) -> str: ...

class TrainModel:
    """A model with losses, regularizations and metrics."""
    def __init__(self, model: Model, /) -> None: ...
    def add_loss(self, loss_model: Model, reduce_steps: Sequence[Model] | None = None, coef: _Value = None, **connections: _Value) -> None: ...
    def add_regularization(self, model: Model, coef: _Value, **connections: Any) -> None: ...
    def add_metric(self, model: Model, reduce_steps: Sequence[Model] | None = None, key_name: str | None = None, **connections: _Value) -> None: ...
    def set_loss_combiner(self, combiner: Model, /) -> None: ...
    def model(self) -> Model: ...

# What a key may be given: a name, a connection, a constant.
_Value: TypeAlias = _Operand | Model | Array | np.ndarray[Any, Any] | complex | str | Sequence[Any] | dict[str, Any] | type | slice | EllipsisType | None
_Dimension: TypeAlias = int | str | tuple[str, EllipsisType] | None

def operation(function: Callable[..., object], inputs: list[str] | None = None, name: str | None = None) -> Model:
    """A model of a function on arrays: its keys are `inputs` (by default the function's parameters) and `output`."""
def from_json(text: str) -> Model:
    """A model from the JSON text of its specification."""
def from_specification(specification: dict[str, Any], /) -> Model:
    """A model from the dictionary of its specification."""
def to_specification(model: Model, /) -> dict[str, Any]:
    """The specification of a model as a dictionary."""
def Buffer(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Its input."""
def Add(left: _Value = ..., right: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """left + right."""
def Subtract(left: _Value = ..., right: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """left - right."""
def Multiply(left: _Value = ..., right: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """left * right."""
def Divide(numerator: _Value = ..., denominator: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """numerator / denominator."""
def FloorDivide(numerator: _Value = ..., denominator: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The quotient rounded down."""
def Minimum(left: _Value = ..., right: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The smaller one."""
def Maximum(left: _Value = ..., right: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The larger one."""
def Power(robust: _Value = False, base: _Value = ..., exponent: _Value = ..., threshold: _Value = 'MIN_POSITIVE_NORMAL', *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """base to the power exponent; robust: with a bounded derivative at 0."""
def MatrixMultiply(left: _Value = ..., right: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The matrix product."""
def Greater(left: _Value = ..., right: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """left > right."""
def Less(left: _Value = ..., right: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """left < right."""
def GreaterEqual(left: _Value = ..., right: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """left >= right."""
def LessEqual(left: _Value = ..., right: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """left <= right."""
def Equal(left: _Value = ..., right: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """left == right."""
def NotEqual(left: _Value = ..., right: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """left != right."""
def LogicalNot(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """not input."""
def LogicalAnd(left: _Value = ..., right: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """left & right."""
def LogicalOr(left: _Value = ..., right: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """left | right."""
def LogicalXOr(left: _Value = ..., right: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """left ^ right."""
def ShiftLeft(input: _Value = ..., shift: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """input << shift."""
def ShiftRight(input: _Value = ..., shift: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """input >> shift."""
def Absolute(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """|input|."""
def Negate(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """-input."""
def Exponential(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """e to the power input."""
def Sqrt(robust: _Value = False, input: _Value = ..., threshold: _Value = 'MIN_POSITIVE_NORMAL', *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The square root; robust: of |input|, with a bounded derivative."""
def Sine(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """sin(input)."""
def Cosine(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """cos(input)."""
def Floor(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Rounded down."""
def Clamp(min_val: _Value = ..., max_val: _Value = ..., input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Limited to [min_val, max_val]."""
def AtLeast1D(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """With a dimension, where it had none."""
def Mean(axis: _Value = None, keepdim: _Value = False, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The mean along axes."""
def Sum(axis: _Value = None, keepdim: _Value = False, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The sum along axes."""
def Max(axis: _Value = None, keepdim: _Value = False, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The maximum along axes."""
def Min(axis: _Value = None, keepdim: _Value = False, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The minimum along axes."""
def Prod(axis: _Value = None, keepdim: _Value = False, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The product along axes."""
def ArgMax(axis: _Value = None, keepdim: _Value = False, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Where the maximum is."""
def ArgMin(axis: _Value = None, keepdim: _Value = False, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Where the minimum is."""
def Variance(axis: _Value = None, keepdim: _Value = False, correction: _Value = 0.0, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The variance along axes."""
def Relu(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """max(input, 0)."""
def Gelu(approximate: _Value = False, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """input times the normal distribution function of input."""
def Sigmoid(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """1 / (1 + exp(-input))."""
def Softmax(input: _Value = ..., axis: _Value = -1, *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """exp(input) divided by its sum along an axis."""
def Softplus(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """log(1 + exp(input))."""
def Tanh(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """tanh(input)."""
def LeakyRelu(slope: _Value = 0.01, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """input, times slope where it is negative."""
def StopGradient(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Its input, without a derivative."""
def Log(robust: _Value = False, input: _Value = ..., threshold: _Value = 'MIN_POSITIVE_NORMAL', *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The logarithm; robust: of |input|, finite at 0."""
def StableReciprocal(input: _Value = ..., threshold: _Value = 'STABLE_RECIPROCAL_THRESHOLD', *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """1 / input, finite at 0."""
def Sign(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """-1, 0 or 1."""
def Square(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """input squared."""
def IsNan(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Whether an element is NaN."""
def ZerosLike(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Zeros of the shape of input."""
def NanToNum(nan: _Value = 0.0, posinf: _Value = None, neginf: _Value = None, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Numbers instead of NaN and infinities."""
def SquaredError(input: _Value = ..., target: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """(input - target)^2."""
def AbsoluteError(input: _Value = ..., target: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """|input - target|."""
def HingeLoss(input: _Value = ..., target: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """max(0, 1 - target input)."""
def QuadHingeLoss(input: _Value = ..., target: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The hinge loss squared."""
def QuantileLoss(quantile: _Value = 0.5, input: _Value = ..., target: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The loss whose minimum is a quantile."""
def CrossEntropy(input_type: _Value = 'logits', weights: _Value = '', input: _Value = ..., target: _Value = ..., robust: _Value = False, threshold: _Value = 'MIN_POSITIVE_NORMAL', categorical: _Value = True, *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The cross entropy of classes, from logits, probabilities or their logarithms."""
def KLDivergence(input: _Value = ..., target: _Value = ..., threshold: _Value = 'MIN_POSITIVE_NORMAL', *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """target log(target / input)."""
def BinaryCrossEntropy(input_type: _Value = 'logits', pos_weight: _Value = 1.0, input: _Value = ..., target: _Value = ..., threshold: _Value = 'MIN_POSITIVE_NORMAL', robust: _Value = False, *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The cross entropy of two classes."""
def PrimitiveConvolution1D(use_bias: _Value = True, input: _Value = ..., weight: _Value = ..., stride: _Value = 1, padding: _Value = (0, 0), dilation: _Value = 1, bias: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A convolution over [batch, channels, length]."""
def PrimitiveConvolution2D(use_bias: _Value = True, input: _Value = ..., weight: _Value = ..., stride: _Value = 1, padding: _Value = (0, 0), dilation: _Value = 1, groups: _Value = 1, bias: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A convolution over [batch, channels, height, width]."""
def PrimitiveMaxPool1D(input: _Value = ..., kernel_size: _Value = ..., stride: _Value = ..., padding: _Value = (0, 0), dilation: _Value = 1, *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The maximum of each window."""
def PrimitiveMaxPool2D(input: _Value = ..., kernel_size: _Value = ..., stride: _Value = ..., padding: _Value = (0, 0), dilation: _Value = 1, *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The maximum of each window."""
def PrimitiveAvgPool2D(input: _Value = ..., kernel_size: _Value = ..., stride: _Value = ..., padding: _Value = (0, 0), dilation: _Value = 1, *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The mean of each window."""
def PaddingConverter1D(kernel_size: _Value = ..., input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Padding as a pair."""
def PaddingConverter2D(kernel_size: _Value = ..., input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Padding for two dimensions."""
def StrideConverter(kernel_size: _Value = ..., input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The stride, by default the kernel's size."""
def TupleConverter(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A number as a pair."""
def MaxPool1D(kernel_size: _Value = ..., stride: _Value = None, padding: _Value = (0, 0), dilation: _Value = 1, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The maximum of windows over the last dimension."""
def MaxPool2D(kernel_size: _Value = ..., stride: _Value = None, padding: _Value = (0, 0), dilation: _Value = 1, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The maximum of windows over the last two dimensions."""
def AvgPool2D(kernel_size: _Value = ..., stride: _Value = None, padding: _Value = (0, 0), dilation: _Value = 1, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The mean of windows over the last two dimensions."""
def Convolution1D(kernel_size: _Value = None, out_channels: _Value = None, stride: _Value = 1, padding: _Value = 0, dilation: _Value = 1, use_bias: _Value = True, input: _Value = ..., weight: _Value = ..., bias: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A convolution layer over [batch, channels, length]."""
def Convolution2D(kernel_size: _Value = None, out_channels: _Value = None, stride: _Value = (1, 1), padding: _Value = (0, 0), dilation: _Value = (1, 1), groups: _Value = 1, use_bias: _Value = True, input: _Value = ..., weight: _Value = ..., bias: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A convolution layer over [batch, channels, height, width]."""
def Shape(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The sizes of the dimensions."""
def Size(dim: _Value = None, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The number of elements, or the size of dimensions."""
def Length(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The length of a list or of the first dimension."""
def Reshape(shape: _Value = ..., input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The same elements in another shape."""
def Transpose(axes: _Value = None, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Permuted dimensions."""
def SwapAxes(axis1: _Value = ..., axis2: _Value = ..., input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Two dimensions exchanged."""
def Flatten(start_dim: _Value = 0, end_dim: _Value = -1, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Several dimensions as one."""
def Squeeze(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Without dimensions of size 1."""
def BroadcastTo(shape: _Value = ..., input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Repeated to a shape."""
def Concat(input: _Value = ..., axis: _Value = 0, n: _Value = None, *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Tensors joined along an axis; None: all elements in a row."""
def Split(split_size: _Value = ..., axis: _Value = 0, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Equal parts, stacked."""
def Pad(pad_width: _Value = ..., input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Zeros around."""
def PermuteTensor(indices: _Value = ..., input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Rows in another order."""
def Slice(start: _Value = None, stop: _Value = None, step: _Value = None, *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A slice, to index with."""
def Indexer(index: _Value = ..., input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """input[index]."""
def ToTuple(n: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Values as a tuple."""
def ToList(n: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Values as a list."""
def PrimitiveUnion(n: _Value = 1, *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Numbers and tuples as one tuple."""
def ToTensor(input: _Value = ..., dtype: _Value = None, *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Numbers or a list as a tensor."""
def TensorToList(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A tensor as nested lists."""
def Item(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The only element as a number."""
def Cast(dtype: _Value = ..., input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The elements in another dtype."""
def Dtype(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The dtype."""
def Where(cond: _Value = ..., input1: _Value = ..., input2: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """input1 where cond holds, else input2."""
def Eye(N: _Value = ..., M: _Value = None, dtype: _Value = None, *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Ones on the diagonal."""
def EyeComplement(N: _Value = ..., M: _Value = None, dtype: _Value = None, *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Ones off the diagonal."""
def Ones(shape: _Value = ..., dtype: _Value = None, *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Ones."""
def Arange(start: _Value = 0, stop: _Value = ..., step: _Value = 1, dtype: _Value = None, *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Numbers at equal steps."""
def PrimitiveRandn(shape: _Value = ..., key: _Value = ..., dtype: _Value = None, *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Standard normal numbers."""
def PrimitiveRandInt(shape: _Value = ..., key: _Value = ..., low: _Value = ..., high: _Value = ..., dtype: _Value = None, *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Random integers from low to below high."""
def Randn(shape: _Value = ..., key: _Value = ..., dtype: _Value = None, *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Standard normal numbers."""
def RandInt(shape: _Value = ..., key: _Value = ..., low: _Value = ..., high: _Value = ..., dtype: _Value = None, *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Random integers from low to below high."""
def Embedding(num_embeddings: _Value = None, dim: _Value = None, input: _Value = ..., weight: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Rows of weight, by number."""
def ScaledDotProduct(is_causal: _Value = True, scale: _Value = None, dropout_p: _Value = 0.0, use_attn_mask: _Value = False, query: _Value = ..., key: _Value = ..., value: _Value = ..., attn_mask: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Attention: softmax(query key^T scale) value."""
def PositionalEncoding(hidden_dim: _Value = ..., max_len: _Value = 5000, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Sines and cosines of positions, added."""
def CartesianDifference(left: _Value = ..., right: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """All differences of two sets of rows."""
def DistanceMatrix(left: _Value = ..., right: _Value = ..., norm: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Sums of powers of differences of rows."""
def NormModifier(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A norm between 1 and 5."""
def PolynomialFeatures(degree: _Value = ..., input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Products of columns up to a degree."""
def TsnePJoint(squared_distances: _Value = ..., target_perplexity: _Value = ..., threshold: _Value = 'EPSILON', *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Joint probabilities of neighbours at a perplexity."""
def Cholesky(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The lower Cholesky factor."""
def GPRAlpha(label_mu_diff: _Value = ..., L: _Value = ..., K_term: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The solution for the labels of a Gaussian process."""
def GPRVOuter(K: _Value = ..., K_term: _Value = ..., L: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """K^T K_term^-1 K."""
def Eigvalsh(K_term: _Value = ..., L: _Value = ..., threshold: _Value = 'EPSILON', *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The diagonal of a factor."""
def TransposedDiagonal(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The diagonal as a column."""
def AUCCore(input: _Value = ..., label: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """True and false positive rates."""
def Unique(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The distinct elements, sorted."""
def Trapezoid(x: _Value = ..., y: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The integral of y over x."""
def Linear(dimension: _Value = None, use_bias: _Value = True, input: _Value = ..., weight: _Value = ..., bias: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """input weight^T + bias."""
def ElementWiseAffine(input: _Value = ..., weight: _Value = ..., bias: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """input * weight + bias."""
def Layer(activation: _Value = ..., dimension: _Value = None, input: _Value = ..., weight: _Value = ..., bias: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A linear layer and its activation."""
def MLP(activations: _Value = None, dimensions: _Value = None, input_name_templates: _Value = None, input: _Value = ..., input_size: _Value = None, hidden_sizes: _Value = None, output_size: _Value = None, activation: _Value = None, output_activation: _Value = None, *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Layers in a row; weights are weight0, bias0, weight1, ..."""
def SiLU(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """input * sigmoid(input)."""
def LogisticRegression(input: _Value = ..., weight: _Value = ..., bias: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A score and its probability, probs_output."""
def LinearSVM(input: _Value = ..., weight: _Value = ..., bias: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A score and its sign, decision_output."""
def PolynomialRegression(degree: _Value = ..., dimension: _Value = None, input: _Value = ..., weight: _Value = ..., bias: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A linear layer on polynomial features."""
def MultiHeadAttention(dim: _Value = ..., num_heads: _Value = ..., is_causal: _Value = False, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Attention with several heads on [batch, length, dim]."""
def LayerNorm(use_scale: _Value = True, use_bias: _Value = True, eps: _Value = 1e-05, input: _Value = ..., weight: _Value = ..., bias: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Zero mean, unit variance along the last dimension."""
def GroupNorm(num_groups: _Value = 32, use_scale: _Value = True, use_bias: _Value = True, eps: _Value = 1e-05, input: _Value = ..., weight: _Value = ..., bias: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Zero mean, unit variance of groups of channels."""
def BatchNorm2D(num_features: _Value = None, use_scale: _Value = True, use_bias: _Value = True, eps: _Value = 1e-05, momentum: _Value = 0.1, inference: _Value = True, input: _Value = ..., weight: _Value = ..., bias: _Value = ..., running_mean: _Value = ..., running_var: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Zero mean, unit variance of each channel."""
def RMSNorm(eps: _Value = 1e-05, input: _Value = ..., weight: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Unit mean square along the last dimension."""
def L1(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The sum of absolute values."""
def L2(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Half the sum of squares."""
def QuadraticFormRegularizer(input: _Value = ..., kernel: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """input kernel input^T / 2."""
def RBFKernel(input1: _Value = ..., input2: _Value = ..., l_scale: _Value = ..., sigma: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A Gaussian of distances of rows."""
def PolynomialKernel(robust: _Value = True, input1: _Value = ..., input2: _Value = ..., poly_coef: _Value = ..., degree: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A power of inner products of rows."""
def KernelizedSVM(kernel: _Value = ..., weight: _Value = ..., bias: _Value = ..., input1: _Value = ..., input2: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A linear layer on a kernel."""
def GPRLoss(robust: _Value = False, labels: _Value = ..., mu: _Value = ..., L: _Value = ..., K_term: _Value = ..., alpha: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The negative log likelihood of a Gaussian process."""
def GaussProcessRegressionCore(s: _Value = ..., k: _Value = ..., k_star: _Value = ..., mu: _Value = ..., label: _Value = ..., loss: _Value = ..., prediction: _Value = ..., confidence: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A Gaussian process: loss, prediction and confidence."""
def RNNCell(input: _Value = ..., w_ih: _Value = ..., w_hh: _Value = ..., w_ho: _Value = ..., bias_h: _Value = ..., bias_o: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """One step of a recurrent network."""
def LSTMCell(input: _Value = ..., w_i: _Value = ..., w_f: _Value = ..., w_c: _Value = ..., w_o: _Value = ..., bias_f: _Value = ..., bias_i: _Value = ..., bias_c: _Value = ..., bias_o: _Value = ..., w_out: _Value = ..., bias_out: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """One step of a long short-term memory."""
def LSTMCellBody(input: _Value = ..., prev_hidden: _Value = ..., prev_cell: _Value = ..., w_i: _Value = ..., w_f: _Value = ..., w_c: _Value = ..., w_o: _Value = ..., bias_f: _Value = ..., bias_i: _Value = ..., bias_c: _Value = ..., bias_o: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The gates of a long short-term memory."""
def GRUCell(input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """One step of a gated recurrent unit."""
def OneToMany(cell_type: _Value = ..., max_sequence_length: _Value = ..., teacher_forcing: _Value = False, input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A sequence from one input."""
def OneToManyInference(cell_type: _Value = ..., max_sequence_length: _Value = ..., input: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A sequence that feeds itself."""
def ManyToOne(cell_type: _Value = ..., max_sequence_length: _Value = ..., hidden_concat: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The last state of a sequence."""
def EncoderDecoder(cell_type: _Value = ..., max_input_sequence_length: _Value = ..., max_target_sequence_length: _Value = ..., teacher_forcing: _Value = False, indices: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A sequence from a sequence."""
def EncoderDecoderInference(cell_type: _Value = ..., max_input_sequence_length: _Value = ..., max_target_sequence_length: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """A sequence from a sequence, without targets."""
def EncoderDistanceMatrix(get_final_distance: _Value = True, robust: _Value = True, input1: _Value = ..., input2: _Value = ..., norm: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Distances of rows in a norm."""
def MDSCore(exact_distances: _Value = True, robust: _Value = True, distances: _Value = ..., pred_distances: _Value = ..., norm: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The stress of predicted distances."""
def TSNECore(exact_distances: _Value = True, calculate_p_joint: _Value = False, perplexity: _Value = 20.0, distances: _Value = ..., pred_distances: _Value = ..., p_joint: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The loss of t-SNE."""
def DistanceEncoder(base_model: _Value = ..., input_type: _Value = 'distances', input: _Value = ..., coords: _Value = ..., norm: _Value = ..., predicted_coords: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Coordinates that keep distances."""
def MDS(prediction_dim: _Value = ..., input_type: _Value = 'distances', input: _Value = ..., coords: _Value = ..., norm: _Value = ..., predicted_coords: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Multidimensional scaling."""
def TSNE(prediction_dim: _Value = ..., input_type: _Value = 'distances', preplexity: _Value = 20.0, calculate_p_joint: _Value = False, input: _Value = ..., coords: _Value = ..., norm: _Value = ..., predicted_coords: _Value = ..., p_joint: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """t-SNE."""
def Metric(threshold: _Value = None, is_binary: _Value = False, is_pred_one_hot: _Value = True, is_label_one_hot: _Value = True, pred: _Value = ..., label: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """Differences of predicted and true classes."""
def Accuracy(threshold: _Value = None, is_binary: _Value = False, is_pred_one_hot: _Value = True, is_label_one_hot: _Value = True, pred: _Value = ..., label: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The share of right predictions."""
def Precision(average: _Value = 'micro', n_classes: _Value = None, threshold: _Value = None, is_binary: _Value = False, is_pred_one_hot: _Value = True, is_label_one_hot: _Value = True, pred: _Value = ..., label: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The share of right ones among the predictions of a class."""
def Recall(average: _Value = 'micro', n_classes: _Value = None, threshold: _Value = None, is_binary: _Value = False, is_pred_one_hot: _Value = True, is_label_one_hot: _Value = True, pred: _Value = ..., label: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The share of a class that was predicted."""
def F1(average: _Value = 'micro', n_classes: _Value = None, threshold: _Value = None, is_binary: _Value = False, is_pred_one_hot: _Value = True, is_label_one_hot: _Value = True, pred: _Value = ..., label: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The harmonic mean of precision and recall."""
def AUC(n_classes: _Value = ..., is_label_one_hot: _Value = True, pred: _Value = ..., label: _Value = ..., *, name: str | None = None, shapes: dict[str, Sequence[_Dimension]] | None = None) -> Model:
    """The area under the curve of true over false positives."""
