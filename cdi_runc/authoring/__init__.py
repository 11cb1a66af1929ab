"""Spec files made from what a host has, or from what Docker was told (cold).

One module for each family of devices, ``find(host) -> Found``; ``host`` may be a tree of files.
``generate`` makes specs of what they find, ``from_docker`` of Docker's device mappings, and
``write`` puts a spec into words, checks it, and replaces the file.
"""
