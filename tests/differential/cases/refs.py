"""Mutable arrays (jax.Ref), and windows at traced positions (jax.ds)."""

from makers import *

X = np.array([0.5, -1.0, 2.0, 3.0], np.float32)
M = np.arange(12, dtype=np.int32).reshape(3, 4)


def ref(jax):
    return jax.new_ref(jax.numpy.asarray(X))


def after(f):
    """What a function of a fresh ref returns, and what the ref holds afterwards."""
    def run(jax):
        one = ref(jax)
        out = f(jax, one)
        return [out, one[...]]
    return run


def put(key, value):
    return after(lambda jax, r: r.__setitem__(key, value))


def add(jax, r, key, value):
    r[key] += value


def swapped(r):
    r[...] = r[...] * 2


# --- reads and writes ------------------------------------------------------------------------------------------------

REFS = [
    check("Ref: what it is", lambda jax: [isinstance(ref(jax), jax.Ref), isinstance(jax.numpy.ones(2), jax.Ref), ref(jax).shape, str(ref(jax).dtype), ref(jax).ndim, ref(jax).size, len(ref(jax))]),
    check("Ref: text", lambda jax: [repr(ref(jax)), str(ref(jax)), str(jax.typeof(ref(jax)))]),
    check("Ref: len of a scalar", lambda jax: len(jax.new_ref(1.0))),
    check("Ref: reads", lambda jax: [ref(jax)[...], ref(jax)[:], ref(jax)[1], ref(jax)[-1], ref(jax)[1:3], ref(jax)[::2], ref(jax)[2:9], ref(jax)[np.array([0, 2])]]),
    check("Ref: reads of a matrix", lambda jax: (lambda r: [r[1], r[:, 1], r[..., 2], r[1, 2], r[:, np.array([0, 2])], r[()]])(jax.new_ref(jax.numpy.asarray(M)))),
    check("Ref: weak types stay", lambda jax: [jax.new_ref(1.0)[...], jax.new_ref(3)[...]]),
    check("Ref: set all", put(..., X + 1)), check("Ref: set one", put(1, np.float32(9))), check("Ref: set some", put(slice(1, 3), X[:2])), check("Ref: set by steps", put(slice(0, 4, 2), X[:2])),
    check("Ref: set at positions", put(np.array([3, 0]), X[:2])), check("Ref: set the last", put(-1, 9.0)),
    check("Ref: a scalar for all", put(..., 5.0)), check("Ref: a scalar for some", put(slice(1, 3), 5.0)), check("Ref: another shape", put(..., X[:3])), check("Ref: an integer", put(0, 5)),
    check("Ref: another dtype", put(..., X.astype(np.int32))), check("Ref: a text", put(0, "a")),
    check("Ref: increments", after(lambda jax, r: [add(jax, r, ..., 1.0), add(jax, r, 0, 2.0), add(jax, r, np.array([1, 3]), 3.0)])),
    check("Ref: addupdate", after(lambda jax, r: [r.addupdate(X), r.addupdate(5.0, idx=1), r.addupdate(X[:2], slice(2, 4))])),
    check("Ref: addupdate of another shape", after(lambda jax, r: r.addupdate(X[:2]))), check("Ref: addupdate of another dtype", after(lambda jax, r: r.addupdate(1, 0))),
    check("Ref: behind the end", lambda jax: ref(jax)[10]), check("Ref: too many indices", lambda jax: ref(jax)[0, 0]), check("Ref: backwards", lambda jax: ref(jax)[::-1]),
    check("Ref: written behind the end", put(4, 1.0)),
    check("Ref: behind the end, traced", lambda jax: jax.jit(lambda i: ref(jax)[i])(10)),
    check("Ref: arithmetic is refused", lambda jax: ref(jax) + 1), check("Ref: no operand", lambda jax: jax.numpy.sin(ref(jax))), check("Ref: no methods of arrays", lambda jax: ref(jax).T),
    check("Ref: equality, hash and truth", lambda jax: (lambda r: [r == r, r != ref(jax), isinstance(hash(r), int), bool(r)])(ref(jax))),
    check("Ref: iterated", lambda jax: list(ref(jax))),
    check("Ref, new_ref: of a list", lambda jax: jax.new_ref([1, 2])), check("Ref, new_ref: of a text", lambda jax: jax.new_ref("a")),
    check("Ref, freeze: the last value", lambda jax: (lambda r: (r.__setitem__(0, 7.0), jax.freeze(r))[1])(ref(jax))),
    check("Ref: a leaf of a tree", lambda jax: [len(jax.tree.leaves({"r": ref(jax)})), str(jax.tree.structure({"r": ref(jax)}))]),
]

# --- under the transforms --------------------------------------------------------------------------------------------


def closed_over(jax):
    r = ref(jax)

    @jax.jit
    def g(a):
        r[0] += a
        return a

    return [g(1.0), g(2.0), r[...]]


def two(jax):
    r, s = ref(jax), jax.new_ref(1.0)

    def f(r, x, s):
        r[0] = x
        s[...] += x
        return r[...].sum()

    return [jax.jit(f)(r, 3.0, s), r[...], s[...]]


REFS += [
    check("Ref: an argument of jit", after(lambda jax, r: [jax.jit(swapped)(r), jax.jit(swapped)(r)])),
    check("Ref: two arguments of jit", lambda jax: two(jax)),
    check("Ref: in a dict", lambda jax: jax.jit(lambda d: d["r"][...] + d["x"])({"r": ref(jax), "x": 1.0})),
    check("Ref: closed over", lambda jax: closed_over(jax)),
    check("Ref: made inside", lambda jax: jax.jit(lambda x: (lambda r: (r.__setitem__(0, np.float32(5)), r[...])[1])(jax.new_ref(x)))(X)),
    check("Ref: returned from jit", lambda jax: jax.jit(lambda x: jax.new_ref(x))(X)),
    check("Ref: passed twice", lambda jax: (lambda r: jax.jit(lambda a, b: a[...])(r, r))(ref(jax))),
    check("Ref: isinstance inside", lambda jax: jax.jit(lambda r: jax.numpy.int32(isinstance(r, jax.Ref)))(ref(jax))),
    check("Ref: in a program", lambda jax: str(jax.make_jaxpr(swapped)(ref(jax)))),
    check("Ref: its shape by eval_shape", lambda jax: jax.eval_shape(lambda r: r[...], ref(jax))),
    check("Ref: in a gradient", lambda jax: jax.grad(lambda x: (lambda r: (r.__setitem__(0, r[0] * 3.0), (r[...] ** 2).sum())[1])(jax.new_ref(x)))(jax.numpy.asarray(X))),
    check("Ref: in vmap", lambda jax: jax.vmap(lambda x: (lambda r: (r.__setitem__(..., r[...] * 3.0), r[...])[1])(jax.new_ref(x)))(X)),
    check("Ref: an argument of vmap", after(lambda jax, r: jax.vmap(lambda one, x: one.__setitem__(..., x))(r, X + 1))),
    check("Ref: in a scan", after(lambda jax, r: jax.lax.scan(lambda c, i: (r.__setitem__(i, c), (c + 1.0, None))[1], jax.numpy.float32(10), np.arange(4))[0])),
    check("Ref: in a loop", after(lambda jax, r: jax.lax.fori_loop(0, 3, lambda i, c: (r.__setitem__(i, r[i] + 1.0), c)[1], jax.numpy.float32(0)))),
]

# --- windows ---------------------------------------------------------------------------------------------------------

I = np.array([1, 8, -2], np.int32)
V = np.arange(10, dtype=np.float32)


def window(label, f):
    return check(f"ds: {label}", f)


DS = [
    window("parts", lambda jax: (lambda s: [type(s).__name__, s.start, s.size, s.stride, repr(s), s == jax.ds(1, 2)])(jax.ds(1, 2))),
    window("one and no argument", lambda jax: [repr(jax.ds(3)), repr(jax.ds(None)), repr(jax.ds(1, 2, 3))]),
    window("a negative stride", lambda jax: jax.ds(1, 2, -1)), window("a traced stride", lambda jax: jax.ds(1, 2, jax.numpy.int32(1))),
    window("reads", lambda jax: [jax.numpy.asarray(V)[jax.ds(*a)] for a in ((2, 3), (8, 4), (-2, 2), (2, 3, 2), (4,), (0, 0), (0, 10))]),
    window("too wide", lambda jax: jax.numpy.asarray(V)[jax.ds(0, 11)]), window("a float", lambda jax: jax.numpy.asarray(V)[jax.ds(1.5, 2)]),
    window("among other indices", lambda jax: (lambda m: [m[jax.ds(1, 2), 0], m[0, jax.ds(1, 2)], m[:, jax.ds(1, 2)], m[None, jax.ds(0, 2)], m[..., jax.ds(0, 2)], m[jax.ds(0, 2), jax.ds(1, 3)], m[np.array([0, 1]), jax.ds(1, 2)], m[jax.ds(1, 2), ::2]])(jax.numpy.asarray(M))),
    window("traced", lambda jax: [jax.jit(lambda x, i: x[jax.ds(i, 3)])(V, i) for i in I]),
    window("traced, with a stride", lambda jax: jax.jit(lambda x, i: x[jax.ds(i, 3, 2)])(V, 3)),
    window("a traced size", lambda jax: jax.jit(lambda x, n: x[jax.ds(0, n)])(V, 3)),
    window("under vmap and grad", lambda jax: [jax.vmap(lambda i: jax.numpy.asarray(V)[jax.ds(i, 2)])(I), jax.grad(lambda x: (x[jax.ds(1, 2)] ** 2).sum())(jax.numpy.asarray(V))]),
    window("updates", lambda jax: (lambda x: [x.at[jax.ds(1, 2)].set(7.0), x.at[jax.ds(1, 2)].add(X[:2]), x.at[jax.ds(0, 3, 2)].multiply(2.0), x.at[jax.ds(-3, 2)].get()])(jax.numpy.asarray(V))),
    window("updates out of bounds are dropped", lambda jax: jax.jit(lambda x, i: x.at[jax.ds(i, 3)].add(100.0))(V, 8)),
    window("of a ref", lambda jax: (lambda r: [r[jax.ds(1, 2)], r.__setitem__(jax.ds(0, 2), X[2:]), r[...]])(ref(jax))),
    window("of a ref, traced", lambda jax: jax.jit(lambda i: ref(jax)[jax.ds(i, 2)])(2)),
    window("a pytree", lambda jax: [jax.tree.leaves(jax.ds(1, 2)), len(jax.tree.leaves(jax.ds(jax.numpy.int32(1), 2))), str(jax.tree.structure(jax.ds(1, 2))), repr(jax.tree.map(lambda v: v, jax.ds(1, 2, 3)))]),
]

CASES = REFS + DS
