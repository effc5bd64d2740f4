#!/usr/bin/env python3
"""Measures one training step of any nn.Module and prints it as a scenario that `lockstep predict` takes as it is.

  validate/measure_model.py mlp                                  an example: mlp, cnn or transformer
  validate/measure_model.py my_model.py:build -o scenario.json   FILE.py:FUNCTION, of your own
  torchrun --nproc-per-node 8 validate/measure_model.py my_model.py:build --ddp --trace trace.json.gz \\
      --machine dgx_h100 --nodes 1 --gpus-per-node 8 -o scenario.json --measurements cases.json

FUNCTION() returns the model and a function that takes the model and returns the loss of one batch:

  def build():
      model, images, labels = torchvision.models.resnet50().cuda(), torch.randn(64, 3, 224, 224).cuda(), ...
      return model, lambda model: torch.nn.functional.cross_entropy(model(images), labels)

What is measured: forward, backward and optimizer, medians of --steps steps after --warm-up; when each parameter's
gradient is ready, by hooks on autograd's nodes, scaled to backward without hooks; on a GPU by events on its stream.
--ddp wraps the model in DistributedDataParallel, times whole iterations on all ranks (RANK, WORLD_SIZE, MASTER_ADDR
and MASTER_PORT as torchrun sets them) and writes them as a case for `lockstep validate`. --trace records some of both
kinds of step with torch.profiler on rank 0, with a mark for every gradient, for `lockstep import kineto`.
Needs PyTorch 1.10 or later and nothing else.
"""
import argparse
import contextlib
import gzip
import importlib.util
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed
import torch.profiler
from torch import nn

DTYPES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.float64: "fp64"}
OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=1e-4),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=1e-4, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-5),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-5),
}


def mlp():
    width, batch = 1024, 512
    layers = [layer for _ in range(4) for layer in (nn.Linear(width, width), nn.ReLU())]
    inputs = torch.randn(batch, width)
    return nn.Sequential(*layers), lambda model: model(inputs).square().mean()


def cnn():
    channels = [3, 32, 64, 128]
    layers = [layer for i, o in zip(channels, channels[1:])
              for layer in (nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(2))]
    images, labels = torch.randn(32, 3, 32, 32), torch.randint(10, (32,))
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 4 * 4, 10))
    return model, lambda model: nn.functional.cross_entropy(model(images), labels)


def transformer():
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
    tokens, targets = torch.randint(4096, (4, 128)), torch.randint(4096, (4 * 128,))
    model = nn.Sequential(nn.Embedding(4096, 256), nn.TransformerEncoder(layer, 4), nn.Linear(256, 4096))
    return model, lambda model: nn.functional.cross_entropy(model(tokens).flatten(0, 1), targets)


def refuse(problem):
    print(f"measure_model: {problem}", file=sys.stderr)
    sys.exit(2)


def find_builder(name):
    if name in ("mlp", "cnn", "transformer"):
        return globals()[name]
    path, _, function = name.partition(":")
    if not function or not os.path.isfile(path):
        refuse(f"{name}: expected mlp, cnn, transformer or FILE.py:FUNCTION")
    spec = importlib.util.spec_from_file_location("measured_model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not callable(getattr(module, function, None)):
        refuse(f"{path} has no function {function}")
    return getattr(module, function)


class Clock:
    """Marks on the device's own line of time."""

    def __init__(self, device):
        self.is_gpu = device.type == "cuda"

    def mark(self):
        if not self.is_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def wait(self):
        if self.is_gpu:
            torch.cuda.synchronize()

    def seconds(self, first, last):
        return first.elapsed_time(last) / 1e3 if self.is_gpu else last - first


class Gradients:
    """Hooks that tell when each parameter's gradient is there: before a wrapper's own, if they are set before it."""

    def __init__(self, model, tell):
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self.nodes = [p.expand_as(p).grad_fn.next_functions[0][0] for _, p in named]
        self.handles = [node.register_hook(lambda *_, i=i, n=name, p=p: tell(i, n, p))
                        for i, (node, (name, p)) in enumerate(zip(self.nodes, named))]

    def remove(self):
        for handle in self.handles:
            handle.remove()


class Measurement:
    def __init__(self, model, loss_of, arguments):
        self.model, self.loss_of, self.arguments = model, loss_of, arguments
        self.parameters = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self.optimizer = OPTIMIZERS[arguments.optimizer](model.parameters())
        self.clock = Clock(self.parameters[0][1].device)
        self.is_recording = False

    def step(self, model):
        """The four marks of a step."""
        begin = self.clock.mark()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss_of(model)
        forward = self.clock.mark()
        loss.backward()
        backward = self.clock.mark()
        self.optimizer.step()
        return begin, forward, backward, self.clock.mark()

    def steps(self, model, count, before=lambda: None):
        """Seconds of forward, backward, optimizer and the whole, a row a step."""
        rows = []
        for _ in range(count):
            before()
            marks = self.step(model)
            self.clock.wait()
            rows.append([self.clock.seconds(a, b) for a, b in zip(marks, marks[1:])]
                        + [self.clock.seconds(marks[0], marks[-1])])
        return rows

    def ready_times(self):
        """Seconds from the start of backward to each gradient, and of that backward; medians."""
        ready, backwards = [[] for _ in self.parameters], []
        marks = {}
        gradients = Gradients(self.model, lambda i, *_: marks.__setitem__(i, self.clock.mark()))
        for i in range(self.arguments.warm_up + self.arguments.steps):
            marks.clear()
            _, start, end, _ = self.step(self.model)
            self.clock.wait()
            if i >= self.arguments.warm_up:
                backwards.append(self.clock.seconds(start, end))
                for index, mark in marks.items():
                    ready[index].append(self.clock.seconds(start, mark))
        gradients.remove()
        return [statistics.median(times) if times else None for times in ready], statistics.median(backwards)

    def alone(self):
        """The model by itself, as the scenario's `measured`."""
        self.steps(self.model, self.arguments.warm_up)
        forward, backward, optimizer, _ = map(statistics.median, zip(*self.steps(self.model, self.arguments.steps)))
        ready, hooked = self.ready_times()
        parameters = [{"name": name, "elements": p.numel(), "dtype": DTYPES[p.dtype],
                       "gradient_ready": microseconds(min(time * backward / hooked, backward))}
                      for (name, p), time in zip(self.parameters, ready) if time is not None]
        return {"forward": microseconds(forward), "backward": microseconds(backward),
                "optimizer": microseconds(optimizer), "parameters": parameters}

    def tell_trace(self, index, name, p):
        if self.is_recording:
            mark = f"lockstep::gradient_ready {index} {DTYPES[p.dtype]} {p.numel()} {name}"
            with torch.profiler.record_function(mark):
                pass

    def record(self, wrapped, path):
        """A trace of steps under no_sync(), then of steps that reduce; every rank does them, those with a path write."""
        activities = [torch.profiler.ProfilerActivity.CPU]
        if self.clock.is_gpu:
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        count = self.arguments.traced_steps
        steps = 1 + count * (2 if wrapped else 1)
        schedule = torch.profiler.schedule(wait=0, warmup=1, active=steps - 1, repeat=1)
        self.is_recording = True
        with torch.profiler.profile(activities=activities, schedule=schedule, record_shapes=True) as profiler:
            for i in range(steps):
                with wrapped.no_sync() if wrapped and i <= count else contextlib.nullcontext():
                    self.step(wrapped or self.model)
                profiler.step()
        self.is_recording = False
        if path:
            write_trace(profiler, path)


def microseconds(seconds):
    return f"{seconds * 1e6:.3f} us"


def write_trace(profiler, path):
    if torch.autograd.kineto_available():
        profiler.export_chrome_trace(path)
        return
    # A build without Kineto leaves shapes out of its own export: the same events, in Kineto's form.
    events = profiler.profiler.kineto_results.events()
    first = min(event.start_us() for event in events)
    rows = []
    for event in events:
        arguments = {"External id": event.correlation_id()}
        if event.shapes():
            arguments["Input Dims"], arguments["Input type"] = event.shapes(), event.dtypes()
        if event.sequence_nr() >= 0:
            arguments["Fwd thread id"] = event.fwd_thread_id()
            arguments["Sequence number"] = event.sequence_nr()
        rows.append({"ph": "X", "cat": "user_annotation" if event.scope() == 7 else "cpu_op", "name": event.name(),
                     "pid": 1, "tid": event.start_thread_id(), "ts": event.start_us() - first,
                     "dur": event.duration_us(), "args": arguments})
    trace = {"schemaVersion": 1, "traceEvents": rows}
    if torch.distributed.is_initialized():
        trace["distributedInfo"] = {"backend": torch.distributed.get_backend(),
                                    "rank": torch.distributed.get_rank(),
                                    "world_size": torch.distributed.get_world_size()}
    with (gzip.open if path.endswith(".gz") else open)(path, "wt") as file:
        json.dump(trace, file)


def wrap(measurement, arguments):
    device = measurement.parameters[0][1].device
    return nn.parallel.DistributedDataParallel(
        measurement.model, device_ids=[device.index] if device.type == "cuda" else None,
        bucket_cap_mb=arguments.bucket_cap_mb)


def scenario_of(measured, arguments):
    cluster = {"machine": arguments.machine, "nodes": arguments.nodes}
    if arguments.gpus_per_node:
        cluster["gpus_per_node"] = arguments.gpus_per_node
    if arguments.machine.endswith(".json"):
        with open(arguments.machine) as file:
            cluster["machine"] = json.load(file)
    training = {"strategy": "ddp", "framework": "pytorch_ddp",
                "framework_version": ".".join(torch.__version__.split(".")[:2]),
                "bucket_cap_mb": arguments.bucket_cap_mb, "optimizer": arguments.optimizer}
    return {"name": arguments.name or f"{os.path.basename(arguments.model)}, measured by PyTorch", "cluster": cluster,
            "model": {"measured": measured}, "training": training}


def cases_of(scenario, rows, arguments):
    times = sorted(row[3] for row in rows)
    low, high = times[len(times) // 10], times[-1 - len(times) // 10]
    note = (f"median of {len(times)} iterations of rank 0, 10th to 90th percentile "
            f"{low * 1e3:.1f} to {high * 1e3:.1f} ms")
    return {"schema": "lockstep.measurements/1",
            "source": f"validate/measure_model.py --ddp, PyTorch {torch.__version__}; {note}", "split": "heldout",
            "cases": [{"name": f"{scenario['name']}, {arguments.bucket_cap_mb} MiB buckets",
                       "group": "measure_model.py", "scenario": scenario,
                       "measured": {"iteration_time_s": round(statistics.median(times), 6)}}]}


def write_json(document, path):
    text = json.dumps(document, indent=1) + "\n"
    if not path:
        sys.stdout.write(text)
        return
    with open(path, "w") as file:
        file.write(text)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="mlp, cnn, transformer or FILE.py:FUNCTION")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=5)
    parser.add_argument("--traced-steps", type=int, default=6, help="of each kind")
    parser.add_argument("--threads", type=int, default=1, help="of each rank, on a CPU")
    parser.add_argument("--optimizer", choices=sorted(OPTIMIZERS), default="sgd")
    parser.add_argument("--bucket-cap-mb", type=float, default=25)
    parser.add_argument("--machine", help="a machine of `lockstep list machines`, or a JSON file; cpu_gloo on a CPU")
    parser.add_argument("--nodes", type=int, default=None)
    parser.add_argument("--gpus-per-node", type=int, default=None)
    parser.add_argument("--name")
    parser.add_argument("--ddp", action="store_true", help="time DistributedDataParallel as well; one process a rank")
    parser.add_argument("--trace", help="FILE.json[.gz] for torch.profiler's trace, of rank 0")
    parser.add_argument("--measurements", help="FILE.json for the measured iteration, with --ddp")
    parser.add_argument("-o", "--output", help="FILE.json for the scenario; left out: it is printed")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    model, loss_of = find_builder(arguments.model)()
    measurement = Measurement(model, loss_of, arguments)
    if arguments.machine is None:
        if measurement.clock.is_gpu:
            refuse("state --machine, one of `lockstep list machines`, and --nodes")
        arguments.machine = "cpu_gloo"
    rank = 0
    if arguments.ddp:
        torch.distributed.init_process_group("nccl" if measurement.clock.is_gpu else "gloo")
        rank = torch.distributed.get_rank()
        torch.distributed.barrier()
    ranks = torch.distributed.get_world_size() if arguments.ddp else 2
    arguments.nodes = arguments.nodes or max(1, ranks // (arguments.gpus_per_node or 1))
    scenario = scenario_of(measurement.alone(), arguments)
    wrapped = None
    marks = Gradients(model, measurement.tell_trace) if arguments.trace else None  # before the wrapper's own hooks
    if arguments.ddp:
        wrapped = wrap(measurement, arguments)
        measurement.steps(wrapped, arguments.warm_up)
        rows = measurement.steps(wrapped, arguments.steps, before=torch.distributed.barrier)
        if rank == 0 and arguments.measurements:
            write_json(cases_of(scenario, rows, arguments), arguments.measurements)
    if marks:
        measurement.record(wrapped, arguments.trace if rank == 0 else None)
        marks.remove()
    if rank == 0:
        write_json(scenario, arguments.output)


if __name__ == "__main__":
    main()
