# SPDX-License-Identifier: Apache-2.0
"""What the plumb command says of itself, and of arguments that it does not take.

usage: arguments_test.py PLUMB MAKE_RECORDING SOURCE_DIR [CLASS…]"""

import json
import re

from shell import Case, FOLDER, main, plumb, recording


class Arguments(Case):
    def test_no_arguments_show_help_and_are_wrong(self):
        done = plumb()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("report", done.stderr)

    def test_help_and_version_are_right(self):
        for words in (["--help"], ["report", "--help"], ["help"], ["help", "trace"], ["export", "-h"]):
            done = plumb(*words)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
            self.assertIn("Usage: plumb", done.stdout)
        self.assertRegex(plumb("--version").stdout, r"\Aplumb \d+\.\d+\.\d+\n\Z")

    def test_help_of_a_command_is_the_same_both_ways(self):
        self.assertEqual(plumb("help", "report").stdout, plumb("report", "--help").stdout)
        self.assertEqual(plumb("help", "model", "make").stdout, plumb("model", "make", "-h").stdout)
        self.assertEqual(plumb("help").stdout, plumb("--help").stdout)

    def test_help_is_text_that_fits_a_line_and_names_what_an_option_takes(self):
        names = re.findall(r"^  ([a-z]+) ", plumb("help").stdout, re.MULTILINE)
        self.assertIn("findings", names)
        for name in names:
            for line in plumb("help", name).stdout.splitlines():
                self.assertTrue(line.isprintable() or not line, (name, line))
                self.assertLessEqual(len(line), 111, name)
        self.assertRegex(plumb("wall", "--help").stdout, r"--slowest UINT  .*\(0 to 1000\)")
        self.assertIn("plumb run [OPTIONS] -- COMMAND…\n", plumb("run", "--help").stdout)
        if "decode" not in names:
            self.skipTest("built without the decoder")
        said = plumb("decode", "--help").stdout
        self.assertIn("--graphs off|on|verify ", said)
        self.assertRegex(said, r"--random-weights WORD  .*\n( {30}.*\n)*.* tiny-llama, tiny-moe,")

    def test_a_mistyped_command_names_the_nearest(self):
        self.assert_bad_input(plumb("repotr", "x"), '"repotr"', "did you mean report?")
        self.assert_bad_input(plumb("xyzzy"), '"xyzzy"', "see plumb --help")
        self.assert_bad_input(plumb(recording()), "is a file", f"plumb report {recording()}")
        self.assert_bad_input(plumb("help", "traec"), "did you mean trace?")

    def test_a_mistyped_option_names_the_nearest(self):
        self.assert_bad_input(plumb("report", "--phse", "x", "y"), "no option --phse", "did you mean --phase?")
        self.assert_bad_input(plumb("trace", "x", "--frob"), "no option --frob", "see plumb trace --help")

    def test_an_option_in_front_of_its_command_is_told_where_it_belongs(self):
        for words, place in ((("--layers", "report", "x"), "plumb report --layers"),
                             (("--phase=decode", "report", "x"), "plumb report --phase"),
                             (("-o", "x", "run", "true"), "plumb run -o"), (("report", "x", "--", "--layers"), "plumb report --layers")):
            self.assert_bad_input(plumb(*words), "error: put %s right behind the command: %s …\n"
                                  % (place.split()[-1], place))
        self.assertIn("put --json right behind", json.loads(plumb("--json", "report", "x").stdout)["error"])
        self.assert_bad_input(plumb("--frob", "report", "x"), "plumb report has no option --frob")

    def test_a_wrong_value_names_the_right_ones(self):
        self.assert_bad_input(plumb("report", "x", "--phase", "decod"), "decode, prefill or mixed",
                              "did you mean decode?")
        self.assert_bad_input(plumb("report", "x", "--warmup", "many"), "--warmup")
        self.assert_bad_input(plumb("export", "x", "--format", "xml"), "jsonl, csv, chrome_trace, perfetto, otlp or parquet")

    def test_a_number_below_0_is_refused_where_none_may_be(self):
        for words in (("wall", "x", "--step"), ("path", "x", "--step"), ("report", "x", "--warmup")):
            self.assert_bad_input(plumb(*words, "-1"), "-1 is no whole number")
            self.assert_bad_input(plumb(*words[:2], words[2] + "=-1"), "-1 is no whole number")

    def test_a_number_that_is_none_is_refused_with_what_is_one(self):
        self.assert_bad_input(plumb("report", "x", "--warmup", "1e3"), '--warmup takes a whole number, not "1e3"')
        self.assert_bad_input(plumb("report", "x", "--warmup", "0x10"), "0x10 is no whole number")
        self.assert_bad_input(plumb("steps", "x", "--slowest", "1.5"), "1.5 not in range 0 to 1000")
        self.assert_bad_input(plumb("check", "x", "--coverage", "abc"), '--coverage takes a number, not "abc"')
        self.assert_bad_input(plumb("report", "x", "--warmup", "9" * 20), "9" * 20 + " is larger than 18446744073709551615")

    def test_one_mistyped_letter_has_no_nearest_one(self):
        self.assert_bad_input(plumb("run", "-x"), "no option -x; see plumb run --help")

    def test_a_wrong_word_inside_an_option_names_the_right_ones(self):
        self.assert_bad_input(plumb("report", recording(), "--with", "layers:metric=foo"), "p50", "mean", 'not "foo"')

    def test_commands_below_a_command_are_treated_alike(self):
        if "model" not in plumb("--help").stdout:
            self.skipTest("built without the decoder")
        self.assert_bad_input(plumb("model"), "plumb model needs a command: make or show")
        self.assert_bad_input(plumb("model", "mkae"), '"mkae"', "did you mean make?")
        self.assert_bad_input(plumb("model", "make", "--type", "f33", "-o", FOLDER / "m"), "or q6_k, not \"f33\"")
        self.assert_bad_input(plumb("model", "show", FOLDER / "none.gguf"), "none.gguf")
        self.assert_bad_input(plumb("decode", FOLDER / "none.gguf"), "none.gguf")
        for words in (["model", "show"], ["decode"]):
            done = plumb(*words, FOLDER / "none.gguf", "--json")
            self.assertEqual((done.returncode, list(json.loads(done.stdout))), (2, ["error"]))

    def test_a_missing_or_extra_argument_is_named(self):
        self.assert_bad_input(plumb("report"), "recording is required")
        self.assert_bad_input(plumb("recover", "a", "b"), '"b"')

    def test_an_option_without_its_value_names_what_it_takes(self):
        self.assert_bad_input(plumb("layers", "x", "--phase"),
                              "error: plumb layers: --phase needs a value: decode, prefill or mixed\n")
        self.assert_bad_input(plumb("trace", "x", "-o"), "error: plumb trace: -o, --output needs a value: FILE\n")
        self.assert_bad_input(plumb("trace", "x", "--tracks", ","), "--tracks needs a value: T,T")
        self.assert_bad_input(plumb("wall", "x", "--phase", "decode", "--phase", "mixed"), "--phase is given more than once")

    def test_errors_are_json_when_asked(self):
        for words in (["repotr", "--json"], ["report", "--json"], ["report", "--frob", "--json"],
                      ["report", FOLDER / "none", "--json"], ["recover", FOLDER / "none", "--json"],
                      ["trace", FOLDER / "none", "--json", "-o", FOLDER / "t"], ["trace", "x", "--json"]):
            done = plumb(*words)
            self.assertEqual((done.returncode, done.stderr), (2, ""), words)
            self.assertEqual(list(json.loads(done.stdout)), ["error"], words)


if __name__ == "__main__":
    main()
