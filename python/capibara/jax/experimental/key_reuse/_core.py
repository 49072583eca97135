"""Finds keys that are used more than once by analysing programs: each key is tracked from its definition."""
import numpy as np

from capibara.jax import core, dtypes
from capibara.jax._api import make_jaxpr
from capibara.jax.errors import KeyReuseError
from capibara.jax.experimental.key_reuse._signature import Forward, KeyReuseSignature, Sink, Source  # noqa: F401


def _is_key(atom):
    return dtypes.issubdtype(atom.aval.dtype, dtypes.prng_key)


class _Signatures(dict):
    """{primitive's name: signature}; the primitive itself is also accepted as a key."""

    def __getitem__(self, primitive):
        return super().__getitem__(getattr(primitive, "name", primitive))

    def __contains__(self, primitive):
        return super().__contains__(getattr(primitive, "name", primitive))


_used_up = KeyReuseSignature(Sink(0))
_made = KeyReuseSignature(Source(0))
_handed_on = KeyReuseSignature(Forward(0, 0))
_renewed = KeyReuseSignature(Sink(0), Source(0))

key_reuse_signatures = _Signatures(
    consume=_used_up, random_clone=_made, random_bits=_used_up, random_seed=_made, random_split=_renewed, random_wrap=_made, random_gamma=_used_up,
    broadcast_in_dim=_handed_on, copy=_handed_on, convert_element_type=_handed_on, device_put=_handed_on, reshape=_handed_on,
    squeeze=_handed_on, sharding_constraint=_handed_on, dynamic_slice=_renewed, gather=_renewed,
    dynamic_update_slice=KeyReuseSignature(Sink(0), Sink(1), Source(0)), random_fold_in=_made, random_unwrap=KeyReuseSignature(),
    eq=KeyReuseSignature(), ne=KeyReuseSignature())
_dynamic = {}  # {primitive's name: function from an equation to its signature}


def _rule(*names):
    def add(function):
        _dynamic.update(dict.fromkeys(names, function))
        return function
    return add


def _identity(name):
    primitive = core.Primitive(name)
    primitive.def_impl(lambda x, **_: x)
    primitive.def_lowering(lambda x, **_: x)
    primitive.def_abstract_eval(lambda x, **_: x)
    primitive.def_batch(lambda arguments, dims, **params: (primitive.bind(*arguments, **params), dims[0]))
    return primitive


consume_p = _identity("consume")
assert_consumed_value_p = _identity("assert_consumed_value")


def consume(key):
    """Marks keys as consumed."""
    return consume_p.bind(key)


def assert_consumed(key, value=True):
    """Under check_key_reuse: fails unless the keys are consumed exactly where `value` is true."""
    assert_consumed_value_p.bind(key, value=_Mask(value))


def assert_unconsumed(key):
    """Under check_key_reuse: fails if the keys are consumed."""
    assert_consumed_value_p.bind(key, value=_Mask(False))


class _Mask:
    """A mask as a parameter, which must be hashable."""

    def __init__(self, value):
        self.value = np.asarray(value)

    def _key(self):
        return self.value.shape, self.value.tobytes()

    def __eq__(self, other):
        return isinstance(other, _Mask) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())


def jaxpr_type_signature(jaxpr):
    """The signature of a program; raises KeyReuseError if it uses a key twice."""
    consumed, origin = {}, {}  # {variable: mask of consumed elements}, {variable: the one from which it is forwarded}

    def resolve(variable):
        while variable in origin:
            variable = origin[variable]
        return variable

    def state(atom):
        return consumed.get(resolve(atom), False)

    for equation in jaxpr.eqns:
        keys = [i for i, atom in enumerate(equation.invars) if not _is_literal(atom) and _is_key(atom)]
        made = [i for i, variable in enumerate(equation.outvars) if _is_key(variable)]
        if not keys and not made and not _dynamic_rule(equation.primitive):
            continue
        if equation.primitive.name == "assert_consumed_value":
            _check_assertion(equation, state(equation.invars[0]))
            origin[equation.outvars[0]] = resolve(equation.invars[0])
            continue
        signature = equation_signature(equation)
        _use_up(equation, signature, consumed, resolve)
        new = {source.idx: source.mask for source in signature.sources}
        same = {forward.out_idx: forward.in_idx for forward in signature.forwards}
        for i in made:
            if i in same and not _is_literal(equation.invars[same[i]]):
                origin[equation.outvars[i]] = resolve(equation.invars[same[i]])
            else:
                consumed[equation.outvars[i]] = np.logical_not(new[i]) if i in new else True

    inputs = {variable: i for i, variable in enumerate((*jaxpr.constvars, *jaxpr.invars))}
    parts = [Sink(i, _as_mask(consumed[v])) for v, i in inputs.items() if np.any(consumed.get(v, False))]
    for i, atom in enumerate(jaxpr.outvars):
        if _is_literal(atom) or not _is_key(atom):
            continue
        root = resolve(atom)
        if root in inputs:
            parts.append(Forward(inputs[root], i))
        elif not np.all(consumed.get(root, False)):
            parts.append(Source(i, _as_mask(np.logical_not(consumed.get(root, False)))))
    return KeyReuseSignature(*parts)


def _is_literal(atom):
    return hasattr(atom, "val")


def _as_mask(mask):
    return bool(mask) if np.ndim(mask) == 0 else mask


def _check_assertion(equation, is_consumed):
    expected = equation.params["value"].value
    if not np.all(np.asarray(is_consumed) == expected):
        raise AssertionError(f"Expected {'un' if not expected.any() else ''}consumed keys, got consumed={is_consumed} in {equation}")


def _use_up(equation, signature, consumed, resolve):
    before = dict(consumed)
    for sink in sorted(signature.sinks, key=lambda s: s.idx):
        atom = equation.invars[sink.idx]
        if _is_literal(atom) or 0 in atom.aval.shape:
            continue
        root = resolve(atom)
        if _overlap(before.get(root, False), sink.mask):
            raise KeyReuseError(f"In {equation.primitive}, argument {sink.idx} is already consumed.")
        consumed[root] = _either(consumed.get(root, False), sink.mask)


def _overlap(a, b):
    """True if masks overlap. Masks of different shapes are from broadcasts or reshapes: any element counts as all."""
    if np.ndim(a) and np.ndim(b) and np.shape(a) != np.shape(b):
        return bool(np.any(a) and np.any(b))
    return bool(np.any(np.logical_and(a, b)))


def _either(a, b):
    if np.ndim(a) and np.ndim(b) and np.shape(a) != np.shape(b):
        return bool(np.any(a) or np.any(b))
    return _as_mask(np.logical_or(a, b))


def _dynamic_rule(primitive):
    """The function that computes the signature of an equation from its parameters; None if it is fixed."""
    return _of_call if getattr(primitive, "called_program", None) else _dynamic.get(primitive.name)


def equation_signature(equation):
    """The signature of an equation; an unknown primitive consumes its operands and returns consumed keys."""
    name, rule = equation.primitive.name, _dynamic_rule(equation.primitive)
    if rule:
        return rule(equation)
    if name in key_reuse_signatures:
        known = key_reuse_signatures[name]
        keys = {i for i, atom in enumerate(equation.invars) if not _is_literal(atom) and _is_key(atom)}
        made = {i for i, variable in enumerate(equation.outvars) if _is_key(variable)}
        return KeyReuseSignature(*(s for s in known.sinks if s.idx in keys), *(s for s in known.sources if s.idx in made),
                                 *(f for f in known.forwards if f.in_idx in keys))
    return KeyReuseSignature(*(Sink(i) for i, atom in enumerate(equation.invars) if not _is_literal(atom) and _is_key(atom)))


def _inner(value):
    return value.jaxpr if hasattr(value, "consts") and hasattr(value, "jaxpr") else value


def _of_call(equation):
    program = equation.params[equation.primitive.called_program]
    signature = jaxpr_type_signature(_inner(program))
    if equation.params.get("differentiated"):  # recomputes values from the same keys
        return KeyReuseSignature(*signature.sources, *signature.forwards)
    return signature


@_rule("slice")
def _of_slice(equation):
    if not _is_key(equation.invars[0]):
        return KeyReuseSignature()
    mask = np.zeros(equation.invars[0].aval.shape, bool)
    steps = equation.params["strides"] or (1,) * mask.ndim
    mask[tuple(map(slice, equation.params["start_indices"], equation.params["limit_indices"], steps))] = True
    return KeyReuseSignature(Sink(0, mask), Source(0))


@_rule("concatenate")
def _of_concatenate(equation):
    if not _is_key(equation.outvars[0]):
        return KeyReuseSignature()
    return KeyReuseSignature(*(Sink(i) for i in range(len(equation.invars))), Source(0))


@_rule("cond")
def _of_cond(equation):
    signatures = [jaxpr_type_signature(_inner(branch)) for branch in equation.params["branches"]]
    used = {}
    for signature in signatures:
        for sink in signature.sinks:
            used[sink.idx] = _either(used.get(sink.idx, False), sink.mask)
    sources = set.intersection(*(set(s.sources) for s in signatures))
    forwards = set.intersection(*(set(s.forwards) for s in signatures))
    return KeyReuseSignature(*(Sink(i + 1, mask) for i, mask in used.items()), *sources, *(Forward(f.in_idx + 1, f.out_idx) for f in forwards))


def _check_repetition(signature, constants, carries, where):
    """Applies a body's signature to its carries for as many iterations as can make a difference."""
    text = f"{where} leads to key reuse when repeatedly executed."
    if any(sink.idx < constants for sink in signature.sinks):
        raise KeyReuseError(f"{text} It uses up a key that every repetition is given.")
    used = {sink.idx - constants: sink.mask for sink in signature.sinks if sink.idx < constants + carries}
    new = {source.idx for source in signature.sources}
    same = {forward.out_idx: forward.in_idx - constants for forward in signature.forwards}
    state = [False] * carries
    for _ in range(carries + 1):
        for i, mask in used.items():
            if _overlap(state[i], mask):
                raise KeyReuseError(f"{text} It uses up carry {i}, and hands on a key that is used up.")
        after = [_either(state[i], used.get(i, False)) for i in range(carries)]
        state = [False if i in new else after[same[i]] if 0 <= same.get(i, -1) < carries else i in used for i in range(carries)]


@_rule("scan")
def _of_scan(equation):
    signature = jaxpr_type_signature(_inner(equation.params["jaxpr"]))
    constants, carries = equation.params["num_consts"], equation.params["num_carry"]
    if equation.params["length"] > 1:
        _check_repetition(signature, constants, carries, "scan body function")
    return _of_loop(equation, {s.idx for s in signature.sinks}, {s.idx for s in signature.sources})


@_rule("while")
def _of_while(equation):
    before = equation.params["cond_nconsts"]
    constants = equation.params["body_nconsts"]
    condition = jaxpr_type_signature(_inner(equation.params["cond_jaxpr"]))
    if condition.sinks:
        raise KeyReuseError("while_loop cond function leads to key reuse when repeatedly executed. It uses up a key that the body is given, too.")
    signature = jaxpr_type_signature(_inner(equation.params["body_jaxpr"]))
    _check_repetition(signature, constants, len(equation.outvars), "while_loop body function")
    return _of_loop(equation, {s.idx + before for s in signature.sinks}, {s.idx for s in signature.sources})


def _of_loop(equation, used, new):
    made = [i for i, variable in enumerate(equation.outvars) if _is_key(variable) and i in new]
    return KeyReuseSignature(*map(Sink, used), *map(Source, made))


def function_type_signature(fun, *args):
    """The signature of a function for arguments with the types of these."""
    return jaxpr_type_signature(make_jaxpr(fun)(*args).jaxpr)


def check_key_reuse(fun, /, *args):
    """Raises KeyReuseError if a function uses a key more than once."""
    function_type_signature(fun, *args)


