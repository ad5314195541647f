# SPDX-License-Identifier: Apache-2.0
"""What `plumb run` records of a Python script with torch, and that the script notices nothing: on a look-alike of torch, and on the real
one where a Python here has it.

usage: torch_test.py PLUMB FOLDER_OF_THE_PACKAGE lookalike|lookalike2|real [CLASS…]"""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PLUMB, SITE = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
TORCH = sys.argv[3]
sys.path.append(str(HERE.parent / "engines"))

import ledger
from recorded import Recorded, run

SCRATCH = tempfile.TemporaryDirectory(prefix="plumb-torch-")
FOLDER = pathlib.Path(SCRATCH.name)
HANG = 200
CLEAN = {key: value for key, value in os.environ.items() if not key.startswith(("PLUMB", "PYTHON", "LOOKALIKE"))}
CLEAN["PYTHONDONTWRITEBYTECODE"] = "1"
PYTHON = sys.executable
if TORCH != "real":
    CLEAN.update(PYTHONPATH=str(HERE.parent / "mocks/lookalike_torch"), LOOKALIKE_TORCH=TORCH.removeprefix("lookalike"))

# A decoder whose layers do as the words say. Its modules compute as little as they can.
MODEL = """
import sys, torch
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj, self.o_proj = nn.Linear(8, 8, bias=False), nn.Linear(8, 8)
    def forward(self, x):
        return self.o_proj(self.q_proj(x))

class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up_proj, self.down_proj = nn.Linear(8, 16, bias=False), nn.Linear(16, 8, bias=False)
    def forward(self, x):
        return self.down_proj(self.up_proj(x))

class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_layernorm, self.self_attn, self.mlp = nn.LayerNorm(8), Attention(), MLP()
    def forward(self, x):
        return self.mlp(self.self_attn(self.input_layernorm(x)))

class Decoder(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.embed_tokens = nn.Embedding(32, 8)
        self.layers = nn.ModuleList([DecoderLayer() for _ in range(layers)])
        self.lm_head = nn.Linear(8, 32, bias=False)
    def forward(self, input_ids, start_pos=0):
        x = self.embed_tokens(input_ids)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(x)

def ids(*shape):
    return torch.zeros(*shape, dtype=torch.int64)
"""
LAYER = ["layer_norm", "qkv_projection", "output_projection", "up_projection", "down_projection"]
STEP = ["embedding", *LAYER, *LAYER, "lm_head"]
WATCHED = """
def watched():  # _torch.py, of the package that is in use
    return next(module for name, module in sys.modules.items() if name.endswith("._torch") and hasattr(module, "known"))
"""
OWN = ("Decoder", "residual_add", "attention", "activation")  # the time of modules that hold others


def python_with_torch():
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import torch"], capture_output=True, env=CLEAN).returncode == 0:
            return python
    print("SKIPPED: no Python here has torch, so only its look-alike was tested: apt-get install python3-torch")
    sys.exit(77)


if TORCH == "real":
    PYTHON = python_with_torch()


class Script:
    """One script under `plumb run`; and, where it is asked for, without it."""

    def __init__(self, text, words=(), **environment):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
        script = self.folder / "script.py"
        script.write_text(MODEL + WATCHED + textwrap.dedent(text))
        self.command, self.environment = [PYTHON, str(script), *words], {**CLEAN, "PLUMB": "warmup=0", **environment}
        self.recording = self.folder / "run.plumb"
        self.done = run(PLUMB, self.recording, self.command, self.environment, timeout=HANG, cwd=self.folder)
        assert self.done.returncode == 0, self.done.stderr
        self.recorded = Recorded(PLUMB, self.recording) if self.recording.exists() else None

    def alone(self):
        return subprocess.run(self.command, capture_output=True, text=True, env=self.environment, timeout=HANG, cwd=self.folder)

    def report(self):
        done = subprocess.run([PLUMB, "report", self.recording, "--json"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def phases(self):
        """Steps and tokens of each phase, warm-up and all."""
        return {row["phase"]: (row["steps"], row["tokens"]) for row in self.report()["phases"]}

    def steps(self):
        """The names of the leaf modules of each step."""
        found = collections.defaultdict(list)
        for row in self.recorded.scopes:
            if row["name"] not in OWN:
                found[row.get("step")].append(row["name"])
        return found


class Case(unittest.TestCase):
    def assert_no_loss(self, script):
        self.assertEqual(script.report()["losses"], [])


class Names(Case):
    def test_steps_layers_and_bricks_have_their_work(self):
        script = Script("""
            model = Decoder().eval()
            model(input_ids=ids(1, 5))
            for position in range(5, 9):
                model(ids(1, 1), position)
            print("same", *sys.argv[1:])
        """, ["--a", "b"])
        self.assertIn("same --a b\n", script.done.stdout)
        self.assert_no_loss(script)
        self.assertEqual(list(script.steps().values()), [STEP] * 5)
        self.assertEqual([row["phase"] for row in script.recorded.steps], ["prefill"] + ["decode"] * 4)
        self.assertEqual(script.phases(), {"prefill": (1, 5), "decode": (4, 4)})
        last = [row for row in script.recorded.scopes if row["step"] == 4]
        self.assertEqual([row["name"] for row in last[:4]], ["Decoder", "embedding", "Decoder", "residual_add"])
        self.assertEqual({row.get("layer") for row in last if row["name"] in ("embedding", "lm_head", "Decoder")}, {None})
        self.assertEqual([row["layer"] for row in last if row["name"] in LAYER], [0] * 5 + [1] * 5)
        self.assertEqual({row["layer"] for row in last if row["name"] in OWN[1:]}, {0, 1})
        work = {row["name"]: (row.get("bytes"), row.get("flops")) for row in last}
        self.assertEqual(work["qkv_projection"], (4 * (64 + 16), 128))
        self.assertEqual(work["output_projection"], (4 * (64 + 8 + 16), 128))
        self.assertEqual(work["layer_norm"], (4 * (16 + 16), None))
        self.assertEqual(work["embedding"], (4 * 16, None))
        self.assertEqual(work["attention"], (None, None))
        first = [row for row in script.recorded.scopes if row["step"] == 0]
        self.assertEqual({(row["bytes"], row["flops"]) for row in first if row["name"] == "qkv_projection"}, {(4 * (64 + 80), 640)})
        described = {row["key"]: row["value"] for row in script.report()["description"]}
        self.assertEqual((described["model"], described["layers"]), ("Decoder", "2"))
        self.assertRegex(described["engine"], r"^PyTorch [12]\.\S+")

    def test_tokens_come_from_the_shape_of_what_goes_in(self):
        script = Script("""
            model = Decoder()
            for shape in ((3, 1), (1,), (3, 4), (6,)):
                model(ids(*shape))
            model.embed_tokens(ids(2, 2))
        """)
        self.assertEqual([row["phase"] for row in script.recorded.steps], ["decode", "decode", "prefill", "prefill"])
        self.assertEqual(script.phases(), {"prefill": (2, 18), "decode": (2, 4)})
        script = Script("""
            class Wrapped(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.inner = nn.LayerNorm(8)
                def forward(self, attention_mask=None, inputs_embeds=None, image=None):
                    return None
            Wrapped()(ids(1, 9), torch.zeros(1, 1, 8))
            Wrapped()(attention_mask=ids(1, 9), inputs_embeds=torch.zeros(2, 3, 8))
            Wrapped()(image=torch.zeros(1, 3, 16, 16))
            Wrapped()()
        """)
        self.assertEqual([row["phase"] for row in script.recorded.steps], ["decode", "prefill", "none", "none"])

    def test_the_length_of_the_cache_is_what_the_inputs_say_or_not_known(self):
        script = Script("""
            model, lengths = Decoder(), []
            model(ids(1, 1))
            asked = watched().kv_length_of
            watched().kv_length_of = lambda *given: lengths.append(asked(*given)) or lengths[-1]
            Decoder.forward = lambda self, input_ids, start_pos=None, attention_mask=None, past_key_values=None: None
            row = torch.zeros(1, 2, 7, 4)
            for words in ({}, {"start_pos": 5}, {"start_pos": ids(1)}, {"attention_mask": ids(1, 9)}, {"past_key_values": ((row, row),)}):
                model(ids(1, 2), **words)
            model(ids(1, 2), 30)
            for words in ({"start_pos": -100}, {"start_pos": -1}, {"start_pos": 2**64}):
                model(ids(1, 2), **words)
            for past in (), (None, None), (((row, row),) * 2,), ((7, 8),), ((ids(1), ids(1)),):
                model(ids(1, 2), past_key_values=past)
            print(lengths)
        """)
        self.assertIn(f"{[0, 7, 0, 9, 9, 32, *[0] * 8]}\n", script.done.stdout)
        self.assertEqual(len(script.recorded.steps), 1 + 14)

    def test_modules_that_no_rule_knows_have_the_name_they_have_in_the_model(self):
        script = Script("""
            class Strange(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.wobble, self.chain = nn.Linear(8, 8), nn.ModuleList([nn.Linear(8, 8)])
                def forward(self, x):
                    return self.chain[0](self.wobble(x))
            Strange()(torch.zeros(1, 1, 8))
        """)
        self.assertEqual([row["name"] for row in script.recorded.scopes], ["Strange", "wobble", "Strange", "Linear", "Strange"])

    def test_a_module_that_moved_to_another_type_has_other_bytes(self):
        script = Script("""
            model = Decoder()
            model.layers = nn.ModuleList([])
            for _ in range(2):
                model.forward = lambda x: model.embed_tokens(x)
                model(ids(1, 3))
                model.half()
        """)
        self.assertEqual([row["bytes"] for row in script.recorded.scopes if row["name"] == "embedding"], [2 * 3 * 8 * 4, 2 * 3 * 8 * 2])

    def test_a_model_on_another_device_makes_no_recording_that_another_way_in_may_write(self):
        script = Script("""
            model = Decoder()
            for weight in model.parameters():
                weight.device = torch.device("xpu")
            for _ in range(3):
                model(ids(1, 3))
        """ if TORCH != "real" else "print('the look-alike alone can say where it is')")
        self.assertIsNone(script.recorded)
        if TORCH != "real":
            self.assertIn("a model is on the device xpu of this torch: only models on the processor and on CUDA are recorded", script.done.stderr)

    def test_no_model_is_no_recording(self):
        script = Script("print('nothing')")
        self.assertIsNone(script.recorded)
        self.assertIn("no engine was met", script.done.stderr)


class Calls(Case):
    def test_a_module_that_raises_leaves_no_trace_in_what_follows(self):
        script = Script("""
            class Raising(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.up_proj = nn.Linear(8, 8)
                def forward(self, x, times):
                    self.up_proj(x)
                    if times == 0:
                        raise KeyError
                    return x

            class Careful(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.gate_proj, self.inner, self.down_proj = nn.Linear(8, 8), Raising(), nn.Linear(8, 8)
                def fall_back(self, x):
                    return self.down_proj(x)
                def forward(self, x, times=0):
                    self.gate_proj(x)
                    for i in range(2):
                        try:
                            self.inner(x, times)
                        except KeyError:
                            pass
                    return self.fall_back(x)

            model, x = Careful(), torch.zeros(1, 1, 8)
            model(x)
            model(x, 1)
            for _ in range(2):
                try:
                    model.inner(x, 0)
                except KeyError:
                    pass
            model(x, 1)
        """)
        self.assert_no_loss(script)
        whole = ["Careful", "gate_projection", "Careful", "inner", "up_projection", "inner", "Careful", "inner", "up_projection", "inner",
                 "Careful", "down_projection", "Careful"]
        raising = whole
        if TORCH != "lookalike2":  # older torch calls no hook then: it lasts until the next call of a module
            raising = [name for at, name in enumerate(whole) if at not in (6, 10)]
        inner = ["inner", "up_projection", "inner"]
        found = collections.defaultdict(list)
        for row in script.recorded.scopes:
            found[row["step"]].append(row["name"])
        self.assertEqual(list(found.values()), [raising, whole, inner, inner, whole])

    def test_an_interrupted_step_does_not_hold_the_next(self):
        script = Script("""
            model = Decoder()
            working = DecoderLayer.forward
            def interrupted(self, x):
                raise KeyboardInterrupt
            for forward in (interrupted, working):
                DecoderLayer.forward = forward
                try:
                    model(ids(1, 1))
                except KeyboardInterrupt:
                    pass
        """)
        self.assert_no_loss(script)
        self.assertEqual(list(script.steps().values()), [["embedding"], STEP])

    def test_hooks_of_others_are_called_as_without_us_and_may_change_what_goes_in_and_out(self):
        script = Script("""
            model, seen = Decoder(), []
            of_all = torch.nn.modules.module
            handle = of_all.register_module_forward_pre_hook(lambda module, x: seen.append("pre " + type(module).__name__))
            of_all.register_module_forward_hook(lambda module, x, y: seen.append("all " + type(module).__name__))
            model.embed_tokens.register_forward_hook(lambda module, x, y: torch.zeros(1, 9, 8))
            model.lm_head.register_forward_hook(lambda module, x, y: seen.append(tuple(x[0].shape)) or "changed")
            print(model(ids(1, 2)))
            handle.remove()
            print(model(ids(1, 2)), len(seen), *seen)
        """)
        self.assertIn(script.alone().stdout, script.done.stdout)
        self.assertIn("(1, 9, 8)", script.done.stdout)
        self.assertEqual(list(script.steps().values()), [STEP] * 2)
        self.assertEqual({row["flops"] for row in script.recorded.scopes if row["name"] == "qkv_projection"}, {9 * 128})

    def test_a_module_may_be_shared_called_again_and_held_in_a_plain_list(self):
        script = Script("""
            class Odd(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.norm = nn.LayerNorm(8)
                    self.again = self.norm
                    self.hidden = [nn.Linear(8, 8)]
                def forward(self, x):
                    for part in (self.norm, self.again, self.norm, self.hidden[0]):
                        x = part(x)
                    return x
            model = Odd()
            for _ in range(2):
                model(torch.zeros(1, 1, 8))
        """)
        self.assertEqual([row["name"] for row in script.recorded.scopes if row["name"] != "Odd"], (["layer_norm"] * 3 + ["Linear"]) * 2)
        self.assert_no_loss(script)

    def test_a_module_inside_itself_and_far_too_deep_ends_where_it_ends(self):
        script = Script("""
            class Deep(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.up_proj = nn.Linear(8, 8)
                def forward(self, x, depth):
                    return self(x, depth - 1) if depth else self.up_proj(x)
            model = Deep()
            for depth in (3, 100, 1):
                model(torch.zeros(1, 1, 8), depth)
        """)
        self.assertEqual([row["phase"] for row in script.recorded.steps], ["decode"] * 3)
        self.assertEqual([names.count("up_projection") for names in script.steps().values()], [1, 0, 1])

    def test_threads_have_steps_of_their_own(self):
        script = Script("""
            import threading
            models = [Decoder(layers) for layers in (1, 2, 3)]
            def decode(model):
                for position in range(20):
                    model(ids(1, 1), position)
            threads = [threading.Thread(target=decode, args=(model,)) for model in models]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        """)
        self.assert_no_loss(script)
        wanted = {tuple(["embedding", *LAYER * layers, "lm_head"]): 20 for layers in (1, 2, 3)}
        self.assertEqual(collections.Counter(map(tuple, script.steps().values())), wanted)

    def test_a_forked_child_is_off_and_its_parent_goes_on(self):
        script = Script("""
            import os
            model = Decoder()
            model(ids(1, 1))
            class Forking(nn.Linear):
                def forward(self, x):
                    self.child = os.fork()
                    if not self.child:
                        model.layers[0](torch.zeros(1, 1, 8))
                        os._exit(0)
                    os.waitpid(self.child, 0)
                    return x
            model.layers[0].mlp.up_proj = Forking(8, 16)
            model.layers[0].mlp.down_proj = nn.Linear(8, 8)
            model(ids(1, 1))
        """)
        self.assertEqual(list(script.steps().values()), [STEP] * 2)


class Models(Case):
    def test_copies_and_pickles_are_those_of_an_unwatched_model(self):
        script = Script("""
            import copy, pickle
            model = Decoder(1)
            before = pickle.dumps(model)
            model(ids(1, 1))
            text = pickle.dumps(model)
            print(text == before, sorted(vars(model)), *[name for name, _ in model.named_modules()])
            for other in (copy.deepcopy(model), pickle.loads(text)):
                other(ids(1, 2))
        """)
        self.assertIn(script.alone().stdout, script.done.stdout)
        self.assertIn("True [", script.done.stdout)
        self.assertEqual([row["phase"] for row in script.recorded.steps], ["decode", "prefill", "prefill"])

    def test_modules_that_are_gone_are_forgotten_though_their_addresses_come_again(self):
        script = Script("""
            class One(nn.Module):
                def __init__(self, name, part):
                    super().__init__()
                    setattr(self, name, part)
                def forward(self, x):
                    return next(self.children())(x)
            x = torch.zeros(1, 1, 8)
            for i in range(300):
                One("up_proj", nn.Linear(8, 8))(x)
                One("norm", nn.LayerNorm(8))(x)
            import gc
            gc.collect()
            print(len(watched().known) < 10, len(watched().kinds) < 10)
        """)
        self.assertIn("True True\n", script.done.stdout)
        self.assertEqual([row["name"] for row in script.recorded.scopes if row["name"] != "One"], ["up_projection", "layer_norm"] * 300)
        self.assert_no_loss(script)

    def test_modules_that_come_later_are_met(self):
        script = Script("""
            model = Decoder()
            model(ids(1, 1))
            model.layers[1].mlp.up_proj = nn.Linear(8, 16)
            model(ids(1, 1))
        """)
        self.assertEqual(list(script.steps().values()), [STEP] * 2)
        self.assert_no_loss(script)

    def test_a_tensor_of_a_type_of_its_own_is_not_looked_into(self):
        script = Script("""
            class Own(torch.Tensor):
                asked = 0
                @property
                def shape(self):
                    Own.asked += 1
                    return super().shape
            x = Own(1, 1, 8) if hasattr(torch, "manual_seed") else Own((1, 1, 8))
            layer = nn.Linear(8, 8)
            layer.forward = lambda x: x
            layer(x)
            print("asked", Own.asked)
        """)
        self.assertIn("asked 0\n", script.done.stdout)
        self.assertEqual([(row["name"], "bytes" in row) for row in script.recorded.scopes], [("Linear", False)])


class Python(Case):
    """The ways in which Python starts."""

    def test_a_sitecustomize_that_is_there_runs_and_nothing_else_is_seen(self):
        text = "print(sys.path, 'sitecustomize' in sys.modules, [type(finder).__name__ for finder in sys.meta_path], sys.argv)"
        script = Script(text)
        self.assertIn(script.alone().stdout, script.done.stdout)
        theirs = FOLDER / "theirs"
        theirs.mkdir(exist_ok=True)
        (theirs / "sitecustomize.py").write_text("import builtins, sys\nbuiltins.theirs = len(sys.path)\n")
        path = ":".join(filter(None, [str(theirs), CLEAN.get("PYTHONPATH")]))
        script = Script("import sitecustomize\nprint(theirs, sitecustomize.__file__)\n" + text, PYTHONPATH=path)
        self.assertIn(script.alone().stdout, script.done.stdout)
        self.assertIn(str(theirs), script.done.stdout)

    def test_a_sitecustomize_that_fails_is_reported_as_ever_and_torch_still_recorded(self):
        theirs = FOLDER / "failing"
        theirs.mkdir(exist_ok=True)
        (theirs / "sitecustomize.py").write_text("raise KeyError('theirs')\n")
        script = Script("Decoder()(ids(1, 1))", PYTHONPATH=":".join(filter(None, [str(theirs), CLEAN.get("PYTHONPATH")])))
        self.assertIn("KeyError: 'theirs'", script.done.stderr)
        self.assertEqual(list(script.steps().values()), [STEP])

    def test_whoever_asks_for_torch_or_fails_to_load_it_is_answered_as_without_us(self):
        script = Script("""
            import importlib.util
            print(importlib.util.find_spec("torch").origin, torch.__spec__.loader.__dict__, importlib.util.find_spec("torch.nope"))
        """)
        self.assertIn(script.alone().stdout, script.done.stdout)
        broken = FOLDER / "broken"
        (broken / "torch").mkdir(parents=True, exist_ok=True)
        (broken / "torch/__init__.py").write_text("import sys\nif not hasattr(sys, 'again'): raise ImportError('broken')\n")
        command = [PYTHON, "-c", "import sys\ntry:\n import torch\nexcept ImportError as error: print(error)\nsys.again = 1\nimport torch"]
        done = run(PLUMB, FOLDER / "none.plumb", command, {**CLEAN, "PYTHONPATH": str(broken)}, timeout=HANG)
        self.assertEqual((done.returncode, done.stdout), (0, "broken\n"), done.stderr)
        self.assertIn("plumb: torch is not recorded", done.stderr)

    def test_a_process_that_the_script_starts_has_a_recording_of_its_own(self):
        script = Script("""
            import os, subprocess
            Decoder()(ids(1, 1))
            if len(sys.argv) == 1:
                here = dict(os.environ, PLUMB=os.environ["PLUMB"].replace("run.plumb", "child.plumb")) if "PLUMB" in os.environ else None
                subprocess.run([sys.executable, __file__, "child"], env=here, check=True)
        """)
        self.assertEqual(len(Recorded(PLUMB, script.folder / "child.plumb").steps), 1)
        self.assertEqual(script.done.stderr.count("\nrecording "), 2)

    def test_scopes_of_the_script_itself_stand_in_the_same_recording(self):
        package = ":".join(filter(None, [str(SITE), CLEAN.get("PYTHONPATH")]))
        script = Script("""
            import plumb
            sampling = plumb.brick("sampling")
            class Own(Decoder):
                def forward(self, input_ids):
                    with sampling:
                        x = self.embed_tokens(input_ids)
                    return x
            model = Own()
            model(ids(1, 1))
            with sampling: pass
            model(ids(1, 1))
        """, PYTHONPATH=package)
        self.assert_no_loss(script)
        self.assertEqual([row["name"] for row in script.recorded.scopes], ["embedding", "sampling", "embedding"])
        self.assertEqual(len(script.recorded.steps), 2)

    def test_a_program_with_scopes_alone_is_recorded_and_may_ask_for_its_report(self):
        package = ":".join(filter(None, [str(SITE), CLEAN.get("PYTHONPATH")]))
        script = Script("""
            import plumb
            for _ in range(3):
                with plumb.step("decode", tokens=1), plumb.brick("sampling"):
                    pass
            print([row["steps"] for row in plumb.profiler().snapshot()["phases"]])
            plumb.profiler().close()
            with plumb.brick("sampling"):
                pass
        """, PYTHONPATH=package)
        self.assertIn("[3]\n", script.done.stdout)
        self.assertEqual(script.phases(), {"decode": (3, 3)})
        self.assertIn("recording ", script.done.stderr)

    def test_a_recording_in_memory_by_hand_is_described(self):
        path = ":".join([str(SITE / "plumb/_attach"), *filter(None, [CLEAN.get("PYTHONPATH")])])
        script = FOLDER / "by_hand.py"
        script.write_text(MODEL + "Decoder()(ids(1, 1))\n")
        done = subprocess.run([PYTHON, script], capture_output=True, text=True, cwd=FOLDER, timeout=HANG,
                              env={**CLEAN, "PYTHONPATH": path, "PLUMB": "on,out=none,metrics=by_hand.prom"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("not recorded", done.stderr)
        self.assertIn('model_name="Decoder"', (FOLDER / "by_hand.prom").read_text())

    def test_without_the_extension_it_steps_aside_and_says_so(self):
        script = Script("Decoder()(ids(1, 1))", PLUMB_PYTHON="ctypes")
        self.assertIsNone(script.recorded)
        self.assertIn("note  torch is not recorded: the extension", script.done.stderr)


class Cuda(Case):
    """On the GPU of the look-alike, which is the virtual one: what it computes and its generator are as without us."""

    MODEL = """
        class Random(Attention):
            def forward(self, x):
                return self.o_proj(torch.dropout(self.q_proj(x)))

        def made(layers=2):
            model = Decoder(layers)
            for layer in model.layers:
                layer.self_attn = Random()
            for kernel in range(5):  # which nothing loads while a graph is captured
                torch.cuda.launch(kernel, 1)
            return model.cuda()

        def captured(model, x):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                torch.multinomial(model(x))
            return graph

        def replay(graph, times):
            for i in range(times):
                graph.replay()
                if i % 4 == 0:
                    torch.cuda.synchronize()
    """
    RANDOM = ["layer_norm", "qkv_projection", "attention", *LAYER[2:]]  # dropout is time of the attention itself

    def script(self, text, words=(), **environment):
        environment["LOOKALIKE_TORCH_CUDA"] = str(SITE.parent / "lookalike_torch/liblookalike_torch_cuda.so")
        truth = pathlib.Path(tempfile.mkdtemp(dir=FOLDER)) / "truth.tsv"
        script = Script(textwrap.dedent(self.MODEL) + textwrap.dedent(text) + "\nprint('state', *torch.cuda.state())\n", words,
                        VIRTUAL_CUDART_TRUTH=str(truth), **environment)
        script.truth = truth.read_text()
        self.assertRegex(script.done.stdout, r"state \d+ \d+\n")
        self.assertIn(script.alone().stdout, script.done.stdout)
        return script

    def sampled(self, text):
        """A twin is built by a thread of ours, which may come late: with more and more replays, until one was sampled."""
        for times in (400, 1_600, 6_400, 25_600):
            script = self.script(text, [str(times)])
            script.rows = ledger.rows_of(PLUMB, script.recording)
            if script.rows:
                return script, times
        self.fail(f"nothing was sampled in {times} replays: {script.done.stderr}")

    def test_modules_are_scopes_of_the_stream_with_the_times_of_the_gpu(self):
        script = self.script("""
            model = made()
            model(ids(1, 5))
            for position in range(5, 45):
                for _ in range(100):  # the stream is busy when the step begins
                    torch.cuda.launch(2, position)
                model(ids(1, 1), position)
        """, PLUMB="warmup=0,device.every=1")
        self.assert_no_loss(script)
        self.assertEqual(script.phases(), {"prefill": (1, 5), "decode": (40, 40)})
        self.assertEqual(list(script.steps().values()), [STEP] * 41)
        rows = [row for row in script.recorded.scopes if row["name"] in ("lm_head", "qkv_projection")]
        self.assertEqual({(row["name"], row.get("layer")) for row in rows}, {("lm_head", None), ("qkv_projection", 0), ("qkv_projection", 1)})
        for row in rows:  # as long as a product takes there, and what is said to be in it
            self.assertGreaterEqual(row["duration_ns"], 20_000)
            self.assertTrue(row.get("launch_wait") or row["duration_ns"] <= 20_000 + ledger.NEAR_NS, row)
        self.assertTrue(any(not row.get("launch_wait") for row in rows))
        described = {row["key"]: row["value"] for row in script.report()["description"]}
        self.assertEqual((described["device"], described["model"]), ("look-alike GPU 0", "Decoder"))

    def test_what_is_captured_has_bricks_layers_and_times_in_every_replay_that_is_sampled(self):
        script, times = self.sampled("""
            model = made()
            model(ids(1, 5))
            graph = captured(model, ids(1, 1))
            replay(graph, int(sys.argv[1]))
        """)
        phases = script.phases()
        self.assertEqual(phases["prefill"], (1, 5))
        self.assertEqual(sum(row["replays"] for row in ledger.graphs_of(PLUMB, script.recording).values()), times)
        decode = [row for row in script.recorded.steps if row["phase"] == "decode"]
        self.assertEqual(len(decode), times)  # a replay is a step; none is recorded for the capture
        timed = [row for row in script.rows if row["name"] not in ("residual_add", "activation", "Decoder")]
        wanted = ["embedding", *self.RANDOM, *self.RANDOM, "lm_head"]
        self.assertEqual([row["name"] for row in timed], wanted * (len(timed) // len(wanted)))
        self.assertEqual([row.get("layer") for row in timed[:len(wanted)]], [None] + [0] * 6 + [1] * 6 + [None])
        kernels = [line.split("\t") for line in script.truth.splitlines()]
        replays = collections.defaultdict(list)
        for graph, number, start, end, name in kernels:
            if graph != "0" and not name.startswith("plumb_") and name != "multinomial_kernel":  # which lies in no module
                replays[graph, number].append((int(start), int(end)))
        found = ledger.times_are_true(timed, sorted(sorted(kernels) for kernels in replays.values()), lambda row: 1)
        self.assertGreater(found, 0)

    def test_a_step_of_the_program_holds_its_replays(self):
        package = ":".join(filter(None, [str(SITE), CLEAN.get("PYTHONPATH")]))
        script = self.script("""
            import plumb
            model = made()
            graph = captured(model, ids(4, 1))
            graph.replay()
            for _ in range(5):
                with plumb.step("decode", tokens=4, sequences=4):
                    graph.replay()
                    graph.replay()
            with plumb.step("mixed", decode_tokens=1, prefill_tokens=3):
                model(ids(1, 4))
        """, PYTHONPATH=package)
        self.assertEqual([row["phase"] for row in script.recorded.steps], ["decode"] * 6 + ["mixed"])

    def test_modules_on_another_gpu_than_the_current_one_are_left_out(self):
        script = self.script("""
            model = made()
            model.layers[1].cuda(1)
            for position in range(3):
                model(ids(1, 1), position)
        """, PLUMB="warmup=0,device.every=1")
        self.assertEqual(list(script.steps().values()), [["embedding", *LAYER, "lm_head"]] * 3)
        self.assertIn("note  modules on a GPU that is not the current one, on its default stream, are not recorded", script.done.stderr)

    def test_modules_that_moved_are_those_of_the_gpu_from_their_next_call_on(self):
        script = self.script("""
            model = made()
            for weight in model.parameters():
                weight.device = torch.device("cpu")
            model(ids(1, 1))
            model.cuda()
            model(ids(1, 1))
        """, PLUMB="warmup=0,device.every=1")
        tracks = [{row["track"] for row in script.recorded.scopes if row["step"] == step} for step in range(2)]
        self.assertEqual((len(tracks[0]), len(tracks[1])), (1, 1))
        self.assertNotEqual(*tracks)

    def test_an_eager_run_is_not_told_that_nothing_is_recorded(self):
        script = self.script("model = made()\nmodel(ids(1, 1))")
        self.assertNotIn("no CUDA graph was instantiated", script.done.stderr)

    def test_a_graph_that_is_captured_anew_without_a_module_is_no_step(self):
        script = self.script("""
            model = made()
            graph = captured(model, ids(1, 1))
            replay(graph, 2)
            graph.capture_begin()
            torch.cuda.launch(2, 1)
            graph.capture_end()
            replay(graph, 2)
        """)
        self.assertEqual(len(script.recorded.steps), 2)

    def test_a_module_that_raises_in_a_capture_leaves_no_trace(self):
        script = self.script("""
            model = made()
            model(ids(1, 1))
            class Raising(nn.Linear):
                def forward(self, x):
                    raise KeyError
            whole, model.layers[1].mlp.up_proj = model.layers[1].mlp.up_proj, Raising(8, 16).cuda()
            graph = torch.cuda.CUDAGraph()
            graph.capture_begin()
            try:
                model(ids(1, 1))
            except KeyError:
                pass
            graph.capture_end()
            model.layers[1].mlp.up_proj = whole
            model(ids(1, 1))
        """, PLUMB="warmup=0,device.every=1")
        if TORCH == "lookalike2":  # older torch calls no hook then: what is open ends when the capture is over
            self.assert_no_loss(script)
        self.assertEqual(list(script.steps().values()), [STEP] * 2)


@unittest.skipUnless(TORCH == "real", "computes")
class Real(Case):
    def test_a_decoder_gives_the_same_bits_and_its_time_has_names(self):
        recording = FOLDER / "decoder.plumb"
        command = [PYTHON, str(HERE / "torch/decoder.py"), "width=512", "layers=4", "steps=40"]
        alone = subprocess.run(command, capture_output=True, text=True, env=CLEAN, timeout=HANG, check=True)
        done = run(PLUMB, recording, command, CLEAN, timeout=HANG)
        self.assertEqual(done.stdout, alone.stdout, done.stderr)
        steps = Recorded(PLUMB, recording).by_step("decode")
        self.assertEqual(len(steps), 40)
        exact = {"lm_head": 1, "embedding": 1, "qkv_projection": 12, "output_projection": 4, "gate_projection": 4, "up_projection": 4,
                 "down_projection": 4, "rms_norm": 9, "rope_embedding": 8}
        for rows in steps.values():
            calls = collections.Counter(row["name"] for row in rows)
            self.assertEqual({name: calls[name] for name in exact}, exact)
        report = json.loads(subprocess.run([PLUMB, "report", recording, "--json"], capture_output=True, text=True, check=True).stdout)
        coverage = next(row for row in report["phases"] if row["phase"] == "decode")["wall"]["coverage"]
        time = collections.Counter()
        for row in report["bricks"]:
            if row["phase"] == "decode":
                time[row["name"] in ("CausalLM", "model")] += row["time"]["self_ns"]
        named = coverage * time[False] / time.total()
        self.assertGreaterEqual(named, 0.95, coverage)

    def test_what_torch_jit_compiles_or_traces_is_the_same_and_is_one_brick(self):
        script = Script("""
            torch.manual_seed(1)
            model, x = DecoderLayer().eval(), torch.ones(1, 2, 8)
            model(x)
            traced = torch.jit.trace(model, x)
            print(traced.inlined_graph)
            scripted = torch.jit.script(model)
            print(scripted.code, [part(x).sum().item() for part in (model, traced, scripted)])
        """)
        self.assertIn(script.alone().stdout, script.done.stdout)
        self.assertIn("note  DecoderLayer was compiled by torch.jit", script.done.stderr)
        steps = list(script.steps().values())
        self.assertEqual((steps[0], steps[-3:]), (LAYER, [LAYER, ["DecoderLayer"], ["DecoderLayer"]]))

    def test_a_symbolic_trace_is_the_same(self):
        script = Script("""
            import torch.fx
            print(torch.fx.symbolic_trace(DecoderLayer()).code)
            print(torch.fx.Tracer().trace(Decoder()))
        """)
        self.assertIn(script.alone().stdout, script.done.stdout)

    def test_gradients_are_the_same(self):
        script = Script("""
            torch.manual_seed(1)
            model = Decoder()
            model(ids(1, 4)).sum().backward()
            print([weight.grad.sum().item() for weight in model.parameters()])
        """)
        self.assertIn(script.alone().stdout, script.done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
