#!/bin/sh
# Installs cdi-runc and cdictl from this checkout; see --help.
#
# Every installation is a directory of its own, and one symbolic link, HOME/current, says which
# one is in use.  It is replaced by a rename once the new one has been built and tried, so that
# containers can start at any moment, and a failure leaves the old one as it was.
set -eu
umask 022
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin # which "su" leaves out

usage() {
    cat <<'END'
usage: ./install.sh [--prefix DIR] [--no-docker | --docker-config FILE] [--set-default] [--demo]
       ./install.sh --uninstall [--prefix DIR] [--no-docker | --docker-config FILE] [--force]

Installs cdi-runc, the runtime, and cdictl, the command for people, and tells Docker about it if
Docker is here. It can be run again at any time, also while containers run.

  --prefix DIR    code to DIR/lib/cdi-runc, commands to DIR/bin, man pages and completions to
                  DIR/share (without it: /opt/cdi-runc, /usr/local/bin and /usr/local/share)
  --no-docker     leave Docker alone
  --docker-config FILE
                  the daemon.json (without it: that of the running daemon, or the usual one)
  --set-default   make it Docker's default runtime: docker run needs no --runtime=cdi then, but
                  any image that sets CDI_DEVICES asks for devices
  --demo          afterwards give a container a CDI device, and show what was done
  --uninstall     take everything back, except the configuration and the audit records
  --force         with --uninstall: though containers still need it
  --help          this text

examples:
  sudo ./install.sh --demo
  sudo ./install.sh --prefix /usr/local --no-docker
END
}

say() { printf '%s\n' "$*"; }
warn() { printf '%s\n' "install.sh: $*" >&2; }
die() {
    warn "$*"
    exit 1
}

read_options() {
    rotation=/etc/logrotate.d/cdi-runc
    prefix='' docker=1 docker_config='' demo='' uninstall='' force='' set_default=''
    while [ $# -gt 0 ]; do
        case $1 in
            --prefix=?*) prefix=${1#*=} ;;
            --docker-config=?*) docker_config=${1#*=} ;;
            --prefix | --docker-config)
                [ -n "${2-}" ] || { warn "$1 needs a value"; exit 2; }
                case $1 in --prefix) prefix=$2 ;; *) docker_config=$2 ;; esac
                shift
                ;;
            --no-docker) docker='' ;;
            --set-default) set_default=1 ;;
            --demo) demo=1 ;;
            --uninstall) uninstall=1 ;;
            --force) force=1 ;;
            -h | --help)
                usage
                exit 0
                ;;
            *)
                warn "unknown option $1; see --help"
                exit 2
                ;;
        esac
        shift
    done
    if [ -n "$uninstall" ] && [ -n "$demo$set_default" ]; then
        warn "--uninstall goes with none of --demo and --set-default"
        exit 2
    fi

    source=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
    case $prefix in
        '') home=/opt/cdi-runc bin=/usr/local/bin ;;
        *)
            case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
            prefix=${prefix%/} home=$prefix/lib/cdi-runc bin=$prefix/bin
            ;;
    esac
    [ -n "$prefix" ] || [ "$(id -u)" -eq 0 ] ||
        die "only root can write to $home; use sudo, or --prefix DIR for a place of your own"
    stub='# Left by install.sh --uninstall --force'
    share=${bin%/*}/share
    documents='man/man1/cdictl.1 man/man5/cdi-runc.yaml.5 man/man8/cdi-runc.8
        bash-completion/completions/cdictl zsh/site-functions/_cdictl
        fish/vendor_completions.d/cdictl.fish'

    # What of the caller's environment would send Python or pip elsewhere.
    unset PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE PIP_TARGET PIP_PREFIX PIP_USER PIP_REQUIRE_VIRTUALENV
}

has() { command -v "$1" >/dev/null 2>&1; }

# need WHAT PACKAGES: installs Debian packages because WHAT is missing.
need() {
    need_what=$1
    shift
    has apt-get || die "$need_what is missing; install it with your package manager (on Debian: $*)"
    [ "$(id -u)" -eq 0 ] || die "$need_what is missing; install it with: sudo apt-get install $*"
    say "Installing $* for $need_what"
    {
        apt_get install "$@" || { apt_get update && apt_get install "$@"; }
    } >"$work/log" 2>&1 || { tail -n 5 "$work/log" >&2; die "apt-get could not install $*"; }
}
apt_get() {
    apt_command=$1
    shift
    case $apt_command in
        install) DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" ;;
        *) apt-get "$apt_command" ;;
    esac
}

# usable PYTHON: sets python to that interpreter, if it is new enough and can make environments, and
# pip to the wheel of pip that it brings.
usable() {
    [ -x "$1" ] || return 1
    usable_told=$("$1" -I -c 'if True:
        import ensurepip, pathlib, sys, sysconfig, venv
        bundled = pathlib.Path(ensurepip.__file__).with_name("_bundled")
        wheels = pathlib.Path(sysconfig.get_config_var("WHEEL_PKG_DIR") or bundled)
        print(sys._base_executable if sys.version_info >= (3, 10) else "")
        print(max(wheels.glob("pip-*.whl")))' 2>/dev/null) || return 1
    python=${usable_told%%
*} pip=${usable_told#*
}
    [ -n "$python" ]
}
# find_python: the system's own comes before what PATH offers: a daemon's PATH is another.
find_python() {
    for candidate in /usr/bin/python3 /usr/bin/python3.1[0-9]; do
        usable "$candidate" && return 0
    done
    if has apt-get && [ "$(id -u)" -eq 0 ]; then
        (need "Python with venv" python3 python3-venv) && usable /usr/bin/python3 && return 0
    fi
    usable "$(command -v python3 || :)" && return 0
    warn "no Python 3.10 or later that can make virtual environments was found"
    die "install it with your package manager (on Debian and Ubuntu: python3 python3-venv)"
}

# is_ours FILE: whether FILE may be replaced: it is missing, or was made by this program.
is_ours() {
    if [ -L "$1" ]; then
        case $(readlink "$1") in "$home"/*) return 0 ;; *) return 1 ;; esac
    fi
    [ ! -e "$1" ] || grep -q "^$stub" "$1" 2>/dev/null
}

# link TARGET PLACE: makes or replaces a symbolic link in one step.
link() {
    [ "$(readlink "$2")" != "$1" ] || return 0
    ln -s -- "$1" "$2.new.$$"
    mv -T -- "$2.new.$$" "$2"
}

# quoted TEXT: TEXT as one word of sh.
quoted() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }

build() {
    say "Installing cdi-runc to $home, with $python"
    new=$(mktemp -d "$home/versions/$(date +%Y%m%d-%H%M%S).XXXXXX")
    chmod 755 "$new"

    # pip runs from its wheel, and is no part of what is installed.
    "$python" -I -m venv --without-pip "$new/venv" >"$work/log" 2>&1 || {
        tail -n 5 "$work/log" >&2
        die "$python could not make a virtual environment"
    }
    # Only what the lock file has the hash of; a wheel only, since a build fetches what it likes.
    "$new/venv/bin/python" -I "$pip/pip" install --no-input --disable-pip-version-check \
        --require-hashes --no-deps --only-binary :all: \
        -r "$source/packaging/requirements.txt" >"$work/log" 2>&1 || {
        tail -n 5 "$work/log" >&2
        if grep -q 'DO NOT MATCH THE HASHES' "$work/log"; then
            sed -n 's/^ *\([^ ]* from .*\):$/install.sh: got another file than expected: \1/p' "$work/log" >&2
            die "a Python package is not the one that packaging/requirements.txt names, so nothing was installed; find out who changed the package, the mirror (PIP_INDEX_URL) or that file"
        fi
        die "pip could not get the Python packages; it needs the network or a mirror (PIP_INDEX_URL)"
    }

    (cd "$new" && ln -s venv/lib/python3.*/site-packages lib)
    cp -R -- "$source/cdi_runc" "$new/lib/"
    find "$new/lib/cdi_runc" -name __pycache__ -prune -exec rm -rf {} +
    "$new/venv/bin/python" -I -m compileall -q "$new/lib/cdi_runc"

    # What is compiled here is for this version of Python, so the launcher names it in full.
    exact=$(readlink -f "$python")
    write launcher "s|^cdi_python=.*|cdi_python=$(in_sed "$(quoted "$exact")")|
        s|^cdi_home=.*|cdi_home=$(in_sed "$(quoted "$new")")|" <"$source/packaging/launcher"
    library=$(readlink -f "$new/lib")
    write shim "s|\"/usr/lib/cdi-runc/lib\"|$(in_sed "$(in_python "$library")")|" \
        <"$source/packaging/shim"
    write cdictl '' <<END
#!/bin/sh
exec $(quoted "$new/venv/bin/python") -I -m cdi_runc.cli.main "\$@"
END
    chmod 644 "$new/shim"
    "$python" -X no_debug_ranges -I "$source/packaging/freeze" "$library" "$new/hot.pyc"
    "$new/venv/bin/python" -I -B "$source/packaging/documents" "$new/share"
}
write() {
    sed -e "$2" >"$new/$1"
    chmod 755 "$new/$1"
}
in_sed() { printf '%s' "$1" | sed 's/[\\&|]/\\&/g'; }
in_python() { "$python" -I -c 'import sys; print(repr(sys.argv[1]))' "$1"; }

# try_out: what was built must answer before it is put to use.
try_out() {
    "$new/launcher" --version >"$work/log" 2>&1 &&
        "$new/cdictl" --version >>"$work/log" 2>&1 &&
        "$python" -I -S -c 'if True:
            import sys
            sys.path.insert(0, sys.argv[1])
            import cdi_runc.shim' "$new/lib" >>"$work/log" 2>&1 && return
    tail -n 5 "$work/log" >&2
    die "what was built does not run"
}

activate() {
    old=$(readlink "$home/current" || :)
    link "versions/${new##*/}" "$home/current"
    built=$new new=''
    for name in venv lib launcher shim cdictl share; do link "current/$name" "$home/$name"; done
    link "$home/launcher" "$bin/cdi-runc"
    link "$home/cdictl" "$bin/cdictl"
    for name in $documents; do
        if is_ours "$share/$name"; then
            mkdir -p "$share/${name%/*}"
            link "$home/share/$name" "$share/$name"
        fi
    done
    # A call that has just begun may still be in the one before, so that one stays.
    for version in "$home"/versions/*; do
        case ${version##*/} in "${built##*/}" | "${old##*/}") ;; *) rm -rf -- "$version" ;; esac
    done
}

# The audit log of the whole system is rotated; that of a prefix is its owner's affair.
rotate() {
    if [ -z "$prefix" ] && [ -d /etc/logrotate.d ] && [ ! -e "$rotation" ]; then
        cp -- "$source/packaging/logrotate" "$rotation"
        chmod 644 "$rotation"
    fi
}

has_docker() {
    has dockerd || [ -n "$docker_config" ] || "$home/venv/bin/python" -I -c 'if True:
        import sys
        from cdi_runc.engines import dockerd
        sys.exit(not dockerd.running())'
}
configure_docker() {
    if [ -n "$docker" ] && has_docker; then
        if [ "$(id -u)" -ne 0 ]; then
            say "Docker is left alone, since you are not root. For a rootless Docker: $bin/cdictl configure docker"
            return
        fi
        if [ -n "$set_default" ]; then
            say "As the default runtime: from now on any image that sets CDI_DEVICES (ENV) gets the" \
                "devices that it names, on every container of this Docker. Where images are not" \
                "trusted, narrow it in /etc/cdi-runc/config.yaml: let variables be ignored, and ask" \
                "with mounts, which no image can forge:"
            say "    requests: {mounts: /var/run/cdi-runc/devices}"
            say "    policy: [{source: mount, do: allow}, {do: ignore}]"
        fi
        "$bin/cdictl" configure docker --runtime-path "$bin/cdi-runc" \
            ${docker_config:+--config-file "$docker_config"} ${set_default:+--set-default} ||
            die "cdi-runc is installed, but Docker does not know it yet"
    elif [ -n "$set_default" ]; then
        warn "--set-default had nothing to do: Docker is not here, or --no-docker was given"
    fi
}

# cdictl ARGS: the installed one, or this checkout's if that is broken.
cdictl() {
    if "$bin/cdictl" --version >/dev/null 2>&1; then
        "$bin/cdictl" "$@"
    else
        find_python
        "$python" -I -B -c 'if True:
            import sys
            sys.path.insert(0, sys.argv.pop(1))
            from cdi_runc.cli.main import main
            sys.exit(main())' "$source" "$@"
    fi
}

# untell: engines that are told in a file would not start a container any more.
untell() {
    own=${XDG_CONFIG_HOME:-${HOME:-/root}/.config}/containers
    for engine in podman:/etc/containers podman:"$own" containerd:/etc/containerd crio:/etc/crio; do
        place=${engine#*:} engine=${engine%%:*}
        case $engine in
            podman) place=$place/containers.conf.d/50-cdi-runc.conf ;;
            containerd) place=$place/config.toml ;;
            crio) place=$place/crio.conf.d/50-cdi-runc.conf ;;
        esac
        if grep -qsF -- "\"$bin/cdi-runc\"" "$place"; then
            cdictl configure "$engine" --remove --config-file "$place" \
                --runtime-path "$bin/cdi-runc" || warn "$place still names $bin/cdi-runc"
        fi
    done
}

remove() {
    if [ ! -e "$home" ] && [ ! -e "$bin/cdi-runc" ]; then
        say "cdi-runc is not installed in $home"
        return
    fi
    is_needed=''
    if [ -n "$docker" ] && [ "$(id -u)" -eq 0 ] && [ -e "$home" ]; then
        set -- configure docker --remove --runtime-path "$bin/cdi-runc" \
            ${docker_config:+--config-file "$docker_config"}
        if ! cdictl "$@" --unless-default; then
            [ -n "$force" ] || die "nothing was removed; to remove it all the same: --force"
            say "Going on all the same, because of --force:"
            cdictl "$@" --force || warn "Docker's configuration may still name $bin/cdi-runc"
            is_needed=1
        fi
    fi
    untell
    if ! is_ours "$bin/cdi-runc"; then
        warn "$bin/cdi-runc is not from here, so it stays"
    elif [ -n "$is_needed" ]; then # to stop containers that run now
        {
            printf '%s\n' '#!/bin/sh' "$stub: containers that it made may still run."
            printf '%s\n' '# Remove it when none does.' 'exec runc "$@"'
        } >"$bin/cdi-runc.new.$$"
        chmod 755 "$bin/cdi-runc.new.$$"
        mv -T -- "$bin/cdi-runc.new.$$" "$bin/cdi-runc"
        say "$bin/cdi-runc stays, and only starts runc, to end the containers that still run."
        say "Remove it when none does."
    else
        rm -f -- "$bin/cdi-runc"
    fi
    if is_ours "$bin/cdictl"; then rm -f -- "$bin/cdictl"; fi
    for name in $documents; do
        if [ -L "$share/$name" ] && is_ours "$share/$name"; then
            rm -f -- "$share/$name"
            (cd -- "$share" && rmdir -p --ignore-fail-on-non-empty -- "${name%/*}")
        fi
    done
    if [ -z "$prefix" ] && grep -qs "Installed by cdi-runc" "$rotation"; then
        rm -f -- "$rotation"
    fi
    rm -rf -- "$home"
    say "cdi-runc is uninstalled. What was kept, where it exists: /etc/cdi-runc and /var/log/cdi-runc."
}

lock() {
    has flock || return 0
    exec 9>"$home/.lock"
    flock -n 9 || die "another install.sh is at work on $home"
}

# shellcheck disable=SC2317,SC2329  # called by the trap
clean_up() {
    rm -rf -- "$work"
    [ -z "$new" ] || rm -rf -- "$new"
}

# A function, so that the shell has read all of this before it does anything.
main() {
    read_options "$@"
    new='' work=$(mktemp -d)
    trap clean_up EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM

    if [ -e "$home" ] && [ ! -e "$home/versions" ] && [ -n "$(ls -A "$home")" ]; then
        die "$home was not made by this program (a package?), so it is left alone; choose another --prefix"
    fi
    if [ -n "$uninstall" ]; then
        [ ! -e "$home" ] || lock
        remove
        exit 0
    fi
    [ -z "$demo" ] || [ "$(id -u)" -eq 0 ] || die "--demo makes a device, so it needs root"
    for command in "$bin/cdi-runc" "$bin/cdictl"; do
        is_ours "$command" || die "$command is there already, and is not from here; move it away first"
    done
    find_python
    mkdir -p "$home/versions" "$bin"
    lock
    build
    try_out
    activate
    rotate
    exec 9>&-
    say "Installed: $bin/cdi-runc and $bin/cdictl"
    configure_docker
    if [ -n "$demo" ]; then
        has runc || need "the demo" runc
        has busybox || need "the demo" busybox-static
        "$source/packaging/demo/run" "$bin"
    fi
}

main "$@"
exit
