"""Sharding rules of custom_partitioning: which dimensions of operands and results correspond, as text or as tuples."""
from __future__ import annotations

import re
from typing import Any

BATCHING = "…"  # any number of leading dimensions; a number after it distinguishes several groups


def _check_name(name: str) -> None:
    if not name[:1].isalpha():
        raise ValueError(f"Factor names have to start with a letter, but got '{name[:1]}'")
    for char in name[1:]:
        if char != "_" and not char.isalnum():
            raise ValueError(f"Unknown character '{char}'")


def _is_batching(name: str) -> bool:
    return name[:1] == BATCHING and (len(name) == 1 or name[1:].isdigit())


class CompoundFactor(tuple):
    """Several factors that make up one dimension, outermost first."""

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError("A compound factor should contain at least two factors")
        for factor in factors:
            if not isinstance(factor, str):
                raise ValueError(f"Each element of CompoundFactor must be a str, but got {type(factor)}")
            if _is_batching(factor):
                raise ValueError("Ellipsis can't be used in a compound factor")
            _check_name(factor)
        return super().__new__(cls, factors)


class ArrayMapping(tuple):
    """The factors of one operand or result: a name or a CompoundFactor for each dimension."""

    def __new__(cls, *dims: str | CompoundFactor) -> ArrayMapping:
        for i, dim in enumerate(dims):
            if isinstance(dim, CompoundFactor):
                continue
            if not isinstance(dim, str):
                raise ValueError(f"Each element of ArrayMapping must be a str or CompoundFactor, but got {type(dim)}")
            if not _is_batching(dim):
                _check_name(dim)
            elif i > 0:
                raise ValueError("Ellipsis can only be used at the beginning of a dimension")
        return super().__new__(cls, dims)


class SdyShardingRule:
    """A rule: mappings of operands and results; factors that are reduced, replicated or permuted; sizes of inner factors."""

    def __init__(self, operand_mappings: tuple, result_mappings: tuple, *, reduction_factors: tuple[str, ...] = (),
                 need_replication_factors: tuple[str, ...] = (), permutation_factors: tuple[str, ...] = (), **factor_sizes: int) -> None:
        self.operand_mappings = tuple(_mapping(one) for one in operand_mappings)
        self.result_mappings = tuple(_mapping(one) for one in result_mappings)
        self.factor_sizes = factor_sizes
        alone, inside = set(), set()
        for mapping in self.operand_mappings + self.result_mappings:
            for dim in mapping:
                if isinstance(dim, CompoundFactor):
                    inside |= set(dim)
                else:
                    alone.add(dim)
        for name in factor_sizes:
            if name not in alone | inside:
                raise ValueError(f"Factor {name} is not used in the rule, but size is provided")
        for name in sorted(inside - alone):
            if name not in factor_sizes:
                raise ValueError(f"Factor {name} is only used in compound factors; must specify its size")
        for name in sorted(alone):
            if name in factor_sizes:
                raise ValueError(f"Factor {name} represents a whole dimension; do not specify its size")
        seen: set[str] = set()
        for kind, names in (("reduction_factors", reduction_factors), ("need_replication_factors", need_replication_factors),
                            ("permutation_factors", permutation_factors)):
            _check_kind(kind, names, alone | inside, seen)
        self.reduction_factors = reduction_factors
        self.need_replication_factors = need_replication_factors
        self.permutation_factors = permutation_factors

    def __str__(self) -> str:
        kinds = [(kind, getattr(self, kind)) for kind in ("reduction_factors", "need_replication_factors", "permutation_factors")]
        text = "".join(f" {kind}={names}" for kind, names in kinds if names)
        return f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, {self.factor_sizes}{text})"


def _mapping(given: Any) -> ArrayMapping:
    return given if isinstance(given, ArrayMapping) else ArrayMapping(*given)


def _check_kind(kind: str, names: Any, used: set[str], seen: set[str]) -> None:
    if not isinstance(names, tuple):
        raise ValueError(f"{kind} must be a tuple of factors")
    if len(names) != len(set(names)):
        raise ValueError(f"{kind} contains duplicated factors")
    for name in names:
        if name not in used:
            raise ValueError(f"Factor {name} in {kind} is not used in the rule")
        if name in seen:
            raise ValueError(f"Factor {name} can only be in one of the reduction, need replication, or permutation factor sets.")
        seen.add(name)


def str_to_sdy_sharding_rule(rule: str, *, reduction_factors: tuple[str, ...] = (), need_replication_factors: tuple[str, ...] = (),
                             permutation_factors: tuple[str, ...] = (), **factor_sizes: int) -> SdyShardingRule:
    """Parses a rule such as "... i j, ... j k -> ... i k"."""
    if not isinstance(rule, str):
        raise TypeError(f"rule must be a str, but got {type(rule)}")
    if not all(isinstance(size, int) for size in factor_sizes.values()):
        raise TypeError(f"factor_sizes must be a dict of str to int, but got {factor_sizes}")
    if BATCHING in rule:
        raise ValueError(f"Unknown character '{BATCHING}'")
    text = rule.replace("...", BATCHING)
    if "." in text:
        raise ValueError("Character '.' must be used inside ellipsis '...'")
    if text.count("->") != 1:
        raise ValueError(f"There is no -> in rule: '{rule}'")
    operands, results = text.split("->")
    return SdyShardingRule(_parse(operands), _parse(results), reduction_factors=reduction_factors,
                           need_replication_factors=need_replication_factors, permutation_factors=permutation_factors, **factor_sizes)


def _parse(text: str) -> tuple[ArrayMapping, ...]:
    values: list[list] = [[]]
    inside: list[str] | None = None
    for token in re.findall(rf"{BATCHING}\d*|\w+|\S", text):
        if token == "(":
            if inside is not None:
                raise ValueError("Compound factors should be one level, nested brackets are not allowed")
            inside = []
        elif token == ")":
            if inside is None:
                raise ValueError("Brackets are not balanced")
            if len(inside) <= 1:
                raise ValueError("Brackets should contain at least two factors")
            values[-1].append(CompoundFactor(*inside))
            inside = None
        elif token == ",":
            if inside is None:
                values.append([])
        elif _is_batching(token):
            if inside is not None or values[-1]:
                raise ValueError("Ellipsis can only be used at the beginning of a dimension")
            values[-1].append(token if len(token) > 1 else f"{BATCHING}0")
        elif token[0].isalnum() or token[0] == "_":
            _check_name(token)
            (values[-1] if inside is None else inside).append(token)
        else:
            raise ValueError(f"Unknown character '{token}'")
    if inside is not None:
        raise ValueError(f"Brackets are not balanced in rule: '{text.strip()}'")
    return tuple(ArrayMapping(*value) for value in values)


class Factors:
    """A rule applied to shapes: the sizes and uses of factors, and the factor numbers of each dimension."""

    FREE, SUMMED, WHOLE = 0, 1, 2

    def __init__(self, rule: SdyShardingRule | None, operands: list[tuple[int, ...]], results: list[tuple[int, ...]]) -> None:
        self.sizes: list[int] = []
        self.uses: list[int] = []
        self._numbers: dict[str, int] = {}
        if rule is None:  # no dimensions correspond
            self.operands = [[[self._add(size, self.WHOLE)] for size in shape] for shape in operands]
            self.results = [[[self._add(size, self.WHOLE)] for size in shape] for shape in results]
            return
        for word, mappings, shapes in (("operands", rule.operand_mappings, operands), ("results", rule.result_mappings, results)):
            if len(mappings) != len(shapes):
                raise ValueError(f"Sharding rule has {len(mappings)} {word}, but the operation has {len(shapes)} {word}")
        self._rule = rule
        self._alone: dict[str, int] = {}  # sizes of factors that make up a whole dimension somewhere
        for one, shape in zip(rule.operand_mappings + rule.result_mappings, operands + results):
            self._alone.update((name, size) for name, size in zip(reversed(one), reversed(shape)) if isinstance(name, str))
        self.operands = [self._dims(one, shape, f"{i}th operand") for i, (one, shape) in enumerate(zip(rule.operand_mappings, operands))]
        self.results = [self._dims(one, shape, f"{i}th result") for i, (one, shape) in enumerate(zip(rule.result_mappings, results))]
        for name in rule.need_replication_factors + rule.permutation_factors:
            self.uses[self._numbers[name]] = self.WHOLE
        of_results = {number for value in self.results for dim in value for number in dim}
        for number, use in enumerate(self.uses):
            if number not in of_results and use == self.FREE:
                self.uses[number] = self.SUMMED

    def _add(self, size: int, use: int) -> int:
        self.sizes.append(size)
        self.uses.append(use)
        return len(self.sizes) - 1

    def _named(self, name: str, size: int, what: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = self._add(size, self.FREE)
        number = self._numbers[name]
        if self.sizes[number] != size and name.startswith(BATCHING):
            raise ValueError(f"Batching dimension {name[1:]} corresponds to two sizes: {self.sizes[number]} and {size}")
        if self.sizes[number] != size:
            raise ValueError(f"Factor {name} corresponds to two sizes: {self.sizes[number]} and {size}")
        return number

    def _dims(self, mapping: ArrayMapping, shape: tuple[int, ...], what: str) -> list[list[int]]:
        names = list(mapping)
        leading = 0
        if names and isinstance(names[0], str) and _is_batching(names[0]):
            group = names.pop(0)[1:] or "0"
            leading = len(shape) - len(names)
        elif len(names) != len(shape):
            raise ValueError(f"Sharding rule {what} has rank {len(names)}, but the operation {what} has rank {len(shape)}")
        if leading < 0:
            raise ValueError(f"Sharding rule {what} has rank {len(names)}, but the operation {what} has rank {len(shape)}")
        dims = [[self._named(f"{BATCHING}{group}_{i}", shape[i], what)] for i in range(leading)]
        for name, size in zip(names, shape[leading:]):
            if isinstance(name, str):
                dims.append([self._named(name, size, what)])
                continue
            sizes = [self._rule.factor_sizes.get(one) or self._alone[one] for one in name]
            product = 1
            for one in sizes:
                product *= one
            if product != size:
                raise ValueError(f"{what} actual size {size} doesn't match the size {product} derived from the compound factors "
                                 f"{list(name)}")
            dims.append([self._named(one, part, what) for one, part in zip(name, sizes)])
        return dims
