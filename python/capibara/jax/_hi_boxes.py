"""Boxes, mutable cells with trees whose types may change, and logs, to which programs append."""
from dataclasses import dataclass
from typing import Any

from capibara import _core, _lifting
from capibara._effects import Effect, control_flow_allowed_effects, custom_derivatives_allowed_effects
from capibara._lifting import FlatTree
from capibara.jax._api import typeof
from capibara.jax._hi_operations import HiPrimitive
from capibara.jax._hi_types import AvalQDD, MutableHiType, aval_method, cur_qdd, register_hitype
from capibara.jax.tree_util import tree_flatten, tree_leaves, tree_unflatten


def new_box():
    """A box with None in it."""
    return new_box_p.bind(treedef=_core.tree_structure(None))


def box_get(box):
    """The tree in a box."""
    state = cur_qdd(box)
    return tree_unflatten(state.treedef, box_get_p.bind(box, avals=tuple(state.leaf_avals)))


def box_set(box, val):
    """Puts a tree into a box."""
    leaves, treedef = tree_flatten(val)
    box_set_p.bind(box, *leaves, treedef=treedef)


@dataclass(frozen=True, slots=True)
class BoxTypeState:
    """The types of what is in a box."""

    leaf_avals: tuple
    treedef: Any

    def to_tangent_qdd(self):
        """The state of a box with tangents."""
        return BoxTypeState(tuple(kind.to_tangent_aval() for kind in self.leaf_avals), self.treedef)

    def normalize(self):
        """The state without weak types."""
        return BoxTypeState(tuple(kind.normalize() for kind in self.leaf_avals), self.treedef)


class BoxTy(MutableHiType):
    """The type of boxes."""

    get = aval_method(box_get)
    set = aval_method(box_set)

    def __hash__(self):
        return hash(BoxTy)

    def __eq__(self, other):
        return isinstance(other, BoxTy)

    def __repr__(self):
        return "BoxTy"

    def lo_ty_qdd(self, state):
        return [lo for kind in state.leaf_avals for lo in kind.lo_ty()]

    def _tree(self, state, arrays):
        arrays = iter(arrays)
        return tree_unflatten(state.treedef, [kind.raise_val(*[next(arrays) for _ in kind.lo_ty()]) for kind in state.leaf_avals])

    def new_from_loval(self, state, *arrays):
        return Box._new(self._tree(state, arrays))

    def read_loval(self, state, box):
        return [array for kind, leaf in zip(state.leaf_avals, tree_leaves(box._val)) for array in kind.lower_val(leaf)]

    def update_from_loval(self, state, box, *arrays):
        box._val = self._tree(state, arrays)

    def to_tangent_aval(self):
        return BoxTy()


class Box:
    """A mutable cell with a tree of arrays or of values above arrays, whose structure and types may change."""

    def __new__(cls, init_val=None):
        box = new_box()
        box_set(box, init_val)
        return box

    @classmethod
    def _new(cls, init_val):
        new = super().__new__(cls)
        new._val = init_val
        return new

    def get(self):
        """The tree in the box."""
        return box_get(self)

    def set(self, val):
        """Puts a tree into the box."""
        box_set(self, val)

    def cur_qdd(self):
        """The types of what is in the box."""
        return self.type_state()

    def type_state(self):
        """The types of what is in the box."""
        leaves, treedef = tree_flatten(self._val)
        return BoxTypeState(tuple(map(typeof, leaves)), treedef)

    @property
    def ty(self):
        return BoxTy()


register_hitype(Box, lambda box: box.ty)


class BoxEffect(Effect):
    """A box is read or written."""


box_effect = BoxEffect()
control_flow_allowed_effects.add_type(BoxEffect)
custom_derivatives_allowed_effects.add_type(BoxEffect)


class _NewBox(HiPrimitive):
    def abstract_eval(self, *, treedef):
        return AvalQDD(BoxTy(), BoxTypeState((), treedef)), {box_effect}

    def to_lojax(self, *, treedef):
        return Box._new(tree_unflatten(treedef, []))


class _BoxSet(HiPrimitive):
    def abstract_eval(self, box_ty, *leaf_avals, treedef):
        box_ty.mutable_qdd.update(BoxTypeState(leaf_avals, treedef))
        return [], {box_effect}

    def to_lojax(self, box, *leaves, treedef):
        box._val = tree_unflatten(treedef, leaves)
        return []


class _BoxGet(HiPrimitive):
    def abstract_eval(self, _, *, avals):
        return avals, {box_effect}

    def to_lojax(self, box, **_):
        return tree_leaves(box._val)


new_box_p, box_set_p, box_get_p = _NewBox("new_box"), _BoxSet("box_set"), _BoxGet("box_get")
box_set_p.multiple_results = box_get_p.multiple_results = True


def log_extend(log, dct):
    """Appends the values of a dict of lists to a log."""
    leaves, treedef = tree_flatten(dct)
    log_extend_p.bind(log, *leaves, treedef=treedef)


def log_append(log, key, val):
    """Appends a value to a log, under a name."""
    log_extend(log, {key: [val]})


def log_read(log):
    """The values of a log: {name: list}."""
    return dict(_lifting.local(log)._dct)


class Log:
    """Values that a program appends under names; inside a traced function it can only be appended to."""

    def __new__(cls):
        return new_log_p.bind()

    @classmethod
    def _new(cls):
        new = super().__new__(cls)
        new._dct = {}
        return new

    def cur_qdd(self):
        """Nothing: the type of a log does not depend on its values."""
        return ()

    append, extend, read = log_append, log_extend, log_read


class LogTy(MutableHiType):
    """The type of logs."""

    is_writer = True
    append, extend, read = aval_method(log_append), aval_method(log_extend), aval_method(log_read)

    def __hash__(self):
        return hash(LogTy)

    def __eq__(self, other):
        return isinstance(other, LogTy)

    def __repr__(self):
        return "Log"

    def to_tangent_aval(self):
        return LogTy()

    def lo_ty_qdd(self, _):
        return []

    def read_loval_in(self, *_):
        return []

    def read_loval_out(self, _, log):
        return FlatTree.flatten(log._dct)

    def new_from_loval(self, _):
        return Log._new()

    def update_from_loval2(self, _, log, arrays):
        for key, values in arrays.unflatten().items():
            log._dct.setdefault(key, []).extend(values)


register_hitype(Log, lambda _: LogTy())
log_effect = box_effect


class _LogExtend(HiPrimitive):
    def is_effectful(self, _):
        return True

    def _types(self, *_args, **_params):
        return [], {log_effect}

    abstract_eval = _types

    def to_lojax(self, log, *leaves, treedef):
        for key, values in tree_unflatten(treedef, leaves).items():
            log._dct.setdefault(key, []).extend(values)
        return []


class _NewLog(HiPrimitive):
    def abstract_eval(self):
        return AvalQDD(LogTy(), ()), {log_effect}

    def to_lojax(self):
        return Log._new()


log_extend_p, new_log_p = _LogExtend("log_extend"), _NewLog("new_log")
log_extend_p.multiple_results = True


def new_log():
    """An empty log."""
    return new_log_p.bind()
