"""Each change of the folder migrations/ gives another hash."""

import tempfile
import unittest
from pathlib import Path

from local.parameters import MIGRATIONS, migrations_hash


class MigrationsHash(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for path in MIGRATIONS.iterdir():
            (self.folder / path.name).write_bytes(path.read_bytes())
        self.before = migrations_hash(self.folder)

    def assert_changed(self) -> None:
        self.assertNotEqual(migrations_hash(self.folder), self.before)

    def test_the_same_files_have_the_same_hash(self) -> None:
        self.assertEqual(migrations_hash(MIGRATIONS), self.before)

    def test_a_change_of_any_file(self) -> None:
        paths = sorted(self.folder.iterdir())
        self.assertIn(self.folder / "rights.sql", paths)
        for path in paths:
            with self.subTest(path.name):
                content = path.read_bytes()
                path.write_bytes(content + b" ")
                self.assert_changed()
                path.write_bytes(content)

    def test_another_name(self) -> None:
        (self.folder / "rights.sql").rename(self.folder / "grants.sql")
        self.assert_changed()

    def test_one_file_more_or_less(self) -> None:
        (self.folder / "rights.sql").unlink()
        self.assert_changed()

    def test_a_file_in_a_folder(self) -> None:
        (self.folder / "more").mkdir()
        (self.folder / "more" / "notes").write_text("")
        self.assert_changed()

    def test_bytes_that_move_from_one_file_to_the_next(self) -> None:
        first, second, *_ = sorted(self.folder.iterdir())
        second.write_bytes(first.read_bytes()[-1:] + second.read_bytes())
        first.write_bytes(first.read_bytes()[:-1])
        self.assert_changed()
