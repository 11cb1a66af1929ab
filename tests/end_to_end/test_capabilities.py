"""What the real runtime would drop in silence (CASES B57): refused, or told where configured."""

import json

import pytest

EDITS = {
    "netDevices": ({"hostInterfaceName": "lo", "name": "acme0"}, "runc has that since 1.4"),
    "intelRdt": ({"closID": "gold"}, "resctrl is not mounted"),
}


@pytest.fixture(params=EDITS)
def offer(request, configuration):
    """Offer a device with an edit that runc 1.1.5 drops; return the words that say so."""
    entry, words = EDITS[request.param]
    entries = [entry] if request.param == "netDevices" else entry
    configuration.spec(("one", {request.param: entries}), cdiVersion="1.1.0")
    return words


def test_dropped_edit_is_refused(runtime, make_bundle, offer):
    """A device with an edit that the runtime would drop is refused, with the reason."""
    bundle = make_bundle("true").request("acme.com/widget=one")
    finished = runtime("run", "--bundle", bundle.path, bundle.id, check=False)

    assert finished.status == 1
    assert offer in finished.err
    assert "set unsupported to warn" in finished.err


def test_dropped_edit_is_told_where_configured(
    runtime, configuration, make_bundle, offer, tmp_path
):
    """With unsupported: warn the container starts, and record and engine's log say what is lost."""
    configuration.write(unsupported="warn")
    bundle = make_bundle("true").request("acme.com/widget=one")
    log = tmp_path / "log.json"
    options = ("--log", log, "--log-format", "json")
    runtime(*options, "run", "--bundle", bundle.path, bundle.id)
    (record,) = configuration.records()
    levels = [
        (entry["level"], entry["msg"]) for entry in map(json.loads, log.read_text().splitlines())
    ]

    assert [offer in warning for warning in record["warnings"]] == [True]
    assert any(level == "warning" and offer in text for level, text in levels)
