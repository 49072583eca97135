"""The planner of einsum: how long it takes to find contraction orders of many operands, and how good its orders are."""

import math

import numpy

from .row import ProcessRow, Row

EQUATIONS = 200
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def equations():
    """Random equations of 5 to 20 operands, connected, each index of size 2 to 6."""
    random = numpy.random.default_rng(3)
    found = []
    for number in range(EQUATIONS):
        count = 5 + number % 16
        terms = [[] for _ in range(count)]
        letters = iter(LETTERS)
        for place in range(1, count):  # a random tree connects all operands
            letter = next(letters)
            terms[place].append(letter)
            terms[int(random.integers(0, place))].append(letter)
        for letter in letters:
            for place in random.choice(count, 2, replace=False):
                if len(terms[place]) < 5 and letter not in terms[place]:
                    terms[place].append(letter)
        used = sorted({letter for term in terms for letter in term})
        sizes = {letter: int(random.integers(2, 7)) for letter in used}
        output = "".join(sorted(random.choice(used, 2, replace=False)))
        text = ",".join("".join(term) for term in terms) + "->" + output
        found.append((text, [tuple(sizes[letter] for letter in term) for term in terms], sizes))
    return found


def operands(random):
    return ([[numpy.zeros(shape, numpy.float32) for shape in shapes] for _, shapes, _ in equations()],)


def planner(library):
    """`library.einsum_path` for every equation; jax, capibara and numpy share the name."""
    texts = [text for text, _, _ in equations()]
    paths = getattr(library, "numpy", library).einsum_path
    choice = "greedy" if library is numpy else "auto"
    return lambda arrays: [paths(text, *these, optimize=choice)[0] for text, these in zip(texts, arrays)] and None


def cost(text, sizes, path):
    """Multiply-adds of a path, pair by pair."""
    inputs, output = text.split("->")
    terms = [frozenset(term) for term in inputs.split(",")]
    total = 0
    for pair in path:
        if pair == "einsum_path":
            continue
        chosen = [terms[place] for place in pair]
        terms = [term for place, term in enumerate(terms) if place not in pair]
        joined = frozenset().union(*chosen)
        total += math.prod(sizes[letter] for letter in joined)
        remaining = frozenset(output).union(*terms)
        terms.append(joined & remaining)
    return total


def quality(library, jax):
    """Geometric mean of the cost of our orders over opt_einsum's automatic choice."""
    import opt_einsum
    total = 0.0
    for text, shapes, sizes in equations():
        arrays = [jax.numpy.zeros(shape) for shape in shapes]
        ours = cost(text, sizes, jax.numpy.einsum_path(text, *arrays, optimize="auto")[0])
        theirs = cost(text, sizes, opt_einsum.contract_path(text, *shapes, shapes=True, optimize="auto")[0])
        total += math.log(ours / theirs)
    return math.exp(total / EQUATIONS)


def rows():
    return [
        Row("einsum planner", f"orders of {EQUATIONS} random equations of 5 to 20 operands", operands, planner,
            numpy=lambda library: planner(numpy), threads=1, eager=True, compared=False, least={"jax": 20}),
        ProcessRow("einsum planner cost", "cost of the orders over those of opt_einsum's automatic choice", quality, ("capibara",),
                   unit="x", least={"most": 1.0}, repeat=1),
    ]
