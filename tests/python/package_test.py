# SPDX-License-Identifier: Apache-2.0
"""The Python package as a program sees it, by what `plumb export` then tells of the recording. Run twice: over the extension, and
over ctypes.

usage: package_test.py PLUMB FOLDER_OF_THE_PACKAGE extension|ctypes [CLASS…]"""

import ast
import functools
import inspect
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
import warnings

PLUMB, SITE = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
CORE = sys.argv[3]
sys.dont_write_bytecode = True
sys.path[:0] = [str(SITE), str(pathlib.Path(__file__).resolve().parent.parent / "engines")]
for name in [name for name in os.environ if name.startswith("PLUMB")]:
    del os.environ[name]
os.environ["PLUMB_PYTHON"] = CORE

import plumb
from recorded import Recorded

SCRATCH = tempfile.TemporaryDirectory(prefix="plumb-python-")
FOLDER = pathlib.Path(SCRATCH.name)
FILE = FOLDER / "run.plumb"


def recording(extra=""):
    FILE.unlink(missing_ok=True)
    return plumb.profiler(f"on,warmup=0,out={FILE}{extra}")


def in_a_thread(function, *arguments):
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    thread.join()


class Case(unittest.TestCase):
    def leaves(self):
        """(name, layer) of each leaf, as they began."""
        return [(row["name"], row.get("layer")) for row in Recorded(PLUMB, FILE).scopes]

    def assert_nothing_open(self):
        with self.assertRaises(plumb.Error) as raised:
            plumb.pop()
        self.assertIn("nothing for plumb_pop_scope() to end on this thread", str(raised.exception))
        self.assertEqual(raised.exception.code, "invalid_argument")

    def assert_no_loss(self):
        self.assertEqual(plumb.ask("report", FILE)["losses"], [])


class Scopes(Case):
    def test_the_core_is_the_one_that_is_tested(self):
        self.assertEqual(plumb._core.__name__, {"extension": "plumb._extension", "ctypes": "plumb._fallback"}[CORE])

    def test_steps_layers_and_bricks_arrive_with_their_work(self):
        with recording() as prof:
            prof.describe("model", "small")
            for position in range(4):
                with plumb.step("decode", tokens=1, kv_length=position + 1):
                    for index in range(2):
                        with plumb.layer(index), plumb.brick("attention", bytes=4096, flops=2.5e3):
                            pass
                    plumb.push(plumb.brick("of_our_own", category="norm"))
                    plumb.pop()
            with plumb.step("prefill", tokens=7):
                pass
        report = plumb.ask("report", FILE)
        self.assertEqual(report["description"], [{"key": "model", "value": "small"}])
        phases = {phase["phase"]: phase for phase in report["phases"]}
        self.assertEqual((phases["decode"]["steps"], phases["decode"]["decode_tokens"]), (4, 4))
        self.assertEqual(phases["prefill"]["prefill_tokens"], 7)
        bricks = {brick["name"]: brick for brick in report["bricks"]}
        self.assertEqual([bricks["attention"][key] for key in ("calls_per_step", "bytes_per_call", "flops_per_call")],
                         [2, 4096, 2500])
        self.assertEqual((bricks["of_our_own"]["category"], bricks["attention"]["category"]), ("norm", "attention"))
        self.assertEqual(self.leaves(), [("attention", 0), ("attention", 1), ("of_our_own", None)] * 4)
        self.assert_no_loss()

    def test_tokens_replace_those_of_the_phase_wherever_they_are_given_and_0_is_not_known(self):
        with recording():
            for given in ({"decode_tokens": 3, "tokens": 0}, {"tokens": 0, "decode_tokens": 3}, {"tokens": 3, "decode_tokens": 5},
                          {"decode_tokens": 5, "tokens": 3}):
                with plumb.step("mixed", prefill_tokens=7, **given):
                    pass
        phase = plumb.ask("report", FILE)["phases"][0]
        self.assertEqual((phase["prefill_tokens"], phase["decode_tokens"]), (4 * 7, 4 * 3))

    def test_work_that_is_known_late_replaces_what_was_given(self):
        with recording(), plumb.step(tokens=1):
            with plumb.brick("sampling", bytes=1):
                plumb.work(elements=12)
            with self.assertRaises(plumb.Error):
                plumb.work(bytes=1)
        brick = plumb.ask("report", FILE)["bricks"][0]
        self.assertEqual(brick["elements_per_call"], 12)
        self.assertIn("absent", brick["bytes_per_call"])

    def test_work_of_a_brick_that_is_open_when_recording_begins_or_ends_is_dropped_with_it(self):
        profiler = recording()
        with plumb.brick("sampling"):
            profiler.disable()
            profiler.enable()
            plumb.work(bytes=1)
        profiler.close()
        with plumb.brick("sampling"):
            with recording():
                plumb.work(bytes=1)
        with recording(), self.assertRaises(plumb.Error):
            plumb.work(bytes=1)

    def test_a_brick_is_used_again_nested_in_itself_and_in_the_next_recording(self):
        again = plumb.brick("attention")
        for _ in range(2):
            with recording():
                with again, again:
                    pass
                with again:
                    pass
                self.assert_nothing_open()
            self.assertEqual(len(self.leaves()), 2)

    def test_a_decorated_function_keeps_its_name_its_result_and_its_error(self):
        @plumb.brick("sampling")
        def divide(by, *, whole=6):
            "divides"
            return whole // by

        with recording():
            self.assertEqual(divide(3, whole=9), 3)
            with self.assertRaises(ZeroDivisionError):
                divide(0)
            self.assert_nothing_open()
        self.assertEqual((divide.__name__, divide.__doc__), ("divide", "divides"))
        self.assertEqual(self.leaves(), [("sampling", None)] * 2)

    def test_a_span_is_what_was_timed_elsewhere(self):
        other = plumb.brick("sampling", bytes=8)
        with recording():
            begin = plumb.now()
            self.assertGreater(begin, 0)
            plumb.span(other, begin, plumb.now())
            with self.assertRaisesRegex(plumb.Error, "a span ends before it begins"):
                plumb.span(other, begin + 10, begin)
        self.assertEqual(plumb.now(), 0)
        plumb.span(other, 0, 0)
        self.assertEqual(plumb.read(FILE)["bricks"]["name"], ["sampling"])

    def test_requests_of_a_server_are_marked_by_the_profiler(self):
        with recording() as prof:
            prof.request(17, "queue", trace_parent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
            prof.request(17, "prefill")
            with plumb.step("prefill", tokens=8):
                prof.step_request(17)
            prof.request(17, "decode")
            prof.request(17, "end", tokens=3)
            with self.assertRaisesRegex(ValueError, "kv_transfer"):
                prof.request(17, "sleep")
            with self.assertRaisesRegex(ValueError, "end"):
                prof.request(17, "queue", tokens=3)
        answer = plumb.ask("requests", FILE)
        self.assertEqual((answer["requests"], answer["ended"], answer["traced"]), (1, 1, 1))
        times = {time["what"]: time["count"] for time in answer["times"]}
        self.assertEqual((times["ttft"], times["tpot"], times["stalled"]), (1, 1, 1))

    def test_deeper_than_the_library_keeps_is_counted_and_ends_nothing_else(self):
        scopes = [plumb.brick("attention") for _ in range(80)]
        with recording():
            with plumb.layer(3):
                for scope in scopes:
                    scope.__enter__()
                for scope in reversed(scopes):
                    scope.__exit__(None, None, None)
                with plumb.brick("sampling"):
                    pass
            self.assert_nothing_open()
        self.assertIn(("sampling", 3), self.leaves())


class Stack(Case):
    """What ends out of order ends no other scope."""

    @staticmethod
    def suspended(name):
        with plumb.brick(name):
            yield

    def test_an_exception_closes_what_it_leaves(self):
        with recording():
            with self.assertRaises(KeyError):
                with plumb.step(), plumb.layer(1), plumb.brick("attention"):
                    raise KeyError
            with plumb.brick("sampling"):
                pass
            self.assert_nothing_open()
        rows = Recorded(PLUMB, FILE).scopes
        self.assertEqual([row["name"] for row in rows], ["attention", "sampling"])
        self.assertNotIn("step", rows[1])

    def test_a_generator_that_ends_later_than_it_should_leaves_the_layer_open(self):
        with recording():
            with plumb.layer(2):
                generator = self.suspended("attention")
                next(generator)
                with plumb.brick("sampling"):
                    next(generator, None)  # ends the inner brick with its own
                with plumb.brick("embedding"):
                    pass
            self.assert_nothing_open()
        self.assertEqual(sorted(self.leaves()), [("embedding", 2), ("sampling", 2)])

    def test_a_generator_that_was_left_open_ends_with_what_is_around_it(self):
        with recording():
            with plumb.layer(2):
                generator = self.suspended("attention")
                next(generator)
            with plumb.brick("embedding"):
                pass
            generator.close()
            with plumb.layer(4), plumb.brick("sampling"):
                pass
            self.assert_nothing_open()
        self.assertEqual(self.leaves(), [("attention", 2), ("embedding", None), ("sampling", 4)])

    def test_a_generator_that_another_thread_closes_ends_nothing_there(self):
        def close(generator):
            with plumb.layer(5):
                generator.close()
                with plumb.brick("sampling"):
                    pass

        with recording():
            with plumb.layer(2):
                generator = self.suspended("attention")
                next(generator)
                in_a_thread(close, generator)
        self.assertEqual(sorted(self.leaves()), [("attention", 2), ("sampling", 5)])

    def test_a_generator_ends_its_own_scope_alone_as_deep_as_the_library_keeps(self):
        def in_layer_5():
            with plumb.layer(5):
                yield

        for depth in (5, 33, 62):
            with recording():
                for _ in range(depth):
                    plumb.push(plumb.layer(1))
                generator = in_layer_5()
                next(generator)
                with plumb.brick("sampling"):
                    generator.close()
                    with plumb.brick("embedding"):
                        pass
                for _ in range(depth):
                    plumb.pop()
                self.assert_nothing_open()
            self.assertEqual(self.leaves(), [("sampling", 5), ("embedding", 1)], depth)

    def test_a_decorated_function_that_gives_what_runs_later_says_that_its_time_is_not_there(self):
        async def coroutine():
            return 7

        def by_another(function):
            return functools.wraps(function)(lambda *arguments: function(*arguments))

        with recording():
            for function, kind in ((by_another(coroutine), "coroutine"), (by_another(self.suspended), "generator")):
                scoped = plumb.brick("attention")(function)
                with self.assertWarnsRegex(RuntimeWarning, f"gave a {kind}, which runs later: <plumb brick 'attention'>"):
                    scoped("sampling").close() if kind == "generator" else scoped().close()
            listed = plumb.brick("attention")(functools.wraps(self.suspended)(lambda name: list(self.suspended(name))))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.assertEqual(listed("sampling"), [None])

    def test_generators_and_coroutines_cannot_be_decorated(self):
        async def coroutine():
            pass

        class Called:
            async def __call__(self):
                pass

        for function in (self.suspended, coroutine, functools.partial(coroutine), Called()):
            with self.assertRaisesRegex(TypeError, "write `with` around parts of it"):
                plumb.brick("attention")(function)

    def test_what_is_open_when_recording_stops_ends_quietly(self):
        with recording() as prof:
            with plumb.layer(1):
                plumb.push(plumb.brick("attention"))
                prof.disable()
                self.assertFalse(prof.enabled)
                plumb.push(plumb.brick("attention"))
                prof.enable()
                with plumb.brick("sampling"):
                    pass
                plumb.pop()
                plumb.pop()
        self.assertEqual(self.leaves(), [("sampling", None)])
        losses = {loss["reason"] for loss in plumb.ask("report", FILE)["losses"]}
        self.assertNotIn("end without begin", losses)

    def test_what_is_open_when_the_profiler_closes_ends_nothing_in_the_next_recording(self):
        def across():
            with recording():
                outlives = plumb.layer(7)
                outlives.__enter__()
                plumb.push(plumb.brick("attention"))
            plumb.pop()
            with recording():
                with plumb.layer(3):
                    outlives.__exit__(None, None, None)
                    with plumb.brick("sampling"):
                        pass

        in_a_thread(across)  # whose stack nobody uses later
        self.assertEqual(self.leaves(), [("sampling", 3)])
        self.assert_no_loss()


class Errors(Case):
    def test_each_is_one_class_with_the_sentence_of_the_library(self):
        for code, sentence, call in (
                ("invalid_argument", "no key \"colour\"|colour", lambda: plumb.profiler("on,colour=blue")),
                ("not_found", "nowhere.plumb", lambda: plumb.ask("report", FOLDER / "nowhere.plumb")),
                ("invalid_argument|not_found", "wail", lambda: plumb.ask("wail", FILE))):
            with self.assertRaisesRegex(plumb.Error, sentence) as raised:
                call()
            self.assertRegex(raised.exception.code, code)
        with recording():
            with self.assertRaisesRegex(plumb.Error, "a profiler is open"):
                plumb.profiler("on")
            self.assert_nothing_open()

    def test_a_closed_profiler_says_so_and_closes_again(self):
        prof = recording()
        self.assertEqual(prof.path, str(FILE))
        prof.close()
        prof.close()
        for call in (prof.flush, prof.snapshot, prof.enable, lambda: prof.path):
            with self.assertRaisesRegex(plumb.Error, "open another one"):
                call()
        self.assertFalse(prof.enabled)

    def test_numbers_that_mean_nothing_are_named_with_what_is_meant(self):
        with self.assertRaisesRegex(ValueError, "^bytes=-1 is no amount of work: it is a finite number from 0$"):
            plumb.brick("a", bytes=-1)
        with self.assertRaisesRegex(ValueError, "^flops=nan is no amount"):
            plumb.work(flops=float("nan"))
        with self.assertRaisesRegex(ValueError, "^8589934592 is no index of a layer: that is 0 to 65534$"):
            plumb.layer(2**33)
        with self.assertRaisesRegex(ValueError, "^a name is empty: give its text$"):
            plumb.brick("")
        plumb.layer(65534), plumb.brick("a", bytes=0, flops=1e21)

    def test_arguments_of_a_wrong_kind_are_refused_where_they_are_given(self):
        for kind, call in ((TypeError, lambda: plumb.brick(7)), (ValueError, lambda: plumb.brick("\udc80")), (TypeError, lambda: plumb.brick("a", byts=1)),
                           (TypeError, lambda: plumb.brick("a", bytes="many")), (ValueError, lambda: plumb.brick("a", category="x")),
                           (ValueError, lambda: plumb.step("decoding")), (TypeError, lambda: plumb.step(tokens=1.5)),
                           (ValueError, lambda: plumb.step(tokens=-1)), (TypeError, lambda: plumb.layer("0")),
                           (ValueError, lambda: plumb.layer(-1)), (ValueError, lambda: plumb.layer(2**64)),
                           (ValueError, lambda: plumb.layer(65535)), (ValueError, lambda: plumb.layer(2**33)),
                           (ValueError, lambda: plumb.brick("a", bytes=-1)), (ValueError, lambda: plumb.brick("a", bytes=float("nan"))),
                           (ValueError, lambda: plumb.brick("a", flops=float("inf"))), (OverflowError, lambda: plumb.brick("a", elements=10**400)),
                           (ValueError, lambda: plumb.work(bytes_per_kv=-0.5)), (ValueError, lambda: plumb.work(flops=float("nan"))),
                           (ValueError, lambda: plumb.span(plumb.brick("a"), -1, 2)),
                           (TypeError, lambda: plumb.push("attention")), (TypeError, lambda: plumb.work(1)),
                           (TypeError, lambda: plumb.span(plumb.layer(0), 1, 2)), (TypeError, lambda: plumb.Scope())):
            with self.assertRaises(kind):
                call()
        with recording() as prof:
            for kind, call in ((TypeError, lambda: prof.request("a", "queue")), (TypeError, lambda: prof.step_request(1.5)),
                               (TypeError, lambda: prof.request(1, "queue", trace_parent=7)),
                               (TypeError, lambda: prof.request(1, "end", tokens="3")),
                               (ValueError, lambda: prof.request(1, "end", tokens=-3)),
                               (ValueError, lambda: prof.request(-1, "queue")), (ValueError, lambda: prof.request(2**64, "end", tokens=3)),
                               (ValueError, lambda: prof.step_request(-1)),
                               (TypeError, lambda: prof.describe(7, "x")), (TypeError, lambda: prof.flush("soon"))):
                with self.assertRaises(kind):
                    call()


class Lives(Case):
    def test_each_thread_has_a_stack_and_a_context_carries_step_and_layer(self):
        def work(context, name):
            for _ in range(200):
                with context, plumb.brick(name):
                    pass

        names = [f"worker_{i}" for i in range(4)]
        with recording():
            with plumb.step(tokens=1), plumb.layer(6):
                context = plumb.context()
                threads = [threading.Thread(target=work, args=(context, name)) for name in names]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            self.assert_nothing_open()
        self.assertEqual(sorted(self.leaves()), sorted((name, 6) for name in names for _ in range(200)))
        self.assertEqual({row["step"] for row in Recorded(PLUMB, FILE).scopes}, {0})

    def test_closing_while_threads_record_and_ask_harms_nobody(self):
        stop, failures = threading.Event(), []

        def record():
            attention = plumb.brick("attention")
            while not stop.is_set():
                with attention:
                    pass

        def look(prof):
            try:
                while not stop.is_set():
                    prof.flush()
            except plumb.Error as error:
                failures.append(str(error))

        prof = recording()
        threads = [threading.Thread(target=record), threading.Thread(target=look, args=(prof,))]
        for thread in threads:
            thread.start()
        prof.flush()
        prof.close()
        threads[1].join()
        stop.set()
        threads[0].join()
        self.assertEqual(len(failures), 1)
        self.assertIn("this profiler is closed", failures[0])

    def test_nobody_waits_for_a_long_call_of_another_thread_but_who_closes(self):
        entered, ended = threading.Event(), threading.Event()

        def long_call(handle):
            entered.set()
            ended.wait()
            return 0

        prof = recording()
        asking = threading.Thread(target=prof._call, args=(long_call,))
        asking.start()
        entered.wait()
        prof.request(1, "queue")
        self.assertTrue(prof.enabled)
        closing = [threading.Thread(target=prof.close) for _ in range(2)]
        for thread in closing:
            thread.start()
        while prof.enabled:
            pass
        with self.assertRaisesRegex(plumb.Error, "this profiler is closed"):
            prof.request(1, "end")
        self.assertEqual([thread.is_alive() for thread in closing], [True, True])
        ended.set()
        for thread in (asking, *closing):
            thread.join()
        self.assertEqual(plumb.ask("requests", FILE)["requests"], 1)

    def test_a_handler_of_a_signal_may_close_what_its_thread_uses(self):
        def closed_within(handle):
            prof.close()
            return 0

        prof = recording()
        prof._call(closed_within)
        with recording() as again:
            self.assertTrue(again.enabled)

    def child(self, body):
        """What `body` gives in a forked child that is inside a layer and a brick of this process."""
        with plumb.layer(1), plumb.brick("attention"):
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    status = 0 if body() else 1
                finally:
                    os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)

    def test_a_forked_child_is_off_and_the_parent_goes_on(self):
        def body():
            with plumb.brick("sampling"):
                pass
            return not plumb.profiler().enabled

        with recording():
            self.child(body)
            with plumb.brick("embedding"):
                pass
        self.assertEqual(self.leaves(), [("attention", 1), ("embedding", None)])
        self.assert_no_loss()

    def test_a_forked_child_with_a_recording_of_its_own_has_an_empty_stack(self):
        def body():
            with plumb.layer(9), plumb.brick("sampling"):
                pass
            plumb.profiler().close()
            return True

        FILE.unlink(missing_ok=True)
        with plumb.profiler(f"on,warmup=0,fork=own,out={FOLDER}/own-%p.plumb"):
            self.child(body)
        found = [{(row["name"], row["layer"]) for row in Recorded(PLUMB, path).scopes} for path in FOLDER.glob("own-*.plumb")]
        self.assertEqual(sorted(map(sorted, found)), [[("attention", 1)], [("sampling", 9)]])

    def program(self, text, *words, **environment):
        return subprocess.run([sys.executable, "-c", text, *words], capture_output=True, text=True, cwd=FOLDER,
                              env={**os.environ, "PYTHONPATH": str(SITE), "PYTHONDONTWRITEBYTECODE": "1", **environment})

    def test_a_worker_of_multiprocessing_that_ends_by_itself_finishes_its_recording(self):
        text = """
            import multiprocessing, os, sys, plumb
            def work():
                with plumb.step(tokens=1), plumb.brick("attention"):
                    pass
                os.write(1, plumb.profiler().path.encode() + b"\\n")  # in one piece
            if __name__ == "__main__":
                if len(sys.argv) == 1:  # else the worker is the first to use it
                    work()
                workers = [multiprocessing.get_context("fork").Process(target=work) for _ in range(2)]
                for worker in workers: worker.start()
                for worker in workers: worker.join()
                assert [worker.exitcode for worker in workers] == [0, 0], workers
        """
        for argument in ([], ["later"]):
            done = self.program(textwrap.dedent(text), *argument, PLUMB="on,warmup=0,fork=own,out=worker-%p.plumb")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            paths = done.stdout.split()
            self.assertEqual(len(paths), 2 if argument else 3)
            for path in paths:
                report = plumb.ask("report", FOLDER / path)
                self.assertEqual([row["name"] for row in report["bricks"]], ["attention"])
                self.assertEqual([note for note in report["notes"] if "the ring of a process" in note], [])

    def test_names_beyond_those_that_there_is_room_for_are_recorded_as_unnamed_which_is_said_once(self):
        text = "import plumb\nfor i in range(17_000):\n with plumb.brick(f'request {i}'): pass\nprint('ended')"
        done = self.program(text, PLUMB="on,warmup=0,out=names.plumb")
        self.assertEqual((done.returncode, done.stdout), (0, "ended\n"), done.stderr)
        self.assertEqual(done.stderr.count('is recorded as "unnamed": there are 16,384 names already'), 1)
        report = plumb.ask("report", FOLDER / "names.plumb")
        refused = sum(loss["count"] for loss in report["losses"] if loss["reason"].startswith("name refused"))
        self.assertGreater(refused, 17_000 - 16_384)
        self.assertEqual(report["scopes"], 17_000)

    def test_the_environment_decides_where_the_program_says_nothing(self):
        text = "import plumb\nwith plumb.step(tokens=1), plumb.brick('attention'): pass\n"
        before = set(FOLDER.iterdir())
        for value in ({}, {"PLUMB": "off"}, {"PLUMB": "0"}):
            done = self.program(text, **value)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            self.assertEqual(set(FOLDER.iterdir()), before)
        done = self.program(text, PLUMB="on,warmup=0,out=by-environment.plumb")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(plumb.read(FOLDER / "by-environment.plumb")["bricks"]["name"], ["attention"])

    def test_a_wrong_environment_is_said_once_and_the_program_goes_on(self):
        done = self.program("import plumb\nfor _ in range(3):\n with plumb.step(): print('a step')", PLUMB="on,colour=blue")
        self.assertEqual((done.returncode, done.stdout), (0, "a step\n" * 3))
        self.assertEqual(done.stderr.count("not profiled"), 1)

    def test_the_end_of_the_program_finishes_the_recording(self):
        done = self.program("import plumb\np = plumb.profiler('on,warmup=0,out=ended.plumb')\nplumb.push(plumb.step())\n"
                            "with plumb.brick('attention'): pass")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(plumb.read(FOLDER / "ended.plumb")["bricks"]["name"], ["attention"])


class Told(Case):
    def test_lines_for_plumb_run_go_into_its_file_and_no_other(self):
        for offset, told in ((0, True), (1, False), (None, False)):
            with self.subTest(offset), tempfile.TemporaryFile() as notes:
                known = os.fstat(notes.fileno())
                numbers = "" if offset is None else f":{known.st_dev}:{known.st_ino + offset}"
                done = subprocess.run([sys.executable, "-c", "from plumb import _torch; _torch.tell('sentence', 'words')"],
                                      capture_output=True, text=True, check=True, env={
                                          **os.environ, "PYTHONPATH": str(SITE), "PLUMB_RUN": f"/proc/{os.getpid()}/fd/{notes.fileno()}{numbers}"})
                notes.seek(0)
                self.assertEqual((notes.read(), done.stderr), (b"sentence\twords\0", "") if told else (b"", "plumb: words\n"))


class Answers(Case):
    @classmethod
    def setUpClass(cls):
        with recording() as prof:
            for _ in range(3):
                with plumb.step(tokens=1):
                    for brick in (plumb.brick("attention", bytes=64), plumb.brick("sampling")):
                        with brick:
                            pass
            cls.live = prof.snapshot()

    def test_an_answer_is_a_plain_dict_with_a_verdict(self):
        wall = plumb.ask("wall", FILE, slowest=2)
        self.assertEqual((wall["schema"], len(wall["slowest"])), ("plumb.wall/2", 2))
        self.assertIsInstance(wall, dict)
        self.assertEqual(plumb.ask("check", str(FILE), expect=["attention=1/step", "sampling=1/step"]).outcome, "pass")
        self.assertEqual(plumb.ask("check", FILE, expect="attention=9/step").outcome, "fail")
        with self.assertRaisesRegex(plumb.Error, "prints no JSON"):
            plumb.ask("path", FILE, dot=True)
        self.assertEqual(self.live["schema"], plumb.ask("report", FILE)["schema"])

    def test_tables_are_columns_that_others_read_without_copying(self):
        bricks = plumb.read(FILE)["bricks"]
        rows = plumb.ask("report", FILE)["bricks"]
        self.assertEqual(bricks["name"], [row["name"] for row in rows])
        self.assertEqual({len(column) for column in bricks.values()}, {len(rows)})
        counts = bricks["time.count"]
        self.assertEqual((type(counts), counts.format, list(counts)), (memoryview, "q", [row["time"]["count"] for row in rows]))
        self.assertEqual((bricks["lap"].format, list(bricks["lap"])), ("?", [False, False]))
        moved = dict(zip(bricks["name"], bricks["bytes_per_call"]))
        self.assertEqual((bricks["bytes_per_call"].format, moved["attention"]), ("d", 64))
        self.assertNotEqual(moved["sampling"], moved["sampling"], "what is absent is NaN")

    def test_columns_of_any_rows(self):
        found = plumb.columns([{"a": 2**63, "b": {"c": 1.5}, "d": True, "e": "x"}, {"a": 1, "b": {"c": {"absent": "why"}}, "d": False}])
        self.assertEqual((found["a"].format, found["a"][0], found["b.c"].format, found["b.c"][0]), ("Q", 2**63, "d", 1.5))
        self.assertEqual((found["d"].format, found["e"]), ("?", ["x", None]))
        self.assertEqual(plumb.columns([]), {})

    def test_numpy_takes_a_column_where_it_lies(self):
        try:
            import numpy
        except ModuleNotFoundError:
            self.skipTest("numpy is not there: apt-get install python3-numpy")
        column = plumb.read(FILE)["bricks"]["time.total_ns"]
        taken = numpy.asarray(column)
        self.assertEqual(taken.dtype, numpy.int64)
        self.assertTrue(numpy.shares_memory(taken, numpy.frombuffer(column, dtype="int64")))


class Page(Case):
    def test_every_sample_of_the_page_runs_in_its_order(self):
        page = (pathlib.Path(__file__).resolve().parent.parent.parent / "docs/reference/python.md").read_text()
        samples = re.findall(r"```python\n(.*?)```", page, re.S)
        self.assertGreater(len(samples), 3)
        done = subprocess.run([sys.executable, "-W", "error", "-c", "\n".join(samples)], capture_output=True, text=True, cwd=FOLDER,
                              env={**os.environ, "PYTHONPATH": str(SITE), "PYTHONDONTWRITEBYTECODE": "1"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(re.findall("^[a-z_]+", done.stdout, re.M)[-2:], ["lm_head", "attention"])


class Stubs(unittest.TestCase):
    """__init__.pyi says what is there."""

    def setUp(self):
        tree = ast.parse((SITE / "plumb/__init__.pyi").read_text())
        self.functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}

    def assert_same(self, stub, there):
        def parts(given):
            return [(one.name, one.kind, one.default) for one in given.parameters.values()]

        bare = f"def f({ast.unparse(stub.args)}): pass"
        for argument in ast.walk(parsed := ast.parse(bare)):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        scope = {}
        exec(compile(parsed, "stub", "exec"), scope)
        self.assertEqual(parts(inspect.signature(scope["f"])), parts(inspect.signature(there)), stub.name)

    def test_its_names_are_those_of_the_package(self):
        self.assertEqual({*self.functions, *self.classes}, set(plumb.__all__))
        self.assertTrue((SITE / "plumb/py.typed").exists())

    def test_functions_have_its_arguments_and_say_what_they_do(self):
        for name, stub in self.functions.items():
            self.assert_same(stub, getattr(plumb, name))
            self.assertTrue(getattr(plumb, name).__doc__ or CORE == "ctypes", name)

    def test_classes_have_its_methods(self):
        for name, stub in self.classes.items():
            there = getattr(plumb, name)
            self.assertTrue(there.__doc__, name)
            for method in (node for node in stub.body if isinstance(node, ast.FunctionDef)):
                self.assertTrue(hasattr(there, method.name), f"{name}.{method.name}")
            if name == "Profiler":
                public = {word for word in vars(there) if not word.startswith("_")}
                self.assertEqual(public, {node.name for node in stub.body if not node.name.startswith("_")})
                for method in stub.body:
                    if inspect.isfunction(vars(there)[method.name]):
                        self.assert_same(method, vars(there)[method.name])


def main():
    """77, which ctest shows as skipped, where there is no extension to test."""
    if CORE == "extension" and not (SITE / "plumb/_extension.abi3.so").exists():
        print("skipped: the package was built without its extension, for want of Python's headers: apt-get install python3-dev")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])


if __name__ == "__main__":
    main()
