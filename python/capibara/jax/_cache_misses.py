"""jax_explain_cache_misses: logs why a jitted function is retraced."""
import logging
import os
import sys
import weakref

from capibara import _core, _origins

_OWN = os.path.dirname(_origins.__file__)  # frames of this package are skipped when looking for the caller
_logger = logging.getLogger("jax._src.pjit")
_seen = {}  # {definition site: weak reference to the last function traced from there}


def set_explaining(on):
    """Enables or disables explanations of cache misses."""
    _core.set_miss_explainer(explain if on else None)
    return bool(on)


def explain(function, known, now):
    """Logs how the call differs from earlier ones: `known` is a list of, and `now` one, (structure, types, settings) of a call."""
    lines = [f"TRACING CACHE MISS at {_caller()} because:"]
    defined = _definition(function)
    name = getattr(function, "__name__", repr(function))
    if not known:
        lines.append(f"  never seen function:\n    {name} id={id(function)}{' defined at ' + defined if defined else ''}")
        other = _seen.get(defined)
        if defined and other is not None and other() is not function:
            lines.append("  but seen another function defined on the same line; maybe the intent was to reuse its jitted function, which "
                         "would have been found")
    else:
        structure, types, settings = min(known, key=lambda call: _distance(call, now))
        if structure != now[0]:
            lines.append(f"  for {name}{' defined at ' + defined if defined else ''}, different input pytree: now {now[0]} and before {structure}")
        if structure == now[0] and types != now[1]:
            lines.append(f"  for {name}{' defined at ' + defined if defined else ''}, different input types:")
            lines += _type_differences(function, structure, types, now[1])
        if settings != now[2]:
            lines.append("  different tracing context:" + "".join(
                f"\n    * {setting} now {now[2].get(setting)} and before {settings.get(setting)}"
                for setting in sorted({*settings, *now[2]}) if settings.get(setting) != now[2].get(setting)))
    if defined:
        try:
            _seen[defined] = weakref.ref(function)
        except TypeError:
            pass
    _logger.warning("\n".join(lines))


def _distance(call, now):
    if call[0] != now[0]:
        return 1000
    return sum(a != b for a, b in zip(call[1], now[1])) + (call[2] != now[2])


def _type_differences(function, structure, before, now):
    lines = []
    numbered = structure.unflatten(list(range(structure.num_leaves)))
    for number, (old, new) in enumerate(zip(before, now)):
        if old == new:
            continue
        path = _origins.argument_name(function, numbered, number)
        if (old.shape, old.dtype) == (new.shape, new.dtype):
            lines.append(f"    * at {path}, now {_short(new)}{{weak_type={new.weak_type}}} and before {_short(old)}{{weak_type={old.weak_type}}}\n"
                         "      where weak_type=True often means a Python builtin numeric value, and weak_type=False means a jax.Array.\n"
                         "      See https://docs.jax.dev/en/latest/type_promotion.html#weak-types.")
        else:
            lines.append(f"    * at {path}, now {_short(new)} and before {_short(old)}")
    return lines


def _short(aval):
    return aval.str_short(True)


def _definition(function):
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else ""


def _caller():
    frame = sys._getframe(1)
    while frame and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "an unknown place"
