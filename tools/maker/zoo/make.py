#!/usr/bin/env python3
"""Makes programs of the architectures of transformers and timm, with PyTorch's results.

usage: make.py KIND --out DIR [--filter RE] [--jobs N] [--seconds N] [--gigabytes N] [--again]

KIND is decoders, encoders, mixed, timm or libraries. Each architecture is a folder of DIR/KIND: tiny, with weights drawn at random, as an archive of torch.export
(.pt2), of a trace (.pt) and, for libraries, of a script, inputs and outputs (.npz), and what.json, which says what is there and what PyTorch itself cannot do. An
architecture is made in a process of its own, with limits; those that are there are left out, unless --again.
"""
import argparse
import importlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings


def short(error):
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def save(kind, name, folder):
    import numpy
    import torch

    import programs
    made = importlib.import_module(kind)
    sources = getattr(made, "SOURCES", ("pt2", "trace"))
    runs = {s: {} for s in sources}
    what = {"programs": [], "torch": torch.__version__}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            all, said = made.make(name)
    except Exception as e:
        return {"cannot": short(e), "where": traceback.format_exc()[-1500:]}
    for p in all:
        row = {"name": p.name, "inputs": p.names, "outputs": p.output_names, "sources": {}}
        what["programs"].append(row)
        arrays = {f"{kind}.{s}.{i}": t for s in range(len(p.samples)) for kind, ts in (("in", p.samples[s]), ("out", p.outputs[s])) for i, t in enumerate(ts)}
        arrays |= {f"exact.{s}.{i}": t for s, ts in enumerate(p.exact) for i, t in enumerate(ts)}
        numpy.savez(os.path.join(folder, p.name + ".npz"), **{k: t.detach().numpy() for k, t in arrays.items()})
        for source in sources:
            file = p.name + {"pt2": ".pt2", "trace": ".pt", "script": ".script.pt"}[source]
            entry = row["sources"][source] = {"file": file}
            try:
                with warnings.catch_warnings(), made.patched(), torch.no_grad():
                    warnings.simplefilter("ignore")
                    if source == "pt2":
                        program, entry["axes"] = programs.export(p)
                        run = program.module()
                        torch.export.save(program, os.path.join(folder, file))
                    else:
                        if source == "script":
                            run = torch.jit.script(p.script)
                        else:
                            run = torch.jit.trace(p.module, tuple(programs.clone(p.samples[0])), check_trace=False, strict=False)
                        torch.jit.save(run, os.path.join(folder, file))
                        entry["axes"] = p.axes
                        entry["arguments"] = [a.name for a in torch.jit.load(os.path.join(folder, file)).forward.schema.arguments[1:]]
                runs[source][p.name] = run
                entry["samples"] = [s for s in range(len(p.samples)) if programs.holds(run, p, s)]
                if 0 not in entry["samples"]:
                    del runs[source][p.name]
                    entry["cannot"] = "PyTorch's own program does not give the model's outputs"
                if len(entry["samples"]) < len(p.samples):  # it is one for these sizes
                    entry["axes"] = [{} for _ in p.axes]
            except Exception as e:
                entry["cannot"] = short(e)
    if said:
        tokens, logits = said
        numpy.savez(os.path.join(folder, "said.npz"), **{f"token.{i}": t.numpy() for i, t in enumerate(tokens)}, **{f"logits.{i}": t.numpy() for i, t in enumerate(logits)})
        # where PyTorch's own programs do not say the same (one that holds a length or a window), nobody's can
        what["follows"] = [s for s in runs if len(runs[s]) == len(all) and made.follows(runs[s], all, said)]
    return what


def child(kind, name, folder, opts):
    """Makes one architecture, in a process of its own."""
    resource.setrlimit(resource.RLIMIT_AS, (opts.gigabytes << 30,) * 2)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    try:
        what = save(kind, name, folder)
    except BaseException as e:
        what = {"cannot": short(e), "where": traceback.format_exc()[-1500:]}
    with open(os.path.join(folder, "what.json"), "w") as f:
        json.dump(what, f, indent=1)
    os._exit(0)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("kind", choices=["decoders", "encoders", "mixed", "timm", "libraries"])
    arguments.add_argument("--out", required=True)
    arguments.add_argument("--filter", default="")
    arguments.add_argument("--jobs", type=int, default=2)
    arguments.add_argument("--seconds", type=int, default=240)
    arguments.add_argument("--gigabytes", type=int, default=10)
    arguments.add_argument("--again", action="store_true")
    opts = arguments.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    torch.set_num_threads(1)
    kind = "timms" if opts.kind == "timm" else opts.kind
    names = [n for n in importlib.import_module(kind).models() if re.search(opts.filter, n)]
    todo = []
    for n in names:
        folder = os.path.join(opts.out, opts.kind, n)
        if opts.again or not os.path.exists(os.path.join(folder, "what.json")):
            todo.append((n, folder))
    running, done = {}, 0
    while todo or running:
        while todo and len(running) < opts.jobs:
            name, folder = todo.pop(0)
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            pid = os.fork()
            if pid == 0:
                child(kind, name, folder, opts)
            running[pid] = (name, folder, time.time())
        pid, _ = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            for p, (name, folder, start) in running.items():
                if time.time() - start > opts.seconds:
                    os.kill(p, signal.SIGKILL)
            time.sleep(0.05)
            continue
        name, folder, start = running.pop(pid)
        done += 1
        path = os.path.join(folder, "what.json")
        if not os.path.exists(path):
            with open(path, "w") as f:
                json.dump({"cannot": f"more than {opts.seconds} s or {opts.gigabytes} GB, or the process died"}, f)
        with open(path) as f:
            what = json.load(f)
        bad = [what["cannot"]] if "cannot" in what else [f"{p['name']} {s}: {e['cannot']}" for p in what["programs"] for s, e in p["sources"].items() if "cannot" in e]
        print(f"{done} of {done + len(todo) + len(running)}  {name}  {time.time() - start:.0f} s  {'; '.join(b[:160] for b in bad)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
