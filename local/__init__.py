"""Tirada's local cloud: Postgres, an AWS emulator and the real `sam deploy`, without Docker.

`sam local` is the one part that runs functions in containers.

Run from the project's root: `python3 -m local help`. Everything it makes lies in `.local/`;
everything it starts listens on 127.0.0.1 and is stopped by `python3 -m local down`.
"""
