#!/usr/bin/env python3
"""Measures training steps of models that Lockstep ships, in PyTorch on one GPU, as cases for `lockstep validate`.

  validate/measure_steps.py -o steps.json                   every setting that fits, most telling first
  validate/measure_steps.py -o steps.json --seconds 60      what a minute holds
  validate/measure_steps.py -o steps.json --resume          goes on: what steps.csv holds is not measured again
  validate/measure_steps.py --list                          the settings; needs no GPU
  build/lockstep validate steps.json                        predicted against measured, nothing anchored

Models are torchvision's and transformers' own classes, those that are installed; weights and samples are drawn, not
read. A step is zero_grad, forward, loss, backward and the optimizer (SGD with momentum for images, AdamW for tokens);
`iteration_time_s` is the median of five rows of steps between two synchronisations, divided by their number, as a
training loop runs them. `memory_bytes` is what PyTorch had allocated at most. Beside the cases steps.csv says what the
host and the kernels took of each step. On an H200 a setting takes 4 to 5 seconds, most of them to begin.
What does not fit the GPU, or fails, is said and left out. Exit codes: 0, 2 wrong use, 4 no GPU or no PyTorch.
"""
import argparse
import csv
import gc
import json
import os
import pathlib
import statistics
import sys
import time

PROFILES = pathlib.Path(__file__).resolve().parent.parent / "hw_profiles" / "gpus"
COLUMNS = ["gpu", "model", "precision", "memory_format", "batch", "sequence", "optimizer", "step_s", "step_low_s",
           "step_high_s", "host_s", "kernels", "busy_s", "memory_bytes"]

# Batches of one model and precision: one that leaves the GPU waiting for its host, one that fills it.
IMAGES = {"resnet50": (8, 128), "efficientnet_b0": (8, 128), "vit_b_16": (8, 64), "resnet18": (8, 256),
          "efficientnet_b4": (4, 32), "densenet121": (8, 64), "vgg16": (8, 64), "resnet152": (8, 64),
          "inception_v3": (8, 64), "resnext101_32x8d": (4, 32), "alexnet": (16, 512)}
PIXELS = {"efficientnet_b4": 380, "inception_v3": 299}
# Name: sequence, batches.
TOKENS = {"gpt2": (1024, (1, 16)), "bert_large": (512, (2, 16)), "gpt2_medium": (1024, (2, 8)),
          "bert_base": (128, (4, 64)), "llama3_8b": (2048, (1, 2))}


def batches(model):
    return IMAGES[model] if model in IMAGES else TOKENS[model][1]


def settings():
    """(model, precision, memory format, batch) of every step, most telling first: those that fill the GPU."""
    words = [model for model in TOKENS if model != "llama3_8b"]
    groups = [("amp_bf16", "contiguous", words), ("amp_fp16", "channels_last", list(IMAGES)),
              ("bf16", "contiguous", ["llama3_8b"]), ("fp32", "contiguous", [*IMAGES, *words]),
              ("tf32", "contiguous", [*IMAGES, *words]),
              ("amp_fp16", "contiguous", ["resnet50", "efficientnet_b0", "efficientnet_b4"])]
    return [(model, precision, memory_format, batches(model)[of_batch]) for of_batch in (1, 0)
            for precision, memory_format, models in groups for model in models]


def refuse(problem, code):
    print(f"measure_steps: {problem}", file=sys.stderr)
    sys.exit(code)


def gpu_profile(device_name):
    """The name of the shipped profile that lists this device among its own."""
    for path in sorted(PROFILES.glob("*.json")):
        profile = json.loads(path.read_text())
        if device_name in profile.get("also_known_as", []):
            return profile["name"]
    return None


def image_step(torch, name, batch):
    import torchvision
    with torch.device("cuda"):
        model = getattr(torchvision.models, name)(weights=None)
    pixels = PIXELS.get(name, 224)
    images = torch.randn(batch, 3, pixels, pixels, device="cuda")
    labels = torch.randint(1000, (batch,), device="cuda")

    def loss_of():
        outputs = model(images)
        loss = torch.nn.functional.cross_entropy(getattr(outputs, "logits", outputs), labels)
        if hasattr(outputs, "aux_logits"):
            loss = loss + 0.4 * torch.nn.functional.cross_entropy(outputs.aux_logits, labels)
        return loss
    return model, images, loss_of


def token_model(name):
    import transformers
    if name.startswith("gpt2"):
        layers, hidden, heads = {"gpt2": (12, 768, 12), "gpt2_medium": (24, 1024, 16)}[name]
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=layers, n_embd=hidden, n_head=heads))
    if name.startswith("bert"):
        layers, hidden, heads = {"bert_base": (12, 768, 12), "bert_large": (24, 1024, 16)}[name]
        return transformers.BertForMaskedLM(transformers.BertConfig(
            num_hidden_layers=layers, hidden_size=hidden, num_attention_heads=heads, intermediate_size=4 * hidden))
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=8, rope_theta=500000.0, max_position_embeddings=8192, use_cache=False))


def token_step(torch, name, batch):
    with torch.device("cuda"):
        model = token_model(name).train()
    tokens = torch.randint(model.config.vocab_size, (batch, TOKENS[name][0]), device="cuda")
    return model, tokens, lambda: model(input_ids=tokens, labels=tokens).loss


class Step:
    """One setting, ready to run."""

    def __init__(self, torch, setting):
        self.torch = torch
        name, precision, memory_format, batch = setting
        allows_tf32 = precision != "fp32"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allows_tf32
        torch.backends.cudnn.benchmark = True
        torch.set_default_dtype(torch.bfloat16 if precision == "bf16" else torch.float32)
        self.model, inputs, self.loss_of = (image_step if name in IMAGES else token_step)(torch, name, batch)
        torch.set_default_dtype(torch.float32)
        if memory_format == "channels_last":
            self.model.to(memory_format=torch.channels_last)
            inputs.data = inputs.data.contiguous(memory_format=torch.channels_last)
        parameters = self.model.parameters()
        self.optimizer = (torch.optim.SGD(parameters, lr=1e-4, momentum=0.9) if name in IMAGES
                          else torch.optim.AdamW(parameters, lr=1e-5))
        self.autocast = {"amp_fp16": torch.float16, "amp_bf16": torch.bfloat16}.get(precision)
        self.scaler = torch.amp.GradScaler("cuda", enabled=precision == "amp_fp16")

    def run(self):
        self.optimizer.zero_grad(set_to_none=True)
        with self.torch.autocast("cuda", self.autocast, enabled=self.autocast is not None):
            loss = self.loss_of()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def row(self, count):
        """Seconds a step of `count` steps between two synchronisations; what the first took its host."""
        self.torch.cuda.synchronize()
        begin = time.perf_counter()
        self.run()
        host = time.perf_counter() - begin
        for _ in range(count - 1):
            self.run()
        self.torch.cuda.synchronize()
        return (time.perf_counter() - begin) / count, host

    def kernels(self):
        """How many kernels and copies a step runs, and the seconds they are busy for."""
        activities = [self.torch.profiler.ProfilerActivity.CUDA]
        with self.torch.profiler.profile(activities=activities) as profiler:
            self.run()
            self.torch.cuda.synchronize()
        times = [event.time_range.elapsed_us() for event in profiler.events()
                 if event.device_type == self.torch.autograd.DeviceType.CUDA
                 and not getattr(event, "is_user_annotation", False)]
        return len(times), sum(times) / 1e6


def measure(torch, setting):
    """A row of COLUMNS but the first."""
    torch.cuda.reset_peak_memory_stats()
    step = Step(torch, setting)
    step.row(3)
    once, _ = step.row(2)
    count = max(4, min(20, int(0.12 / once)))
    rows = [step.row(count) for _ in range(5)]
    times = sorted(seconds for seconds, _ in rows)
    memory = torch.cuda.max_memory_allocated()
    kernels, busy = step.kernels()
    name, precision, memory_format, batch = setting
    return [name, precision, memory_format, batch, TOKENS[name][0] if name in TOKENS else "",
            "momentum" if name in IMAGES else "adamw", f"{times[2]:.6f}", f"{times[0]:.6f}", f"{times[-1]:.6f}",
            f"{statistics.median(host for _, host in rows):.6f}", kernels, f"{busy:.6f}", memory]


def cases_of(row):
    """Its time, and its memory."""
    fields = dict(zip(COLUMNS, row))
    model = {"name": fields["model"], "batch_per_gpu": fields["batch"], "precision": fields["precision"]}
    if fields["sequence"]:
        model["sequence_length"] = fields["sequence"]
        model["attention"] = "fused"
    if fields["model"].startswith("bert"):
        model["objective"] = "masked_words"
    scenario = {"name": "one GPU",
                "cluster": {"machine": {"name": "one_gpu", "source": "alone", "gpu": fields["gpu"], "gpus": 1,
                                        "gpu_links": {"kind": "none"}, "library": "nccl"}},
                "model": model,
                "training": {"strategy": "single", "optimizer": fields["optimizer"]},
                "compute": {"preset": "pytorch", "kernels": "eager", "memory_format": fields["memory_format"],
                            "autocast": fields["precision"].startswith("amp")}}
    name = "{model} {precision} {memory_format} b{batch}".format(**fields)
    group = "measure_steps.py: {model} {precision}".format(**fields)
    return [{"name": name, "group": group, "scenario": scenario,
             "measured": {"iteration_time_s": float(fields["step_s"])}},
            {"name": name + ", memory", "group": group + ", memory", "scenario": scenario,
             "measured": {"memory_bytes": fields["memory_bytes"], "counted": "allocated"}}]


def write_whole(path, write):
    with open(path + ".new", "w", newline="") as file:
        write(file)
    os.replace(path + ".new", path)


def details_file(output):
    return str(pathlib.Path(output).with_suffix(".csv"))


def write_results(rows, source, output):
    document = {"schema": "lockstep.measurements/1", "source": source, "split": "heldout",
                "cases": [case for row in rows for case in cases_of(row)]}
    write_whole(details_file(output), lambda file: csv.writer(file).writerows([COLUMNS] + rows))
    write_whole(output, lambda file: file.write(json.dumps(document, indent=1) + "\n"))


def read_rows(output):
    """What an earlier run measured; whole numbers as such."""
    try:
        with open(details_file(output), newline="") as file:
            columns, *rows = csv.reader(file)
    except FileNotFoundError:
        return []
    except ValueError:
        columns = None
    if columns != COLUMNS:
        refuse(f"{details_file(output)} is no table of this program's: --resume cannot go on from it", 2)
    return [[int(field) if field.isdigit() else field for field in row] for row in rows]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="FILE.json for the cases and FILE.csv, written whole after every setting")
    parser.add_argument("--resume", action="store_true", help="measure what FILE.csv does not hold")
    parser.add_argument("--seconds", type=float, default=300, help="no setting is begun later; default: %(default)s")
    parser.add_argument("--gpu", help="the GPU's profile, where no shipped one lists the device")
    parser.add_argument("--list", action="store_true", help="print the settings and end")
    arguments = parser.parse_args()
    if not arguments.list and not (arguments.output or "").endswith(".json"):
        refuse("-o FILE.json is needed: where the cases go", 2)
    return arguments


def find_gpu(arguments):
    try:
        import torch
    except ImportError as error:
        refuse(f"PyTorch is needed: {error}", 4)
    if not torch.cuda.is_available():
        refuse("no GPU that PyTorch can use", 4)
    device = torch.cuda.get_device_name(0)
    gpu = arguments.gpu or gpu_profile(device)
    if gpu is None:
        refuse(f'no profile of {PROFILES} lists "{device}" in also_known_as; state --gpu', 2)
    return torch, gpu, device


def measure_all(torch, gpu, source, arguments):
    begin = time.monotonic()
    rows = read_rows(arguments.output) if arguments.resume else []
    measured = {tuple(row[1:5]) for row in rows}
    left_out, to_go = 0, [setting for setting in settings() if setting not in measured]
    while to_go and time.monotonic() - begin <= arguments.seconds:
        setting = to_go.pop(0)
        label = " ".join(map(str, setting))
        try:
            rows.append([gpu] + measure(torch, setting))
        except Exception as error:  # what one setting does wrong must not cost the others
            left_out += 1
            print(f"{label}: left out: {type(error).__name__}: {str(error).splitlines()[:1]}", file=sys.stderr)
        else:
            print(f"{label}: {float(rows[-1][7]) * 1e3:.3f} ms", file=sys.stderr)
            write_results(rows, source, arguments.output)
        gc.collect()
        torch.cuda.empty_cache()
    print(f"steps: {len(rows)} of {len(settings())} settings, {left_out} left out, {len(to_go)} to go", file=sys.stderr)


def main():
    arguments = parse_arguments()
    if arguments.list:
        print("\n".join(" ".join(map(str, setting)) for setting in settings()))
        return
    torch, gpu, device = find_gpu(arguments)
    source = f"validate/measure_steps.py: PyTorch {torch.__version__}, CUDA {torch.version.cuda}, {device}"
    measure_all(torch, gpu, source, arguments)


if __name__ == "__main__":
    main()
