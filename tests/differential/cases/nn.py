"""jax.nn: activations, softmax, logarithms of sums, attention, one-hot codes."""

from makers import *

activations = ["relu", "relu6", "sigmoid", "softplus", "sparse_plus", "sparse_sigmoid", "soft_sign", "silu", "swish", "mish",
               "log_sigmoid", "hard_tanh", "hard_sigmoid", "hard_silu", "hard_swish", "selu", "tanh", "squareplus", "elu",
               "celu", "leaky_relu", "gelu", "identity"]
CORNERS = array([-6.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0, 7.0])

CASES = []
for name in activations:
    CASES += [
        case(f"nn.{name}", CORNERS),
        case(f"nn.{name}", HARD32),
        case(f"nn.{name}", bf16(2, 3)),
        case(f"nn.{name}", f16(4)),
        case(f"nn.{name}", i32(4)),
        case(f"nn.{name}", 0.5),
        case(f"nn.{name}", zeros((0, 3))),
    ]
CASES += [
    case("nn.relu", i8(4)), case("nn.relu", b1(3)), case("nn.relu", 2), case("nn.relu", [1.0, 2.0]),
    case("nn.relu", f64(3), x64=True),
    case("nn.tanh", c64(3)), case("nn.silu", c64(3)), case("nn.sigmoid", c64(3)), case("nn.softplus", c64(3)),
    case("nn.log1mexp", POSITIVE32), case("nn.log1mexp", i32(3, low=1)), case("nn.log1mexp", 0.1), case("nn.log1mexp", bf16(3, low=0.5)),
    case("nn.elu", f32(3, 2), f32(2), transforms=True), case("nn.elu", f32(3), alpha=2), case("nn.elu", f32(3), 0.3),
    case("nn.celu", f32(3, 2), f32(2, low=0.5), transforms=True), case("nn.celu", f32(3), alpha=2),
    case("nn.squareplus", f32(3), b=1.0), case("nn.squareplus", f32(3), f32(3, low=0.1)), case("nn.squareplus", i32(3)),
    case("nn.leaky_relu", f32(5), 0.2), case("nn.leaky_relu", f32(5), negative_slope=f32(5)), case("nn.leaky_relu", i32(4), 2),
    case("nn.gelu", f32(6), approximate=False, transforms=True), case("nn.gelu", bf16(6), False), case("nn.gelu", 1, False),
    case("nn.gelu", i32(3), False), case("nn.gelu", c64(3)), case("nn.gelu", HARD32, False),
    case("nn.glu", f32(3, 4)), case("nn.glu", f32(4, 3), axis=0, transforms=True), case("nn.glu", bf16(2, 4), -1),
    case("nn.glu", f32(3, 3)), case("nn.glu", f32(4), axis=2),

    case("nn.softmax", f32(3, 4)), case("nn.softmax", f32(3, 4), axis=0), case("nn.softmax", f32(3, 4), axis=(0, 1), transforms=True),
    case("nn.softmax", f32(2, 3, 4), axis=None), case("nn.softmax", HARD32), case("nn.softmax", bf16(3, 4)), case("nn.softmax", f16(3, 4)),
    case("nn.softmax", i32(3, 4)), case("nn.softmax", f32(3, 4), where=b1(3, 4), transforms=True), case("nn.softmax", f32(3, 4), 0, b1(4)),
    case("nn.softmax", f32(3, 4), where=zeros((3, 4), bool)), case("nn.softmax", array([-np.inf, -np.inf])), case("nn.softmax", array([1e30, 0.0]), grad=True),
    case("nn.softmax", 2.0, axis=()), case("nn.softmax", 2.0), case("nn.softmax", f32(3, 4), axis=2), case("nn.softmax", zeros((0, 3))), case("nn.softmax", zeros((3, 0))),
    case("nn.softmax", b1(4)), case("nn.softmax", f32(3), where=i32(3)), case("nn.softmax", f64(3), x64=True), case("nn.softmax", i32(3), where=b1(3)),
    case("nn.log_softmax", f32(3, 4)), case("nn.log_softmax", f32(3, 4), axis=(0, -1), transforms=True), case("nn.log_softmax", HARD32),
    case("nn.log_softmax", bf16(3, 4)), case("nn.log_softmax", i32(3, 4)), case("nn.log_softmax", f32(3, 4), where=b1(3, 4), transforms=True),
    case("nn.log_softmax", f32(3, 4), axis=None), case("nn.log_softmax", f32(3, 4), axis=3), case("nn.log_softmax", array([1e30, 0.0]), grad=True),

    case("nn.logsumexp", f32(3, 4)), case("nn.logsumexp", f32(3, 4), axis=1, keepdims=True), case("nn.logsumexp", f32(3, 4), axis=(0, 1)),
    case("nn.logsumexp", f32(3, 4), b=f32(3, 4), transforms=True), case("nn.logsumexp", f32(3, 4), b=f32(4), axis=1, return_sign=True, transforms=True),
    case("nn.logsumexp", f32(3, 4), return_sign=True), case("nn.logsumexp", f32(3, 4), where=b1(3, 4), axis=0, transforms=True),
    case("nn.logsumexp", c64(3, 4)), case("nn.logsumexp", c64(3, 4), return_sign=True, axis=0), case("nn.logsumexp", i32(3, 4)),
    case("nn.logsumexp", HARD32), case("nn.logsumexp", array([-np.inf, -np.inf]), grad=True), case("nn.logsumexp", array([np.inf, 1.0]), grad=True), case("nn.logsumexp", 1.5),
    case("nn.logsumexp", bf16(3, 4), axis=-1), case("nn.logsumexp", f32(3, 4), axis=5), case("nn.logsumexp", zeros((0,))), case("nn.logsumexp", f32(3), b=0),
    case("nn.logsumexp", f32(3, 4), axis=[0, 1]), case("nn.logsumexp", f64(3), x64=True), case("nn.logsumexp", b1(4)),
    case("nn.logmeanexp", f32(3, 4)), case("nn.logmeanexp", f32(3, 4), axis=1, keepdims=True), case("nn.logmeanexp", f32(3, 4), axis=0, where=b1(3, 4), transforms=True),
    case("nn.logmeanexp", i32(4)), case("nn.logmeanexp", bf16(4)),

    case("nn.standardize", f32(3, 4)), case("nn.standardize", f32(3, 4), axis=0, epsilon=0.1), case("nn.standardize", f32(3, 4), axis=(0, 1), algorithm="stable", transforms=True),
    case("nn.standardize", f32(3, 4), mean=f32(3, 1), variance=f32(3, 1, low=0.1), transforms=True), case("nn.standardize", f32(3, 4), where=b1(3, 4), transforms=True),
    case("nn.standardize", bf16(3, 4)), case("nn.standardize", f16(3, 4)), case("nn.standardize", f32(3, 4), algorithm="other"), case("nn.standardize", f32(3, 4), mean=0.5),
    case("nn.standardize", full((2, 3), 2.0)),

    case("nn.one_hot", i32(3, low=0), 5), case("nn.one_hot", i32(2, 3), 4, axis=0), case("nn.one_hot", i32(2, 3), 4, axis=1), case("nn.one_hot", i32(2, 3), 4, axis=-2, dtype="int32"),
    case("nn.one_hot", 2, 4), case("nn.one_hot", u8(3), 4, dtype=np.bool_), case("nn.one_hot", i32(3), 4, dtype="bfloat16"), case("nn.one_hot", i32(3), 0),
    case("nn.one_hot", [0, 1, 2], 3), case("nn.one_hot", f32(3), 3), case("nn.one_hot", i32(3), 4, axis=3), case("nn.one_hot", i32(3), 4, x64=True),
    check("nn.one_hot: along a mapped axis", lambda jax: jax.vmap(lambda x: jax.nn.one_hot(x, 3, axis="i"), axis_name="i")(jax.numpy.array([0, 2, 1]))),
    check("nn.one_hot: axis of another size", lambda jax: jax.vmap(lambda x: jax.nn.one_hot(x, 4, axis="i"), axis_name="i")(jax.numpy.array([0, 2, 1]))),
    check("nn.relu: second derivative", lambda jax: jax.grad(jax.grad(lambda x: jax.nn.relu(x) ** 2))(0.0)),
    check("nn.softmax: second derivative", lambda jax: jax.hessian(lambda x: jax.nn.softmax(x)[0])(jax.numpy.array([0.5, 1.0, -1.0]))),
    check("nn.relu: weak type", lambda jax: jax.nn.relu(jax.numpy.asarray(1.0)).weak_type),
]

attention = "nn.dot_product_attention"
CASES += [
    case(attention, f32(2, 3, 4, 5), f32(2, 6, 4, 5), f32(2, 6, 4, 5)),
    case(attention, f32(2, 3, 4, 5), f32(2, 6, 2, 5), f32(2, 6, 2, 5), transforms=True),
    case(attention, f32(3, 4, 5), f32(6, 4, 5), f32(6, 4, 5)),
    case(attention, f32(1, 4, 2, 3), f32(1, 4, 2, 3), f32(1, 4, 2, 3), is_causal=True, transforms=True),
    case(attention, f32(1, 4, 2, 3), f32(1, 4, 2, 3), f32(1, 4, 2, 3), f32(1, 2, 4, 4), transforms=True),
    case(attention, f32(1, 4, 2, 3), f32(1, 4, 2, 3), f32(1, 4, 2, 3), f32(4, 4), b1(1, 1, 4, 4)),
    case(attention, f32(1, 4, 4, 3), f32(1, 4, 2, 3), f32(1, 4, 2, 3), mask=b1(1, 4, 4, 4), bias=f32(1, 4, 1, 4)),
    case(attention, f32(1, 4, 2, 3), f32(1, 4, 2, 3), f32(1, 4, 2, 3), scale=0.3, implementation="xla"),
    case(attention, f32(2, 4, 2, 3), f32(2, 4, 2, 3), f32(2, 4, 2, 3), query_seq_lengths=array([2, 4]), key_value_seq_lengths=array([1, 3]), transforms=True),
    case(attention, f32(2, 4, 2, 3), f32(2, 4, 2, 3), f32(2, 4, 2, 3), query_seq_lengths=array([2, 4])),
    case(attention, f32(2, 4, 2, 3), f32(2, 4, 2, 3), f32(2, 4, 2, 3), key_value_seq_lengths=array([0, 3])),
    case(attention, f32(1, 5, 2, 3), f32(1, 5, 2, 3), f32(1, 5, 2, 3), local_window_size=1),
    case(attention, f32(1, 5, 2, 3), f32(1, 5, 2, 3), f32(1, 5, 2, 3), local_window_size=(2, 0), is_causal=True),
    case(attention, f32(1, 5, 2, 3), f32(1, 5, 2, 3), f32(1, 5, 2, 3), return_residual=True),
    case(attention, f32(5, 4, 3), f32(5, 2, 3), f32(5, 2, 3), return_residual=True, is_causal=True),
    case(attention, bf16(1, 4, 2, 8), bf16(1, 4, 2, 8), bf16(1, 4, 2, 8), is_causal=True),
    case(attention, f16(1, 4, 2, 8), f16(1, 4, 2, 8), f16(1, 4, 2, 8)),
    case(attention, f64(1, 4, 2, 8), f64(1, 4, 2, 8), f64(1, 4, 2, 8), x64=True, tolerance=1e-5),
    case(attention, f32(1, 4, 3, 3), f32(1, 4, 2, 3), f32(1, 4, 2, 3)),
    case(attention, f32(1, 4, 2, 3), f32(1, 5, 2, 3), f32(1, 4, 2, 3)),
    case(attention, f32(1, 4, 2, 3), f32(1, 4, 2, 3), bf16(1, 4, 2, 3)),
    case(attention, f32(1, 4, 2, 3), f32(1, 4, 2, 3), f32(1, 4, 2, 3), mask=f32(1, 2, 4, 4)),
    case(attention, f32(1, 4, 2, 3), f32(1, 4, 2, 3), f32(1, 4, 2, 3), mask=b1(1, 3, 4, 4)),
    case(attention, f32(1, 4, 2, 3), f32(1, 4, 2, 3), f32(1, 4, 2, 3), implementation="other"),
    case(attention, f32(1, 4, 2, 3), f32(1, 4, 2, 3), f32(1, 4, 2, 3), query_seq_lengths=array([1.0])),
]


def own(jax, name, formula):
    """A function of capibara's own where the library has it, else its formula in terms of jax."""
    return getattr(jax.nn, name, formula)


def swiglu(jax):
    formula = lambda x, axis=-1: (lambda a, b: jax.nn.silu(a) * b)(*jax.numpy.split(x, 2, axis))  # noqa: E731
    x = jax.numpy.asarray(np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 6))
    f = own(jax, "swiglu", formula)
    return f(x), f(x, axis=0), jax.grad(lambda y: f(y).sum())(x)


def contextual_relu(jax):
    def formula(x, context):
        return jax.nn.relu(x - jax.numpy.tanh(context.mean(axis=-1, keepdims=True)))

    x = jax.numpy.asarray(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))
    context = jax.numpy.asarray(np.linspace(-2, 1, 15, dtype=np.float32).reshape(3, 5))
    f = own(jax, "contextual_relu", formula)
    return f(x, context), jax.grad(lambda *both: f(*both).sum(), argnums=(0, 1))(x, context), jax.vmap(f)(x, context)


CASES += [
    check("swiglu is silu of one half times the other", swiglu),
    check("contextual_relu has a threshold of tanh of the mean context", contextual_relu),
]
