"""Keys that are used twice are found: in programs that are read, and in calls while jax_debug_key_reuse is on."""
import jax
import jax.numpy as jnp
from jax import lax, random
from jax.errors import KeyReuseError
from jax.experimental.key_reuse._core import check_key_reuse, function_type_signature

key = random.key(0)


def show(name, function, *args):
    try:
        function(*args)
        print(name, "fine")
    except KeyReuseError as error:
        print(name, str(error).splitlines()[0].split(" when ")[0].split(".")[0])


def scanned(key):
    return lax.scan(lambda key, _: (key, random.bits(key)), key, None, length=3)


def renewed(key):
    def body(key, _):
        key, own = random.split(key)
        return key, random.bits(own)
    return lax.scan(body, key, None, length=3)


show("twice", check_key_reuse, lambda key: (random.bits(key), random.bits(key)), key)
show("split first", check_key_reuse, lambda key: [random.bits(k) for k in random.split(key)], key)
show("one part twice", check_key_reuse, lambda keys: (random.bits(keys[0]), random.bits(keys[1]), random.bits(keys[0])), random.split(key))
show("folded", check_key_reuse, lambda key: (random.bits(random.fold_in(key, 1)), random.bits(key)), key)
show("cloned", check_key_reuse, lambda key: (random.bits(random.clone(key)), random.bits(key)), key)
show("reshaped", check_key_reuse, lambda key: (random.bits(key), random.bits(key[None].squeeze())), key)
show("in a branch", check_key_reuse, lambda key: (lax.cond(True, random.bits, lambda _: jnp.uint32(0), key), random.bits(key)), key)
show("scanned", check_key_reuse, scanned, key)
show("renewed", check_key_reuse, renewed, key)
show("loop condition", check_key_reuse, lambda key: lax.while_loop(lambda i: i < random.uniform(key), lambda i: i + 1, 0.0), key)
show("checkpoint", check_key_reuse, jax.checkpoint(lambda key: (random.bits(key), random.bits(key))), key)
print(function_type_signature(random.split, key), function_type_signature(random.bits, key))
print(function_type_signature(lambda key: (key[None], key), key))

f = jax.jit(lambda key: random.bits(key))
with jax.debug_key_reuse(True):
    for _ in range(2):
        show("call of jit", f, key)
    for _ in range(2):
        show("call of bits", random.bits, random.clone(key))
    show("inside of jit", jax.jit(lambda key: random.bits(key) + random.bits(key)), random.key(1))
    show("split", jax.vmap(random.bits), random.split(random.key(2), 3))
with jax.debug_key_reuse(False):
    show("not looked for", f, key)
