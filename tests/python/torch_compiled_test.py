# SPDX-License-Identifier: Apache-2.0
"""What becomes of a recording when a script calls torch.compile, on the look-alike of PyTorch 2. Arguments: as of torch_test.py."""

import os
import sys
import unittest

from torch_test import CLEAN, SITE, STEP, Case, Script


class Compiled(Case):
    def test_the_hooks_go_before_the_compiler_comes(self):
        script = Script("""
            model = Decoder()
            model(ids(1, 1))
            torch.compile(model)(ids(1, 1))
            print(*torch.compiled[0][1:], torch.compile.__name__)
        """)
        self.assertIn("0 0 compile\n", script.done.stdout)
        self.assertIn("note  torch.compile was called", script.done.stderr)
        self.assertEqual(list(script.steps().values()), [STEP])

    def test_what_is_open_when_the_compiler_comes_holds_nothing_that_follows(self):
        script = Script("""
            import threading, plumb
            class Lazy(Decoder):
                def forward(self, input_ids):
                    x = self.embed_tokens(input_ids)
                    torch.compile(lambda: None)
                    return self.lm_head(x)
            reached, compiled = threading.Event(), threading.Event()
            class Waiting(Decoder):
                def forward(self, input_ids):
                    reached.set()
                    compiled.wait()
            def other():
                Waiting()(ids(1, 1))
                print("open", plumb._core._is_open())
            Decoder()(ids(1, 1))
            thread = threading.Thread(target=other)
            thread.start()
            reached.wait()
            Lazy()(ids(1, 1))
            print("open", plumb._core._is_open())
            compiled.set()
            thread.join()
            for _ in range(5):
                with plumb.brick("sampling"):
                    pass
        """, PYTHONPATH=os.pathsep.join([str(SITE), CLEAN["PYTHONPATH"]]))
        self.assertEqual(script.done.stdout.count("open False\n"), 2, script.done.stdout)
        own = [row for row in script.recorded.scopes if row["name"] == "sampling"]
        self.assertEqual([(row.get("step"), row.get("layer")) for row in own], [(None, None)] * 5)
        self.assertEqual(script.phases(), {"decode": (1, 1)})  # those that it cut are counted, not timed
        losses = {loss["reason"]: loss["count"] for loss in script.report()["losses"]}
        self.assertEqual(sum(count for reason, count in losses.items() if "cut short" in reason), 2, losses)

    def test_a_script_that_compiles_before_its_first_model_loses_nothing(self):
        script = Script("""
            import plumb
            with plumb.step("decode", tokens=1), plumb.brick("sampling"):
                torch.compile(lambda: None)
        """, PYTHONPATH=os.pathsep.join([str(SITE), CLEAN["PYTHONPATH"]]))
        self.assert_no_loss(script)
        self.assertEqual(script.phases(), {"decode": (1, 1)})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
