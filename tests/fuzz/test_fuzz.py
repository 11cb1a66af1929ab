"""Whatever is read, only our own errors come out: the corpus, a short fuzzing, and made inputs."""

import concurrent.futures
import importlib.util
import json
import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.installations import ROOT
from support.samples import config

from . import __main__ as runner
from . import mutation, targets

SECONDS = 2
"""Of fuzzing each target here; ``python3 -m tests.fuzz`` has the longer run."""
every_target = pytest.mark.parametrize("target", targets.TARGETS)
many = settings(
    max_examples=100,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[*HealthCheck],
)


@pytest.fixture(scope="module", autouse=True)
def places(tmp_path_factory):
    """Keep this machine's own files out of the tests."""
    with targets.places(str(tmp_path_factory.mktemp("fuzz"))):
        yield


def beside(call):
    """Call for each target, so many at a time as there are processors; yield the results to be."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {target: pool.submit(call, target) for target in targets.TARGETS}


@pytest.fixture(scope="module")
def fuzzings(tmp_path_factory):
    """Fuzz every target for a short time."""
    if importlib.util.find_spec("atheris") is None:
        give_up = pytest.fail if os.environ.get("CI") else pytest.skip
        give_up("atheris is missing")
    work = tmp_path_factory.mktemp("fuzzings")
    yield from beside(lambda target: runner.fuzz(target, SECONDS, work, seed=1))


@pytest.fixture(scope="module")
def costs():
    """Run every target's costly inputs under limits."""

    def run(target):
        return subprocess.run(
            [sys.executable, "-m", "tests.fuzz.bounded", target],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=ROOT,
        )

    yield from beside(run)


@every_target
def test_the_corpus_finds_nothing(target):
    """Every input that was ever of interest keeps what the target asserts."""
    inputs = sorted((runner.CORPUS / target).iterdir())
    for path in inputs:
        try:
            targets.TARGETS[target](path.read_bytes())
        except Exception as error:
            pytest.fail(f"{path}: {type(error).__name__}: {error}")

    assert inputs


@every_target
def test_a_short_fuzzing_finds_nothing(target, fuzzings):
    """Inputs that are made by what code they reach keep what the target asserts."""
    result = fuzzings[target].result()
    told = [path.with_suffix(".txt") for path in result.findings]

    assert [] == [path.read_text() if path.exists() else str(path) for path in told]
    assert result.runs > 0


@every_target
def test_no_input_costs_without_measure(target, costs):
    """Files of 5 MB that are made to cost stay within memory and processor time."""
    done = costs[target].result()

    assert (0, "") == (done.returncode, done.stderr), done.stdout[-500:]


odd = st.recursive(
    st.sampled_from(mutation.ODD)
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None), max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below),
    max_leaves=6,
)
words = st.sampled_from(targets.words())


def encoded(value):
    """Return *value* as JSON."""
    return json.dumps(value).encode()


strings = st.lists(st.sampled_from(["ACME=0", "ACME=1", "TERM=x", "A", "=", "ACME"]) | odd)
mounts = st.lists(
    st.fixed_dictionaries(
        {
            "destination": st.sampled_from(["/data", "/opt/acme", "/opt//acme/", "/a/b/c", "x"])
            | odd
        },
        optional={"source": odd, "options": odd, "type": odd},
    )
    | odd
)
nodes = st.lists(st.fixed_dictionaries({"path": st.sampled_from(["/dev/own", "/dev/acme0"]) | odd}))
rules = st.lists(
    st.fixed_dictionaries(
        {"allow": st.booleans() | odd},
        optional={
            "type": st.just("c") | odd,
            "major": st.sampled_from([240, 10]) | odd,
            "minor": st.just(1) | odd,
            "access": st.just("rwm") | odd,
        },
    )
    | odd
)
namespaces = st.just([{"type": "network"}]) | st.just([{"type": "network"}, {"type": "user"}]) | odd
configs = st.fixed_dictionaries(
    {
        "annotations": st.just({"cdi.k8s.io/x": f"{targets.W0},{targets.W1}"}),
        "linux": st.fixed_dictionaries(
            {"namespaces": namespaces},
            optional={
                "devices": nodes | odd,
                "resources": st.fixed_dictionaries({"devices": rules | odd}) | odd,
                "netDevices": st.dictionaries(st.sampled_from(["lo", "a"]), odd) | odd,
                "intelRdt": odd,
            },
        ),
    },
    optional={
        "process": st.fixed_dictionaries(
            {},
            optional={
                "env": strings | odd,
                "user": odd
                | st.fixed_dictionaries(
                    {}, optional={"uid": odd, "gid": odd, "additionalGids": st.lists(odd) | odd}
                ),
            },
        )
        | odd,
        "mounts": mounts | odd,
        "hooks": st.dictionaries(st.sampled_from(["createRuntime", "x"]), st.lists(odd) | odd)
        | odd,
        "root": st.fixed_dictionaries({"path": odd}) | odd,
        "x": odd,
    },
)


@many
@given(configs)
def test_wrong_types_in_config_json(value):
    """A config.json with anything in any place is edited as its record says, or refused whole."""
    targets.config_json(encoded(value))


@many
@given(st.integers(0), st.integers(1, 4))
def test_changed_config_json(seed, times):
    """A common config.json with a few values changed is edited, or refused whole."""
    value = config(annotations={"cdi.k8s.io/x": f"{targets.W1},{targets.W0}"})
    value["linux"]["namespaces"].append({"type": "network"})
    data = encoded(value)
    for step in range(times):
        data = mutation.mutate(data, 1 << 20, seed + step, targets.words()) or data
    targets.config_json(data)


PIECES = [
    *(
        "cdiVersion: 1.1.0\n",
        "kind: acme.com/w\n",
        "devices:\n",
        "- name: d\n",
        "  containerEdits:\n",
    ),
    *(
        "    env: [A=1]\n",
        "    env:\n    - A=1\n",
        "    mounts: [{hostPath: /a, containerPath: /b}]\n",
    ),
    *(
        "&a ",
        "*a",
        "<<: *a\n",
        "<<: [*a, *a]\n",
        "- ",
        ": ",
        "? ",
        "{",
        "}",
        "[",
        "]",
        ",",
        "\n",
        " ",
    ),
    *(
        "\t",
        "\r\n",
        "\r",
        "\ufeff",
        "\0",
        "\x85",
        "\u2028",
        "\ud800",
        "'",
        '"',
        '"\\ud800"',
        '"\\/"',
    ),
    *(
        "!!python/object:os.system ",
        "!!binary ",
        "!!float ",
        "!!set ",
        "!x ",
        "!<tag:x> ",
        "%YAML 1.1\n",
    ),
    *(
        "---\n",
        "...\n",
        "|\n  x\n",
        ">-\n  x\n",
        "#",
        "~",
        "null",
        "0o17",
        "0x1F",
        "1:30",
        "1e3",
        "-0",
    ),
    *(".nan", ".inf", "-.inf", "9" * 30, "1" * 5000, "2001-01-01", "yes", "=", "`", "@", "%"),
]


@many
@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_pieces_of_yaml(pieces):
    """YAML of any pieces is a spec, or has faults; as a configuration too."""
    data = "".join(pieces).encode("utf-8", "surrogatepass")
    targets.spec(data)
    targets.configuration(data)


edit_lists = st.dictionaries(
    st.sampled_from(["env", "deviceNodes", "netDevices", "mounts", "hooks", "intelRdt"])
    | st.sampled_from(["additionalGids", "Env"]),
    st.lists(st.dictionaries(words, odd, max_size=4) | odd, max_size=3) | odd,
)


@many
@given(
    st.fixed_dictionaries(
        {
            "cdiVersion": st.sampled_from(["1.1.0", "0.3.0", "v1.0.0"]) | odd,
            "kind": st.sampled_from(["acme.com/w", "a/b.c"]) | odd,
            "devices": st.lists(
                st.fixed_dictionaries(
                    {"name": st.sampled_from(["a", "0"]) | odd, "containerEdits": edit_lists | odd}
                )
                | odd,
                max_size=3,
            )
            | odd,
        },
        optional={"containerEdits": edit_lists | odd, "annotations": odd, "x": odd},
    )
)
def test_wrong_types_in_a_spec(value):
    """A spec with anything in any place is valid or has faults, read as JSON and as YAML."""
    targets.spec(encoded(value))


names = st.lists(
    st.sampled_from(
        [targets.W0, targets.W1, "", " ", "w0", "a/b=c", "/dev/x", "none", "\0", "\ud800"]
    )
).map(",".join)
lines = st.lists(st.sampled_from("aemv").flatmap(lambda kind: names.map(lambda name: kind + name)))


@many
@given(lines)
def test_requests_of_any_form(asked):
    """A request is for a device that has a name, or is refused with what is wrong."""
    targets.asked("\n".join(asked).encode("utf-8", "surrogatepass"))


@many
@given(
    st.dictionaries(
        st.sampled_from(["runtimes", "default-runtime", "x", "cdi"]),
        st.dictionaries(st.sampled_from(["cdi", "a", "b"]), odd | st.just({"path": "/x"}))
        | st.sampled_from(["runc", "cdi", "a"])
        | odd,
    ),
    st.sampled_from([None, 1, 4, "\t"]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\ufeff"]),
)
def test_a_daemon_json_of_any_form(value, indent, newline, bom):
    """What is added to a daemon.json can be taken out again, and all else stays."""
    text = bom + json.dumps(value, indent=indent, ensure_ascii=False).replace("\n", newline)
    targets.daemon(text.encode("utf-8", "surrogatepass"))


@many
@given(st.integers(0), st.sampled_from(sorted((runner.CORPUS / "audit").iterdir())))
def test_changed_audit_records(seed, path):
    """A record with anything in any place is shown, or told to be damaged."""
    data = path.read_bytes()
    targets.audit_file(mutation.mutate(data, 1 << 20, seed, targets.words()) or data)


@many
@given(st.fixed_dictionaries({}, optional={"env": strings | odd, "user": odd, "x": odd}) | odd)
def test_wrong_types_in_process_json(value):
    """A process file with anything in any place is merged, or stays as it was."""
    targets.process(encoded(value))
