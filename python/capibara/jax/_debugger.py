"""jax.debug.breakpoint: a debugger that sees the values of a traced function while its program runs."""
import builtins
import cmd
import inspect
import os
import pprint
import sys
import threading
import traceback

from capibara import _core
from capibara._types import ShapeDtypeStruct
from capibara.jax.core import trace_state_clean

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_one_at_a_time = threading.Lock()


class _Frame:
    """A frame of the traced function: its position, source and variables."""

    def __init__(self, info):
        self.filename, self.lineno, self.function = info.filename, info.lineno, info.function
        self.globals = info.frame.f_globals
        self.locals = dict(info.frame.f_locals)
        try:
            lines, first = inspect.getsourcelines(info.frame)
            self.source = "".join(lines).split("\n")
            self.offset = info.lineno - max(first, 1)
        except OSError:
            self.source, self.offset = [], None


class _Debugger(cmd.Cmd):
    """Reads commands: expressions, p, pp, up, down, list, where, continue, quit."""

    intro = "Entering jdb:"
    prompt = "(jdb) "

    def __init__(self, frames, stdin=None, stdout=None):
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self._frames, self._at = frames, 0

    def _say(self, *lines):
        builtins.print(*lines, sep="\n", file=self.stdout)

    def _value(self, expression):
        frame = self._frames[self._at]
        return eval(expression, {}, {**frame.globals, **frame.locals})

    def _show(self, expression, text):
        try:
            self._say(text(self._value(expression)))
        except BaseException as error:
            self._say("*** " + traceback.format_exception_only(error)[-1].strip())

    def _context(self, lines):
        frame = self._frames[self._at]
        shown = [f"> {frame.filename}({frame.lineno})"]
        if frame.offset is not None:
            for number, line in enumerate(frame.source):
                if frame.offset - 1 - lines <= number <= frame.offset + lines:
                    shown.append(("->  " if number == frame.offset else "    ") + line)
        self._say(*shown)

    def _move(self, step, refusal):
        if 0 <= self._at + step < len(self._frames):
            self._at += step
        else:
            self._say(refusal)
        self._context(2)

    def default(self, line):
        self._show(line, repr)

    def do_p(self, line):
        """p expression: prints its value."""
        self._show(line, repr)

    def do_pp(self, line):
        """pp expression: prints its value over several lines."""
        self._show(line, pprint.pformat)

    def do_up(self, _):
        """u(p): to the calling frame."""
        self._move(1, "At topmost frame.")

    def do_down(self, _):
        """d(own): to the called frame."""
        self._move(-1, "At bottommost frame.")

    def do_list(self, _):
        """l(ist): the source around the current line."""
        self._context(5)

    def do_where(self, _):
        """w(here), bt: the frames, the innermost last."""
        lines = ["Traceback:"]
        for frame in reversed(self._frames):
            lines.append(f'  File "{frame.filename}", line {frame.lineno}')
            lines.append("    <no source>" if frame.offset is None else f"    {frame.source[frame.offset].strip()}")
        self._say(*lines)

    def do_continue(self, _):
        """c(ont(inue)): continues the program."""
        return True

    def do_quit(self, _):
        """q(uit), exit: ends the process."""
        sys.exit(0)

    do_u, do_d, do_l, do_w, do_bt = do_up, do_down, do_list, do_where, do_where
    do_c = do_cont = do_continue
    do_q = do_EOF = do_exit = do_quit


def breakpoint(*, backend=None, filter_frames=True, num_frames=None, ordered=False, token=None, **kwargs):
    """Opens a debugger when the program gets here, with the current values of variables.

    `stdin` and `stdout` may be passed to replace the terminal. With `token`, a tree of arrays that is returned
    unchanged, the debugger opens once they are computed.
    """
    if token is not None and ordered:
        raise ValueError("breakpoint: `ordered` and `token` are mutually exclusive arguments.")
    if backend not in (None, "cli"):
        raise ValueError(f"breakpoint: the debugger 'cli' exists, got {backend!r}")
    frames = [_Frame(info) for info in inspect.stack()[1:] if not (filter_frames and info.filename.startswith(_PACKAGE))]
    frames = frames[:num_frames]
    # Variables that are arrays are passed to the callback, with the values of the running program.
    traced = [{name: value for name, value in frame.locals.items() if isinstance(value, _core.Array)} for frame in frames]

    def enter(values, *_):
        for frame, known in zip(frames, values):
            frame.locals = {**frame.locals, **known}
        with _one_at_a_time:
            _Debugger(frames, **kwargs).cmdloop()

    if token is None and trace_state_clean():
        enter(traced)  # not in a callback, from which quitting the debugger would not end the process
        return None
    if token is None:
        _core.debug_callback(enter, (traced,), {}, ordered)
        return None
    leaves, tree = _core.tree_flatten(token)
    leaves = [_core.as_array(leaf) for leaf in leaves]

    def pass_on(values, given):
        enter(values)
        return given

    types = [ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
    return tree.unflatten(_core.pure_callback(pass_on, types, (traced, leaves), {}, None))
