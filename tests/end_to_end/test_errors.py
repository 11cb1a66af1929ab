"""What a user reads in ``docker run``'s own output when a device cannot be had (C9)."""

import json
import re

import pytest

LIMIT = 1024

CASES = {
    "unknown-device": (
        {"devices": [("one", {"env": ["A=1"]})]},
        "acme.com/widget=oen",
        ["acme.com/widget=oen", "acme.com/widget=one", "cdictl devices"],
    ),
    "unknown-class": (
        {"devices": [("one", {"env": ["A=1"]})]},
        "acme.com/gadget=one",
        ["acme.com/gadget=one", "acme.com/widget", "cdictl devices"],
    ),
    "unknown-vendor": (
        {"devices": [("one", {"env": ["A=1"]})]},
        "other.com/widget=one",
        ["other.com/widget=one", "unknown vendor", "acme.com/widget", "cdictl devices"],
    ),
    "broken-spec": (
        {"devices": [("one", {"env": ["no equals sign"]})]},
        "acme.com/widget=one",
        ["acme.com/widget=one", "{spec}", "no equals sign", "cdictl validate"],
    ),
    "missing-mount-source": (
        {
            "devices": [
                ("one", {"mounts": [{"hostPath": "/nonexistent/lib", "containerPath": "/lib"}]})
            ]
        },
        "acme.com/widget=one",
        ["acme.com/widget=one", "/nonexistent/lib", "{spec}", "regenerate"],
    ),
    "missing-node": (
        {"devices": [("one", {"deviceNodes": [{"path": "/dev/nonexistent"}]})]},
        "acme.com/widget=one",
        ["acme.com/widget=one", "/dev/nonexistent", "{spec}", "regenerate"],
    ),
    "missing-hook": (
        {
            "devices": [
                ("one", {"hooks": [{"hookName": "createRuntime", "path": "/nonexistent/hook"}]})
            ]
        },
        "acme.com/widget=one",
        ["acme.com/widget=one", "/nonexistent/hook", "{spec}", "regenerate"],
    ),
    "several-things-missing": (
        {
            "devices": [
                (
                    "one",
                    {
                        "deviceNodes": [{"path": "/dev/nonexistent"}],
                        "mounts": [{"hostPath": "/nonexistent/lib", "containerPath": "/lib"}],
                    },
                ),
                ("two", {"hooks": [{"hookName": "poststop", "path": "/nonexistent/hook"}]}),
            ]
        },
        "acme.com/widget=one,acme.com/widget=two",
        ["/dev/nonexistent", "/nonexistent/lib", "/nonexistent/hook", "acme.com/widget=two"],
    ),
    "request-is-a-path": (
        {"devices": [("one", {"env": ["A=1"]})]},
        "/dev/acme0",
        ["/dev/acme0", "CDI_DEVICES", "vendor.com/class=name"],
    ),
    "request-is-a-short-name": (
        {"devices": [("one", {"env": ["A=1"]})]},
        "one",
        ["'one'", "CDI_DEVICES", "did you mean acme.com/widget=one?", "vendor.com/class=name"],
    ),
    "request-with-blanks": (
        {"devices": [("one", {"env": ["A=1"]})]},
        "acme.com/widget=one, acme.com/widget=two",
        ["' acme.com/widget=two'", "blanks", "vendor.com/class=name"],
    ),
}


def message(output):
    """Return our own words in *output*, which must be one line of its own."""
    lines = [line for line in output.splitlines() if "cdi-runc: " in line]
    assert len(lines) == 1, output
    found = re.search(r"OCI runtime create failed: (cdi-runc: .*): unknown\.?$", lines[0])
    assert found, lines[0]
    return found.group(1)


@pytest.mark.parametrize("case", CASES)
def test_output_says_what_and_what_to_do(docker, case):
    """One short line names the device, the file and the cure; nothing else is ours."""
    content, asked, words = CASES[case]
    configuration = docker.configuration
    spec = configuration.spec(*content["devices"], cdiVersion="0.6.0")
    finished = docker.run("--runtime=cdi", "--env", f"CDI_DEVICES={asked}", check=False)
    said = message(finished.err)

    assert finished.status in (125, 127)
    assert len(said) < LIMIT
    assert "Traceback" not in finished.err
    for word in words:
        assert word.format(spec=spec, spec_dir=configuration.spec_dir) in said
    (record,) = configuration.records()
    assert record["result"] == "failed"
    assert said == f"cdi-runc: {record['error']}"


def test_host_without_spec_files(docker):
    """On a host without any spec file the message says where they were looked for."""
    options = ("--runtime=cdi", "--env", "CDI_DEVICES=acme.com/widget=one")
    said = message(docker.run(*options, check=False).err)

    for word in ("acme.com/widget=one", str(docker.configuration.spec_dir)):
        assert word in said


def test_broken_file_spares_its_neighbours(docker):
    """A broken spec file keeps nobody from a sound one's devices, and the record says so."""
    configuration = docker.configuration
    configuration.spec(("one", {"env": ["ACME=1"]}))
    broken = configuration.spec_dir / "broken.yaml"
    broken.write_text("kind: [\n")
    options = ("--runtime=cdi", "--env", "CDI_DEVICES=acme.com/widget=one")

    assert docker.run(*options, command=["sh", "-c", "echo $ACME"]).out.strip() == "1"
    (record,) = configuration.records()
    assert [str(broken) in warning for warning in record["warnings"]] == [True]


def test_conflict_names_both_files(docker):
    """A device that two files of one directory define cannot be had, and both are named."""
    configuration = docker.configuration
    specs = [
        configuration.spec(("one", {"env": [f"ACME={file}"]}), file=file)
        for file in ("first.json", "second.json")
    ]
    options = ("--runtime=cdi", "--env", "CDI_DEVICES=acme.com/widget=one")
    said = message(docker.run(*options, check=False).err)

    for word in ("acme.com/widget=one", *map(str, specs)):
        assert word in said


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_log_and_standard_error_say_the_same(runtime, make_bundle, tmp_path, log_format):
    """The ``--log`` file's last entry and standard error say the same, and the status is 1."""
    bundle = make_bundle("true").request("acme.com/widget=one")
    before = bundle.config_path.read_bytes()
    log = tmp_path / "log"
    log.write_text("")
    finished = runtime(
        *("--log", log, "--log-format", log_format, "create", "--bundle", bundle.path, bundle.id),
        check=False,
    )
    line = log.read_text().splitlines()[-1]
    if log_format == "json":
        entry = json.loads(line)
        assert {"level", "msg", "time"} == set(entry)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", entry["time"])
        level, said = entry["level"], entry["msg"]
    else:
        found = re.fullmatch(r'time="([^"]*)" level=(\w+) msg="(.*)"', line)
        level, said = found.group(2), found.group(3).replace('\\"', '"')

    assert (level, finished.status) == ("error", 1)
    assert f"{said}\n" == finished.err
    assert before == bundle.config_path.read_bytes()


def test_log_that_cannot_be_opened(runtime, make_bundle):
    """Where the ``--log`` file cannot be opened, standard error has it all the same."""
    bundle = make_bundle("true").request("acme.com/widget=one")
    words = ("--log", "/dev/null/log", "create", "--bundle", bundle.path, bundle.id)
    finished = runtime(*words, check=False)

    assert finished.status == 1
    assert finished.err.startswith("cdi-runc: ")
    assert "acme.com/widget=one" in finished.err


def test_bundle_without_a_configuration_gets_runcs_own_words(
    installation, configuration, make_bundle, make_runtime
):
    """For a bundle without config.json the answer is the one that runc alone gives."""
    bundle = make_bundle("true", rootfs=False)
    bundle.config_path.unlink()
    words = ("create", "--bundle", bundle.path, bundle.id)
    said = []
    for program in ("runc", installation.shim):
        finished = make_runtime(program, configuration)(*words, check=False)
        said.append((finished.status, re.sub(r'time="[^"]*"', "", finished.err)))

    assert said[0] == said[1]
    assert said[0][0] != 0


def test_configuration_that_is_not_json(runtime, make_bundle):
    """Of a config.json that is not JSON the message says so, and names it."""
    bundle = make_bundle("true", rootfs=False)
    bundle.config_path.write_text('{"annotations": {"cdi.k8s.io/test": "acme.com/widget=one"')
    words = ("create", "--bundle", bundle.path, bundle.id)
    finished = runtime(*words, check=False)

    assert finished.status == 1
    assert finished.err.startswith(f"cdi-runc: {bundle.config_path} is not JSON")
    assert len(finished.err.splitlines()) == 1
