"""Record: frozen, typed by its annotations, and as good as a dataclass."""

import pytest

from cdi_runc.record import Record


class Point(Record):
    """Two numbers, the second with a default."""

    x: int
    y: int = 7


class Named(Point):
    """One more."""

    name: str = ""


def test_fields_are_the_annotations_in_order():
    """Values are given by place or by name, defaults fill the rest, inherited ones come first."""
    assert (1, 7) == Point(1).values() == Point(x=1).values()
    assert (1, 2, "n") == Named(1, 2, "n").values() == Named(1, name="n", y=2).values()
    assert ("x", "y", "name") == Named._fields


@pytest.mark.parametrize(
    ("args", "named"),
    [((), {}), ((1, 2, 3), {}), ((1,), {"z": 1}), ((), {"y": 1})],
    ids=["none", "too-many", "unknown", "missing"],
)
def test_wrong_fields_are_refused(args, named):
    """A field that is missing, unknown or one too many is an error that names the fields."""
    with pytest.raises(TypeError, match="Point takes"):
        Point(*args, **named)


def test_a_record_is_a_value():
    """It cannot be changed, equals another of its type with its values, and can be a key."""
    with pytest.raises(AttributeError, match="immutable"):
        Point(1).x = 2

    assert Point(1, 7) == Point(1)
    assert Point(1) != Named(1)
    assert Point(1) != (1, 7)
    assert 1 == len({Point(1), Point(1, 7)})
    assert "Point(x=1, y=7)" == repr(Point(1))


def test_a_changed_copy_leaves_the_record():
    """But gives a copy in which the changes hold."""
    point = Named(1)

    assert Named(1, 2) == point.but(y=2)
    assert Named(1) == point
    with pytest.raises(TypeError):
        point.but(z=1)
