"""cdi-runc.yaml(5), from the configuration's schema."""

import json

from roff import bold, example, text, title

from cdi_runc.config import load

HEAD = """\
.SH NAME
cdi\\-runc.yaml \\- the configuration of cdi\\-runc, /etc/cdi\\-runc/config.yaml
.SH DESCRIPTION
The file is YAML.
It need not exist: every key is optional.
A key that is not known is refused, and so is a value that does not fit; no container that asks for
a device starts then, until the file is corrected, and all others start as ever.
.PP
\\fBCDI_RUNC_CONFIG\\fR in the environment of the engine names another file.
A caller who is not root has one of his own, \\fI$XDG_CONFIG_HOME/cdi\\-runc/config.yaml\\fR.
A change holds from the next container on; nothing has to be reloaded.
.PP
.EX
cdictl config check
.EE
.PP
says whether it is valid, and names the line of every fault.
.SH KEYS"""
TAIL = """\
.SH SEE ALSO
\\fBcdi\\-runc\\fR(8), \\fBcdictl\\fR(1)
"""
EXAMPLE = """\
runtime: /usr/bin/crun
requests:
  environment:
    CDI_DEVICES: {}
    NVIDIA_VISIBLE_DEVICES: {kind: nvidia.com/gpu, none: [void, none]}
conflicts: {env: container, mounts: refuse}
audit: {required: true}"""


def page():
    """Return the page."""
    lines = [title("CDI-RUNC.YAML", 5), HEAD]
    lines += _keys(load.schema(), "")
    lines += [".SH EXAMPLE", *list(example(EXAMPLE.splitlines()))[1:]]
    return "\n".join(lines) + "\n" + TAIL


def _keys(schema, above):
    """Yield an entry for each key of *schema*, and for those below it."""
    for key, value in schema.get("properties", {}).items():
        yield from _entry(f"{above}{key}", value)
    further = schema.get("additionalProperties")
    if isinstance(further, dict):
        yield from _keys(further, f"{above}NAME.")
    items = schema.get("items")
    if isinstance(items, dict):
        yield from _keys(items, f"{above}[].".replace(".[]", "[]"))
    for choice in schema.get("anyOf", ()):
        yield from _keys(choice, above)


def _entry(name, value):
    value = _resolved(value)
    values = " | ".join(dict.fromkeys(_values(value)))
    yield from (".TP", f"{bold(name)}: {text(values)}")
    told = value.get("description", "")
    if "default" in value:
        told = f"{told} Default: {_shown(value['default'])}".strip()
    yield text(told or ("See its keys." if "properties" in value else "The same, for this alone."))
    yield from _keys(value, f"{name}.")


def _resolved(schema):
    """Return *schema* with what it refers to."""
    name = schema.get("$ref", "").rpartition("/")[2]
    return {**load.schema()["$defs"][name], **schema} if name else schema


def _values(schema):
    """Yield what a value may be, in words."""
    schema = _resolved(schema)
    if "enum" in schema:
        yield from (_shown(one) for one in schema["enum"])
        return
    if "const" in schema:
        yield _shown(schema["const"])
        return
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        for choice in choices:
            yield from _values(choice)
        return
    kinds = schema.get("type", "any")
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind == "array":
            inner = " | ".join(dict.fromkeys(_values(schema.get("items", {}))))
            yield f"list of {inner}"
        else:
            yield {"object": "map", "string": "text", "boolean": "true | false"}.get(kind, kind)


def _shown(value):
    return value if isinstance(value, str) else json.dumps(value)
