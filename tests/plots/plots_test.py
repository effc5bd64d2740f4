"""Every script of plots/ on real results: what it draws, what it refuses, and that names stay names.

Run by ctest as `python3 plots_test.py LOCKSTEP`. The scripts run in this process, as if they were called each: an
import of matplotlib takes longer than most figures.
"""

import contextlib
import io
import json
import os
import runpy
import subprocess
import sys
import tempfile
import unittest
import warnings
import xml.etree.ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLOTS = ROOT / "plots"
RESNET = ROOT / "scenarios/resnet50_ddp_2x8_a100.json"
NAME, MACHINE = "ResNet-50 DDP on two DGX A100", "dgx_a100_40gb"
HOSTILE = "$\\frac{a}{ _<b>&\"'\x1b[31m\u202e\u0007]]>--%s{0}"
SHOWN = "$\\frac{a}{ _<b>&\"'\\u001b[31m\\u202e\\u0007]]>--%s{0}"  # as every script prints it

lockstep = ""


def scripts():
    return sorted(file.stem for file in PLOTS.glob("*.py") if "__main__" in file.read_text())


class Called:
    def __init__(self, script, *words):
        """As `python3 plots/SCRIPT.py WORDS...` would run, but for what that costs."""
        told, out = io.StringIO(), io.StringIO()
        before, folder = sys.argv, list(sys.path)
        sys.argv = [f"{script}.py", *map(str, words)]
        sys.path.insert(0, str(PLOTS))
        try:
            with contextlib.redirect_stderr(told), contextlib.redirect_stdout(out), warnings.catch_warnings():
                warnings.simplefilter("error")
                runpy.run_path(str(PLOTS / f"{script}.py"), run_name="__main__")
            self.code = 0
        except SystemExit as end:
            self.code = end.code or 0
        finally:
            sys.argv, sys.path[:] = before, folder
            sys.modules["matplotlib.pyplot"].close("all") if "matplotlib.pyplot" in sys.modules else None
        self.told, self.out = told.getvalue(), out.getvalue()


def words_of(picture):
    """What a picture says: matplotlib writes each text beside its outlines, as a comment."""
    parser = xml.etree.ElementTree.XMLParser(target=xml.etree.ElementTree.TreeBuilder(insert_comments=True))
    tree = xml.etree.ElementTree.fromstring(Path(picture).read_text(encoding="utf-8"), parser)
    return [node.text.strip() for node in tree.iter(xml.etree.ElementTree.Comment)]


def answer(folder, name, *words):
    """What a verb prints with --json, in a file."""
    path = folder / name
    with open(path, "w") as file:
        subprocess.run([lockstep, *map(str, words), "--json", "--quiet"], stdout=file, stderr=subprocess.DEVNULL, check=True)
    return path


class Results:
    """Made once for all tests."""

    def __init__(self, folder):
        self.folder = folder
        self.result = answer(folder, "result.json", "predict", RESNET, "--trace", folder / "trace.json")
        self.trace = folder / "trace.json"
        self.full = answer(folder, "full.json", "predict", RESNET, "--set", "model.batch_per_gpu=2048")
        self.compared = answer(folder, "compared.json", "predict", ROOT / "scenarios/sync_against_async.json")
        self.collective = answer(folder, "collective.json", "collective", "all_reduce", "--machine", MACHINE, "--nodes", 2)
        self.plan = answer(folder, "plan.json", "plan", ROOT / "scenarios/plans/resnet50_rented.json")
        self.runs = answer(folder, "runs.json", "validate", ROOT / "validate/measurements/harness/mlp_2_ranks_1gbit.json")
        self.cases = answer(folder, "cases.json", "validate", ROOT / "validate/measurements/mosaicml_no_anchor.json")
        self.kernels = answer(folder, "kernels.json", "validate", ROOT / "tests/study/kernels")
        self.tables = answer(folder, "tables.json", "validate", ROOT / "validate/measurements/nccl", "--profile", MACHINE)
        self.caps = self.sweep("caps.csv", "training.bucket_cap_mb=1,5,25")
        self.grid = self.sweep("grid.csv", "cluster.nodes=1:16:x2", "training.bucket_cap_mb=1,25")
        self.names = self.sweep("names.csv", "model.precision=fp32,amp_fp16", "cluster.nodes=1,2")
        self.zipped = self.sweep("zipped.csv", "cluster.nodes=1,2,4", "model.batch_per_gpu=256,128,64", "--zip")
        self.schedule = self.pipeline()
        self.trained = self.trained_run()
        self.measured = self.beside_measured()

    def sweep(self, name, *axes):
        path = self.folder / name
        varied = [word for axis in axes for word in ((axis,) if axis.startswith("--") else ("--vary", axis))]
        answer(self.folder, name + ".json", "sweep", RESNET, *varied, "-o", path)
        return path

    def trained_run(self):
        """A recorded run with the losses of three iterations."""
        run = json.loads((ROOT / "validate/measurements/harness/mlp_2_ranks_1gbit.json").read_text())
        run["losses"] = {"bucket_cap_mb": 5, "samples_of_iteration": 128, "loss": [2.4, None, 1.9], "end_s": [0.2, 0.4, 0.6]}
        path = self.folder / "trained.json"
        path.write_text(json.dumps(run))
        return path

    def beside_measured(self):
        """A sweep of which a file measured three cells, without their spread."""
        gloo = ROOT / "validate/measurements/gloo"
        path = self.folder / "measured.csv"
        answer(self.folder, "measured.json", "sweep", gloo / "mlp_n2_1000_quiet.scenario.json", "--vary",
               "training.bucket_cap_mb=1,5,10,25", "--measured", gloo / "mlp_n2_1000_quiet.cases.json", "-o", path)
        return path

    def pipeline(self):
        """What --plot hands to schedule.py, by a plots/schedule.py that keeps it."""
        data = self.folder / "data"
        (data / "plots").mkdir(parents=True)
        path = self.folder / "schedule.json"
        (data / "plots/schedule.py").write_text(f"import sys\nopen({str(path)!r}, 'w').write(sys.stdin.read())\n")
        subprocess.run([lockstep, "predict", ROOT / "scenarios/pipeline_four_stages.json", "--data", data, "--plot",
                        self.folder / "none.svg"], stdout=subprocess.DEVNULL, check=True)
        return path

    def figures(self):
        """Of each script what it is called with, and what its picture must say."""
        named = ("--name", NAME, "--machine", MACHINE)
        return {
            "breakdown": ([self.result], (), [NAME, "forward", "time of one iteration (ms)"]),
            "memory": ([self.result, self.full], (), [NAME, ", does not fit", "what the GPU has", "full"]),
            "timeline": ([self.trace], named, [NAME, "compute", "communication"]),
            "busbw": ([self.collective], ("--measured", self.tables), ["measured", "80 % band", "bus bandwidth (GB/s)"]),
            "scaling": ([self.grid], named, [NAME, "ideal: linear", "efficiency (%)"]),
            "sweep": ([self.caps], (*named, "--measured", self.runs), [NAME, "iteration time (ms)", "bucket_cap_mb (MiB)"]),
            "pareto": ([self.plan], (), ["cost (USD)", "80 % band", "aws_p5_48xlarge"]),
            "error_histogram": ([self.cases], (), ["held out", "cases"]),
            "training_loss": ([self.trained], (), ["mlp, 2 ranks, 1 Gbit/s", "time of training, measured (ms)",
                                                   "loss of the iteration's samples"]),
            "loss": ([self.compared], (), ["ddp", "ps_async", "simulated time (s)"]),
            "schedule": ([self.schedule], (), ["stage 0, GPU 0", "bubble"]),
            "bucket_caps": ([self.runs], (), ["mlp, 2 ranks, 1 Gbit/s", "Measured and predicted on cpu_gloo"]),
            "validate": ([self.cases], (), ["Error of every case", "its 80 % band"]),
            "roofline": ([self.kernels], (), ["measured TFLOP/s", "the data sheet's roof"]),
            "collectives": ([self.tables], (), [MACHINE, "predicted", "measured"]),
        }


class Plots(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.kept.name)
        cls.results = Results(cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def draw(self, script, *words, name="picture.svg"):
        picture = self.folder / name
        picture.unlink(missing_ok=True)
        called = Called(script, *words, picture)
        self.assertEqual((called.code, called.told), (0, ""), script)
        return picture

    def test_every_script_draws_a_result_and_says_of_what(self):
        self.assertEqual(sorted(self.results.figures()), scripts())
        for script, (inputs, options, expected) in self.results.figures().items():
            with self.subTest(script):
                picture = self.draw(script, *options, *inputs)
                said = words_of(picture)
                for word in expected:
                    self.assertTrue(any(word in text for text in said), (word, said))
                first = picture.read_bytes()
                self.assertEqual(self.draw(script, *options, *inputs).read_bytes(), first)

    def test_two_axes_are_panels_names_are_bars_and_axes_that_advance_together_are_one(self):
        said = words_of(self.draw("sweep", self.results.grid))
        self.assertIn("bucket_cap_mb 1", said)
        self.assertIn("bucket_cap_mb 25", said)
        said = words_of(self.draw("sweep", self.results.names))
        self.assertIn("nodes 2", said)
        self.assertIn("amp_fp16", said)
        self.assertIn("2, 128", words_of(self.draw("sweep", self.results.zipped)))

    def test_an_axis_that_does_not_begin_at_zero_is_marked(self):
        said = words_of(self.draw("sweep", self.results.caps))
        self.assertIn("iteration time (ms), axis cut", said)
        self.assertNotIn("iteration time (ms), axis cut", words_of(self.draw("sweep", self.results.names)))

    def test_what_is_measured_is_drawn_over_bucket_caps_alone(self):
        called = Called("sweep", "--measured", self.results.runs, self.results.grid, self.folder / "x.svg")
        self.assertEqual(called.code, 2)
        self.assertIn("cluster.nodes", called.told)

    def test_what_a_table_holds_as_measured_is_drawn_beside(self):
        said = words_of(self.draw("sweep", "--measured-by", "cases.json", self.results.measured))
        self.assertIn("measured: cases.json", said)
        self.assertNotIn("measured", " ".join(words_of(self.draw("sweep", self.results.caps))))

    def test_runs_are_curves_of_one_figure_and_one_without_losses_is_refused(self):
        other = self.renamed(self.results.trained, lambda run: run.update(name="another"))
        said = words_of(self.draw("training_loss", self.results.trained, other))
        self.assertIn("Loss of measured runs", said)
        self.assertIn("another", said)
        for change in (lambda run: run.pop("losses"), lambda run: run["losses"].update(loss=[1.0]),
                       lambda run: run["losses"].update(loss=[None, None, None])):
            called = Called("training_loss", self.renamed(self.results.trained, change), self.folder / "x.svg")
            self.assertEqual((called.code, called.told.count("\n")), (2, 1), called.told)

    def test_what_nccl_tests_printed_is_drawn_beside_the_prediction(self):
        log = self.folder / "all_reduce.log"
        log.write_text("# nThread 1 nGpus 8\n#  size count type redop root time algbw busbw #wrong\n"
                       "  1048576  262144  float  sum  -1  60.1  17.4  32.7  0  59.8  17.5  32.9  0\n"
                       "# Avg bus bandwidth : 32.8\n")
        self.assertIn("measured", words_of(self.draw("busbw", "--measured", log, self.results.collective)))
        log.write_text("# nothing\n")
        called = Called("busbw", "--measured", log, self.results.collective, self.folder / "x.svg")
        self.assertEqual((called.code, called.told.count("\n")), (2, 1))

    def test_each_script_tells_its_options(self):
        for script in scripts():
            called = Called(script, "--help")
            self.assertEqual(called.code, 0)
            self.assertIn("FILE.svg", called.out)

    def test_wrong_input_is_refused_in_one_line_and_nothing_is_written(self):
        wrong = {"empty": b"", "half": b'{"schema": "lockstep.result/1", "na', "nothing": b"{}", "list": b"[1]",
                 "bytes": b"\xff\xfe\x00\x01", "deep": b"[" * 100_000,
                 "other": b'{"schema": "lockstep.else/1", "cases": 7, "stages": 3, "traceEvents": "x"}'}
        for name, content in wrong.items():
            (self.folder / name).write_bytes(content)
        for script in scripts():
            for name in (*wrong, "missing", "."):
                with self.subTest(script=script, input=name):
                    called = Called(script, self.folder / name, self.folder / "none.svg")
                    self.assertEqual(called.code, 2)
                    self.assertEqual(called.told.count("\n"), 1, called.told)
                    self.assertFalse((self.folder / "none.svg").exists())

    def test_an_output_is_svg_or_png_can_be_written_and_is_no_input(self):
        result = self.results.result
        self.assertEqual(Called("breakdown", result, self.folder / "x.pdf").code, 2)
        self.assertEqual(Called("breakdown", result, self.folder / "no/folder/x.svg").code, 74)
        copy = self.folder / "copy.svg"
        copy.write_bytes(result.read_bytes())
        self.assertEqual(Called("breakdown", copy, copy).code, 2)
        self.assertEqual(copy.read_bytes(), result.read_bytes())
        self.assertEqual([file for file in os.listdir(self.folder) if file.endswith(".tmp")], [])

    def test_names_that_begin_like_options_are_files_behind_two_dashes(self):
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            Path("-result.json").write_bytes(self.results.result.read_bytes())
            called = Called("breakdown", "--", "-result.json", "-picture.png")
            self.assertEqual((called.code, called.told), (0, ""))
            self.assertTrue(Path("-picture.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n"))
        finally:
            os.chdir(before)

    def test_every_verb_that_draws_names_the_scenario_and_its_machine(self):
        scenarios = ROOT / "scenarios"
        verbs = {("predict", RESNET): [NAME, MACHINE],
                 ("predict", scenarios / "pipeline_four_stages.json"): ["Four stages", "dgx_a100_80gb"],
                 ("predict", scenarios / "sync_against_async.json"): ["Synchronous against", "p100_4gpu_25gbe"],
                 ("sweep", RESNET, "--vary", "training.bucket_cap_mb=1,25", "-o", self.folder / "-.csv"): [NAME, MACHINE],
                 ("collective", "all_reduce", "--machine", MACHINE, "-e", "1M"): ["all_reduce", MACHINE],
                 ("plan", scenarios / "plans/resnet50_rented.json"): ["ResNet-50, 90 epochs", "aws_p5_48xlarge"],
                 ("validate", ROOT / "validate/measurements/mosaicml_no_anchor.json"): ["Predicted against", "on a100"]}
        picture = self.folder / "verb.svg"
        for verb, expected in verbs.items():
            with self.subTest(verb[0]):
                picture.unlink(missing_ok=True)
                subprocess.run([lockstep, *map(str, verb), "--plot", picture], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, check=True)
                said = " ".join(words_of(picture))
                for word in expected:
                    self.assertIn(word, said)

    def renamed(self, path, change):
        document = json.loads(path.read_text())
        change(document)
        hostile = self.folder / "hostile.json"
        hostile.write_text(json.dumps(document))
        return hostile

    def test_names_of_strangers_are_drawn_as_they_are(self):
        def result(document):
            document["name"] = document["scenario"]["cluster"]["machine"]["name"] = HOSTILE

        def compared(document):
            result(document)
            document["comparison"][0]["strategy"] = "_" + HOSTILE

        def validation(document):
            for case in document["cases"]:
                case["group"] = case["machine"] = HOSTILE
            document["groups"] = [{**document["groups"][0], "group": HOSTILE}]

        def plan(document):
            document["name"] = HOSTILE
            for entry in document["plans"]:
                entry["machine"] = "_" + HOSTILE

        changes = {"breakdown": result, "memory": result, "loss": compared, "validate": validation,
                   "error_histogram": validation, "pareto": plan,
                   "training_loss": lambda document: document.update(name=HOSTILE),
                   "schedule": lambda document: document.update(name=HOSTILE, machine=HOSTILE),
                   "busbw": lambda document: document.update(machine=HOSTILE)}
        for script, change in changes.items():
            with self.subTest(script):
                inputs, _, _ = self.results.figures()[script]
                said = words_of(self.draw(script, self.renamed(inputs[0], change)))
                self.assertTrue(any(SHOWN[:12] in text.replace("- -", "--") for text in said), said)
        self.draw("sweep", f"--name={HOSTILE}", "--machine=--help", self.results.caps)


if __name__ == "__main__":
    lockstep = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
