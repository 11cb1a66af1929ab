"""``cdictl validate``: why a valid file has no effect."""

import pytest

ONE = ("one", {"env": ["A=1"]})
DEVICE = "acme.com/widget=one"


@pytest.mark.parametrize(("strict", "status"), [((), 0), (("--strict",), 1)], ids=["lax", "strict"])
@pytest.mark.parametrize("name", ["acme.yml", "acme.conf", "yaml"])
def test_name_that_no_tool_reads(cdictl, configuration, name, strict, status):
    """A file of another name is valid and not read, which is a warning."""
    path = configuration.spec(ONE, file=name)
    done = cdictl("validate", *strict, path, check=False)

    assert status == done.status
    assert done.out.splitlines() == [
        f"{path}: warning: no tool reads a file of this name: it has to end in .json or .yaml",
        f"{path}: valid, 1 device",
    ]


@pytest.mark.parametrize("place", ["below", "elsewhere"])
def test_directory_that_is_not_configured(cdictl, configuration, tmp_path, place):
    """A file below a spec directory, or elsewhere, is read by nobody here, which is a note."""
    directory = configuration.spec_dir / "sub" if place == "below" else tmp_path / "other"
    directory.mkdir()
    path = configuration.spec(ONE).rename(directory / "acme.json")
    done = cdictl("validate", "--strict", path)

    assert done.out.splitlines()[0] == (
        f"{path}: note: {directory} is no spec directory of this host;"
        f" it reads {configuration.spec_dir}"
    )


def test_spec_directory_by_another_name(cdictl, configuration, tmp_path):
    """A link to a spec directory, and a relative path, lead to a file that is read."""
    path = configuration.spec(ONE)
    (tmp_path / "link").symlink_to(configuration.spec_dir)
    for name in (tmp_path / "link" / path.name, path):
        (told,) = cdictl.json("validate", name)

        assert told["notes"] == []


def test_conflict_with_an_installed_file(cdictl, configuration):
    """A device that an installed file defines as well is noted, though only one file is named."""
    first = configuration.spec(ONE, ("two", {"env": ["A=1"]}))
    second = configuration.spec(ONE, file="twin.json")
    (told,) = cdictl.json("validate", "--strict", second)

    assert [one["message"] for one in told["notes"]] == [
        f"device {DEVICE} cannot be used: {first} and {second} in the same directory both define it"
    ]


def test_conflict_among_the_named_files(cdictl, configuration, tmp_path):
    """Two files that are named conflict where they lie in one directory, and are both read."""
    for name in ("a.json", "b.json", "c.yml"):
        configuration.spec(ONE, file=name).rename(tmp_path / name)
    (tmp_path / "sub").mkdir()
    configuration.spec(ONE).rename(tmp_path / "sub/d.json")
    names = ("a.json", "b.json", "c.yml", "sub/d.json")
    told = cdictl.json("validate", *(tmp_path / name for name in names))
    notes = [[one["message"] for one in file["notes"]][1:] for file in told]
    both = f"{tmp_path}/a.json and {tmp_path}/b.json in the same directory both define it"

    assert notes[:2] == [[f"device {DEVICE} cannot be used: {both}"]] * 2
    assert notes[3] == []


def test_directory_in_the_place_of_files(cdictl, configuration):
    """A directory is answered with how to name its files."""
    done = cdictl("validate", f"{configuration.spec_dir}/", check=False)
    path = configuration.spec_dir

    assert (1, f"{path}/: error: it is a directory; name its files: {path}/*.yaml\n") == (
        done.status,
        done.err,
    )
