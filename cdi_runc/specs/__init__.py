"""From spec files to the compiled registry: document -> decode -> check -> compile (cold)."""
