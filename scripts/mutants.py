"""The small changes that scripts/mutate.py makes to a file, one at a time.

In: Python source. Out: a Mutant per change, as a span of the source and its new text. Strings, docstrings,
annotations and decorators stay as they are: tests should not pin every word.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
# Their negation is the flip that COMPARISONS already makes.
FLIPPED_IS_NEGATED = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)


@dataclass(frozen=True)
class Mutant:
    """One change: `source[start:end]`, which begins in `line` (from 1), becomes `text`."""

    line: int
    start: int
    end: int
    text: str
    what: str

    def apply(self, source: bytes) -> bytes:
        """Return the changed source."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def mutants(source: bytes) -> list[Mutant]:
    """Return every change that this tool knows for a file, in the order of the source."""
    starts = [0]  # of each line, in bytes, as ast counts columns
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = set()
    for node, change, what in _changes(ast.parse(source)):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        text = ast.unparse(change)
        if isinstance(change, ast.BinOp | ast.BoolOp | ast.Compare | ast.UnaryOp | ast.IfExp):
            text = f"({text})"
        found.add(Mutant(node.lineno, start, end, text, what))
    return sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.text))


Change = tuple[ast.expr | ast.stmt, ast.expr | ast.stmt, str]  # node, what it becomes, what for


def _changes(tree: ast.AST) -> Iterator[Change]:
    yield from _changes_here(tree)
    for child in _children(tree):
        yield from _changes(child)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        # In Python 3.11 what stands inside an f-string has no position of its own.
        if name in ("annotation", "returns", "decorator_list") or isinstance(node, ast.JoinedStr):
            continue
        values = value if isinstance(value, list) else [value]
        yield from (item for item in values if isinstance(item, ast.AST))


def _changes_here(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Compare(left, ops, comparators):
            for i, op in enumerate(ops):
                flipped = [*ops[:i], COMPARISONS[type(op)](), *ops[i + 1 :]]
                yield node, ast.Compare(left, flipped, comparators), "comparison"
        case ast.BinOp(left, op, right) if type(op) in ARITHMETIC:
            yield node, ast.BinOp(left, ARITHMETIC[type(op)](), right), "operator"
        case ast.AugAssign(target, op, value):
            if type(op) in ARITHMETIC:
                yield node, ast.AugAssign(target, ARITHMETIC[type(op)](), value), "operator"
            yield node, ast.Pass(), "statement dropped"
        case ast.BoolOp(op, values):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield node, ast.BoolOp(other, values), "and/or"
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield node, operand, "sign or not dropped"
        case ast.Constant(bool() as value):
            yield node, ast.Constant(not value), "constant"
        case ast.Constant(int() | float() as value):
            yield node, ast.Constant(value + 1), "constant"
        case ast.Return(ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield node, ast.Return(ast.Constant(None)), "return value"
        case ast.Break():
            yield node, ast.Continue(), "break/continue"
        case ast.Continue():
            yield node, ast.Break(), "break/continue"
        case ast.Expr(ast.Call() | ast.Await() | ast.Yield() | ast.YieldFrom()):
            yield node, ast.Pass(), "statement dropped"
        case ast.Raise() | ast.Delete():
            yield node, ast.Pass(), "statement dropped"
        case ast.Assign([ast.Attribute() | ast.Subscript(), *_]):
            yield node, ast.Pass(), "statement dropped"
    if isinstance(node, ast.If | ast.IfExp | ast.While) and not _negated_by_a_flip(node.test):
        yield node.test, ast.UnaryOp(ast.Not(), node.test), "condition negated"


def _negated_by_a_flip(test: ast.expr) -> bool:
    """Return whether negating a condition gives a mutant that there is anyway."""
    if isinstance(test, ast.UnaryOp):
        return isinstance(test.op, ast.Not)
    return (
        isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], FLIPPED_IS_NEGATED)
    )
