"""``except Exception`` stands in one place, the worker's boundary: anywhere else it would hide a bug as an outcome."""

import ast
from collections.abc import Iterator
from pathlib import Path

import suite

ROOT = Path(suite.__file__).parent.parent
BOUNDARY = ("suite/worker/serve.py", "caught")
CATCH_ALL = ("Exception", "BaseException")


def catchers(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Functions that catch whatever there is and go on, each with the node that does."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
            for node in own_nodes(function):
                if catches_all(node):
                    yield getattr(function, "name", "module"), node


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Everything inside a function that is in no function within it."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from own_nodes(child)


def catches_all(node: ast.AST) -> bool:
    """Whether a node is ``except:``, ``except Exception``, ``suppress(Exception)`` or wider, and does not raise again."""
    if isinstance(node, ast.ExceptHandler):
        wide = node.type is None or any(each in CATCH_ALL for each in names(node.type))
        passes_on = any(isinstance(each, ast.Raise) for each in ast.walk(node))
        # Kept by name to be raised elsewhere: another thread's errors, or one that a library would have printed.
        carries = "BaseException" in names(node.type) and node.name in names(*node.body)
        return wide and not passes_on and not carries
    if isinstance(node, ast.Call):
        return "suppress" in names(node.func) and any(each in CATCH_ALL for each in names(*node.args))
    return False


def names(*nodes: ast.AST | None) -> set[str]:
    every = [each for node in nodes if node is not None for each in ast.walk(node)]
    return {each.id for each in every if isinstance(each, ast.Name)} | {
        each.attr for each in every if isinstance(each, ast.Attribute)
    }


def test_only_the_workers_boundary_catches_everything() -> None:
    found = [
        (str(path.relative_to(ROOT)), function)
        for room in ("suite", "backends", "dashboard")
        for path in sorted((ROOT / room).rglob("*.py"))
        for function, _ in catchers(ast.parse(path.read_text()))
    ]
    assert found == [BOUNDARY]


def test_the_words_stand_once() -> None:
    files = [path for room in ("suite", "backends", "dashboard") for path in (ROOT / room).rglob("*.py")]
    counts = {str(path.relative_to(ROOT)): path.read_text().count("except Exception") for path in files}
    assert {name: count for name, count in counts.items() if count} == {BOUNDARY[0]: 1}


def test_every_way_to_catch_everything_is_recognised() -> None:
    for caught in (
        "except:",
        "except BaseException as error:",
        "except Exception:",
        "except (OSError, Exception) as e:",
        "except builtins.BaseException:",
    ):
        assert len(list(catchers(ast.parse(f"def f():\n try: g()\n {caught} pass")))) == 1, caught
    assert len(list(catchers(ast.parse("def f():\n with contextlib.suppress(Exception): g()")))) == 1
    for allowed in ("except OSError: pass", "except Exception: raise", "except BaseException as error: self.raised = error"):
        assert list(catchers(ast.parse(f"def f():\n try: g()\n {allowed}"))) == [], allowed
