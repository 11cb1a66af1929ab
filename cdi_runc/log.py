"""Our own log: JSON lines through structlog, loaded only when something unusual happens (C9)."""

from __future__ import annotations

from cdi_runc import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cdi_runc.settings import Settings

LEVELS = ("debug", "info", "warning", "error")


def unusual(settings: Settings, level: str, event: str, **facts: Any) -> None:
    """Log *event*.  Never fails: a log that cannot be written must not keep a container down."""
    if LEVELS.index(level) < LEVELS.index(settings.log_level):
        return
    try:
        files.append(settings.log_file, _line(level, event, facts), 0o640)
    except OSError:
        pass


def _line(level: str, event: str, facts: dict[str, Any]) -> bytes:
    try:
        import structlog  # noqa: TID251
    except ImportError:  # without our dependencies the line is made by hand
        import time

        from cdi_runc import jsonio

        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return jsonio.dumps({**facts, "event": event, "level": level, "timestamp": now}) + b"\n"
    lines: list[str] = []

    class Collector:
        def msg(self, message: str) -> None:
            lines.append(message)

        debug = info = warning = error = msg

    logger = structlog.wrap_logger(
        Collector(),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
    )
    getattr(logger, level)(event, **facts)
    return f"{lines[0]}\n".encode()
