"""Fuzzing of everything that reads what others wrote: ``python3 -m tests.fuzz`` from the top."""
