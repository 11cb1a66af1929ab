"""How many processes a call takes (C1, C12)."""

import re

import pytest
from support.programs import need, run
from support.strace import whole


@pytest.fixture
def executed(installation, configuration, tmp_path):
    """Trace a call of cdi-runc; return the programs executed, in order."""

    def trace(*arguments, program=installation.shim, configured=True):
        out = tmp_path / "trace"
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        if configured:
            env.update(configuration.env)
        words = [need("strace"), "-f", "-qq", "-s", "300", "-e", "trace=execve", "-o", out]
        run(*words, program, "--root", tmp_path / "root", *arguments, check=False, env=env)
        lines = whole(out.read_text().splitlines())
        return [
            match.group(1)
            for line in lines
            if (match := re.search(r'execve\("([^"]*)".* = 0$', line))
        ]

    return trace


def interpreters(programs):
    """Return those of *programs* that are Python."""
    return [program for program in programs if "python" in program]


@pytest.mark.parametrize("configured", [True, False], ids=["configured", "unconfigured"])
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["state", "x"], id="state"),
        pytest.param(["kill", "x", "9"], id="kill"),
        pytest.param(["delete", "--force", "x"], id="delete"),
        pytest.param(["--version"], id="version"),
    ],
)
def test_passed_through(executed, installation, make_bundle, words, configured):
    """A call that is passed through is one sh, then runc."""
    bundle = make_bundle(rootfs=False)
    executed("create", "--bundle", bundle.path, bundle.id)  # compiles the configuration
    programs = executed(*words, configured=configured)

    assert [str(installation.shim)] == programs[:1]
    assert programs[1].endswith("/runc")
    assert {programs[1], "/proc/self/exe"} >= set(programs[1:])


def test_create_without_a_request(executed, installation, configuration, make_bundle):
    """A create that asks for nothing takes one small process more, and no interpreter."""
    configuration.grow_old()
    executed("create", "--bundle", make_bundle(rootfs=False).path, "first")
    programs = executed("create", "--bundle", make_bundle(rootfs=False).path, "x")
    runc = next(program for program in programs if program.endswith("/runc"))
    before = programs[: programs.index(runc)]

    assert interpreters(programs) == []
    assert str(installation.shim) == before[0]
    assert len(before) <= 2


def test_create_with_a_request(executed, configuration, make_bundle):
    """A create that asks for a device starts one interpreter, which becomes runc."""
    configuration.spec(("one", {"env": ["ACME=1"]}))
    configuration.grow_old()
    for _ in range(2):
        bundle = make_bundle(rootfs=False).request("acme.com/widget=one")
        programs = executed("create", "--bundle", bundle.path, bundle.id)
    runc = next(program for program in programs if program.endswith("/runc"))
    before = programs[: programs.index(runc)]

    assert len(interpreters(programs)) == 1
    assert len(before) <= 3
    assert configuration.records()[-1]["result"] == "edited"


def test_neighbour_of_the_configuration(executed, configuration, make_bundle):
    """A file that comes to lie beside the configuration costs one compilation, not one a call."""
    (configuration.path.parent / "other.yaml").write_text("")
    configuration.grow_old()
    for _ in range(2):
        programs = executed("create", "--bundle", make_bundle(rootfs=False).path, "x")

    assert interpreters(programs) == []
