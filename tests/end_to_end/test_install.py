"""install.sh: what it makes, that it can run at any moment, and that it takes all of it back."""

import os
import re
import shutil
import tempfile
import threading
from pathlib import Path

import pytest
from support.configurations import Configuration
from support.engines import IMAGE, Dockerd
from support.installations import ROOT, Installation
from support.programs import environment, need, run

PLAIN = '{{"bridge": "none", "iptables": false, "data-root": "{0}/data", "hosts": ["{1}"]}}'
SIGHT = """\
  env     $DEMO_GREETING    hello from the spec file
  device  /dev/demo         hello from the device
  mount   /run/demo/file    hello from the host's file
  hook    /run/demo/hook    hello from a hook on the host
"""


def install_sh(*words, env=None, **options):
    """Run install.sh; it has five minutes at most."""
    options.setdefault("cwd", "/")
    return run(ROOT / "install.sh", *words, env=environment(**(env or {})), timeout=280, **options)


def listing(place):
    """Return what is in *place*, at any depth."""
    return sorted(str(path.relative_to(place)) for path in place.rglob("*"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Install once for these tests, in a place with a name that shells trip over."""
    prefix = tmp_path_factory.mktemp("prefix") / "blank and 'quote'"
    install_sh("--prefix", prefix, "--no-docker")
    return Installation(prefix)


@pytest.fixture
def plain_docker(tmp_path, busybox_rootfs):
    """Start a Docker daemon that has never heard of us."""
    configuration = Configuration(tmp_path / "cdi-runc")
    # The demo's spec file is where the host's are.
    configuration.write(spec_dirs=["/etc/cdi", "/var/run/cdi"])
    docker = Dockerd(configuration, {})
    docker.file = docker.directory / "daemon.json"
    docker.file.write_text(PLAIN.format(docker.directory, f"unix://{docker.socket}"))
    docker.load(busybox_rootfs)
    yield docker
    docker.remove_containers()
    docker.stop()
    configuration.forget()


@pytest.fixture
def prefix(tmp_path):
    """Return a prefix where nothing is yet."""
    return tmp_path / "prefix"


def test_the_installed_tree_is_what_the_launcher_and_people_expect(installed):
    """Commands, launcher, shim, library and environment are where they should be."""
    bin_dir, home = installed.prefix / "bin", installed.home
    version = (home / "current").resolve()
    python = next((home / "venv/lib").glob("python3.*"))

    assert sorted(os.listdir(bin_dir)) == ["cdi-runc", "cdictl"]
    assert os.readlink(bin_dir / "cdi-runc") == f"{home}/launcher"
    assert sorted(set(os.listdir(home)) - {".lock"}) == [
        *("cdictl", "current", "launcher", "lib", "share", "shim", "venv", "versions")
    ]
    assert (home / "lib").resolve() == (python / "site-packages").resolve()
    assert (home / "launcher").resolve() == version / "launcher"
    assert list((home / "lib/cdi_runc/__pycache__").glob("shim.*.pyc"))
    sources = {p for p in listing(ROOT / "cdi_runc") if p.endswith((".py", ".json"))}
    assert sources <= set(listing(home / "lib/cdi_runc"))
    for path in (home / "lib/cdi_runc").rglob("*"):
        assert path.stat().st_mode & 0o022 == 0


def test_the_launcher_is_ours_but_for_two_lines(installed):
    """The launcher has the system's interpreter and this version's place, and no other change."""
    ours = (ROOT / "packaging/launcher").read_text().splitlines()
    theirs = installed.shim.read_text().splitlines()
    changed = [line.partition("=")[0] for line in theirs if line not in ours]

    assert len(ours) == len(theirs)
    assert changed == ["cdi_python", "cdi_home"]
    assert f"cdi_python='{os.path.realpath('/usr/bin/python3')}'" in theirs


def test_the_commands_answer(installed):
    """Cdi-runc is runc, and cdictl tells its version."""
    assert run(need("runc"), "--version").out == run(installed.shim, "--version").out
    assert run(installed.cdictl, "--version").out.startswith("cdictl ")


def test_cdictl_takes_no_modules_from_elsewhere(installed, tmp_path):
    """PYTHONPATH and the working directory are not searched."""
    (tmp_path / "argparse.py").write_text("raise SystemExit(9)\n")
    env = environment(PYTHONPATH=str(tmp_path))

    assert run(installed.cdictl, "--version", env=env, cwd=tmp_path).status == 0


@pytest.fixture
def checkout(tmp_path):
    """Copy of this checkout what install.sh needs."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in ("cdi_runc", "packaging"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "install.sh", checkout)
    return checkout


def test_the_checkout_is_left_clean(checkout, prefix):
    """No build directory, no metadata and no compiled files appear in the checkout."""
    before = listing(checkout)
    words = ("--prefix", prefix, "--no-docker")
    run(checkout / "install.sh", *words, env=environment(), timeout=280)

    assert listing(checkout) == before


def test_a_package_that_is_not_the_pinned_one_is_refused(checkout, prefix):
    """A package whose hash is another ends the installation, which says so and leaves nothing."""
    pinned = checkout / "packaging/requirements.txt"
    text = pinned.read_text()
    name, _, rest = text.partition("structlog==")
    entry, via, rest = rest.partition("# via")
    other = re.sub(r"(?<=sha256:)\w{8}", "0" * 8, entry)
    pinned.write_text(f"{name}structlog=={other}{via}{rest}")
    words = ("--prefix", prefix, "--no-docker")
    finished = run(checkout / "install.sh", *words, env=environment(), timeout=280, check=False)

    assert finished.status == 1
    assert "got another file than expected: structlog==" in finished.err
    assert "is not the one that packaging/requirements.txt names" in finished.err
    assert list((prefix / "lib/cdi-runc/versions").iterdir()) == []
    assert not (prefix / "bin/cdi-runc").exists()


def test_the_system_interpreter_comes_before_the_path(prefix, tmp_path):
    """A python3 that only PATH offers is not used: a daemon has another PATH."""
    other = tmp_path / "bin/python3"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\nexit 7\n")
    other.chmod(0o755)
    env = {"PATH": f"{other.parent}:{os.environ['PATH']}"}
    out = install_sh("--prefix", prefix, "--no-docker", env=env).out

    assert "with /usr/bin/python3\n" in out


def test_installing_again_disturbs_no_call(installed):
    """While it is installed again, every call of the runtime and of cdictl succeeds."""
    ended, calls, failures = threading.Event(), [], []

    def call(program):
        while not ended.is_set():
            finished = run(program, "--version", check=False)
            calls.append(finished)
            if finished.status:
                failures.append(finished)

    threads = [threading.Thread(target=call, args=(p,)) for p in (installed.shim, installed.cdictl)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            install_sh("--prefix", installed.prefix, "--no-docker")
    finally:
        ended.set()
        for thread in threads:
            thread.join()

    assert failures == []
    assert len(calls) > 100
    assert len(os.listdir(installed.home / "versions")) == 2


def test_an_install_that_fails_leaves_the_old_one(installed):
    """Without the network pip's failure is told plainly, and what was installed stays."""
    before = listing(installed.prefix), os.readlink(installed.home / "current")
    nothing = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/nowhere", "PIP_CONFIG_FILE": os.devnull}
    finished = install_sh("--prefix", installed.prefix, "--no-docker", env=nothing, check=False)

    assert finished.status == 1
    assert "pip could not get the Python packages" in finished.err
    assert (listing(installed.prefix), os.readlink(installed.home / "current")) == before
    assert run(installed.cdictl, "--version").status == 0


@pytest.mark.parametrize("path", ["bin/cdi-runc", "lib/cdi-runc/file"])
def test_what_is_not_ours_is_left_alone(prefix, path):
    """A command or a code directory that came from elsewhere is neither replaced nor removed."""
    (prefix / path).parent.mkdir(parents=True)
    (prefix / path).write_text("mine")
    first = install_sh("--prefix", prefix, "--no-docker", check=False)
    second = install_sh("--prefix", prefix, "--no-docker", "--uninstall", check=False)

    assert first.status == 1
    assert "so it is left alone" in first.err or "is not from here" in first.err
    assert "stays" in second.err or "left alone" in second.err
    assert (prefix / path).read_text() == "mine"


@pytest.mark.parametrize(
    "words",
    [("--nonsense",), ("--prefix",), ("--uninstall", "--demo"), ("--uninstall", "--set-default")],
    ids=" ".join,
)
def test_wrong_usage_is_status_two(words):
    """Wrong usage does nothing and says so."""
    assert install_sh(*words, check=False).status == 2


def test_uninstalling_removes_code_and_commands(prefix, tmp_path):
    """Nothing of ours stays, nor in an engine; it says what was kept; twice is no failure."""
    install_sh("--prefix", prefix, "--no-docker")
    env = environment(XDG_CONFIG_HOME=str(tmp_path / "home"))
    drop_in = tmp_path / "home/containers/containers.conf.d/50-cdi-runc.conf"
    run(prefix / "bin/cdictl", "configure", "podman", "--config-file", drop_in)
    assert drop_in.exists()
    first = install_sh("--prefix", prefix, "--no-docker", "--uninstall", env=env)
    assert not drop_in.exists()
    second = install_sh("--prefix", prefix, "--no-docker", "--uninstall")

    assert listing(prefix) == ["bin", "lib", "share"]
    assert "/etc/cdi-runc and /var/log/cdi-runc" in first.out
    assert "is not installed" in second.out


def test_a_user_can_install_for_himself():
    """Without root, --prefix works, and without --prefix the message says what to do."""
    with tempfile.TemporaryDirectory(prefix="cdi-runc-user-", dir="/tmp") as place:
        home = Path(place) / "home"
        shutil.copytree(
            ROOT,
            home / "checkout",
            ignore=lambda folder, names: [
                name for name in names if folder == str(ROOT) and name.startswith((".", "tests"))
            ],
        )
        Path(place).chmod(0o755)
        run("chown", "-R", "65534:65534", home)
        words = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        script = home / "checkout/install.sh"
        env = environment(HOME=str(home), TMPDIR=place)
        Path(place).chmod(0o777)
        refused = run(*words, script, env=env, check=False)
        run(*words, script, "--prefix", home / "own", env=env, timeout=280)

        assert refused.status == 1
        assert "use sudo, or --prefix DIR" in refused.err
        assert run(*words, home / "own/bin/cdictl", "--version", env=env).status == 0


def test_docker_is_told_and_untold(prefix, plain_docker):
    """Docker has the runtime after installing, and is as it was after uninstalling."""
    before = plain_docker.file.read_text()
    words = ("--prefix", prefix, "--docker-config", plain_docker.file)
    install_sh(*words, env=plain_docker.env)
    ran = plain_docker.run("--runtime=cdi", command=("echo", "hello"))
    default = plain_docker("info", "--format", "{{.DefaultRuntime}}").out
    install_sh(*words, "--uninstall", env=plain_docker.env)
    runtimes = plain_docker("info", "--format", "{{json .Runtimes}}").out

    assert ran.out == "hello\n"
    assert default == "runc\n"
    assert '"cdi"' not in runtimes
    assert plain_docker.file.read_text() == before


def test_uninstalling_waits_for_docker(prefix, plain_docker):
    """It is refused while ours is the default, or containers need it; --force leaves a way out."""
    before = plain_docker.file.read_text()
    words = ("--prefix", prefix, "--docker-config", plain_docker.file)
    told = install_sh(*words, "--set-default", env=plain_docker.env).out
    plain_docker("run", "-d", "--network=none", "--name=kept", IMAGE, "sleep", "1000")
    default = install_sh(*words, "--uninstall", env=plain_docker.env, check=False)
    install_sh(*words, env=plain_docker.env)
    plain_docker.file.write_text(
        plain_docker.file.read_text().replace(', "default-runtime": "cdi"', "")
    )
    container = install_sh(*words, "--uninstall", env=plain_docker.env, check=False)

    assert "any image that sets CDI_DEVICES" in told
    assert default.status == 1
    assert "'cdi' is Docker's default runtime" in default.err
    assert container.status == 1
    assert "(kept, running)" in container.err
    assert (prefix / "bin/cdictl").exists()

    install_sh(*words, "--uninstall", "--force", env=plain_docker.env)
    state = plain_docker("info", "--format", "{{json .Runtimes}} {{.DefaultRuntime}}").out
    stopped = plain_docker("stop", "-t", "0", "kept")

    assert '"cdi"' not in state
    assert state.endswith(" runc\n")
    assert stopped.status == 0
    assert listing(prefix) == ["bin", "bin/cdi-runc", "lib", "share"]
    assert plain_docker.file.read_text() == before

    install_sh(*words, env=plain_docker.env)
    plain_docker("rm", "kept")
    install_sh(*words, "--uninstall", env=plain_docker.env)

    assert listing(prefix) == ["bin", "lib", "share"]


def test_another_installation_keeps_docker(installed, prefix, plain_docker):
    """Uninstalling from one place leaves alone a Docker that uses another."""
    words = ("--docker-config", plain_docker.file)
    install_sh("--prefix", installed.prefix, *words)
    install_sh("--prefix", prefix, "--no-docker")
    install_sh("--prefix", prefix, *words, "--uninstall")

    assert plain_docker.run("--runtime=cdi", command=("echo", "hello")).out == "hello\n"
    run(installed.cdictl, "configure", "docker", "--config-file", plain_docker.file, "--remove")


def test_what_docker_refuses_is_put_back(installed, plain_docker):
    """If Docker does not take up the file, it is as before, and there is no backup."""
    text = plain_docker.file.read_text().replace("{", '{"no-such-option": 1, ')
    plain_docker.file.write_text(text)
    words = ("configure", "docker", "--config-file", plain_docker.file)
    finished = run(installed.cdictl, *words, check=False)

    assert finished.status == 1
    assert "did not take it up" in finished.err
    assert f"{plain_docker.file} is again as it was" in finished.err
    assert plain_docker.file.read_text() == text
    assert not [name for name in os.listdir(plain_docker.directory) if "daemon.json." in name]


def test_the_demo_shows_a_container_with_its_device(prefix):
    """The demo's container used what it was given, the record tells it, and nothing stays."""
    # Nobody answers there, so that the demo takes runc alone.
    env = {"DOCKER_HOST": "unix:///nowhere"}
    finished = install_sh("--prefix", prefix, "--no-docker", "--demo", env=env)

    assert SIGHT in finished.out
    assert_the_record_is_shown(finished.out)
    assert_nothing_of_the_demo_stays()


def test_the_demo_goes_through_docker(prefix, plain_docker):
    """With a Docker daemon the container is Docker's."""
    env = {**plain_docker.env, "DOCKER_HOST": f"unix://{plain_docker.socket}"}
    words = ("--prefix", prefix, "--docker-config", plain_docker.file, "--demo")
    finished = install_sh(*words, env=env)

    assert "docker run --runtime=cdi" in finished.out
    assert SIGHT in finished.out
    assert_the_record_is_shown(finished.out)
    assert_nothing_of_the_demo_stays()
    assert plain_docker("ps", "-aq").out == ""
    assert "cdi-runc-demo" not in plain_docker("images").out


def assert_the_record_is_shown(out):
    """Check that the record names the device and what it brought."""
    record = out.partition("The audit record")[2]
    for word in ("acme.example/demo=hello", "DEMO_GREETING", "/dev/demo", "createContainer"):
        assert word in record


def assert_nothing_of_the_demo_stays():
    """Check that neither loop device nor file of the demo is left."""
    assert "cdi-runc-demo" not in run("losetup", "--all").out
    for place in ("/run", "/var/run/cdi", "/etc/cdi", "/run/cdi-runc/launcher/run"):
        assert not list(Path(place).glob("cdi-runc-demo*"))
