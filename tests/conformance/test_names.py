"""Device names, and the annotations that ask for devices."""

import json
import re

import cases
import pytest

from cdi_runc import names, requests, settings
from cdi_runc.errors import BadRequest


def read(annotations):
    """Return what the annotations of a configuration ask for."""
    return requests.read({"annotations": annotations}, settings.defaults())


@pytest.mark.parametrize("entry", cases.entries("qualified"))
def test_qualified_names(entry):
    """A name is split in three, or refused."""
    if entry["valid"]:
        assert (entry["vendor"], entry["class"], entry["name"]) == names.parse(entry["input"])
    else:
        with pytest.raises(BadRequest, match=re.escape(repr(entry["input"]))):
            names.parse(entry["input"])


@pytest.mark.parametrize("entry", cases.entries("annotations"))
def test_annotations(entry):
    """The keys with our prefix ask for devices, in sorted order; one bad name spoils them all."""
    if not entry["valid"]:
        with pytest.raises(BadRequest, match=r"annotation cdi\.k8s\.io/"):
            read(entry["annotations"])
        return
    found = read(entry["annotations"])

    assert entry["keys"] == list(dict.fromkeys(request.key for request in found))
    if entry["order_open"]:
        assert sorted(entry["devices"]) == sorted(requests.devices(found))
    else:
        assert entry["devices"] == requests.devices(found)


@pytest.mark.parametrize("entry", cases.entries("annotation-keys"))
def test_every_key_that_a_plugin_can_make_is_read(entry):
    """What follows the prefix is the plugin's own: keys the reference would not make count too.

    We make no keys, so the rules for making one are the plugin's (CASES, B17).
    """
    key = f"cdi.k8s.io/{entry['plugin']}_{entry['device_id'].replace('/', '_')}"
    if entry["valid"]:
        assert entry["result"] == key

    assert ["v.com/c=d"] == requests.devices(read({key: "v.com/c=d"}))


@pytest.mark.parametrize("entry", cases.entries("annotation-values"))
def test_every_value_that_a_plugin_can_make_is_read(entry):
    """A value is read as the devices that it was made of; what cannot be made is refused."""
    value = entry.get("result", ",".join(entry["devices"]))
    if not entry["valid"] or not entry["devices"]:
        with pytest.raises(BadRequest):
            read({"cdi.k8s.io/x": value})
    else:
        assert entry["devices"] == requests.devices(read({"cdi.k8s.io/x": value}))


@pytest.mark.parametrize("name", cases.COUNTS)
def test_all_cases_are_here(name):
    """Not one file is missing, and our copy is what was shared."""
    copies = {path.name: json.loads(path.read_bytes()) for path in (cases.COPY / name).iterdir()}
    found = {path.name: json.loads(path.read_bytes()) for path in cases.folder(name)}

    assert cases.COUNTS[name] == len(found)
    assert copies == found
