"""Fixtures of the tests: an installation, configurations, bundles and private engines."""

import fcntl
import itertools
import os
import shutil

import pytest
from support.bundles import Bundle, Runtime, config, make_rootfs
from support.configurations import Configuration, forget, let_others_enter
from support.devices import Node, free_loop_numbers, in_cgroup_v2
from support.engines import Ctr, Dockerd, Podman
from support.installations import Installation, install, shared
from support.users import RootlessPodman, User


def pytest_addoption(parser):
    """Add the option that runs the hardening suites whole."""
    parser.addoption("--full", action="store_true", help="run the hardening suites whole")


@pytest.fixture(scope="session")
def installation(tmp_path_factory):
    """Install cdi-runc once for all workers, under a prefix of its own."""
    top = shared(tmp_path_factory)
    prefix = top / "prefix"
    with (top / "installing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not prefix.exists():
            return install(prefix)
    return Installation(prefix)


@pytest.fixture(scope="session")
def busybox_rootfs(tmp_path_factory):
    """Return a root file system of busybox, not to be written to."""
    return make_rootfs(tmp_path_factory.mktemp("busybox") / "rootfs")


@pytest.fixture
def configure(tmp_path):
    """Make configurations, each in a directory of its own."""

    def make(name="cdi-runc", **sections):
        configuration = Configuration(tmp_path / name)
        if sections:
            configuration.write(**sections)
        return configuration

    yield make
    forget(tmp_path)


@pytest.fixture
def configuration(configure):
    """Return the test's configuration."""
    return configure()


@pytest.fixture
def make_bundle(tmp_path, busybox_rootfs):
    """Make bundles, each with a root file system of its own."""
    numbers = itertools.count(1)

    def make(*args, rootfs=True, **members):
        path = tmp_path / f"bundle{next(numbers)}"
        path.mkdir()
        if rootfs:
            shutil.copytree(busybox_rootfs, path / "rootfs", symlinks=True, copy_function=os.link)
        return Bundle(path, {**config(*args), **members})

    return make


@pytest.fixture
def make_runtime(tmp_path):
    """Make runtimes that keep their containers below the test's directory."""
    made = []

    def make(program, configuration, prefix=()):
        runtime = Runtime(program, tmp_path / f"root{len(made)}", configuration, prefix)
        made.append(runtime)
        return runtime

    yield make
    for runtime in made:
        runtime.clean_up()


@pytest.fixture
def runtime(installation, configuration, make_runtime):
    """Return cdi-runc as installed, with the test's configuration."""
    return make_runtime(installation.shim, configuration)


@pytest.fixture
def make_node(tmp_path):
    """Make nodes of loop devices that nobody uses."""
    numbers = iter(free_loop_numbers())

    def make(name="node", **members):
        return Node(tmp_path / name, next(numbers), **members)

    return make


@pytest.fixture(scope="session")
def spare_shim(installation, tmp_path_factory):
    """Return a second launcher, and the link by which it finds the interpreter."""
    directory = tmp_path_factory.mktemp("spare")
    interpreter, shim = directory / "python3", directory / "cdi-runc"
    interpreter.symlink_to("/usr/bin/python3")
    installation.launcher_with(interpreter, shim)
    return shim, interpreter


@pytest.fixture(scope="session")
def start_docker(installation, spare_shim, busybox_rootfs, tmp_path_factory):
    """Start private Docker daemons, each with the image of the tests."""
    started = []

    def start(**options):
        configuration = Configuration(tmp_path_factory.mktemp("docker") / "cdi-runc")
        runtimes = {"cdi": installation.shim, "cdi-spare": spare_shim[0]}
        docker = Dockerd(configuration, runtimes, **options)
        started.append(docker)
        docker.load(busybox_rootfs)
        return docker

    yield start
    for docker in started:
        docker.stop()
        docker.configuration.forget()


def reset(docker):
    """Give *docker* to one test."""
    docker.configuration.reset()
    yield docker
    docker.remove_containers()


@pytest.fixture(scope="session")
def dockerd(start_docker):
    """Start a Docker daemon that knows the runtime ``cdi``."""
    return start_docker()


@pytest.fixture
def docker(dockerd):
    """Lend the Docker daemon that knows the runtime ``cdi``."""
    yield from reset(dockerd)


@pytest.fixture(scope="session")
def dockerd_default(start_docker):
    """Start a Docker daemon whose default runtime is ``cdi``."""
    return start_docker(default="cdi")


@pytest.fixture
def docker_default(dockerd_default):
    """Lend the Docker daemon whose default runtime is ``cdi``."""
    yield from reset(dockerd_default)


@pytest.fixture(scope="session")
def dockerd_v2(start_docker):
    """Start a Docker daemon that uses cgroup v2."""
    return start_docker(prefix=in_cgroup_v2())


@pytest.fixture
def docker_v2(dockerd_v2):
    """Lend the Docker daemon that uses cgroup v2."""
    yield from reset(dockerd_v2)


@pytest.fixture
def ctr(docker, busybox_rootfs, tmp_path):
    """Return a client of containerd, with a root file system of its own."""
    rootfs = tmp_path / "ctr-rootfs"
    shutil.copytree(busybox_rootfs, rootfs, symlinks=True, copy_function=os.link)
    return Ctr(docker, rootfs)


@pytest.fixture(scope="session")
def podman_storage(installation, busybox_rootfs, tmp_path_factory):
    """Give Podman the image of the tests."""
    configuration = Configuration(tmp_path_factory.mktemp("podman") / "cdi-runc")
    podman = Podman(configuration, installation.shim)
    podman.load(busybox_rootfs)
    yield podman
    podman.clean_up()
    configuration.forget()


@pytest.fixture
def podman(podman_storage):
    """Lend Podman to one test."""
    podman_storage.configuration.reset()
    return podman_storage


@pytest.fixture(scope="session")
def ordinary_user(installation, tmp_path_factory):
    """Make a user who can enter the directories of the tests."""
    base = tmp_path_factory.getbasetemp()
    let_others_enter(base, installation.prefix)
    user = User(base)
    yield user
    user.remove()


@pytest.fixture
def user(ordinary_user, tmp_path):
    """Lend the user to one test."""
    let_others_enter(tmp_path)
    ordinary_user.reset()
    return ordinary_user


@pytest.fixture(scope="session")
def rootless_storage(ordinary_user, installation, busybox_rootfs):
    """Give the user's Podman the image of the tests."""
    podman = RootlessPodman(ordinary_user, installation.shim)
    podman.load(busybox_rootfs)
    yield podman
    podman.clean_up()


@pytest.fixture
def rootless_podman(rootless_storage, user):
    """Lend the user's Podman to one test."""
    return rootless_storage
