"""Record: a frozen, typed record that costs nothing at start (``dataclasses`` costs 28 ms)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Any:
        """Do nothing: the real one is for the type checker only."""
        return lambda cls: cls


@dataclass_transform(frozen_default=True)
class Record:
    """A value whose annotated names are its fields, in order; class attributes are defaults."""

    _fields: tuple[str, ...] = ()
    _needed = 0

    def __init_subclass__(cls) -> None:
        """Add the names annotated in *cls* to the fields it inherits."""
        cls._fields += (*cls.__annotations__,)
        cls._needed = len([name for name in cls._fields if not hasattr(cls, name)])

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.__dict__.update(zip(self._fields, args))  # noqa: B905  # lengths are compared below
        if kwargs or not self._needed <= len(args) <= len(self._fields):
            self._complete(args, kwargs)

    def _complete(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        own, fields = self.__dict__, self._fields
        own.update(kwargs)
        missing = [name for name in fields if name not in own and not hasattr(self, name)]
        if missing or len(args) > len(fields) or not own.keys() <= {*fields}:
            raise TypeError(f"{type(self).__name__} takes {fields}, not {args} {kwargs}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.values() == other.values()

    def __hash__(self) -> int:
        return hash(self.values())

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._fields)
        return f"{type(self).__name__}({told})"

    def values(self) -> tuple[Any, ...]:
        """Return the fields' values in the order of the fields."""
        return tuple(getattr(self, name) for name in self._fields)

    def but(self, **changes: Any) -> Any:
        """Return a copy in which *changes* hold."""
        own = {name: getattr(self, name) for name in self._fields}
        return type(self)(*{**own, **changes}.values())
