"""Which requests are granted: rules of the configuration, and the first that matches decides (C3).

Trusted: the rules, and the source of a request.  An engine is known by the arguments that it gives
(:func:`cdi_runc.audit.engine`), never by annotations, which Podman takes from images too.  A rule
for engines that grants needs one that is known; one that ignores or refuses also holds where it may
be one of its engines: any may be behind a call that does not tell, and Podman, which can be told to
give a root, behind one that looks like CRI-O's.
"""

from __future__ import annotations

from cdi_runc import errors, requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdi_runc.plan import Step
    from cdi_runc.requests import Request

    Rule = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], str]
    """Sources, patterns of qualified names, engines (each: none for any), and the decision."""


TOLD = 20  # ignored requests of one container


def decide(rules: Sequence[Rule], device: str, source: str, engine: str) -> str:
    """Return ``allow``, ``optional``, ``ignore`` or ``refuse``; allow where no rule matches."""
    for sources, patterns, engines, decision in rules:
        if (
            (not sources or source in sources)
            and (not engines or engine in engines or _may_be(engine, engines, decision))
            and (not patterns or matches_any(patterns, device))
        ):
            return decision
    return "allow"


def _may_be(engine: str, engines: Sequence[str], decision: str) -> bool:
    is_open = not engine or (engine == "cri-o" and "podman" in engines)
    return is_open and decision in ("ignore", "refuse")


def check(wanted: list[Request]) -> list[str]:
    """Return what to say of devices that are ignored, and not granted to another mention.

    Each is told once, and so many of them that a log stays readable.

    Raises:
        Refused: one of them is refused.

    """
    granted = set(requests.devices(wanted))
    ignored = 0
    told: dict[str, None] = {}
    for request in wanted:
        named = f"device {request.device}, asked for by {request.source} {request.key}"
        if request.decision == "refuse":
            raise errors.Refused(f"the policy refuses {named}")
        if request.decision == "ignore":
            ignored += 1
            if request.device not in granted:
                told[f"the policy ignores {named}: the container starts without it"] = None
    texts = [*told]
    if len(texts) > TOLD or ignored == requests.MOST:
        or_more = " or more" if ignored == requests.MOST else ""
        texts[TOLD:] = [f"the policy ignores {ignored}{or_more} requests in all"]
    return texts


def check_hook(step: Step, patterns: Sequence[str]) -> None:
    """Check that the device of *step*, a hook which sets ``LD_*``, fits one of *patterns*.

    A hook runs as root on the host, and the loader puts into it what these variables name.

    Raises:
        Refused: it does not.

    """
    if not matches_any(patterns, step.device):
        raise errors.Refused(
            f"device {step.device} has a hook that sets LD_* variables (spec {step.spec},"
            f" {step.pointer}/env), which the configuration does not allow",
            cure="remove them, or add the device to hook_loader_env in the configuration",
        )


def matches_any(patterns: Sequence[str], device: str) -> bool:
    """Tell whether one of *patterns*, in which ``*`` stands for any text, fits *device*."""
    return any(_matches(pattern, device) for pattern in patterns)


def _matches(pattern: str, text: str) -> bool:
    head, *rest = pattern.split("*")
    if not rest:
        return text == pattern
    if not text.startswith(head):
        return False
    position = len(head)
    for part in rest[:-1]:
        position = text.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return len(text) - len(rest[-1]) >= position and text.endswith(rest[-1])
