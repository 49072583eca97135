"""print_saved_residuals prints jax's types and origins, with the line of this file that each value comes from."""
import re

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax.ad_checkpoint import checkpoint_name, print_saved_residuals


def layer(w, x):
    return jnp.sin(checkpoint_name(jnp.dot(w, x), "product"))


def two_layers(w, v, x):
    return layer(v, layer(w, x))


def printed(policy, capsys):
    print_saved_residuals(jax.checkpoint(two_layers, policy=policy), jnp.ones((5, 4)), jnp.ones((6, 5)), jnp.ones(4))
    return capsys.readouterr().out.splitlines()


def test_origins_are_those_of_jax_with_their_lines(capsys):
    line = layer.__code__.co_firstlineno + 1
    arguments = ["f32[5,4] from the argument w", "f32[6,5] from the argument v", "f32[4] from the argument x"]
    assert printed(jax.checkpoint_policies.nothing_saveable, capsys) == arguments
    for policy, origin in ((jax.checkpoint_policies.save_only_these_names("product"), "named 'product'"),
                           (jax.checkpoint_policies.dots_saveable, "output of dot_general")):
        saved = printed(policy, capsys)
        assert saved[:3] == arguments
        assert [re.sub(r"from .*test_saved_residuals\.py", "from FILE", text) for text in saved[3:]] == [
            f"f32[5] {origin} from FILE:{line}", f"f32[6] {origin} from FILE:{line}"]
