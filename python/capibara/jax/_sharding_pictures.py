"""Pictures of shardings: the devices of each part of an array, drawn as a table in the terminal with the package rich."""
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from capibara import _core
from capibara.jax._abstract_mesh import concrete_mesh
from capibara.jax._sharding import NamedSharding, Sharding

_HEIGHT, _WIDTH_OF_LINE = 10, 2.5  # lines of a picture; height of a line in character widths


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], Any]) -> None:
    """Calls a function with the sharding of each array of a tree.

    The sharding of a traced value is known if its type has Explicit axes; then the function is called during tracing.
    """
    for leaf in _core.tree_leaves(value):
        callback(_traced_sharding(leaf) if isinstance(leaf, _core.Tracer) else leaf.sharding)


def _traced_sharding(tracer):
    typed = _core.type_of(tracer).sharding
    mesh = concrete_mesh(typed.mesh)
    if mesh is None or typed.mesh.auto_axes or typed.mesh.manual_axes:
        raise NotImplementedError("inspect_array_sharding: how a traced value is placed is known where all axes of the mesh in context are "
                                  f"Explicit, got {typed.mesh}; look at a result of the compiled function instead")
    return NamedSharding(mesh, typed.spec)


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Draws which devices hold which part of an array; the options are those of visualize_sharding."""
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(arr.shape, sharding, **kwargs))


def visualize_sharding(shape: Sequence[int], sharding: Sharding, *, use_color: bool = True, scale: float = 1.0, min_width: int = 9,
                       max_width: int = 80, color_map: Callable[[float], Any] | None = None) -> None:
    """Draws which devices hold which part of an array of this shape, of one or two dimensions."""
    try:
        import rich.box
        import rich.console
        import rich.table
    except ImportError:
        raise ValueError("`visualize_sharding` requires `rich` to be installed.") from None
    if len(shape) not in (1, 2):
        raise ValueError("`visualize_sharding` only works for shapes with 1 and 2 dimensions.")
    console = rich.console.Console(width=max_width)
    color_map = color_map or _default_colors() if use_color and console.color_system is not None else None
    cells = _cells(shape, sharding)
    rows, columns = (max(places) + 1 for places in zip(*cells))
    colors = _colors(color_map, rows * columns)
    plain = color_map is None
    table = rich.table.Table(show_header=False, show_lines=plain, padding=0, highlight=plain, pad_edge=False,
                             box=rich.box.SQUARE if plain else None)
    height = int(_HEIGHT * scale)
    width = int(height * (shape[1] if len(shape) == 2 else 1) / shape[0])
    kind = next(iter(sharding.device_set)).platform.upper()
    for row in range(rows):
        drawn = []
        for column in range(columns):
            part_height, part_width, devices = cells[row, column]
            lines = 1 if part_height is None else int(part_height * height)
            characters = min(max(int(part_width * width * _WIDTH_OF_LINE), min_width), max_width)
            text = f"{kind} {','.join(map(str, sorted(devices)))}"
            drawn.append(_cell(text, lines, characters, next(colors)))
        table.add_row(*drawn)
    console.print(table, end="\n\n")


def _cells(shape, sharding):
    """{(row, column): (fraction of the height, fraction of the width, device numbers)}; the height is None for vectors."""
    cells = {}
    part = sharding.shard_shape(shape)
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        place = tuple((one.start or 0) // size for one, size in zip(index, part))
        shares = tuple(size / whole for size, whole in zip(part, shape))
        if len(shape) == 1:
            place, shares = (0, *place), (None, *shares)
        cells.setdefault(place, (*shares, set()))[2].add(device.id)
    return cells


def _cell(text, lines, characters, color):
    import rich.align
    import rich.padding
    import rich.style
    across, down = characters - len(text) - 2, lines - 2
    more = color is not None  # a coloured cell has no border
    padding = (down // 2 + more, across - across // 2 + more, down - down // 2 + more, across // 2 + more)
    style = rich.style.Style(bgcolor=color, color=color and _readable_on(color))
    return rich.padding.Padding(rich.align.Align(text, "center", vertical="middle"), tuple(max(size, 0) for size in padding), style=style)


def _default_colors():
    try:
        import matplotlib
    except ImportError:
        return None
    return matplotlib.colormaps["tab20b"]


def _colors(color_map, count):
    """Colours of a map, ordered so that adjacent cells differ; None without a map."""
    if color_map is None:
        return itertools.repeat(None)
    step = count // 2 + (count % 2 == 0)
    values = [number / max(count - 1, 1) for number in range(count)]
    return (_color_text(color_map(values[place * step % count])) for place in range(count))


def _color_text(color):
    return color if isinstance(color, str) else "#" + "".join(f"{int(part * 255):02X}" for part in color[:3])


def _readable_on(color):
    red, green, blue = (int(color[at:at + 2], 16) for at in (1, 3, 5))
    return "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 186 else "#ffffff"
