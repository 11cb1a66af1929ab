"""The reference's edited configurations, through the library and through ``cdictl inject``."""

import copy
import json
import subprocess
import sys

import cases
import deliberate
import pytest
from compare import differences, inject_problems

from cdi_runc import jsonio, names, plan, registry, requests, settings
from cdi_runc.cli import main
from cdi_runc.errors import BadRequest, CdiRuncError, UnknownDevice, Unusable

CASES = cases.load("inject")
KINDS = {
    "unresolvable": ((UnknownDevice, BadRequest), ("unknown device", "short name")),
    "conflict": ((UnknownDevice,), ("both define it",)),
    "invalid-spec": ((UnknownDevice,), ("is refused",)),
    "host-device": ((Unusable,), ("on this host",)),
    "annotation": ((BadRequest,), ("annotation",)),
}
"""For each kind of refusal: our errors, and words of which one is in the message."""


def inject(case, spec_dirs):
    """Return the edited configuration and the registry that it came from."""
    found = settings.defaults().but(spec_dirs=tuple(map(str, spec_dirs)), state_dir=None)
    config = jsonio.loads(json.dumps(case["config"]).encode())
    if case.get("from_annotations"):
        wanted = requests.devices(requests.read(config, found))
    else:
        wanted = list(dict.fromkeys(case["devices"]))
        for name in wanted:
            names.parse(name)
    devices, _ = registry.resolve(wanted, found)
    plan.carry_out(plan.build(devices, config, preflight=False), config)
    return json.loads(jsonio.dumps(config))


def command(case, spec_dirs, path):
    """Return the arguments of ``cdictl inject`` for a case."""
    path.write_text(json.dumps(case["config"]))
    words = ["inject"]
    for spec_dir in spec_dirs:
        words += ["--spec-dir", str(spec_dir)]
    for device in case["devices"]:
        words += ["--device", device]
    return [*words, str(path)]


@pytest.mark.parametrize("case", CASES)
def test_library_answers_as_the_reference(case, tmp_path):
    """The configuration is the reference's, but for what we do otherwise on purpose."""
    spec_dirs = cases.write_specs(case, tmp_path)
    expect = deliberate.expectation(case)
    if expect.get("error"):
        errors, words = KINDS[expect["kind"]]
        with pytest.raises(errors) as error:
            inject(case, spec_dirs)

        assert any(word in error.value.message for word in words)
    else:
        assert [] == inject_problems({**case, "expect": expect}, inject(case, spec_dirs))


@pytest.mark.parametrize("case", CASES)
def test_command_answers_as_the_reference(case, tmp_path, capsys):
    """``cdictl inject`` prints that configuration; of a refusal nothing, and the exit code is 1."""
    words = command(case, cases.write_specs(case, tmp_path), tmp_path / "config.json")
    expect = deliberate.expectation(case)
    code = main.main(words)
    out, err = capsys.readouterr()

    assert (1 if expect.get("error") else 0) == code
    assert (code == 1) == (out == "") == (err != "")
    assert [] == inject_problems({**case, "expect": expect}, json.loads(out) if out else None)


@pytest.mark.parametrize("case", CASES)
def test_files_at_fault_are_those_of_the_reference(case, tmp_path):
    """Each file about which the reference reports an error is told of, and no other."""
    differences = deliberate.DIFFERENCES
    spared = {*differences[deliberate.no_access], *differences[deliberate.override_wins]}
    expected = [] if case["name"] in spared else case["expect"].get("reported_files", [])
    spec_dirs = tuple(map(str, cases.write_specs(case, tmp_path)))
    found = settings.defaults().but(spec_dirs=spec_dirs, state_dir=None)
    compiled = registry.current(found)
    told = " ".join(
        [
            *(f"{path} {why}" for path, why, _, _ in compiled.faults),
            *(why for _, why in compiled.conflicts.values()),
        ]
    )
    files = sorted(
        str(path.relative_to(tmp_path))
        for path in tmp_path.rglob("*")
        if path.suffix in (".json", ".yaml") and f"{path}" in told
    )

    assert sorted(expected) == files


@pytest.mark.parametrize("case", CASES)
def test_second_time_changes_nothing(case, tmp_path):
    """Injecting into the edited configuration gives the same configuration."""
    spec_dirs = cases.write_specs(case, tmp_path)
    try:
        once = inject(case, spec_dirs)
    except CdiRuncError:
        assert deliberate.expectation(case).get("error")
        return

    assert once == inject({**case, "config": once}, spec_dirs)


@pytest.mark.parametrize(
    "name", ["everything-at-once", "conflict", "unknown-members-with-exact-numbers"]
)
def test_program_answers_as_the_function(name, tmp_path):
    """The program itself prints that configuration, and tells by its exit code."""
    (case,) = [parameter.values[0] for parameter in CASES if parameter.values[0]["name"] == name]
    words = command(case, cases.write_specs(case, tmp_path), tmp_path / "config.json")
    done = subprocess.run(
        [sys.executable, "-m", "cdi_runc.cli.main", *words], check=False, capture_output=True
    )
    expect = deliberate.expectation(case)
    config = json.loads(done.stdout) if done.returncode == 0 else None

    assert [] == inject_problems({**case, "expect": expect}, config)
    assert (done.returncode == 1) == (done.stdout == b"") == (done.stderr != b"")


def test_all_cases_are_here():
    """Not one case is missing, and no name is there twice."""
    found = [parameter.values[0]["name"] for parameter in CASES]

    assert cases.COUNTS["inject"] == len(found) == len({*found})


@pytest.mark.parametrize("difference", deliberate.DIFFERENCES, ids=lambda d: d.__name__)
def test_each_deliberate_difference_is_one(difference):
    """Each case named for a difference exists, and is expected otherwise than by the reference."""
    by_name = {parameter.values[0]["name"]: parameter.values[0] for parameter in CASES}
    for name in deliberate.DIFFERENCES[difference]:
        case = by_name[name]
        without = copy.deepcopy(case.get("later_reference") or case["expect"])
        if difference in deliberate.ACCEPTED:
            assert without["error"]
        else:
            changed = copy.deepcopy(without["config"])
            for other in deliberate.DIFFERENCES:
                if name in deliberate.DIFFERENCES[other]:
                    before = copy.deepcopy(changed)
                    other(changed, case)
                    if other is difference:
                        assert differences(before, changed)
