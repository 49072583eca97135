"""Reads and writes a folder with Orbax, tensorstore and zarr: test_orbax.py runs it in a separate process, with the real jax."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import tensorstore as ts

SHAPES = [(), (7,), (5, 3, 11), (0, 3)]
DTYPES = ["bool", "int4", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2",
          "bfloat16", "float16", "float32", "float64", "complex64", "complex128"]


def values(dtype, shape, seed):
    """The same numbers in every process."""
    draw = np.random.default_rng(seed)
    if dtype == "bool":
        return draw.integers(0, 2, shape).astype(bool)
    if dtype == "int4":
        return draw.integers(-8, 8, shape).astype(jnp.int4)
    plain = draw.normal(size=shape) * 50
    return (plain + 1j * draw.normal(size=shape) if dtype.startswith("complex") else np.abs(plain)).astype(jnp.dtype(dtype))


def tree():
    arrays = {f"{dtype}_{len(shape)}_{i}": values(dtype, shape, i) for i, dtype in enumerate(DTYPES) for shape in SHAPES}
    layers = [{"w": values("float32", (4, 4), 90)}, {"w": values("float32", (4, 4), 91)}]
    large = values("float32", (700, 300), 93)
    return {"arrays": arrays, "layers": layers, "pair": (values("int32", (3,), 92),), "nothing": None, "large": large}


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape and a.dtype == b.dtype, (a.shape, b.shape, a.dtype, b.dtype)
    assert a.tobytes() == b.tobytes()


def read(folder):
    """Reads step 3, written by capibara, with every available reader."""
    expected = tree()
    leaves = jax.tree.leaves(expected)

    def check(got, how):
        got = jax.tree.leaves(got)
        assert len(got) == len(leaves), (how, len(got), len(leaves))
        for a, b in zip(leaves, got):
            same(a, b)
        print("read by", how)

    item = f"{folder}/3/params"
    check(ocp.PyTreeCheckpointer().restore(item), "PyTreeCheckpointer")
    check(ocp.StandardCheckpointer().restore(item), "StandardCheckpointer")
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    abstract = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), expected)
    check(ocp.StandardCheckpointer().restore(item, abstract), "StandardCheckpointer with a target")
    with ocp.CheckpointManager(folder) as manager:
        assert manager.latest_step() == 3
        check(manager.restore(3, args=ocp.args.Composite(params=ocp.args.StandardRestore()))["params"], "CheckpointManager")
        assert manager.metadata(3).custom_metadata == {"loss": 0.5}, manager.metadata(3).custom_metadata
    for name, array in expected["arrays"].items():
        store = ts.open({"driver": "zarr3", "kvstore": f"file://{item}/arrays.{name}"}, read=True, open=True).result()
        same(array, store.read().result())
    print("read by tensorstore")


def read_zarr(folder):
    import zarr
    for name, array in tree()["arrays"].items():
        if array.dtype.name not in ("int4", "float8_e4m3fn", "float8_e5m2", "bfloat16"):  # zarr does not support these
            same(array, zarr.open_array(f"{folder}/3/params/arrays.{name}", mode="r")[...])
    print("read by zarr")


def write(folder):
    """Writes the tree in every layout of Orbax, which does not support empty arrays."""
    expected = tree()
    expected["arrays"] = {name: array for name, array in expected["arrays"].items() if array.size > 0}
    for ocdbt in (False, True):
        for zarr3 in (False, True):
            handler = ocp.PyTreeCheckpointHandler(use_ocdbt=ocdbt, use_zarr3=zarr3)
            left_out = {} if zarr3 else {"arrays": {k: v for k, v in expected["arrays"].items() if not k.startswith(("int4", "float8"))}}
            name = f"{folder}/ocdbt{int(ocdbt)}_zarr{3 if zarr3 else 2}"
            ocp.Checkpointer(handler).save(name, jax.tree.map(jnp.asarray, {**expected, **left_out}))
    with ocp.CheckpointManager(f"{folder}/manager", item_names=("params", "extra")) as manager:
        params = ocp.args.StandardSave(jax.tree.map(jnp.asarray, expected))
        manager.save(7, args=ocp.args.Composite(params=params, extra=ocp.args.JsonSave({"epoch": 2})))
    print("written")


def read_v1(folder):
    """Reads step 3 with the newer interface."""
    from orbax.checkpoint.experimental import v1
    got = jax.tree.leaves(v1.load(f"{folder}/3", checkpointable_name="params"))
    leaves = jax.tree.leaves(tree())
    assert len(got) == len(leaves), (len(got), len(leaves))
    for a, b in zip(leaves, got):
        same(a, b)
    print("read by v1")


def write_v1(folder):
    from orbax.checkpoint.experimental import v1
    expected = tree()
    expected["arrays"] = {name: array for name, array in expected["arrays"].items() if array.size > 0}
    v1.save(f"{folder}/v1", jax.tree.map(jnp.asarray, expected))
    print("written by v1")


def write_sharded(folder):
    mesh = jax.make_mesh((4, 2), ("x", "y"))
    large = jax.device_put(tree()["large"], jax.sharding.NamedSharding(mesh, jax.P("x", "y")))
    for ocdbt in (False, True):
        handler = ocp.PyTreeCheckpointHandler(use_ocdbt=ocdbt, use_zarr3=True)
        ocp.Checkpointer(handler).save(f"{folder}/sharded{int(ocdbt)}", {"large": large})
    print("written sharded")


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    globals()[sys.argv[1]](sys.argv[2])
