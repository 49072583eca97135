"""Makes each mistake of docs/errors.md, and checks that it gives the message quoted on the page."""

import re
import subprocess
import sys

import pytest
from test_pages import ENVIRONMENT, ROOT, run, run_cpp

PAGE = (ROOT / "docs" / "errors.md").read_text()

START = """
import numpy as np
import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.core.tpu import TPUCheckpointer
from capibara.jax import lax
from capibara.jax.sharding import NamedSharding, PartitionSpec as P
x = jnp.ones((3, 4))
kept = []
def raises(program):
    try:
        exec(program, globals())
    except Exception as error:
        return type(error).__name__ + "\\t" + " ".join(str(error).split())
    return "nothing"
"""

# A mistake for each message of the page, in the page's order.
MISTAKES = [
    "jax.jit(lambda a: a if a > 0 else -a)(1.0)",
    "jax.jit(lambda a: float(a))(1.0)",
    "jax.jit(lambda a: np.asarray(a))(1.0)",
    "jax.jit(lambda n: jnp.zeros(n))(3)",
    "jax.jit(lambda a: a[a > 0])(x)",
    "jax.jit(lambda a: jnp.nonzero(a))(x)",
    "jax.jit(kept.append)(1.0); kept[0] + 1",
    "jax.jit(lambda a, b: a, static_argnums=1)(x, [1])",
    "jax.jit(lambda a: a)('text')",
    "Layer = type('Layer', (), {'apply': jax.jit(lambda self, x: x)}); Layer().apply(x)",
    "jax.grad(lambda a: lax.while_loop(lambda c: c < 3, lambda c: c * 2, a))(1.0)",
    "lax.psum(1.0, 'i')",
    "x @ x",
    "x + jnp.ones(3)",
    "jnp.concatenate([x, jnp.ones((3, 5))])",
    "x.reshape(5, 5)",
    "jnp.sum(x, axis=3)",
    "jnp.sum([1, 2])",
    "jax.grad(lambda a: a * 2)(3)",
    "jax.grad(lambda a: a * 2)(x)",
    "jax.jvp(jnp.sin, (1.0,), (1,))",
    "jax.vmap(jnp.add)(x, jnp.ones(4))",
    "lax.scan(lambda c, a: (c.astype(jnp.int32), a), 0.0, x)",
    "lax.cond(True, lambda a: a, lambda a: a.sum(), x)",
    "lax.while_loop(lambda c: c, lambda c: c, x)",
    "jnp.ones(2, jnp.float8_e4m3fn) + jnp.ones(2, jnp.float16)",
    "jnp.array(2 ** 40)",
    "jnp.sinhh(1.0)",
    "jnp.relu(1.0)",
    "x[0] = 1",
    "y = jnp.ones(3); jax.jit(lambda a: a * 2, donate_argnums=0)(y); y + 1",
    "jnp.ones((10 ** 6, 10 ** 6))",
    "jax.config.update('jax_debug_nans', True)\ntry: jnp.log(-1.0)\nfinally: jax.config.update('jax_debug_nans', False)",
    "jax.config.update('jax_foo', 1)",
    "jax.random.normal(3, (2,))",
    "jax.random.normal((3,))",
    "jax.devices('cuda')",
    "jax.make_mesh((3, 4), ('a', 'b'))",
    "mesh = jax.make_mesh((4, 2), ('a', 'b')); jax.device_put(jnp.ones((3, 4)), NamedSharding(mesh, P('a')))",
    "jax.device_put(jnp.ones((4, 4)), NamedSharding(mesh, P('c')))",
    "s = jax.device_put(jnp.ones((4, 4)), NamedSharding(mesh, P('a'))); jnp.einsum('ij,ik->jk', s, s)",
    "jax.export.deserialize(bytearray(b'abc'))",
    "c = TPUCheckpointer('steps'); c.save(1, params={'w': x}); c.wait(); c.restore(like={'params': {'w': jnp.ones(2)}})",
    "c.restore(step=7)",
    "c.restore(like={'parms': {'w': x}})",
]

CPP_MISTAKES = [
    "jnp::sum(Array{})",
    "jax::jit([](const Array& x) { return x > 0.0f ? x : -x; })(Array(1.0f))",
    "jnp::ones({3}).item<float>()",
    "if (jnp::arange(3) == jnp::arange(3)) std::abort()",
    "lax::add(jnp::ones({3}), jnp::ones({3}, {.dtype = DType::int32}))",
    "lax::scan([](Array c, std::monostate) { return std::pair(c, c); }, Array(1.0f), std::monostate{})",
]

# Code that does not compile, in the order of the quoted messages.
NOT_COMPILED = [
    "jax::grad([](const Array& a, const Array& b) { return a * b; })(x);",
    "struct Params { Array w; }; jax::jit([](const Params& p) { return p.w; })(Params{x});",
    "jax::grad([](const Array& a) { return std::string(); })(x);",
    "jax::custom_vjp([](auto a) { return a; });",
    "struct Other {}; array<Other>(std::vector<Other>(2));",
    "lax::scan([](Array c, Array y) { return c; }, x, x);",
    "lax::while_loop([](Array i) { return i < 5; }, [](Array i) { i + 1; }, x);",
    "lax::cond(Array(true), [](Array y) { return y; }, [](Array y) { return std::pair(y, y); }, x);",
    "jax::jit([](const Array& a) { return a; })(std::string());",
    "x(0) = 5;",
]


def messages(first, last):
    """The quoted messages of the page's tables between two headings."""
    part = PAGE[PAGE.index(first):PAGE.index(last) if last else len(PAGE)]
    return [cell.strip()[1:-1] for cell in re.findall(r"^\| (`.*?`) \| ", part, re.MULTILINE)]


def fits(message, said):
    """True if a message begins as quoted on the page; three dots match anything."""
    parts = [re.escape(" ".join(part.split())) for part in message.split("...")]
    return re.match(".*?".join(parts).replace(r"\ .*?", r" ?.*?"), said) is not None


PYTHON = messages("## Traced values", "## In C++")
CPP = messages("## In C++", "What the compiler says")
COMPILER = messages("What the compiler says", None)


def test_each_message_has_its_mistake():
    assert (len(PYTHON), len(CPP), len(COMPILER)) == (len(MISTAKES), len(CPP_MISTAKES), len(NOT_COMPILED))


def test_another_message_is_found():
    assert fits("got ... for float32[3]", "got (4,) for float32[3] and more")
    assert not fits("got ... for float32[3]", "got (4,) for int32[3]")


def test_python_says_what_the_page_says(tmp_path):
    program = START + "".join(f"print(raises({mistake!r}))\n" for mistake in MISTAKES)
    (tmp_path / "mistakes.py").write_text(program)
    said = [line.partition("\t")[2] for line in run([sys.executable, "mistakes.py"], tmp_path).splitlines()]
    assert len(said) == len(PYTHON)
    assert [(message, got[:200]) for message, got in zip(PYTHON, said) if not fits(message, got)] == []


HEAD = """#include <capibara/capibara.h>
#include <iostream>
using namespace capibara;
namespace jnp = jax::numpy;
namespace lax = jax::lax;
"""


@pytest.mark.slow
def test_cpp_says_what_the_page_says(tmp_path):
    caught = "} catch (const Error& error) { std::cout << error.what() << '\\0'; }"
    tries = "".join(f"try {{ {mistake}; {caught}\n" for mistake in CPP_MISTAKES)
    said = [" ".join(part.split()) for part in run_cpp(HEAD + "int main() {\n" + tries + "}\n", tmp_path).split("\0")[:-1]]
    assert [(message, got) for message, got in zip(CPP, said, strict=True) if not fits(message, got)] == []


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(NOT_COMPILED)), ids=lambda number: NOT_COMPILED[number].split("(")[0][-20:])
def test_the_compiler_says_what_the_page_says(number, tmp_path):
    (tmp_path / "mistake.cpp").write_text(HEAD + "void mistake(Array x) {\n" + NOT_COMPILED[number] + "\n}\n")
    command = ["g++", "-std=c++20", "-fsyntax-only", "-I", str(ROOT / "include"), "mistake.cpp"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode != 0
    said = done.stderr.replace("‘", "'").replace("’", "'")
    expected = ".*".join(map(re.escape, COMPILER[number].split("...")))
    errors = [line for line in said.splitlines() if ": error: " in line]
    assert errors and re.search(expected, errors[0]), errors
    assert len(said.splitlines()) <= 30, said
