"""Calls of jax.lax's collectives, inside a vmap that names the axis."""

from makers import *


def lanes(label, function, *shape, maker=f32, **options):
    values = maker(*shape, seed=1)
    return check(label, lambda jax: jax.vmap(lambda x: function(jax, x), axis_name="i")(jax.numpy.asarray(values)), **options)


def grid(label, function, *shape, **options):
    values = f32(*shape, seed=2)
    return check(label, lambda jax: jax.vmap(jax.vmap(lambda x: function(jax, x), axis_name="j"), axis_name="i")(jax.numpy.asarray(values)), **options)


# jax 0.10.2 broadcasts NumPy's arrays and constants only: elsewhere its batching rule calls take with a list.
LANES = np.arange(6, dtype=np.float32).reshape(3, 2)
BROADCASTS = [
    check("lax.pbroadcast: from one lane", lambda jax: [jax.numpy.asarray(jax.vmap(lambda x, s=source: jax.lax.pbroadcast(x, "i", s), axis_name="i")(LANES)) for source in (0, 1, 2)]),
    check("lax.pbroadcast: a tuple of names", lambda jax: jax.numpy.asarray(jax.vmap(lambda x: jax.lax.pbroadcast(x, ("i",), 1), axis_name="i")(LANES))),
    check("lax.pbroadcast: integers", lambda jax: jax.numpy.asarray(jax.vmap(lambda x: jax.lax.pbroadcast(x, "i", 2), axis_name="i")(LANES.astype(np.int32)))),
    check("lax.pbroadcast: a constant", lambda jax: jax.vmap(lambda x: jax.lax.pbroadcast(np.float32(2), "i", 1), axis_name="i")(LANES)),
    check("lax.pbroadcast: over the outer of two axes", lambda jax: jax.numpy.asarray(jax.vmap(jax.vmap(lambda x: jax.lax.pbroadcast(x, "j", 1), axis_name="i"), axis_name="j")(np.stack([LANES, LANES + 10])))),
    check("lax.pbroadcast: no such lane", lambda jax: jax.vmap(lambda x: jax.lax.pbroadcast(x, "i", 7), axis_name="i")(LANES)),
    check("lax.pbroadcast: a negative lane", lambda jax: jax.vmap(lambda x: jax.lax.pbroadcast(x, "i", -1), axis_name="i")(LANES)),
]

CASES = [
    lanes("psum", lambda jax, x: jax.lax.psum(x, "i"), 3, 2),
    lanes("psum of a tree", lambda jax, x: jax.lax.psum((x, [x * 2]), "i"), 3, 2),
    lanes("psum of a dict", lambda jax, x: jax.lax.psum({"a": x, "b": x * 2}, "i"), 3, 2),
    lanes("psum of integers", lambda jax, x: jax.lax.psum(x, "i"), 3, maker=i32),
    lanes("psum of booleans", lambda jax, x: jax.lax.psum(x, "i"), 3, maker=b1),
    lanes("psum of one", lambda jax, x: x * jax.lax.psum(1, "i"), 3),
    lanes("psum of a number", lambda jax, x: x + jax.lax.psum(2.5, "i"), 3),
    lanes("psum of a constant", lambda jax, x: x + jax.lax.psum(jax.numpy.float32(2.5), "i"), 3),
    lanes("psum over no axis", lambda jax, x: jax.lax.psum(x, ()), 3),
    lanes("psum gradient", lambda jax, x: jax.grad(lambda y: jax.lax.psum(jax.numpy.sin(y), "i"))(x), 3),
    lanes("psum of an unknown axis", lambda jax, x: jax.lax.psum(x, "k"), 3),
    lanes("psum in groups", lambda jax, x: jax.lax.psum(x, "i", axis_index_groups=[[0, 1], [2, 3]]), 4),
    check("psum outside", lambda jax: jax.lax.psum(jax.numpy.ones(3), "i")),
    lanes("pmean", lambda jax, x: jax.lax.pmean(x, "i"), 3, 2),
    lanes("pmean of integers", lambda jax, x: jax.lax.pmean(x, "i"), 3, maker=i32),
    lanes("pmean of a number", lambda jax, x: x + jax.lax.pmean(3, "i"), 3),
    lanes("pmean of a tree", lambda jax, x: jax.lax.pmean((x, x * 2), "i"), 3),
    lanes("pmax", lambda jax, x: jax.lax.pmax(x, "i"), 3, 2),
    lanes("pmin", lambda jax, x: jax.lax.pmin(x, "i"), 3, 2),
    lanes("pmax of a tree", lambda jax, x: jax.lax.pmax([x, x + 1], "i"), 3, 2),
    lanes("all_gather", lambda jax, x: jax.lax.all_gather(x, "i"), 3, 2),
    lanes("all_gather last", lambda jax, x: jax.lax.all_gather(x, "i", axis=-1), 3, 2),
    lanes("all_gather tiled", lambda jax, x: jax.lax.all_gather(x, "i", axis=0, tiled=True), 3, 2),
    lanes("all_gather of a tree", lambda jax, x: jax.lax.all_gather((x, x * 2), "i"), 3, 2),
    lanes("all_gather gradient", lambda jax, x: jax.grad(lambda y: (jax.lax.all_gather(jax.numpy.sin(y), "i") ** 2).sum())(x), 3),
    lanes("psum_scatter", lambda jax, x: jax.lax.psum_scatter(x, "i"), 3, 3),
    lanes("psum_scatter tiled", lambda jax, x: jax.lax.psum_scatter(x, "i", tiled=True), 3, 6),
    lanes("psum_scatter dimension", lambda jax, x: jax.lax.psum_scatter(x, "i", scatter_dimension=1), 3, 2, 3),
    lanes("psum_scatter misfit", lambda jax, x: jax.lax.psum_scatter(x, "i"), 3, 4),
    lanes("all_to_all", lambda jax, x: jax.lax.all_to_all(x, "i", 0, 0), 3, 3, 2),
    lanes("all_to_all forward", lambda jax, x: jax.lax.all_to_all(x, "i", 0, 1), 3, 3, 2),
    lanes("all_to_all backward", lambda jax, x: jax.lax.all_to_all(x, "i", 1, 0), 3, 2, 3),
    lanes("all_to_all tiled", lambda jax, x: jax.lax.all_to_all(x, "i", 0, 1, tiled=True), 3, 6, 2),
    lanes("all_to_all tiled back", lambda jax, x: jax.lax.all_to_all(x, "i", 1, 0, tiled=True), 3, 2, 6),
    lanes("all_to_all misfit", lambda jax, x: jax.lax.all_to_all(x, "i", 0, 0), 3, 4),
    lanes("pswapaxes", lambda jax, x: jax.lax.pswapaxes(x, "i", 0), 3, 3),
    lanes("ppermute", lambda jax, x: jax.lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]), 3, 2),
    lanes("ppermute of a tree", lambda jax, x: jax.lax.ppermute((x, [x]), "i", perm=((0, 2), (1, 1), (2, 0))), 3),
    lanes("pshuffle", lambda jax, x: jax.lax.pshuffle(x, "i", [2, 0, 1]), 3, 2),
    lanes("pshuffle misfit", lambda jax, x: jax.lax.pshuffle(x, "i", [2, 0, 0]), 3, 2),
    *BROADCASTS,
    lanes("axis_index", lambda jax, x: jax.lax.axis_index("i"), 3),
    lanes("axis_index of one in a tuple", lambda jax, x: jax.lax.axis_index(("i",)), 3),
    lanes("axis_size", lambda jax, x: x * jax.lax.axis_size("i"), 3),
    check("axis_index outside", lambda jax: jax.lax.axis_index("i")),
    check("axis_size outside", lambda jax: jax.lax.axis_size("i")),
    grid("psum over both", lambda jax, x: jax.lax.psum(x, ("i", "j")), 2, 3),
    grid("psum over inner", lambda jax, x: jax.lax.psum(x, "j"), 2, 3),
    grid("pmean over both", lambda jax, x: jax.lax.pmean(x, ("i", "j")), 2, 3),
    grid("pmax over outer", lambda jax, x: jax.lax.pmax(x, "i"), 2, 3),
    grid("axis_index of both", lambda jax, x: jax.lax.axis_index(("i", "j")), 2, 3),
    grid("axis_size of both", lambda jax, x: x * jax.lax.axis_size(("i", "j")), 2, 3),
    grid("all_gather over outer", lambda jax, x: jax.lax.all_gather(x, "i"), 2, 3),
    grid("ppermute over inner", lambda jax, x: jax.lax.ppermute(x, "j", [(0, 1), (1, 2), (2, 0)]), 2, 3),
]
