"""jax.debug: prints, logs and breakpoints of running programs."""

import contextlib
import io
import logging

from makers import *

X = np.array([0.5, -1.0, 2.0], np.float32)


class Records(logging.Handler):
    """Keeps what is logged."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.kept = []

    def emit(self, record):
        self.kept.append([record.levelname, record.getMessage(), record.name.split(".")[0]])


def logged(jax, f):
    logger, handler = logging.getLogger("jax"), Records()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        f()
        jax.effects_barrier()
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
    return handler.kept


def printed(jax, f):
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        f()
        jax.effects_barrier()
    return stream.getvalue()


# --- prints and logs -------------------------------------------------------------------------------------------------

PRINTS = [
    check("debug.log: in jit", lambda jax: logged(jax, lambda: jax.jit(lambda x: jax.debug.log("x is {x}", x=x))(3.5))),
    check("debug.log: eager, with positions", lambda jax: logged(jax, lambda: jax.debug.log("{} and {}", 1, jax.numpy.asarray(X)))),
    check("debug.log: in a loop, in order", lambda jax: logged(jax, lambda: jax.lax.fori_loop(0, 3, lambda i, c: (jax.debug.log("i={i}", i=i, ordered=True), c)[1], 0.0))),
    check("debug.log: prints nothing", lambda jax: printed(jax, lambda: jax.jit(lambda x: jax.debug.log("x is {x}", x=x))(3.5))),
    check("debug.log: percent signs and braces", lambda jax: logged(jax, lambda: jax.debug.log("100 % of {{}} {}", 3))),
    check("debug.log: a missing argument", lambda jax: jax.debug.log("{x}")),
    check("debug.log: in two calls", lambda jax: logged(jax, lambda: jax.debug.log(ordered=True)("x is {x}", x=2))),
    check("debug.print: in two calls", lambda jax: printed(jax, lambda: jax.jit(lambda x: jax.debug.print(ordered=True)("x is {x}", x=x))(2))),
    check("debug.print: a name of an option in two calls", lambda jax: printed(jax, lambda: jax.debug.print()("ordered is {ordered}", ordered=2))),
    check("debug.print: values without a format", lambda jax: jax.debug.print(x=3)),
    check("debug.print: too many arguments", lambda jax: jax.debug.print("{}", 1, 2)),
    check("debug.print: too few arguments", lambda jax: jax.debug.print("{} {}", 1)),
    check("debug.print: an unknown name", lambda jax: jax.debug.print("{y}", x=1)),
    check("debug.print: unchecked", lambda jax: printed(jax, lambda: jax.debug.print("text", 1, skip_format_check=True))),
    check("debug.print: a field with a width", lambda jax: printed(jax, lambda: jax.jit(lambda x: jax.debug.print("[{x:8.3f}]", x=x))(3.14159))),
    check("debug.print: forms", lambda jax: printed(jax, lambda: jax.debug.print("{x!r} {x!s:>9} {0!r}", 1.5, x=jax.numpy.asarray(X)))),
]

# --- breakpoints -----------------------------------------------------------------------------------------------------


def stopped(jax, commands, run, **options):
    """What the debugger wrote, and what the program returned."""
    stdin, stdout = io.StringIO("".join(f"{line}\n" for line in (*commands, "continue"))), io.StringIO()

    def stop():
        return jax.debug.breakpoint(backend="cli", stdin=stdin, stdout=stdout, num_frames=2, **options)

    out = run(stop)
    jax.effects_barrier()
    return [stdout.getvalue(), out]


def doubled(stop):
    def f(x):
        y = x * 2
        note = "kept as it is"  # noqa: F841
        def here():  # noqa: E306
            z = y + 1
            stop()
            return z
        return here()
    return f


def passed(stop_with):
    def f(x):
        x = stop_with(x)
        return x * 3
    return f


BREAKPOINTS = [
    check("debug.breakpoint: values in jit", lambda jax: stopped(jax, ["up", "p z", "z + 1", "p y"], lambda stop: jax.jit(doubled(stop))(3.0))[1]),
    check("debug.breakpoint: what it writes", lambda jax: [line for line in stopped(jax, ["p 1 + 2", "up", "p float(z)", "p unknown", "pp [1, 2]"], lambda stop: jax.jit(doubled(stop))(3.0))[0].splitlines() if not line.startswith(("> ", "->", "    "))]),
    check("debug.breakpoint: eager", lambda jax: [line for line in stopped(jax, ["up", "p float(z)"], lambda stop: doubled(stop)(jax.numpy.float32(3.0)))[0].splitlines() if not line.startswith(("> ", "->", "    "))]),
    check("debug.breakpoint: frames", lambda jax: [line for line in stopped(jax, ["down", "up", "up"], lambda stop: jax.jit(doubled(stop))(3.0))[0].splitlines() if not line.startswith(("> ", "->", "    "))]),
    check("debug.breakpoint: where", lambda jax: [line.strip() for line in stopped(jax, ["where"], lambda stop: jax.jit(doubled(stop))(3.0))[0].splitlines()][:1]),
    check("debug.breakpoint: ordered with a token", lambda jax: jax.debug.breakpoint(ordered=True, token=1.0)),
    check("debug.breakpoint: in a program", lambda jax: sorted(map(str, jax.make_jaxpr(lambda x: (jax.debug.breakpoint(), x)[1])(1.0).effects))),
    check("debug.breakpoint: ordered in a program", lambda jax: sorted(map(str, jax.make_jaxpr(lambda x: (jax.debug.breakpoint(ordered=True), x)[1])(1.0).effects))),
]

# --- names in texts --------------------------------------------------------------------------------------------------


def module_name(jax, f):
    return jax.jit(f).lower(1.0).as_text().split()[1]


def ends_low_(x):
    return x


NAMES = [
    check("lower: a module's name of a lambda", lambda jax: module_name(jax, lambda x: x)),
    check("lower: a module's name that ends in an underscore", lambda jax: module_name(jax, ends_low_)),
    check("lower: a module's name of a gradient", lambda jax: module_name(jax, jax.grad(lambda x: x * x))),
]

CASES = PRINTS + BREAKPOINTS + NAMES
