#!/usr/bin/env python3
"""Time and memory of an export of AlexNet (244 MB), beside cp of the archive and torch.onnx.export of the same file.

    python3 tools/measure/bench/alexnet.py [--torch PYTHON]... [--rounds N] [--dir DIR]

The rounds of all commands alternate, so that they share the machine's noise; the middle and the best time of each are
told. Memory is sampled each millisecond from /proc: anonymous is what the process made itself, total has the pages of
mapped files too. PYTHON is an interpreter that has torch; the first one makes the archive, and needs torchvision.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

MAKE = """
import sys, torch, torchvision
torch.manual_seed(0)
net = torchvision.models.alexnet(weights=None).eval()
torch.jit.save(torch.jit.trace(net, torch.zeros(1, 3, 224, 224)), sys.argv[1])
"""

# prints what the export itself takes, without the start of the interpreter and import torch
PEER = """
import sys, time, warnings, torch
warnings.filterwarnings("ignore")
began = time.perf_counter()
net = torch.jit.load(sys.argv[1])
options = {"dynamic_axes": {"x": {0: "N"}}, "input_names": ["x"], "opset_version": 17}
if torch.__version__ >= "2.5":
    options["dynamo"] = False
torch.onnx.export(net, (torch.zeros(1, 3, 224, 224),), sys.argv[2], **options)
print("took", time.perf_counter() - began, torch.__version__)
"""


def measure(command):
    """Runs a command: seconds, peak anonymous and total memory in MB, and its output."""
    began = time.perf_counter()
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    anonymous = total = 0
    while p.poll() is None:
        try:
            with open(f"/proc/{p.pid}/status") as f:
                fields = dict(line.split(":", 1) for line in f)
            anonymous = max(anonymous, int(fields["RssAnon"].split()[0]))
            total = max(total, int(fields["VmHWM"].split()[0]))
        except (OSError, KeyError, ValueError):
            pass  # between the end of the process and its wait
        time.sleep(0.001)
    took = time.perf_counter() - began
    out, err = p.communicate()
    if p.returncode:
        sys.exit(f"{command[0]}: {err.strip()[-500:]}")
    return took, anonymous / 1024, total / 1024, out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", action="append", metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", default="out/bench")
    parser.add_argument("--aton", default="bin/aton")
    opts = parser.parse_args()
    pythons = opts.torch or ["/usr/bin/python3"]
    os.makedirs(opts.dir, exist_ok=True)
    archive, target = os.path.join(opts.dir, "alexnet.pt"), os.path.join(opts.dir, "target")
    if not os.path.exists(archive):
        subprocess.run([pythons[0], "-c", MAKE, archive], check=True)
    commands = {
        "cp": ["cp", archive, target],
        "aton export": [opts.aton, "export", archive, "-o", target, "--input", "x:f32[N,3,224,224]"],
    }
    for p in pythons:
        commands["torch.onnx of " + p] = [p, "-c", PEER, archive, target]
    runs = {name: [] for name in commands}
    within = {}
    for round_ in range(opts.rounds):
        for name, command in commands.items():
            if name.startswith("torch") and round_ >= 2:
                continue  # takes long, and varies less
            if os.path.exists(target):
                os.remove(target)
            took, anonymous, total, out = measure(command)
            runs[name].append((took, anonymous, total))
            for line in out.splitlines():
                if line.startswith("took "):
                    _, seconds, version = line.split()
                    within[name] = (min(float(seconds), within.get(name, (9e9,))[0]), version)
    os.remove(target)
    print(f"{os.path.getsize(archive) / 1e6:.0f} MB, {opts.rounds} rounds")
    print(f"{'':34}{'middle':>9}{'best':>9}{'anonymous':>12}{'total':>10}")
    for name, rs in runs.items():
        label, extra = name, ""
        if name in within:
            seconds, version = within[name]
            label, extra = f"torch.onnx {version}", f"   of these {seconds:.2f} s in load and export"
        times = [r[0] for r in rs]
        print(f"{label:34}{statistics.median(times):8.2f}s{min(times):8.2f}s{max(r[1] for r in rs):9.0f} MB"
              f"{max(r[2] for r in rs):7.0f} MB{extra}")


if __name__ == "__main__":
    main()
