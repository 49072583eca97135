"""Classes that libraries register to be mapped over in a way of their own, which vmap refuses: it maps over leaves of trees."""
from capibara import _core

registered = set()


def refuse(arguments):
    """Refuses arguments of a registered class; without any, nothing is looked at."""
    if not registered:
        return
    for leaf in _core.tree_leaves(arguments, lambda x: type(x) in registered):
        if type(leaf) in registered:
            raise NotImplementedError(f"vmap: {type(leaf).__name__} says by register_vmappable how it is mapped, which is not supported")
