"""What a notebook shows of arrays, programs, profiles, plans and models: well-formed HTML with the values in it."""
import xml.etree.ElementTree

import numpy as np
import pytest

import capibara
import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara import mithril
from capibara.core import tpu
from capibara.jax import profiling
from capibara.mithril import models


def parsed(value):
    """The HTML of a value as a tree; raises where a tag is not closed or a character not escaped."""
    return xml.etree.ElementTree.fromstring(f"<div>{value._repr_html_()}</div>")


def cells(tree):
    return [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]


def text(tree):
    return "".join(tree.itertext())


@pytest.mark.parametrize("values", [[[1.5, -2.0], [0.25, 1e-7]], [1, 2, 3], 4.5, [True, False], [[1 + 2j]]])
def test_small_arrays_are_tables_of_their_values(values):
    shown = cells(parsed(jnp.asarray(values)))
    expected = np.atleast_2d(np.asarray(values))
    read = np.array([[eval(cell) for cell in row] for row in shown])
    np.testing.assert_allclose(read, expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int4", "uint8", "float8_e4m3fn"])
def test_arrays_of_every_width_have_their_values_and_type(dtype):
    tree = parsed(jnp.array([1, 2, 3], dtype))
    assert cells(tree) == [["1", "2", "3"]]
    assert jnp.array([1, 2, 3], dtype).aval.str_short() in text(tree)


def test_large_arrays_show_their_ends():
    shown = cells(parsed(jnp.arange(300 * 400).reshape(300, 400)))
    assert len(shown) == 11 and all(len(row) == 11 for row in shown)
    assert shown[0][:2] == ["0", "1"] and shown[0][5] == "…" and shown[5] == ["…"] * 11
    assert shown[-1][-1] == str(300 * 400 - 1)


@pytest.mark.parametrize("array", [jnp.zeros((2, 2, 2)), jnp.zeros((0, 3)), jax.random.key(0)])
def test_other_arrays_show_their_text(array):
    assert str(array) in text(parsed(array)) and not cells(parsed(array))


def test_traced_and_deleted_arrays_leave_the_choice_to_the_notebook():
    seen = []
    jax.jit(lambda x: seen.append(x._repr_html_()) or x)(jnp.ones(2))
    gone = jnp.ones(2)
    gone.delete()
    assert seen == [None] and gone._repr_html_() is None


def test_jaxprs_are_their_text_with_bold_primitives():
    program = jax.make_jaxpr(lambda x: jnp.where(x < 1, jnp.tanh(x), x @ x))(jnp.ones(3))
    for shown in (program, program.jaxpr):
        tree = parsed(shown)
        assert text(tree) == str(shown)
        assert {"lt", "tanh", "dot_general", "jit"} <= {bold.text for bold in tree.iter("b")}


def test_profiles_list_the_sites_of_their_summary():
    with profiling.profile("product"):
        jax.jit(lambda x: jnp.tanh(x @ x))(jnp.ones((64, 64))).block_until_ready()
    _, profile = profiling.profiles()[-1]
    _, summary = profiling.summaries()[-1]
    profiling.clear()
    shown = cells(parsed(profile))
    assert shown[0][:3] == ["ms", "share", "calls"] and len(shown) == 1 + len(summary["rows"])
    assert [int(row[2]) for row in shown[1:]] == [row["calls"] for row in summary["rows"]]
    assert any("dot_general" in row[7] and "test_notebook.py" in row[8] for row in shown[1:])


def test_plans_are_tables_and_still_dictionaries():
    for plan in (tpu.estimate_step("llama3.1-8b", "v6e-8"), tpu.analyze_bottlenecks("llama3.1-8b", "v6e-8")):
        assert isinstance(plan, dict) and plan == dict(plan)
        tree = parsed(plan)
        assert [row[0] for row in cells(tree)] == list(plan)
        assert "a batch of 8 sequences" in text(tree)


def test_named_models_are_pictures():
    model = models.Model()
    model |= models.Linear(4)(input="x", output="h")
    model |= models.Relu()(input="h", output=mithril.IOKey("y"))
    assert "<svg" in model._repr_html_() and "Relu" in text(parsed(model))
    compiled = mithril.compile(model, mithril.JaxBackend(), shapes={"x": [2, 3]}, jit=False)
    assert "<svg" in compiled._repr_html_()


def test_models_list_their_parameters():
    def apply(params, x):
        return x @ params["w<1>"] + params["b"]

    model = capibara.as_model(apply, {"w<1>": jnp.ones((3, 4)), "b": jnp.zeros(4)})
    tree = parsed(model)
    assert cells(tree)[1:] == [["b", "float32[4]", "4"], ["w<1>", "float32[3, 4]", "12"]]
    assert "16 parameters in 2 arrays" in text(tree)
