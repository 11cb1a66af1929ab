"""Many creates at once (C4, C7)."""

import shutil
import subprocess

import pytest
from support.programs import environment, need


@pytest.fixture
def create_all(installation, configure, make_bundle, tmp_path):
    """Start *number* creates at once, each of a bundle of its own; return those that failed."""
    configuration = configure(runtime="/bin/true")
    configuration.spec(("one", {"env": ["ACME=1"]}))
    env = environment(**configuration.env)
    words = [installation.shim, "--root", tmp_path / "root"]

    def create(number, tracer=()):
        bundles = [make_bundle(rootfs=False).request("acme.com/widget=one") for _ in range(number)]
        started = [
            subprocess.Popen(
                [*tracer, *words, "create", "--bundle", bundle.path, bundle.id],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for bundle in bundles
        ]
        failed = [process.args for process in started if process.wait(120) != 0]
        assert failed == []
        return bundles

    create.configuration = configuration
    return create


def check(bundles, configuration):
    """Fail unless each of *bundles* was edited, and has its one whole line in the record."""
    records = configuration.records()
    expected = sorted(bundle.id for bundle in bundles)

    assert expected == sorted(record["container"] for record in records)
    assert {"edited"} == {record["result"] for record in records}
    assert len(records) == len({record["id"] for record in records})
    for bundle in bundles:
        assert "ACME=1" in bundle.load()["process"]["env"]
    assert not configuration.log_file.exists()  # nothing unusual


def test_two_hundred_whole_records(create_all):
    """Two hundred creates at once leave two hundred whole lines in the record."""
    create_all.configuration.grow_old()
    (first,) = create_all(1)
    check([first, *create_all(200)], create_all.configuration)


def test_all_compile_at_once(create_all):
    """Creates that all find neither state directory nor record race harmlessly."""
    check(create_all(16), create_all.configuration)


def test_configuration_compiled_at_once(create_all):
    """Creates that all find the configuration changed do not take each other's files."""
    # Each of them has written its file before the first one renames it.
    delay = ("-e", "trace=rename", "-e", "inject=rename:delay_enter=200000")
    tracer = (need("strace"), "-f", "-qq", *delay, "-o", "/dev/null")
    check(create_all(4, tracer), create_all.configuration)


def test_record_without_a_directory(create_all):
    """Creates that all make the record's directory at the same moment lose no line."""
    create_all.configuration.grow_old()
    create_all(1)
    shutil.rmtree(create_all.configuration.audit_file.parent)
    # Each of them finds no directory before the first one makes it.
    delay = ("-e", "trace=mkdir", "-e", "inject=mkdir:delay_enter=500000")
    tracer = (need("strace"), "-f", "-qq", *delay, "-o", "/dev/null")
    check(create_all(4, tracer), create_all.configuration)
