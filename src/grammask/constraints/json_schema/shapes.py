"""Shapes: what a formula allows, by JSON type. A shape is a union of typed cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from grammask.constraints.json_schema import formulas as f
from grammask.constraints.json_schema import numbers, strings
from grammask.constraints.json_schema.arrays import ArrayAlgebra, ArrayCell
from grammask.constraints.json_schema.keys import Keys
from grammask.constraints.json_schema.numbers import NumberCell
from grammask.constraints.json_schema.object_cells import ANY as ANY_OBJECT
from grammask.constraints.json_schema.object_cells import ObjectAlgebra, ObjectCell
from grammask.constraints.json_schema.strings import Strings
from grammask.engine import time_limit
from grammask.engine.errors import ConstraintTooLarge

if TYPE_CHECKING:
    from grammask.constraints.json_schema.formulas import Formulas
    from grammask.constraints.json_schema.values import Value

Cell = TypeVar("Cell")

MAX_CELLS = 2_000
"""A formula may split into at most this many cells of one type."""
MAX_CELL_WORK = 20_000
"""At most this many pairs of cells are looked at for one conjunction."""


_NUMBERS = {
    f.NUMBER: (numbers.ANY,),
    f.WHOLE: (numbers.WHOLE,),
    f.PLAIN: (numbers.PLAIN,),
    f.POINTED: (numbers.POINTED,),
    f.FRACTION: (numbers.FRACTIONAL,),
    f.PLAIN | f.FRACTION: (numbers.PLAIN, numbers.FRACTIONAL),
    f.POINTED | f.FRACTION: (NumberCell(plain=False),),
}
"""The cells of each set of kinds of numbers."""


class Shape:
    """A union of cells.

    Attributes:
        null: whether null is in.
        booleans: bit 0 for false, bit 1 for true.
        numbers, objects, arrays: cells.
        strings: a tree of strings.NONE if no string is in.
    """

    __slots__ = ("arrays", "booleans", "null", "numbers", "objects", "strings")

    def __init__(
        self,
        null: bool = False,
        booleans: int = 0,
        numbers: tuple[NumberCell, ...] = (),
        strings: Strings = strings.NONE,
        objects: tuple[ObjectCell, ...] = (),
        arrays: tuple[ArrayCell, ...] = (),
    ) -> None:
        self.null = null
        self.booleans = booleans
        self.numbers = numbers
        self.strings = strings
        self.objects = objects
        self.arrays = arrays

    def types(self) -> int:
        """Bit set of the types that have a cell."""
        bits = f.NULL if self.null else 0
        if self.booleans:
            bits |= f.BOOLEAN
        if self.numbers:
            bits |= f.NUMBER
        if self.strings != strings.NONE:
            bits |= f.STRING
        if self.objects:
            bits |= f.OBJECT
        if self.arrays:
            bits |= f.ARRAY
        return bits


EMPTY = Shape()


class ShapeAlgebra:
    """Unions and intersections of shapes."""

    def __init__(self, formulas: Formulas, objects: ObjectAlgebra, arrays: ArrayAlgebra) -> None:
        self._formulas = formulas
        self.objects = objects
        self.arrays = arrays
        self._by_types: dict[int, Shape] = {}

    def of_types(self, bits: int) -> Shape:
        """Everything of the given types."""
        found = self._by_types.get(bits)
        if found is None:
            cells: tuple[NumberCell, ...] = ()
            if bits & f.NUMBER:
                cells = _NUMBERS[bits & f.NUMBER]
            found = self._by_types[bits] = Shape(
                bool(bits & f.NULL),
                3 if bits & f.BOOLEAN else 0,
                cells,
                strings.ANY if bits & f.STRING else strings.NONE,
                (ANY_OBJECT,) if bits & f.OBJECT else (),
                (self.arrays.any,) if bits & f.ARRAY else (),
            )
        return found

    def of_values(self, values: frozenset[Value], types: int) -> Shape:
        """Exactly the given values, as far as they are of the given types."""
        kinds: dict[str, list[Value]] = {}
        for value in values:
            if f.type_bit(value) & types:
                kinds.setdefault(value[0], []).append(value)
        booleans = 0
        for value in kinds.get("b", ()):
            booleans |= 2 if value[1] else 1
        points = frozenset([value[1] for value in kinds.get("d", ())])
        return Shape(
            "n" in kinds,
            booleans,
            (NumberCell(only=points),) if points else (),
            strings.Only(frozenset([value[1] for value in kinds["s"]])) if "s" in kinds else strings.NONE,
            tuple([self._object_value(value) for value in kinds.get("o", ())]),
            tuple([self._array_value(value) for value in kinds.get("a", ())]),
        )

    def not_values(self, values: frozenset[Value], types: int) -> Shape:
        """Everything of the given types but the given values."""
        shape = self.of_types(types)
        booleans = shape.booleans
        points = set()
        texts = set()
        objects, arrays = shape.objects, shape.arrays
        for value in values:
            kind = value[0]
            if kind == "b":
                booleans &= ~(2 if value[1] else 1)
            elif kind == "d":
                points.add(value[1])
            elif kind == "s":
                texts.add(value[1])
            elif kind == "o" and objects:
                objects = self._product(objects, self.objects.negate(self._object_value(value)), self.objects.meet)
            elif kind == "a" and arrays:
                arrays = self._product(arrays, self.arrays.negate(self._array_value(value)), self.arrays.meet)
        cells = shape.numbers
        if points:
            cells = self._product(cells, [NumberCell(never=frozenset(points))], numbers.meet)
        tree = shape.strings
        if texts:
            tree = strings.meet([tree, strings.Except(frozenset(texts))])
        return Shape(shape.null and ("n",) not in values, booleans, cells, tree, objects, arrays)

    def _object_value(self, value: Value) -> ObjectCell:
        time_limit.check()
        members = value[1].order
        names = [name for name, _ in members]
        listed = Keys(frozenset(names), frozenset(), True)
        return ObjectCell(
            {name: self._formulas.values(frozenset((item,))) for name, item in members},
            ((listed, self._formulas.false),),
            tuple(names),
            constant=True,
        )

    def _array_value(self, value: Value) -> ArrayCell:
        time_limit.check()
        items = tuple([self._formulas.values(frozenset((item,))) for item in value[1]])
        return ArrayCell(items, self._formulas.false, len(items), len(items))

    def join(self, shapes: Sequence[Shape]) -> Shape:
        """The union."""
        if len(shapes) == 1:
            return shapes[0]
        booleans = 0
        for shape in shapes:
            booleans |= shape.booleans
        return Shape(
            any(shape.null for shape in shapes),
            booleans,
            _distinct([cell for shape in shapes for cell in shape.numbers]),
            strings.join([shape.strings for shape in shapes]),
            _distinct_cells([cell for shape in shapes for cell in shape.objects]),
            _distinct_cells([cell for shape in shapes for cell in shape.arrays]),
        )

    def meet(self, a: Shape, b: Shape) -> Shape:
        """The intersection."""
        tree = a.strings
        if b.strings is not strings.ANY and tree is not strings.NONE:
            tree = b.strings if tree is strings.ANY else strings.meet([tree, b.strings])
        return Shape(
            a.null and b.null,
            a.booleans & b.booleans,
            self._product(a.numbers, b.numbers, numbers.meet),
            tree if tree != strings.NONE else strings.NONE,
            self._product(a.objects, b.objects, self.objects.meet),
            self._product(a.arrays, b.arrays, self.arrays.meet),
        )

    def _product(
        self, a: Sequence[Cell], b: Sequence[Cell], meet: Callable[[Cell, Cell], Cell | None]
    ) -> tuple[Cell, ...]:
        if not a or not b:
            return ()
        if len(a) * len(b) > MAX_CELL_WORK:
            raise ConstraintTooLarge(
                f"a combination of alternatives with more than {MAX_CELL_WORK} cases",
                hint="tell alternatives apart by a required property with different constants, or merge them",
            )
        if len(a) == 1 and len(b) == 1:
            both = meet(a[0], b[0])
            return () if both is None else (both,)
        found: list[Cell] = []
        for x in a:
            time_limit.check()
            key = getattr(x, "key", x)
            narrowed = []
            for y in b:
                both = meet(x, y)
                if both is None:
                    continue
                if getattr(both, "key", both) == key:  # x lies in y: the other cells of b add nothing to x
                    narrowed = [both]
                    break
                narrowed.append(both)
            found += narrowed
        return _distinct_cells(found)


def _distinct(cells: list[Cell]) -> tuple[Cell, ...]:
    return tuple(dict.fromkeys(cells)) if len(cells) > 1 else tuple(cells)


def _distinct_cells(cells: list[Cell]) -> tuple[Cell, ...]:
    if len(cells) < 2:
        return tuple(cells)
    distinct = tuple({getattr(cell, "key", cell): cell for cell in cells}.values())
    if len(distinct) > MAX_CELLS:
        raise ConstraintTooLarge(
            f"a combination of alternatives with more than {MAX_CELLS} cases",
            hint="tell alternatives apart by a required property with different constants, or merge them",
        )
    return distinct
