"""What a word that nobody knows may have been meant to be."""

from __future__ import annotations

import difflib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

ALIKE = 0.6
"""How alike two words have to be, of 1 (see :func:`difflib.get_close_matches`)."""


def hint(word: object, known: Iterable[object], alike: float = ALIKE) -> str:
    """Return the one of *known* that *word* is most like, as words to put behind it, or nothing."""
    near = difflib.get_close_matches(str(word), [str(one) for one in known], 1, alike)
    return f" (did you mean {near[0]}?)" if near else ""
