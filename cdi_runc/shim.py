"""main(): what the launcher starts, and the one place that turns our errors into words."""

from __future__ import annotations

import posix

from cdi_runc import errors, invocation, paths, runtime, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def main(argv: Sequence[str]) -> NoReturn:
    """Prepare the bundle, then become the real runtime.

    *argv* is the shim's path, the launcher's path, and the arguments, which all belong to the real
    runtime.  With the shim's path alone the configuration is compiled for the launcher, and the
    runtimes that it names are told.
    """
    if len(argv) == 1:
        from cdi_runc.config import compile  # noqa: A004

        names = compile.refresh(paths.config()[0]).runtime
        posix.write(1, compile.runtimes(names))
        posix._exit(0)  # noqa: SLF001
    launcher, *arguments = argv[1:]
    call = invocation.parse(arguments)
    try:
        found = settings.current()
        path = runtime.find(found.runtime, launcher)
        if call.command in invocation.EDITED and (call.command != "restore" or found.restores):
            from cdi_runc import create

            create.prepare(call, found, path)
        elif call.command == "exec" and found.exec == "merge":
            _merge(call, found)
        runtime.become(path, arguments)
    except errors.CdiRuncError as error:
        _fail(error.message, call, error.cure)
    except BaseException as error:  # noqa: BLE001  # a traceback must never reach a user
        _fail(_unexpected(error), call)


def _merge(call: invocation.Invocation, found: settings.Settings) -> None:
    """Merge into an exec what CDI gave the container; whatever happens, the exec goes on."""
    from cdi_runc import exec_process

    try:
        exec_process.merge(call)
    except Exception as error:  # noqa: BLE001  # nothing may break an exec
        from cdi_runc import log

        log.unusual(
            found, "warning", "exec not merged", container=call.id, reason=str(error) or repr(error)
        )


def _fail(message: str, call: invocation.Invocation, cure: str = "") -> NoReturn:
    from cdi_runc import report

    report.failure(message, call, cure)
    posix._exit(1)  # noqa: SLF001


def _unexpected(error: BaseException) -> str:
    """Put the traceback in our own log, and return one line in its place."""
    import traceback

    from cdi_runc import log

    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        found = settings.current()
    except Exception:  # noqa: BLE001  # the defaults will do for telling
        found = settings.defaults()
    log.unusual(found, "error", "unexpected error", traceback=trace)
    return f"unexpected {type(error).__name__}: {error}; the log of cdi-runc has the details"
