# SPDX-License-Identifier: Apache-2.0
"""./dev lint sees what is planted: in a copy of this tree, one flaw at a time, the check that must see it fails and names it.

usage: planted_test.py SOURCE_TREE"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(SOURCE / "tools"))
import tree  # noqa: E402

SCRATCH = tempfile.TemporaryDirectory(prefix="plumb-lint-")
COPY = pathlib.Path(SCRATCH.name)
for name in tree.files():
    (COPY / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(SOURCE / name, COPY / name)


class Planted(unittest.TestCase):
    passed = set()  # checks that have nothing to say of the copy as it is

    def check(self, name):
        done = subprocess.run([sys.executable, f"tools/check_{name}.py"], cwd=COPY, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def assert_seen(self, check, name, before, after, *said):
        """With `before` replaced by `after` in a file, the check fails and says so; else it passes. Without `before`: appended."""
        path = COPY / name
        text = path.read_text(encoding="utf-8")
        self.assertIn(before, text)
        if check not in self.passed:
            code, words = self.check(check)
            self.assertEqual(code, 0, words)
            self.passed.add(check)
        path.write_text(text.replace(before, after, 1) if before else text + after, encoding="utf-8")
        try:
            code, words = self.check(check)
        finally:
            path.write_text(text, encoding="utf-8")
        self.assertNotEqual(code, 0, words)
        for word in (name, *said):
            self.assertIn(word, words)

    def test_every_check_is_a_part_of_lint(self):
        self.assertIn("for check in tools/check_*.py; do", (SOURCE / "dev").read_text(encoding="utf-8"))

    def test_a_link_to_a_page_that_is_not_there(self):
        self.assert_seen("docs", "docs/reference/wall.md", "", "\n[more](nowhere.md)\n", "nowhere.md")

    def test_a_link_to_a_heading_that_is_not_there(self):
        self.assert_seen("docs", "docs/reference/wall.md", "", "\n[more](path.md#nowhere)\n", "path.md#nowhere")

    def test_a_sample_that_differs_from_the_code_that_is_compiled(self):
        self.assert_seen("docs", "README.md", "PLUMB_LAYER(prof, l);", "PLUMB_LAYER(prof, layer);", "sample 1")

    def test_more_words_than_anybody_reads(self):
        self.assert_seen("docs", "README.md", "", "\n" + "word " * 27000 + "\n", "at most 27,000")

    def test_a_line_and_a_row_of_a_table_that_are_too_wide(self):
        self.assert_seen("docs", "docs/reference/wall.md", "", "\n" + "word " * 25 + "\n", "125 columns")
        self.assert_seen("docs", "docs/reference/wall.md", "", "\n| " + "word " * 40 + "|\n", "203 columns")

    def test_an_id_of_a_lesson_that_is_not_known(self):
        self.assert_seen("lessons", "src/stats/histogram_test.cpp", "", "\nTEST(Histogram, F" "99_is_planted) {}\n", "F99")

    def test_a_lesson_without_its_row(self):
        rows = (COPY / "docs/internals/lessons.md").read_text(encoding="utf-8").splitlines()
        row = next(row for row in rows if row.startswith("| M3 |"))
        self.assert_seen("lessons", "docs/internals/lessons.md", row + "\n", "", "M3")

    def test_a_library_that_notice_does_not_name(self):
        row = next(line for line in (COPY / "NOTICE").read_text(encoding="utf-8").splitlines() if "libzstd-dev" in line)
        self.assert_seen("notice", "NOTICE", row + "\n", "", "libzstd-dev")

    def test_a_word_that_readers_stumbled_over(self):
        self.assert_seen("words", "docs/reference/wall.md", "", "\nas nobody " "knows\n")

    def test_a_run_line_of_the_workflow_that_is_no_command(self):
        self.assert_seen("workflow", ".github/workflows/ci.yml", "run: ./dev test", "run: ./dev tset", "tset")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
