"""lax.reduce over pytrees: the core takes one or several arrays, Python any structure of them."""
from capibara import _core

__all__ = ["reduce"]


def reduce(operands, init_values, computation, dimensions, out_sharding=None):
    """Combines elements along dimensions by an associative function of two operands' elements."""
    function = _core.library_function("lax", "reduce")
    leaves, structure = _core.tree_flatten(operands)
    inits, init_structure = _core.tree_flatten(init_values)
    if structure != init_structure:
        raise ValueError(f"Operands must have the same tree structure as init_values: {structure} vs. {init_structure}")
    if len(leaves) == 1 and leaves[0] is operands:
        return function(operands, init_values, computation, dimensions, out_sharding=out_sharding)
    for init in inits:
        shape = _core.type_of(init).shape
        if shape:
            raise ValueError(f"reduce found non-scalar initial value: shape {shape}")

    def combine(x, y):
        results, result_structure = _core.tree_flatten(computation(structure.unflatten(list(x)), structure.unflatten(list(y))))
        if result_structure != structure:
            raise ValueError(f"reduce output must have the same tree structure as the operands: {result_structure} vs. {structure}")
        return tuple(results)

    reduced = function(tuple(leaves), tuple(inits), combine, dimensions, out_sharding=out_sharding)
    return structure.unflatten(list(reduced))
