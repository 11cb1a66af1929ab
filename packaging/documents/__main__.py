"""Write the man pages and the completions: ``python3 packaging/documents SHARE``.

Below SHARE they lie where PREFIX/share has them.  All but cdi-runc.8 is made from what cdictl and
the configuration say of themselves (its parsers, its schema), so that none of it can lag behind.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]

import commands
import completion
import configuration
import manual
import roff


def pages():
    """Yield the path of each document below SHARE, and its text."""
    known = commands.read()
    with open(os.path.join(HERE, "cdi-runc.8"), encoding="utf-8") as file:
        yield "man/man8/cdi-runc.8", f"{roff.title('CDI-RUNC', 8)}\n{file.read()}"
    yield "man/man1/cdictl.1", manual.page(known)
    yield "man/man5/cdi-runc.yaml.5", configuration.page()
    yield "bash-completion/completions/cdictl", completion.bash(known)
    yield "zsh/site-functions/_cdictl", completion.zsh(known)
    yield "fish/vendor_completions.d/cdictl.fish", completion.fish(known)


def main():
    """Write all of them."""
    (share,) = sys.argv[1:]
    for name, text in pages():
        path = os.path.join(share, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
