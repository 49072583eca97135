"""Four processes over MPI: data movement and sums against numpy, with the same bits in every layout."""
import pytest
from launching import PROGRAM, missing, python, run

pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))
WAYS = pytest.mark.parametrize("windows", ["1", "0"], ids=["windows", "messages"])


@WAYS
def test_every_process_gets_what_the_others_sent(windows):
    code, launch = run(4, [PROGRAM, "collectives"], CAPIBARA_MPI_WINDOWS=windows)
    assert code == 0, launch.all
    expected = "shared windows" if windows == "1" else "messages"
    for number in range(4):
        assert launch.text(number).startswith("right: ") and expected in launch.text(number), launch.all


def test_sums_are_the_same_bits_in_every_layout():
    results = {}
    for count, windows in ((1, "1"), (2, "1"), (4, "1"), (8, "1"), (4, "0")):
        code, launch = run(count, [PROGRAM, "bits"], CAPIBARA_MPI_WINDOWS=windows)
        assert code == 0, launch.all
        results[count, windows] = launch.text(0)
    assert len(set(results.values())) == 1, results
    assert len(results[4, "1"].splitlines()) == 21


NUMPY = """
    import numpy as np, ml_dtypes
    import capibara.jax as jax
    jax.distributed.initialize()
    jax.config.update("jax_enable_x64", True)
    from capibara import _core
    from capibara.jax.experimental import multihost_utils
    own, count = jax.process_index(), jax.process_count()
    names = ("bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 int2 int4 uint2 uint4 "
             "bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3b11fnuz float8_e3m4 float4_e2m1fn")
    dtypes = [np.dtype(getattr(np, name, None) or getattr(ml_dtypes, name)) for name in names.split()]
    for dtype in dtypes:
        parts = [np.random.RandomState(process).randint(-4, 5, (1, 3, 700)).astype(dtype) for process in range(count)]
        wide = np.complex128 if dtype.kind == "c" else np.float64 if "float" in dtype.name else np.int64
        total = sum(part.astype(wide) for part in parts).astype(dtype)
        got = np.asarray(_core.process_reduce(parts[own], "sum", ""))
        assert got.dtype == dtype and (got == total[0]).all(), ("sum", dtype)
        if dtype.kind != "c":
            for kind, function in (("min", np.minimum), ("max", np.maximum)):
                expected = parts[0]
                for part in parts[1:]:
                    as_is = dtype if dtype.kind in "biuf" else wide
                    expected = function(expected.astype(as_is), part.astype(as_is)).astype(dtype)
                assert (np.asarray(_core.process_reduce(parts[own], kind, "")) == expected[0]).all(), (kind, dtype)
        stacked = multihost_utils.process_allgather(parts[own][0])
        assert stacked.shape == (count, 3, 700) and (stacked == np.concatenate(parts)).all(), ("all_gather", dtype)
        assert (multihost_utils.process_allgather(parts[own][0], tiled=True) == np.concatenate([p[0] for p in parts])).all()
        assert (multihost_utils.broadcast_one_to_all(parts[own]) == parts[0]).all()
    tree = multihost_utils.process_allgather({"a": np.float32(own), "b": [np.arange(2) + own]})
    assert tree["a"].tolist() == [0, 1, 2, 3] and tree["b"][0].tolist() == [[i, i + 1] for i in range(4)]
    assert multihost_utils.broadcast_one_to_all(np.int32(own), is_source=own == 2) == 2
    multihost_utils.sync_global_devices("here")
    multihost_utils.assert_equal({"x": np.ones(3)})
    try:
        multihost_utils.assert_equal(np.float32(own), "not the same")
    except AssertionError as error:
        print("AssertionError", str(error).startswith("not the same. Expected: "), flush=True)
    print("right", own, count, flush=True)
    """


def test_every_dtype_against_numpy():
    code, launch = run(4, python(NUMPY))
    assert code == 0, launch.all
    for number in range(4):
        assert launch.lines[number] == ["AssertionError True", f"right {number} 4"], launch.all


def test_small_floats_are_rounded_once():
    program = """
        import ml_dtypes, numpy as np
        import capibara.jax as jax
        jax.distributed.initialize()
        from capibara import _core
        values = np.array([[256], [1], [1], [0]], ml_dtypes.bfloat16)
        print(float(np.asarray(_core.process_reduce(values[jax.process_index()][None], "sum", ""))[0]))
        """
    code, launch = run(4, python(program))
    assert code == 0, launch.all
    assert [launch.text(number) for number in range(4)] == ["258.0"] * 4  # rounding after each addition would give 256
