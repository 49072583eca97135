"""jax.experimental.key_reuse: checks that no key is reused."""
from capibara._modules import explain_missing
from capibara.jax.errors import KeyReuseError  # noqa: F401
from capibara.jax.experimental.key_reuse._core import (  # noqa: F401
    assert_consumed,
    assert_unconsumed,
    check_key_reuse,
    consume,
    function_type_signature,
)
from capibara.jax.experimental.key_reuse._signature import Forward, KeyReuseSignature, Sink, Source  # noqa: F401

explain_missing(__name__)
