"""An OCI runtime that stands before runc and applies CDI edits.

The flow, one way, each arrow one module::

    engine ──argv──▶ launcher (sh) ──nothing to edit──▶ real runtime
                         │
                         └─ create or run with a request ─▶ shim
    argv ─▶ invocation ─▶ bundle ─▶ requests ─▶ registry ─▶ plan ─▶ audit ─▶ runtime

``create`` is that sentence as code.  There are two temperatures.  Hot code is what a create runs
when nothing changed since the last one: every module that lies directly in this package, and
``edits``.  It imports next to nothing, because the interpreter's start is most of what a create
may cost.  Cold code (``specs``, ``config``, ``engines``, ``authoring``, ``cli``, ``doctor``)
reads YAML, validates and explains; hot code imports it inside a function, and only when a file
changed, something is wrong or a person asks.

A config.json stays the dict that was read, so nothing we do not know is lost.  A plan is a list of
steps, each an edit with its origin; applying a step returns its effects, and the effects are the
audit record.
"""

VERSION = "0.1.0"
