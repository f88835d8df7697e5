"""Tirada's local cloud: Postgres, an AWS emulator and the real `sam deploy`, without Docker.

`sam local` is the one part that runs functions in containers.

Run from the project's root: `python3 -m local help`. What it makes lies in `.local/` and
`target/`; the tests' Postgres keeps its files in /dev/shm. What it starts listens on 127.0.0.1, or
for containers on their engine's bridge, and `python3 -m local down` stops it.
"""
