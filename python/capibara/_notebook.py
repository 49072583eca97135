"""How arrays, programs, profiles, plans and models look in a notebook: their `_repr_html_`."""
import html
import json
import re

from capibara import _core

_EDGE = 5  # rows and columns of a matrix shown at each end
_ROWS = 20  # of a profile
_DIM = "opacity:0.65"
_CELL = "text-align:right;padding:1px 6px;font-family:monospace"


def complete():
    """Gives the classes of the core their `_repr_html_`."""
    _core.Array._repr_html_ = _array
    _core.ClosedJaxpr._repr_html_ = _core.Jaxpr._repr_html_ = _program
    _core.Profile._repr_html_ = _profile
    _core.models.Model._repr_html_ = _core.models.CompiledModel._repr_html_ = _graph


def table(head, rows):
    """A table of texts; `head` may be empty."""
    def row(cells, tag, style):
        return "<tr>" + "".join(f'<{tag} style="{style}">{html.escape(str(cell))}</{tag}>' for cell in cells) + "</tr>"

    shown = [row(head, "th", _CELL)] if head else []
    return "<table>" + "".join(shown + [row(cells, "td", _CELL) for cells in rows]) + "</table>"


def tree(value):
    """Nested dictionaries and lists as nested tables and lists."""
    if isinstance(value, dict):
        rows = "".join(f'<tr><th style="text-align:left;vertical-align:top">{html.escape(str(key))}</th>'
                       f'<td style="text-align:left">{tree(part)}</td></tr>' for key, part in value.items())
        return f"<table>{rows}</table>"
    if isinstance(value, (list, tuple)):
        return "<ul style=\"margin:0\">" + "".join(f"<li>{tree(part)}</li>" for part in value) + "</ul>" if value else "none"
    return html.escape(f"{value:.6g}" if type(value) is float else str(value))


class Report(dict):
    """A dictionary that a notebook shows as a table."""

    def _repr_html_(self):
        return tree(self)


def _array(self):
    """Type, devices, and up to two dimensions as a table; None, which means the text, for tracers and what cannot be read."""
    import numpy as np
    if isinstance(self, _core.Tracer) or self.is_deleted() or not self.is_fully_addressable:
        return None
    devices = sorted(self.devices(), key=lambda device: device.id)
    caption = html.escape(f"{self.aval.str_short()} on {', '.join(map(str, devices[:4]))}{', ...' if len(devices) > 4 else ''}")
    caption = f'<div style="{_DIM}">{caption}</div>'
    if self.ndim > 2 or self.size == 0 or str(self.dtype).startswith("key"):
        return f"{caption}<pre>{html.escape(str(self))}</pre>"
    values = np.atleast_2d(np.asarray(self))
    rows, columns = map(_ends, values.shape)
    written = str if str(self.dtype).startswith(("bool", "int", "uint")) else _number
    cells = [["…" if row is None or column is None else written(values[row, column]) for column in columns] for row in rows]
    return caption + table((), cells)


def _ends(size):
    """The shown indices of a dimension, with None where others are left out."""
    return list(range(size)) if size <= 2 * _EDGE + 1 else [*range(_EDGE), None, *range(size - _EDGE, size)]


def _number(value):
    return f"{complex(value):.6g}" if value.dtype.kind == "c" else f"{float(value):.6g}"


def _program(self):
    """The jaxpr with its primitives in bold and its types in grey."""
    text = html.escape(str(self))
    text = re.sub(r"( = )([A-Za-z_]\w*)", r"\1<b>\2</b>", text)
    text = re.sub(r":([a-z]+\d*\w*\[[^\]\n]*\])", rf'<span style="{_DIM}">:\1</span>', text)
    return f'<pre style="text-align:left">{text}</pre>'


def _profile(self):
    """The sites that took most time, with their share, their speed and what limits them."""
    summary = json.loads(self.summary_json())
    rows = [(f"{row['nanoseconds'] / 1e6:.3g}", f"{100 * row['share']:.1f} %", row["calls"], f"{row['gflops_per_second']:.2f}",
             f"{row['gbytes_per_second']:.2f}", f"{100 * row['roofline']:.0f} %", row["bound"],
             f"{row['program']}: {row['what']}" if row["program"] else row["what"], row["source"]) for row in summary["rows"][:_ROWS]]
    left = len(summary["rows"]) - len(rows)
    head = "ms", "share", "calls", "GFLOP/s", "GB/s", "roofline", "bound by", "what", "source"
    spent, whole, compiling = (f"{summary[name] / 1e6:.3g} ms" for name in ("nanoseconds", "duration", "compile_nanoseconds"))
    caption = f"{spent} in {len(summary['rows'])} sites, of {whole} recorded; compiling {compiling}"
    return f'<div style="{_DIM}">{caption}{f"; {left} sites are not shown" if left else ""}</div>{table(head, rows)}'


def _graph(self):
    """The picture of a named model."""
    return self.svg()


def parameters(model):
    """The parameters of a model with names, types and their number."""
    rows = [(name, f"{type.dtype}{list(type.shape)}", f"{type.size:,}") for name, type in model.types().items()]
    total = sum(type.size for type in model.types().values())
    caption = html.escape(f"Model {model.name}: {total:,} parameters in {len(rows)} arrays")
    return f'<div style="{_DIM}">{caption}</div>{table(("parameter", "type", "size"), rows)}'
