"""jax.nn.initializers: the same draws for the same keys."""

from makers import *

def drawn(name, shape, dtype=None, raw_key=False, seed=0, **options):
    """A check that makes an initializer and calls it."""
    def draw(jax):
        key = (jax.random.PRNGKey if raw_key else jax.random.key)(seed)
        init = getattr(jax.nn.initializers, name)(**options)
        return init(key, shape) if dtype is None else init(key, shape, dtype)

    words = "".join(f", {word}={value!r}" for word, value in options.items())
    return check(f"nn.initializers.{name}: {shape}, {dtype}, seed {seed}{words}", draw)


fans = ["glorot_uniform", "glorot_normal", "xavier_uniform", "xavier_normal", "lecun_uniform", "lecun_normal", "he_uniform",
        "he_normal", "kaiming_uniform", "kaiming_normal"]
CASES = [
    case("nn.initializers.zeros", key(), (2, 3)), case("nn.initializers.zeros", None, (2,), "int32"), case("nn.initializers.zeros", key(), 3),
    case("nn.initializers.ones", key(), (2, 3)), case("nn.initializers.ones", None, (2,), dtype="bfloat16"), case("nn.initializers.ones", key(), (), x64=True),
    drawn("constant", (2, 3), value=1.5), drawn("constant", (2, 3), "int32", value=2), drawn("constant", (2, 2), value=[1.0, 2.0]), drawn("constant", (3, 2), "bfloat16", value=0.3),
    drawn("uniform", (2, 3)), drawn("uniform", (4,), "bfloat16", scale=2.0), drawn("uniform", (2, 3), raw_key=True), drawn("uniform", (2,), "int32"),
    drawn("normal", (2, 3)), drawn("normal", (4,), "float16", stddev=2.0), drawn("normal", (3, 2), "complex64", stddev=0.5), drawn("normal", (), seed=3),
    drawn("truncated_normal", (2, 3)), drawn("truncated_normal", (4,), stddev=2.0, lower=-1.0, upper=0.5), drawn("truncated_normal", (4,), "bfloat16"),
    drawn("orthogonal", (4, 3)), drawn("orthogonal", (3, 4), scale=2.0), drawn("orthogonal", (2, 3, 4)), drawn("orthogonal", (2, 3, 4), column_axis=0), drawn("orthogonal", (3,)),
    drawn("orthogonal", (0, 3)), drawn("orthogonal", (3, 3), seed=5),
    drawn("delta_orthogonal", (3, 2, 4)), drawn("delta_orthogonal", (3, 3, 2, 4)), drawn("delta_orthogonal", (3, 2, 5, 2, 2)), drawn("delta_orthogonal", (3, 4)), drawn("delta_orthogonal", (3, 4, 2)),
]
for name in fans:
    CASES += [drawn(name, (4, 6)), drawn(name, (3, 3, 4, 6), "bfloat16"), drawn(name, (4, 6), raw_key=True, seed=7), drawn(name, (2, 4, 6), in_axis=0, out_axis=-1, batch_axis=1)]
for mode in ["fan_in", "fan_out", "fan_avg", "fan_geo_avg", "other"]:
    CASES.append(drawn("variance_scaling", (4, 6), scale=1.5, mode=mode, distribution="normal"))
for distribution in ["truncated_normal", "normal", "uniform", "other"]:
    for dtype in ["float32", "complex64"]:
        CASES.append(drawn("variance_scaling", (4, 6), dtype, scale=1.5, mode="fan_in", distribution=distribution))
CASES += [
    drawn("he_normal", (4,)), drawn("he_normal", (4,), in_axis=0, out_axis=0), drawn("he_normal", (4, 3), in_axis=5), drawn("lecun_normal", (2, 3, 4), in_axis=(0, 1)),
    check("nn.initializers.glorot_normal: dtype of the maker", lambda jax: jax.nn.initializers.glorot_normal(dtype=jax.numpy.bfloat16)(jax.random.key(1), (2, 3))),
    check("nn.initializers.he_uniform: under jit", lambda jax: jax.jit(lambda k: jax.nn.initializers.he_uniform()(k, (2, 3)))(jax.random.key(1))),
    check("nn.initializers.normal: x64", lambda jax: jax.nn.initializers.normal()(jax.random.key(1), (2, 3)), x64=True),
]
