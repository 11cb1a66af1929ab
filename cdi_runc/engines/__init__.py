"""What the container engines keep and say: their configuration files, their daemons (cold)."""

NAME = "cdi"
"""What engines call cdi-runc: ``docker run --runtime=cdi``."""
