"""Internals of jax that libraries use: traces, symbolic zeros, residuals that are numbers, the class of arrays."""
import functools
import typing

import jax as oracle
import numpy as np
import pytest
import scipy.sparse
from jax.extend import core as oracle_core
from jax.interpreters import ad as oracle_ad
from jax.interpreters import batching as oracle_batching

import capibara.jax as jax
import capibara.jax.numpy as jnp
from capibara.jax.extend import core
from capibara.jax.interpreters import ad, batching, mlir

PEERS = [pytest.param((jax, core, ad, batching), id="capibara"), pytest.param((oracle, oracle_core, oracle_ad, oracle_batching), id="jax")]


@pytest.mark.parametrize("peer", PEERS)
def test_a_value_knows_the_jvp_that_traces_it(peer):
  module, cores, rules, _ = peer
  seen = []

  def inner(y, outer):
    trace = cores.find_top_trace((y,))
    values = (y, y * 2, outer, y * outer, module.numpy.ones(2))
    seen.append([isinstance(value, rules.JVPTracer) and value._trace.main is trace.main for value in values])
    return y * outer

  def outer(x):
    seen.append(isinstance(x, rules.JVPTracer) and float(x.primal) == 2.0 and float(x.tangent) == 3.0)
    return module.jvp(functools.partial(inner, outer=x), (1.0,), (1.0,))[1]

  module.jvp(outer, (2.0,), (3.0,))
  assert seen == [True, [True, True, False, True, False]]


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("transform", ["grad", "jit of grad", "grad of jit", "vmap of grad", "grad of scan", "grad of checkpoint"])
def test_numbers_among_residuals_reach_the_backward_rule_as_they_are(peer, transform):
  module, seen = peer[0], []
  f = module.custom_vjp(lambda x, y: x * y)

  def bwd(residuals, cotangent):
    x, y, flag, count = residuals
    seen.append((flag is True, isinstance(count, int), int(count)))
    return cotangent * y, cotangent * x

  f.defvjp(lambda x, y: (x * y, (x, y, True, 7)), bwd)
  one, many = module.numpy.float32(2), module.numpy.ones(3)
  {"grad": lambda: module.grad(f)(one, one), "jit of grad": lambda: module.jit(module.grad(f))(one, one),
   "grad of jit": lambda: module.grad(module.jit(f))(one, one), "vmap of grad": lambda: module.vmap(module.grad(f))(many, many),
   "grad of scan": lambda: module.grad(lambda x: module.lax.scan(lambda c, _: (f(c, c), None), x, None, length=2)[0])(one),
   "grad of checkpoint": lambda: module.grad(module.checkpoint(f))(one, one)}[transform]()
  assert set(seen) == {(True, True, 7)}


@pytest.mark.parametrize("peer", PEERS)
def test_each_backward_rule_belongs_to_its_forward_rule(peer):
  """One program, differentiated with respect to one argument and then another before either cotangent is pulled back."""
  module, seen = peer[0], []
  f = module.custom_vjp(lambda x, y: x * y)

  def fwd(x, y):
    return x.value * y.value, (x.value, y.value, x.perturbed, y.perturbed)

  def bwd(residuals, cotangent):
    x, y, *perturbed = residuals
    seen.append(perturbed)
    return cotangent * y, cotangent * x

  f.defvjp(fwd, bwd, symbolic_zeros=True)
  jitted = module.jit(f)
  two, three = module.numpy.float32(2), module.numpy.float32(3)
  first = module.vjp(lambda x: jitted(x, three), two)[1]
  second = module.vjp(lambda y: jitted(two, y), three)[1]
  assert [float(pull(module.numpy.float32(1))[0]) for pull in (first, second)] == [3.0, 2.0]
  assert sorted(map(tuple, seen)) == [(False, True), (True, False)]


def make_primitive(peer, name):
  """Two results, (2 x, 3 x), with a transpose rule that records its arguments."""
  _, cores, rules, _ = peer
  primitive = cores.Primitive(name)
  primitive.multiple_results = True
  seen = []

  def jvp(primals, tangents):
    return primitive.bind(*primals), primitive.bind(*tangents)

  def transpose(cotangents, x):
    seen.append([type(ct).__name__ if isinstance(ct, rules.Zero) else "array" for ct in cotangents])
    first, second = map(rules.instantiate_zeros, cotangents)
    return [2 * first + 3 * second]

  primitive.def_impl(lambda x: [2 * x, 3 * x])
  primitive.def_abstract_eval(lambda x: [x, x])
  rules.primitive_jvps[primitive] = jvp
  rules.primitive_transposes[primitive] = transpose
  return primitive, seen


@pytest.mark.parametrize("peer", PEERS)
def test_a_transpose_rule_is_given_symbolic_zeros(peer):
  primitive, seen = make_primitive(peer, "twice_and_thrice")
  assert float(peer[0].grad(lambda x: primitive.bind(x)[1])(5.0)) == 3.0
  assert seen == [["Zero", "array"]]
  assert len(peer[0].tree.leaves(peer[2].Zero(peer[0].typeof(1.0)))) == 0


@pytest.mark.parametrize("peer", PEERS)
def test_a_batching_rule_is_told_of_the_mapped_axis(peer):
  module, cores, _, batchings = peer
  seen = []

  def by_axis(size, name, _, args, dims):
    seen.append((size, name))
    return args[0], dims[0]

  for table, rule in ((batchings.axis_primitive_batchers, by_axis),
                      (batchings.fancy_primitive_batchers, lambda axis, *rest: by_axis(axis.size, axis.name, None, *rest))):
    primitive = cores.Primitive("same")
    primitive.def_impl(lambda x: x)
    primitive.def_abstract_eval(lambda x: x)
    table[primitive] = rule
    module.vmap(primitive.bind, axis_name="rows")(module.numpy.ones((4, 2)))
  assert seen == [(4, "rows"), (4, "rows")]


def test_bilinear_primitives_have_both_derivatives():
  product = core.Primitive("bilinear_product")
  product.def_impl(lambda x, y: x * y)
  product.def_abstract_eval(lambda x, y: x)
  mlir.register_lowering(product, mlir.lower_fun(lambda x, y: x * y, multiple_results=False))
  ad.defbilinear(product, lambda ct, x, y: ct * y, lambda ct, x, y: x * ct)
  assert [float(g) for g in jax.grad(product.bind, (0, 1))(2.0, 5.0)] == [5.0, 2.0]
  assert [float(v) for v in jax.jit(lambda x: jax.jvp(product.bind, (x, 5.0), (1.0, 3.0)))(2.0)] == [10.0, 11.0]
  assert ad.get_primitive_transpose(product) is ad.primitive_transposes[product]


@pytest.mark.parametrize("peer", PEERS)
def test_a_metaclass_may_be_derived_from_that_of_arrays(peer):
  module = peer[0]

  class Meta(type(module.numpy.ndarray)):
    def __instancecheck__(cls, value):
      return isinstance(value, module.Array)

  class Tensor(metaclass=Meta):
    pass

  assert isinstance(module.numpy.ones(2), Tensor) and not isinstance(np.ones(2), Tensor)


@pytest.mark.parametrize("peer", PEERS)
def test_what_is_an_array(peer):
  module, answers = peer[0], []
  array = module.numpy.ones(2)

  def note(x):
    answers.append((isinstance(x, module.Array), issubclass(type(x), module.Array), isinstance(x, module.typing.ArrayLike)))
    return x

  note(array)
  module.jit(note)(array)
  module.vmap(note)(array)
  assert answers == [(True, True, True), (True, False, False), (True, False, False)]
  assert module.numpy.ndarray is module.Array and module.Array in typing.get_args(module.Array | int)
  assert not any(isinstance(value, module.Array) for value in (1, 1.0, None, "a", (), {}, np.ones(2), np.float32(1), object()))
  choose = functools.singledispatch(lambda value: "other")
  choose.register(module.Array, lambda value: "array")
  assert (choose(array), choose(1.0)) == ("array", "other")


def test_the_class_of_arrays_has_what_arrays_have():
  x = jnp.arange(3.0)
  assert float(jax.Array.sum(x)) == 3.0 and jax.Array.__hash__ is None and "reshape" in dir(jax.Array)
  assert (jax.Array.__eq__(x, x)).all() and jax.Array.shape.__get__(x) == (3,)
  jax.Array.doubled = lambda self: self * 2
  try:
    assert float(x.doubled()[2]) == 4.0
  finally:
    del jax.Array.doubled
  with pytest.raises(AttributeError):
    x.doubled()
  with pytest.raises(TypeError, match="jax.numpy"):
    jax.Array()


@pytest.mark.parametrize("peer", PEERS)
def test_zeros_of_a_tree_of_primals(peer):
  zeros = peer[0].custom_derivatives.zero_from_primal({"a": peer[0].numpy.ones(2), "b": (3, 1.5)})
  assert [np.asarray(leaf).dtype.name for leaf in peer[0].tree.leaves(zeros)] == ["float32", "void", "float32"]
  symbols = peer[0].custom_derivatives.zero_from_primal((1.0, 2), symbolic_zeros=True)
  assert [str(symbol.dtype) for symbol in symbols] == ["float32", str(oracle.dtypes.float0)]


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_has_a_shape_and_is_no_array_is_measured_and_not_read(peer):
  matrix = scipy.sparse.csr_matrix(np.eye(3)[:2])
  assert (peer[0].numpy.shape(matrix), peer[0].numpy.ndim(matrix), peer[0].numpy.shape(None)) == ((2, 3), 2, ())
  with pytest.raises((TypeError, ValueError)):
    peer[0].numpy.sin(matrix)


def test_a_list_that_holds_itself_is_refused():
  endless = []
  endless.append(endless)
  for function in (jnp.array, jnp.shape, jnp.sum):
    with pytest.raises((RecursionError, ValueError, TypeError)):
      function(endless)


@pytest.mark.parametrize("peer", PEERS)
def test_a_class_is_mapped_in_its_own_way(peer):
  module, _, _, mapping = peer

  class Rows:
    def __init__(self, data):
      self.data = data
  mapping.register_vmappable(Rows, int, int, lambda cont, size, rows, axis: Rows(cont(rows.data + 1, axis)),
                             lambda cont, size, rows, axis: Rows(cont(size, rows.data * 2, axis)), None)
  try:
    rows = Rows(module.numpy.arange(6.0).reshape(3, 2))
    sums, doubled = module.vmap(lambda rows, x: (rows.data.sum() + x, rows), out_axes=(0, 1))(rows, module.numpy.ones(3))
    assert sums.tolist() == [4, 8, 12]
    assert doubled.data.tolist() == [[2, 6, 10], [4, 8, 12]]
    assert module.vmap(lambda x: 2 * x)(module.numpy.ones(3)).tolist() == [2, 2, 2]
  finally:
    mapping.unregister_vmappable(Rows)
