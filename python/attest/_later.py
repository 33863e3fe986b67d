"""Names what users of other suites ask for and this version lacks."""

from __future__ import annotations

import functools
import re
from typing import Any, Callable, Iterable, TypeVar, cast

_LATER = {
    **dict.fromkeys(("dropout", "dropout_p", "p_dropout"), "dropout"),
    **dict.fromkeys(("descale", "q_descale", "k_descale", "v_descale"), "descales, which come with fp8"),
    **dict.fromkeys(("kv_dtype", "k_dtype", "v_dtype"), "k and v of another dtype than q"),
    **dict.fromkeys(("o_dtype", "out_dtype"), "out of another dtype than q"),
}
_FP8 = re.compile("fp8|f8|float8|e4m3|e5m2")

_Function = TypeVar("_Function", bound=Callable[..., Any])


def lacking(word: str) -> str:
    """Says that this version does not have what the word names; "" for other words."""
    what = "fp8" if _FP8.match(word) else _LATER.get(word)
    return f"this version does not have {what}" if what else ""


def require_present(words: Iterable[str]) -> None:
    """Raises TypeError for a keyword of what this version does not have."""
    for word in words:
        if lacking(word):
            raise TypeError(f"unexpected keyword {word!r}: {lacking(word)}")


def refusing_by_name(fn: _Function) -> _Function:
    """Returns the function with these keywords refused before Python refuses them."""

    @functools.wraps(fn)
    def checked(*arguments: Any, **keywords: Any) -> Any:
        __tracebackhide__ = True
        require_present(keywords)
        return fn(*arguments, **keywords)

    return cast(_Function, checked)
