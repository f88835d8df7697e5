"""A workbook on standard input; its cells as openpyxl reads them on standard output, as JSON.

For every row a list of [kind of cell, value as text, whether it keeps an apostrophe in front].
"""

from __future__ import annotations

import io
import json
import sys

import openpyxl


def main() -> None:
    book = openpyxl.load_workbook(io.BytesIO(sys.stdin.buffer.read()))
    (sheet,) = book.worksheets
    rows = [
        [[cell.data_type, str(cell.value), bool(cell.quotePrefix)] for cell in row]
        for row in sheet.iter_rows()
    ]
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main()
