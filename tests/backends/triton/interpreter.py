"""Triton's interpreter, which exchanges the words of its language anew at every call of a device function.

In kernels of small blocks much of its time goes into that, where the first call of a launch with the same modules has
exchanged them all.
"""

from typing import Any

from triton.runtime import interpreter


def exchange_words_once_a_launch() -> None:
    """For the rest of this process; nothing where this version of Triton does it in another way."""
    if not hasattr(interpreter, "_patch_lang"):
        return
    exchange, launch = interpreter._patch_lang, interpreter.GridExecutor.__call__
    modules = {id(interpreter.tl), id(interpreter.tl.core)}
    exchanged: set[frozenset[int]] = set()

    def begin(grid: Any, *arguments: Any, **named: Any) -> Any:
        exchanged.clear()
        return launch(grid, *arguments, **named)

    def once(function: Any) -> Any:
        languages = frozenset(map(id, function.__globals__.values())) & modules
        if languages in exchanged:
            return interpreter._LangPatchScope()
        exchanged.add(languages)
        return exchange(function)

    interpreter.GridExecutor.__call__ = begin
    interpreter._patch_lang = once
