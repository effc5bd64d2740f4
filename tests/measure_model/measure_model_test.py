"""measure_model.py with the PyTorch of this machine: what it measures is what `predict`, `validate` and `import` take.

Run by ctest as `python3 measure_model_test.py LOCKSTEP`, alone on the machine, where some python3 has torch.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "validate/measure_model.py"
FEW = ["--steps", "5", "--warm-up", "2"]

# Trained: 4 x 3 + 4 and 2 x 4 elements; frozen: 3 x 2 + 2, in front of them.
FROZEN_MODEL = """
import torch
from torch import nn

def build():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4), nn.Linear(4, 2, bias=False))
    model[0].requires_grad_(False)
    inputs = torch.randn(8, 2)
    return model, lambda model: model(inputs).square().mean()
"""

lockstep = ""


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, check=False)


def measure(*words):
    return run(sys.executable, "-B", SCRIPT, *words)


def microseconds(text):
    value, unit = text.split()
    assert unit == "us", text
    return float(value)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class MeasureModel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def answered(self, answer):
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return answer.stdout

    def measured(self, model):
        scenario = self.folder / "scenario.json"
        self.assertEqual(self.answered(measure(model, *FEW, "-o", scenario)), "")
        return json.loads(scenario.read_text())["model"]["measured"], scenario

    def test_examples_are_measured_and_predicted(self):
        # Linear layers of 1,024; three convolutions, their norms and a head; four encoder layers between embedding and head.
        encoder = 4 * (4 * (256 * 256 + 256) + 2 * 256 * 1024 + 1024 + 256 + 4 * 256)
        elements = {"mlp": 4 * (1024 * 1024 + 1024),
                    "cnn": sum(9 * i * o + 3 * o for i, o in ((3, 32), (32, 64), (64, 128))) + 2048 * 10 + 10,
                    "transformer": 4096 * 256 + encoder + 256 * 4096 + 4096}
        for model, expected in elements.items():
            with self.subTest(model=model):
                measured, scenario = self.measured(model)
                self.assertEqual(sum(p["elements"] for p in measured["parameters"]), expected)
                ready = [microseconds(p["gradient_ready"]) for p in measured["parameters"]]
                backward = microseconds(measured["backward"])
                self.assertTrue(all(0 < time <= backward for time in ready))
                self.assertGreater(ready[0], ready[-1])  # autograd goes from the last layer to the first
                alone = sum(microseconds(measured[part]) for part in ("forward", "backward", "optimizer"))
                predicted = json.loads(self.answered(run(lockstep, "predict", scenario, "--json", "--set",
                                                         "training.strategy=single", "--set", "cluster.nodes=1")))
                self.assertAlmostEqual(predicted["iteration_time_s"] * 1e6, alone, delta=0.01 * alone)

    def test_a_model_of_ones_own_without_what_is_frozen(self):
        (self.folder / "mine.py").write_text(FROZEN_MODEL)
        measured, _ = self.measured(f"{self.folder / 'mine.py'}:build")
        self.assertEqual([(p["name"], p["elements"], p["dtype"]) for p in measured["parameters"]],
                         [("1.weight", 12, "fp32"), ("1.bias", 4, "fp32"), ("2.weight", 8, "fp32")])

    def test_two_ranks_are_timed_traced_and_predicted(self):
        port = str(free_port())
        files = {name: self.folder / name for name in ("trace.json.gz", "cases.json", "scenario.json", "run.json")}
        words = [sys.executable, "-B", str(SCRIPT), "mlp", *FEW, "--ddp", "--traced-steps", "3",
                 "--trace", str(files["trace.json.gz"]), "--measurements", str(files["cases.json"]),
                 "-o", str(files["scenario.json"])]
        shared = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        ranks = [subprocess.Popen(words, env={**shared, "RANK": str(rank)}, stderr=subprocess.PIPE, text=True)
                 for rank in range(2)]
        for rank in ranks:
            self.addCleanup(rank.kill)
        for rank in ranks:
            _, told = rank.communicate(timeout=300)
            self.assertEqual(rank.returncode, 0, told)
        validated = json.loads(self.answered(run(lockstep, "validate", files["cases.json"], "--json")))
        case, = validated["cases"]
        self.assertGreater(case["measured"], 0)
        self.assertGreater(case["predicted"], 0)
        self.answered(run(lockstep, "import", "kineto", files["trace.json.gz"], "--set", "cluster.machine=cpu_gloo",
                          "--set", "cluster.nodes=2", "-o", files["run.json"]))
        imported = json.loads(files["run.json"].read_text())["model"]["measured"]
        self.assertEqual(sum(p["elements"] for p in imported["parameters"]), 4 * (1024 * 1024 + 1024))
        self.answered(run(lockstep, "predict", files["run.json"]))

    def test_wrong_use_is_told(self):
        (self.folder / "mine.py").write_text(FROZEN_MODEL)
        for model, told in (("mpl", "expected mlp, cnn, transformer or FILE.py:FUNCTION"),
                            ("nowhere.py:build", "expected mlp, cnn, transformer or FILE.py:FUNCTION"),
                            (f"{self.folder / 'mine.py'}:bild", "has no function bild")):
            with self.subTest(model=model):
                answer = measure(model)
                self.assertEqual((answer.returncode, answer.stdout), (2, ""))
                self.assertIn(told, answer.stderr)
                self.assertNotIn("Traceback", answer.stderr)


if __name__ == "__main__":
    lockstep = sys.argv.pop(1)
    unittest.main(argv=[sys.argv[0]], verbosity=2)
