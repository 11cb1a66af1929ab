"""cdictl, the commands for people: ``main`` dispatches, one module a command (cold)."""
