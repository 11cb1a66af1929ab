"""Inputs that are made to cost: for each target, each by a name."""

import json

MANY = 600_000
BIG = 2_000_000


def of(target):
    """Return the bombs for *target*, functions that return bytes, by name."""
    own = {
        "spec": SPEC,
        "configuration": CONFIGURATION,
        "config_json": CONFIG,
        "daemon_json": DAEMON,
        "audit": AUDIT,
        "process_json": PROCESS,
        "requests": REQUESTS,
        "argv": ARGV,
    }[target]
    return {**(ANY if target in TEXTS else {}), **own}


def bounded(longest, bombs):
    """Return *bombs* of the names, each cut to *longest* bytes where it can be no longer."""
    return {name: (lambda make=make: make()[:longest]) for name, make in bombs.items()}


def keys(number):
    """Return an object of so many small keys."""
    return b"{" + b",".join(b'"k%d":1' % one for one in range(number)) + b"}"


def laughs(line, first="a0: &a0 {x: 1}\n"):
    """Return YAML each of whose lines repeats the one before ten times."""
    lines = [
        line.format(n=number, all=",".join([f"*a{number - 1}"] * 10)) for number in range(1, 12)
    ]
    return (first + "".join(lines)).encode()


ANY = {
    "nothing": lambda: b"",
    "zeros": lambda: bytes(BIG),
    "lines": lambda: b"\n" * BIG,
    "blanks": lambda: b" " * BIG,
    "not-utf-8": lambda: b"\xff" * BIG,
    "deep-list": lambda: b"[" * BIG,
    "deep-object": lambda: b'{"a":' * (BIG // 5),
    "closed-list": lambda: b"[" * 900 + b"]" * 900,
    "many-lists": lambda: b"[" + b"[]," * (BIG // 3) + b"[]]",
    "many-keys": lambda: keys(MANY),
    "one-key": lambda: b'{"' + b"k" * BIG + b'":1}',
    "one-text": lambda: b'{"kind":"' + b"x" * BIG + b'"}',
    "escapes": lambda: b'{"kind":"' + b"\\u0041" * (BIG // 6) + b'"}',
    "not-closed": lambda: b'{\t"' + b'\\"' * (BIG // 2),
    "digits": lambda: b'{"a":' + b"1" * MANY + b"}",
    "fraction": lambda: b'{"a":0.' + b"1" * MANY + b"}",
    "exponent": lambda: b'{"a":1e' + b"9" * MANY + b"}",
}
TEXTS = ("spec", "configuration", "config_json", "daemon_json", "audit", "process_json")

HEAD = b"cdiVersion: 1.1.0\nkind: acme.example/widget\n"
DEVICE = b"- {name: d%d, containerEdits: {env: [A=1]}}\n"
SPEC = {
    "laughs": lambda: laughs("a{n}: &a{n} [{all}]\n"),
    "merged-laughs": lambda: laughs("a{n}: &a{n} {{<<: [{all}]}}\n", "a0: &a0 {}\n"),
    "merged-siblings": lambda: (
        b"a: &a {" + b",".join(b"k%d: 1" % one for one in range(20_000)) + b"}\nb:\n"
        b"" + b"- {<<: *a}\n" * 100_000
    ),
    "repeated-text": lambda: (
        HEAD + b"annotations: {a: &a 'A=" + b"x" * MANY + b"'}\n"
        b"devices: [{name: d, containerEdits: {env: [" + b"*a," * 100_000 + b"]}}]\n"
    ),
    "repeated-key": lambda: (
        HEAD + b"a: &a {" + b"x" * 100_000 + b": 1}\nb: [" + b"*a," * 100_000 + b"]\n"
    ),
    "yaml-values": lambda: b"[" + b"a," * (BIG // 2) + b"a]",
    "tagged-values": lambda: b"[" + b"!a b," * (BIG // 3) + b"a]",
    "yaml-keys": lambda: b"".join(b"k%d: 1\n" % one for one in range(MANY)),
    "unknown-fields": lambda: HEAD + b"".join(b"k%d: 1\n" % one for one in range(50_000)),
    "anchors": lambda: b"".join(b"- &a%d x\n" % one for one in range(100_000)),
    "blocks": lambda: b"- " * (BIG // 2),
    "questions": lambda: b"? " * (BIG // 2),
    "hexadecimal": lambda: b"a: 0x" + b"f" * BIG,
    "octal": lambda: b"a: 0" + b"7" * BIG,
    "underscores": lambda: b"a: " + b"1_" * (BIG // 2),
    "binary": lambda: b"a: !!binary " + b"QUFB" * (BIG // 4),
    "python": lambda: b"a: !!python/object/apply:os.system [" + b"x," * 100_000 + b"]",
    "comments": lambda: b"#\n" * (BIG // 2),
    "documents": lambda: b"---\n" * (BIG // 4),
    "tabs": lambda: b"{" + b"\t" * BIG + b"}",
    "slashes": lambda: b'{"a": "' + b"\\\\" * (BIG // 4) + b'\\/"}',
    "devices": lambda: HEAD + b"devices:\n" + b"".join(DEVICE % one for one in range(5_000)),
    "twice": lambda: HEAD + b"devices:\n" + DEVICE % 1 * 5_000,
    "variables": lambda: (
        HEAD + b"devices: [{name: d, containerEdits: {env: [" + b"x," * 200_000 + b"]}}]"
    ),
}

CONFIGURATION = {
    **bounded(1 << 20, {name: SPEC[name] for name in ("laughs", "merged-laughs", "yaml-keys")}),
    **bounded(1 << 20, ANY),
    "words": lambda: b" ".join(b"W%d" % one for one in range(140_000)),
    "letters": lambda: b"a" * (1 << 20),
    "paths": lambda: b"a/" * (1 << 19),
    "dirs": lambda: b"spec_dirs: [" + b"a," * 400_000 + b"a]",
    "mounts": lambda: b"mounts:" * 100_000 + b" " * 300_000,
}

ASKS = b'{"annotations":{"cdi.k8s.io/x":"acme.example/widget=w0,acme.example/widget=w1"},'
NETWORK = b'"linux":{"namespaces":[{"type":"network"}]%s}}'


def asks(member, linux=b""):
    """Return a config.json with *member* that asks for devices."""
    return ASKS + member + (b"," if member else b"") + NETWORK % linux


def listed(entry, number=MANY):
    """Return a JSON list of so many *entry*."""
    return b"[" + b",".join([entry] * number) + b"]"


CONFIG = {
    "asks-deep": lambda: asks(b'"x":' + b"[" * 980 + b"]" * 980),
    "asks-digits": lambda: asks(b'"x":' + b"1" * MANY),
    "asks-keys": lambda: asks(b'"x":' + keys(500_000)),
    "env": lambda: asks(b'"process":{"env":' + listed(b'"A=1"') + b"}"),
    "mounts": lambda: asks(b'"mounts":' + listed(b'{"destination":"/a"}', 200_000)),
    "mounts-unsorted": lambda: asks(
        b'"mounts":' + listed(b'{"destination":"/a/b"},{"destination":"/data"}', 50_000)
    ),
    "hooks": lambda: asks(b'"hooks":{"createRuntime":' + listed(b'{"path":"/x"}', 300_000) + b"}"),
    "rules": lambda: asks(
        b"", b',"resources":{"devices":' + listed(b'{"allow":true,"type":"c"}', 200_000) + b"}"
    ),
    "nodes": lambda: asks(b"", b',"devices":' + listed(b'{"path":"/dev/own"}', 200_000)),
    "groups": lambda: asks(b'"process":{"user":{"additionalGids":' + listed(b"1") + b"}}"),
    "names": lambda: json.dumps(
        {
            "annotations": {
                "cdi.k8s.io/x": ",".join(f"acme.example/widget=x{n}" for n in range(200_000))
            }
        }
    ).encode(),
    "same-name": lambda: json.dumps(
        {"annotations": {"cdi.k8s.io/x": ",".join(["acme.example/widget=w1"] * 200_000)}}
    ).encode(),
    "commas": lambda: b'{"process":{"env":["CDI_DEVICES=' + b"," * BIG + b'"]}}',
    "path": lambda: b'{"process":{"env":["CDI_DEVICES=' + b"/" * BIG + b'"]}}',
    "annotations": lambda: (
        b'{"annotations":{'
        b""
        + b",".join(b'"cdi.k8s.io/%d":"acme.example/widget=w1"' % n for n in range(100_000))
        + b"}}"
    ),
    "destination": lambda: (
        b'{"mounts":[{"source":"/dev/null","destination":"/var/run/' + b"a/../" * MANY + b'"}]}'
    ),
}

DAEMON = {
    **bounded(1 << 20, ANY),
    "keys": lambda: keys(20_000),
    "nested-keys": lambda: b'{"a":' * 200 + keys(5_000) + b"}" * 200,
    "runtimes": lambda: (
        b'{"runtimes":{' + b",".join(b'"r%d":{"path":"/r"}' % n for n in range(10_000)) + b"}}"
    ),
    "list": lambda: b'{"a":' + listed(b"1", 100_000) + b"}",
}


def record(**changes):
    """Return a line of the audit file."""
    content = {
        "format": 1,
        "id": "0123456789abcdef",
        "time": "2026-12-01T04:17:25.608Z",
        "versions": {},
        "command": "create",
        "container": "c1",
        "bundle": "/b",
        "engine": "",
        "root": "",
        "runtime": "/r",
        "requests": [],
        "specs": [],
        "edits": [],
        "conflicts": [],
        "warnings": [],
        "result": "edited",
        "config": {},
        "duration_ms": 1,
        **changes,
    }
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


def edit(where, **changes):
    """Return an edit of a record."""
    return {
        "kind": "env",
        "action": "added",
        "where": where,
        "before": None,
        "after": "A=1",
        "device": "acme.example/widget=w0",
        "spec": "/s",
        "pointer": "/p",
        **changes,
    }


AUDIT = {
    "one-line": lambda: b"x" * BIG,
    "short-lines": lambda: b"x\n" * MANY,
    "torn": lambda: record() * 2000 + record()[:50],
    "numbers": lambda: record(edits=[edit("/process/env/999999999999")]),
    "far-place": lambda: record(edits=[edit("/process/env/1000000")]),
    "edits": lambda: record(edits=[edit(f"/process/env/{n}") for n in range(20_000)]),
    "same-place": lambda: record(edits=[edit("/process/env/0")] * 20_000),
    "sorted": lambda: record(
        edits=[
            edit(
                "/mounts",
                kind="mounts",
                action="replaced",
                before=[*range(50_000)],
                after=[*range(50_000, 0, -1)],
            )
        ]
    ),
    "moved": lambda: record(
        edits=[
            edit(
                "/mounts",
                kind="mounts",
                action="replaced",
                before=[*range(50_000)],
                after=[*range(49_999, -1, -1)],
            )
        ]
    ),
    "deep": lambda: record(warnings=[], x=1)[:-2] + b',"y":' + b"[" * 900 + b"]" * 900 + b"}\n",
    "keys": lambda: record()[:-2] + b',"y":' + keys(400_000) + b"}\n",
    "pointer": lambda: record(edits=[edit("/a" * 500_000)]),
    "warnings": lambda: record(warnings=["x" * 100] * 40_000),
    "requests": lambda: record(requests=[{"device": "x/y=z"}] * 100_000),
}
PROCESS = {
    "env": lambda: b'{"env":' + listed(b'"A=1"') + b"}",
    "groups": lambda: b'{"user":{"additionalGids":' + listed(b"1") + b"}}",
    "deep": lambda: b'{"env":[],"x":' + b"[" * 985 + b"]" * 985 + b"}",
}
REQUESTS = {
    "lines": lambda: b"\n" * MANY,
    "commas": lambda: b"e" + b"," * BIG,
    "names": lambda: b"e" + b",".join([b"acme.example/widget=w1"] * 200_000),
    "annotations": lambda: b"".join(b"a%d:acme.example/widget=w1\n" % n for n in range(100_000)),
    "mounts": lambda: b"m/var/run/cdi-runc/devices/acme.example/widget/w1\n" * 100_000,
    "dots": lambda: b"m/" + b"a/../" * MANY,
    "one-name": lambda: b"eacme.example/widget=" + b"x" * BIG,
    "one-kind": lambda: b"e" + b"x" * BIG + b"/y=z",
}
ARGV = {
    "words": lambda: b"\0" * MANY,
    "flags": lambda: b"--root\0x\0" * 300_000,
    "one-word": lambda: b"create\0-b\0" + b"x" * BIG,
    "dashes": lambda: b"-" * BIG,
    "equals": lambda: b"create\0--bundle=" + b"=" * BIG,
}
