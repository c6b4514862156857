"""Small faults that a person might make, found in a file's syntax tree and spliced into its text.

A mutation replaces one node by another one, so that everything else, comments included, stays as it was. Annotations,
docstrings, f-strings and the arguments of `raise` are left alone: a fault there changes no result.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

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
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitXor: ast.BitAnd,
    ast.Pow: ast.Mult,
}
_TWINS = (
    *(("min", "max"), ("any", "all"), ("argmin", "argmax"), ("amin", "amax"), ("zeros", "ones"), ("floor", "ceil")),
    *(("zeros_like", "ones_like"), ("minimum", "maximum"), ("append", "remove"), ("cummax", "cummin")),
    *(("mean", "sum"), ("median", "mean"), ("startswith", "endswith"), ("first", "last"), ("low", "high")),
)
NAMES = {one: other for pair in _TWINS for one, other in (pair, pair[::-1])}
"""Functions and fields that are mistaken for each other."""
SYMMETRIC = ("min", "max", "minimum", "maximum", "array_equal", "allclose")
"""Functions whose arguments can change places."""


@dataclass(frozen=True)
class Mutation:
    """One fault in one file: the bytes from `start` to `end` become `text`."""

    path: str
    line: int
    last_line: int
    kind: str
    start: int
    end: int
    text: str

    @property
    def name(self) -> str:
        """What tells it from all others."""
        return f"{self.path}:{self.line} ({self.kind}) {self.start}-{self.end} {self.text}"

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]

    def diff(self, source: bytes) -> str:
        """The changed lines, with a line of context on either side."""
        old, new = (text.decode().splitlines() for text in (source, self.applied(source)))
        head = f"{self.path}:{self.line} ({self.kind})"
        return "\n".join([head, *list(unified_diff(old, new, n=1, lineterm=""))[3:]])


def mutations(folder: Path, path: str) -> list[Mutation]:
    """All mutations of a file, in the order of their places; a few of them are not Python (`compiles`)."""
    source = (folder / path).read_bytes()
    tree = ast.parse(source)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node in _visible(tree):
        assert isinstance(node, ast.expr | ast.stmt)
        for kind, changed in _faults(node):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            text = ast.unparse(changed)
            text = f"({text})" if isinstance(node, ast.expr) and not isinstance(node, ast.Constant) else text
            found.append(Mutation(path, node.lineno, node.end_lineno or 0, kind, start, end, text))
    return sorted(found, key=lambda made: (made.start, made.end, made.kind, made.text))


def compiles(folder: Path, mutation: Mutation) -> bool:
    try:
        compile(mutation.applied((folder / mutation.path).read_bytes()), "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _visible(node: ast.AST) -> Iterator[ast.AST]:
    """The expressions and statements in which a fault changes what the program does."""
    for name, field in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_comment", "decorator_list", "bases"):
            continue
        for child in field if isinstance(field, list) else [field]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr | ast.Assert):
                continue
            if isinstance(child, ast.Import | ast.ImportFrom) or _only_for_types(child):
                continue
            if isinstance(child, ast.expr | ast.stmt):
                yield child
            if not isinstance(child, ast.Raise):
                yield from _visible(child)


def _only_for_types(node: ast.AST) -> bool:
    """`if TYPE_CHECKING`, and names of types such as `Draw = Callable[[int], str]`."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
        return False
    name, made = node.targets[0].id, node.value
    if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id in ("TypeVar", "NewType"):
        return True
    return name[:1].isupper() and not name.isupper() and isinstance(made, ast.Subscript | ast.BinOp)


Faults = Iterator[tuple[str, ast.AST]]


def _faults(node: ast.AST) -> Faults:
    for kind, rule in RULES.items():
        for changed in rule(node):
            yield kind, changed


def _comparison(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            other = COMPARISONS[type(operator)]()
            yield ast.Compare(node.left, [*node.ops[:place], other, *node.ops[place + 1 :]], node.comparators)


def _arithmetic(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _is_text(node.left):
        yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    if isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
        yield ast.AugAssign(node.target, ARITHMETIC[type(node.op)](), node.value)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _logic(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
        yield node.values[0]  # the other conditions are forgotten
    if isinstance(node, ast.UnaryOp):
        yield node.operand
    if isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)


def _branch(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.comprehension) and node.ifs:
        yield ast.comprehension(node.target, node.iter, [], node.is_async)
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp) and node.generators[-1].ifs:
        last = node.generators[-1]
        every = ast.comprehension(last.target, last.iter, [], last.is_async)
        yield type(node)(node.elt, [*node.generators[:-1], every])


def _constant(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool):
            yield ast.Constant(not value)
        elif isinstance(value, int):
            yield ast.Constant(value + 1)
        elif isinstance(value, float):
            yield ast.Constant(2 * value if value else 1.0)


def _arguments(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Call) and len(node.args) >= 2:
        one, two, *rest = node.args
        if ast.unparse(node.func).split(".")[-1] in SYMMETRIC:
            return
        if not isinstance(one, ast.Starred) and not isinstance(two, ast.Starred) and ast.dump(one) != ast.dump(two):
            yield ast.Call(node.func, [two, one, *rest], node.keywords)


def _name(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in NAMES:
        yield ast.Name(NAMES[node.id], node.ctx)
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr in NAMES:
        yield ast.Attribute(node.value, NAMES[node.attr], node.ctx)


def _dropped(node: ast.AST) -> Iterator[ast.AST]:
    """A statement that is only there for its effect is forgotten."""
    call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    stored = isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name | ast.Tuple)
    if call or stored or isinstance(node, ast.AugAssign | ast.Raise | ast.Continue | ast.Break):
        yield ast.Pass()


def _slice(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        held = node.slice
        if held.upper is not None:
            yield ast.Subscript(node.value, ast.Slice(held.lower, None, held.step), node.ctx)
        if held.lower is not None:
            yield ast.Subscript(node.value, ast.Slice(None, held.upper, held.step), node.ctx)


RULES: dict[str, Callable[[ast.AST], Iterator[ast.AST]]] = {
    "comparison": _comparison,
    "arithmetic": _arithmetic,
    "logic": _logic,
    "filter dropped": _branch,
    "constant": _constant,
    "arguments swapped": _arguments,
    "name": _name,
    "statement dropped": _dropped,
    "slice": _slice,
}
