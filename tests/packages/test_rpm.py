"""The rpm: built by rpmbuild, and its tree used in a root of this distribution."""

import json
import re

import pytest
from support.installations import ROOT
from support.programs import environment, need, run

from cdi_runc import VERSION

HOME = f"/usr/lib/cdi-runc/{VERSION}-1"
SYSTEM = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


@pytest.fixture(scope="module")
def rpm(tmp_path_factory):
    """Build the rpm of this checkout."""
    need("rpmbuild")
    out = tmp_path_factory.mktemp("rpm")
    # Its database knows nothing of what dpkg has installed.
    run(ROOT / "packaging/build", "rpm", out, "--nodeps", env=environment(**SYSTEM))
    (package,) = out.glob("*.rpm")
    return package


def query(rpm, what):
    """Return the lines that ``rpm --query`` prints of *rpm*."""
    return run(need("rpm"), "--query", what, "--package", rpm).out.splitlines()


def test_it_has_all_files(rpm):
    """Commands, code with its schemas, pages and completions are in it, and no compiled file."""
    files = query(rpm, "--list")
    sources = (ROOT / "cdi_runc").rglob("*.*")
    code = {f"{HOME}/lib/{p.relative_to(ROOT)}" for p in sources if p.suffix in (".py", ".json")}

    assert code <= set(files)
    assert {"/usr/bin/cdi-runc", "/usr/bin/cdictl", "/etc/logrotate.d/cdi-runc"} <= set(files)
    assert "/usr/lib/tmpfiles.d/cdi-runc.conf" in files
    examples = "/usr/share/doc/cdi-runc/examples"
    assert f"{examples}/systemd/cdi-runc-generate.service" in files
    assert [name for name in files if name.endswith("/docs/policy.md")]
    assert len([name for name in files if re.search(r"/man/man\d/|completions|_cdictl", name)]) == 6
    assert not [name for name in files if name.endswith(".pyc")]
    assert query(rpm, "--configfiles") == ["/etc/logrotate.d/cdi-runc"]


def test_its_scripts_are_sound(rpm, tmp_path):
    """Shellcheck has nothing to say against any of its scripts."""
    scripts = re.split(
        r"(?m)^\w+ scriptlet \(using /bin/sh\):.*$", "\n".join(query(rpm, "--scripts"))
    )
    for number, text in enumerate(scripts[1:]):
        (tmp_path / str(number)).write_text(f"#!/bin/sh\n{text}")

    assert len(scripts) == 4
    run(need("shellcheck"), *tmp_path.iterdir())


def test_its_tree_does_the_job(rpm, root):
    """Unpacked over a root, and its script run, the commands give a device by the fast path."""
    run(need("rpm2archive"), rpm)
    run("tar", "-C", root.path, "-xzf", f"{rpm}.tgz")
    try:
        root(f"{HOME}/refreeze")
        (root.path / "etc/cdi").mkdir(exist_ok=True)
        edits = {"env": ["ACME=1"]}
        spec = {"cdiVersion": "0.6.0", "kind": "acme.example/rpm"}
        spec["devices"] = [{"name": "w0", "containerEdits": edits}]
        (root.path / "etc/cdi/rpm.json").write_text(json.dumps(spec))
        words = ("inject", "--device", "acme.example/rpm=w0", "/srv/config.json")
        (root.path / "srv/config.json").write_text('{"ociVersion": "1.0.2", "process": {}}')
        injected = json.loads(root("cdictl", *words).out)
        findings = json.loads(root("cdictl", "doctor", "--json", check=False).out)["findings"]

        assert injected["process"]["env"] == ["ACME=1"]
        assert (root.path / HOME[1:] / "hot.pyc").exists()
        assert not [one for one in findings if HOME in one["what"]]
    finally:
        (root.path / "etc/cdi/rpm.json").unlink(missing_ok=True)
        for path in query(rpm, "--list"):
            if "/lib/cdi_runc" not in path:
                root("sh", "-c", '[ -d "$0" ] || rm -f "$0"', path)
        root("rm", "-rf", "/usr/lib/cdi-runc", "/etc/cdi-runc", "/run/cdi-runc")
