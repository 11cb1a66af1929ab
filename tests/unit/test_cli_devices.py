"""``cdictl devices``: what this host offers, which file wins, and what cannot be used."""

import pytest

WIDGET = "acme.com/widget"


@pytest.fixture
def upper(configuration):
    """Return a second spec directory, which wins; each has files that hide or conflict."""
    upper = configuration.directory / "upper"
    upper.mkdir()
    configuration.write(spec_dirs=[str(configuration.spec_dir), str(upper)])
    one = {"env": ["A=1"]}
    configuration.spec(("dup", one), ("fuse", one), ("over", one))
    configuration.spec(("dup", one), file="twin.json")
    configuration.spec(("over", one), file="over.json").rename(upper / "over.json")
    (configuration.spec_dir / "broken.json").write_text("{}")
    return upper


def test_conflicts_and_what_is_hidden_are_told_as_such(cdictl, configuration, upper):
    """A device in conflict is told with its files; only a file that is not used is not usable."""
    done = cdictl("devices")
    lower = configuration.spec_dir
    _, *rows = (line.split(maxsplit=1) for line in done.out.splitlines())
    conflict, broken = done.err.splitlines()

    assert [name for name, _ in rows] == [f"{WIDGET}=fuse", f"{WIDGET}=over"]
    assert rows[1][1] == f"{upper}/over.json (hides {lower}/acme.json)  1 env"
    assert conflict == (
        f"cdictl: device {WIDGET}=dup cannot be used: {lower}/acme.json and {lower}/twin.json"
        " in the same directory both define it"
    )
    assert broken.startswith(f"cdictl: not usable: {lower}/broken.json: ")


def test_json_has_the_same(cdictl, configuration, upper):
    """Conflicts, hidden files and ignored files are told apart for machines too."""
    told = cdictl.json("devices")
    lower = configuration.spec_dir

    assert {f"{WIDGET}=fuse": [], f"{WIDGET}=over": [f"{lower}/acme.json"]} == {
        one["name"]: one["hides"] for one in told["devices"]
    }
    assert [{"name": f"{WIDGET}=dup", "files": [f"{lower}/acme.json", f"{lower}/twin.json"]}] == (
        told["conflicts"]
    )
    assert [f"{lower}/broken.json"] == [one["file"] for one in told["ignored"]]


def test_plan_leaves_out_a_device_and_no_file(cdictl, configuration, upper):
    """What a create records of a conflict is that a device cannot be used, not that a file is."""
    warnings = cdictl.json("plan", "--device", f"{WIDGET}=fuse")["warnings"]

    assert [one for one in warnings if "acme.json" in one] == [
        (
            f"device {WIDGET}=dup cannot be used: {configuration.spec_dir}/acme.json and"
            f" {configuration.spec_dir}/twin.json in the same directory both define it"
        )
    ]
    assert [one for one in warnings if one.startswith("spec file ignored")] != []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param(("show", "fuse"), "missing (did you mean acme.com/widget=fuse?); ", id="show"),
        pytest.param(("plan", "--device", "fuse"), "(did you mean acme.com/widget=", id="plan"),
        pytest.param(
            ("plan", "--device", "a.b/c=x,a.b/c=y"),
            "allowed; give --device again for each name; write",
            id="plan-two",
        ),
        pytest.param(("show", "a.b/c=x,a.b/c=y"), "allowed; give one name; write", id="show-two"),
        pytest.param(("show", "other"), "class are missing; write a device as", id="unknown"),
    ],
)
def test_name_that_is_none_is_told_what_was_meant(cdictl, configuration, words, told):
    """A command says which device a short name stands for, and how to name several."""
    configuration.spec(("fuse", {"env": ["A=1"]}))
    done = cdictl(*words, check=False)

    assert (1, "") == (done.status, done.out)
    assert told in done.err


def test_short_name_in_a_directory_of_the_command_line(cdictl, configuration, tmp_path):
    """What was meant is looked for where the command looks."""
    configuration.spec(("fuse", {"env": ["A=1"]})).rename(tmp_path / "acme.json")

    assert "did you mean" not in cdictl("show", "fuse", check=False).err
    done = cdictl("show", "fuse", "--spec-dir", tmp_path, check=False)
    assert "(did you mean acme.com/widget=fuse?)" in done.err
