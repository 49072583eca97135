"""jax.experimental.roofline: how much arithmetic, memory traffic and communication a function's program needs, without running it."""
from capibara._modules import explain_missing
from capibara.jax.experimental.roofline import rooflines  # noqa: F401
from capibara.jax.experimental.roofline.roofline import (  # noqa: F401
    RooflineResult,
    RooflineRuleContext,
    RooflineShape,
    register_roofline,
    register_standard_roofline,
    roofline,
    roofline_and_grad,
)

del rooflines
explain_missing(__name__, later={"rooflines": None})
