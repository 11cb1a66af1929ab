"""JSON without the json package: the same values, and every number as it was written."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.installations import ROOT

from cdi_runc import jsonio

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_reads_what_json_reads(value):
    """What json writes is read as json reads it, and written so that json reads the same."""
    try:
        data = json.dumps(value, allow_nan=False).encode()
    except ValueError:
        return  # an infinity
    again = json.loads(jsonio.dumps(jsonio.loads(data)))

    assert json.loads(data) == again


@pytest.mark.parametrize(
    "number",
    [
        "1e3",
        "1.50",
        "-0",
        "-0.0",
        "18446744073709551615",
        "9" * 5000,
        "1E400",
        "0.1",
        "1.0000000001",
    ],
    ids=lambda number: number[:20],
)
def test_number_is_kept_as_it_was_written(number):
    """A number comes out with the characters that it came in with."""
    data = f'{{"a":[{number},"1e3"],"b":{number}}}'.encode()

    assert data == jsonio.dumps(jsonio.loads(data))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(rb'{"a":"\ud800"}', id="half-a-pair"),
        pytest.param('{"größe":"ü \\n \\u0000 😀"}'.encode(), id="unicode"),
        pytest.param(b' {"a" : [ ] , "b" : { } } \n', id="blanks"),
    ],
)
def test_text_survives(data):
    """Text comes out as the same text, half a surrogate pair included."""
    assert json.loads(data) == json.loads(jsonio.dumps(jsonio.loads(data)))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="open"),
        pytest.param(b'{"a":1,}', id="trailing-comma"),
        pytest.param(b"{} {}", id="two"),
        pytest.param(b'{"a":NaN}', id="nan"),
        pytest.param(b'{"a":-Infinity}', id="infinity"),
        pytest.param(b"\xff", id="not-utf8"),
        pytest.param(b'"a\tb"', id="control-character"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b"[" * 100_000 + b"]" * 100_000, id="deep-and-closed"),
    ],
)
def test_what_is_not_json_is_refused(data):
    """What is not JSON is a ValueError, whatever it is."""
    with pytest.raises(ValueError, match=r"."):
        jsonio.loads(data)


def interpreters():
    """Return each CPython from 3.10 on that this machine has."""
    found = map(shutil.which, ("python3.10", "python3.12", "python3.13"))
    found = [Path(path) for path in found if path and "/shims/" not in path]
    found += Path.home().glob(".pyenv/versions/3.1[0-9]*/bin/python3")
    return [Path("/usr/bin/python3"), *found]


@pytest.mark.parametrize("python", interpreters(), ids=lambda path: path.parts[-3])
def test_private_module_serves_on_each_python(python):
    """Reading, refusing and writing work on every CPython that is here, without json loaded."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from cdi_runc import jsonio\n"
        "assert 'json' not in sys.modules\n"
        'd = b\'{"a":[1,2.5,1e3,true,null,"x"],"b":{}}\'\n'
        "assert jsonio.dumps(jsonio.loads(d)) == d\n"
        "assert 'json' not in sys.modules\n"
        "for bad in (b'', b'{', b'[1,]', b'nul'):\n"
        "    try: jsonio.loads(bad)\n"
        "    except ValueError as e: assert str(e)\n"
        "    else: raise SystemExit(bad)\n"
        "print('done')\n"
    )
    told = subprocess.run(
        [python, "-I", "-S", "-c", script, ROOT], check=False, capture_output=True, text=True
    )

    assert ("done\n", "") == (told.stdout, told.stderr)
