#!/usr/bin/env python3
"""The models of the tests of onnx/optimizer, onnxscript, onnxslim and onnxsim, through aton and through all four.

    PYTHON tools/measure/nodecount/suites.py record CHECKOUT DIR [TEST ...]
    PYTHON tools/measure/nodecount/suites.py compare DIR [--aton bin/aton] [--filter RE] [--out FILE]

record runs the tests of a checkout of one of the four (pytest; TEST are files of tests below it) and keeps each model that they give to an optimizer, as DIR/HASH.onnx, with
what came of it, as DIR/HASH.NAME.onnx, where NAME is the test's. Whether a test passes does not matter.

compare runs each model through aton, at the opset that the model has (with --repair, since tests name and sort little), and through the four optimizers with all that they do by default. A result counts where the checker
and onnxruntime take it and it gives the numbers of the model, without onnxruntime's own optimizations, on random inputs; a test's own result as well. It prints how many
models aton leaves with more nodes than the smallest of them (constants are no nodes), and each such model. Exit status 1 if a file of aton's is refused by the checker or onnxruntime
that took the model, or has other numbers.
PYTHON has pytest, onnx, onnxruntime, onnxscript, onnxoptimizer, onnxsim, onnxslim, and what the tests need (parameterized, expecttest, torch).
"""
import argparse
import collections
import contextlib
import csv
import functools
import glob
import hashlib
import multiprocessing
import os
import re
import subprocess
import sys

import numpy
import onnx

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../judge/python"))
import judge  # noqa: E402

LARGEST = 4 << 20  # bytes of a model that is kept

# What the tests call: package, function. The outermost call of them counts.
ENTRIES = [
    ("onnxoptimizer", "optimize"),
    ("onnxsim", "simplify"),
    ("onnxslim", "slim"),
    ("onnxscript.optimizer", "optimize"), ("onnxscript.optimizer", "optimize_ir"), ("onnxscript.optimizer", "fold_constants"),
    ("onnxscript.optimizer._constant_folding", "fold_constants"),
    ("onnxscript.rewriter", "rewrite"), ("onnxscript.rewriter._rewrite_rule", "RewriteRule.apply_to_model"), ("onnxscript.rewriter._rewrite_rule", "RewriteRuleSet.apply_to_model"),
]


class Recorder:
    """A plugin of pytest that keeps what optimizers are given."""

    def __init__(self, folder):
        self.folder, self.test, self.inside = folder, "none", False

    def pytest_runtest_setup(self, item):
        self.test = re.sub(r"\W+", "_", item.nodeid.split("::", 1)[-1])[-100:]

    def keep(self, model, name=""):
        """The name under which a model is kept, or None for what is no model or too large."""
        if hasattr(model, "graph") and not isinstance(model, onnx.ModelProto):
            import onnx_ir

            model = onnx_ir.serde.serialize_model(model)
        if isinstance(model, str) and os.path.isfile(model):
            model = onnx.load(model)
        if not isinstance(model, onnx.ModelProto) or model.ByteSize() > LARGEST:
            return None
        data = model.SerializeToString(deterministic=True)
        name = name or hashlib.sha256(data).hexdigest()[:16]
        with open(os.path.join(self.folder, name + ".onnx"), "wb") as f:
            f.write(data)
        return name

    def around(self, function):
        @functools.wraps(function)
        def called(*args, **named):
            if self.inside:
                return function(*args, **named)
            model = next((a for a in (*args, *named.values()) if isinstance(a, (onnx.ModelProto, str)) or hasattr(a, "graph")), None)
            name = None
            with contextlib.suppress(Exception):  # a model that cannot be written is the test's own business
                name = self.keep(model)
            self.inside = True
            try:
                result = function(*args, **named)
            finally:
                self.inside = False
            if name:
                after = result[0] if isinstance(result, tuple) else result
                if not isinstance(after, onnx.ModelProto) and not hasattr(after, "graph"):
                    after = model  # it was changed in place
                with contextlib.suppress(Exception):
                    self.keep(after, f"{name}.{self.test}")
            return result

        return called

    def pytest_sessionstart(self, session):
        for package, name in ENTRIES:
            with contextlib.suppress(ImportError, AttributeError):
                owner = __import__(package, fromlist=["_"])
                *path, name = name.split(".")
                for p in path:
                    owner = getattr(owner, p)
                old = getattr(owner, name)
                new = self.around(old)
                setattr(owner, name, new)
                if not path:  # other modules of the package have it under the same name
                    for m in list(sys.modules.values()):
                        if getattr(m, name, None) is old:
                            setattr(m, name, new)


def pytest_configure(config):
    """This file is the plugin of the pytest that record starts, and of its workers."""
    config.pluginmanager.register(Recorder(os.environ["SUITES"]))


def record(a):
    os.makedirs(a.dir, exist_ok=True)
    before = len(os.listdir(a.dir))
    # the installed packages are what runs, not the checkout; a test that crashes ends a worker only
    env = dict(os.environ, SUITES=os.path.abspath(a.dir), PYTHONPATH=os.path.dirname(os.path.abspath(__file__)), OMP_NUM_THREADS="1")
    subprocess.run([sys.executable, "-P", "-m", "pytest", "-qq", "-n", "2", "-c", os.devnull, "--rootdir", ".", "--import-mode=importlib", "-p", "suites", "-p", "no:cacheprovider", "--tb=no",
                    "--continue-on-collection-errors", *(a.tests or ["."])], cwd=a.checkout, env=env)
    print(f"{len(os.listdir(a.dir)) - before} files")


def by_optimizer(path, out):
    import onnxoptimizer

    onnx.save(onnxoptimizer.optimize(onnx.load(path), onnxoptimizer.get_fuse_and_elimination_passes(), True), out)


def by_onnxsim(path, out):
    import onnxsim

    model, _ = onnxsim.simplify(path)
    onnx.save(model, out)


def by_onnxslim(path, out):
    import onnxslim

    onnx.save(onnxslim.slim(path), out)


def by_onnxscript(path, out):
    import onnxscript.optimizer
    import onnxscript.rewriter

    onnx.save(onnxscript.rewriter.rewrite(onnxscript.optimizer.optimize(onnx.load(path))), out)


PEERS = {"optimizer": by_optimizer, "onnxsim": by_onnxsim, "onnxslim": by_onnxslim, "onnxscript": by_onnxscript}


def result(path, peer, work):
    """The file for what one of the four makes of a model."""
    return os.path.join(work, f"{hashlib.sha256(os.path.abspath(path).encode()).hexdigest()[:16]}.{peer}.onnx")


def optimized(models, work, peers=PEERS):
    """Runs optimizers on all models, and gives the processor seconds of each that was not there before. Each run is a fork, which may crash; nothing has started a thread yet."""
    import importlib
    import resource

    took = {}
    for module in "onnxoptimizer", "onnxsim", "onnxslim", "onnxscript.optimizer", "onnxscript.rewriter":
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    for path in models:
        for peer in peers:
            out = result(path, peer, work)
            if os.path.exists(out):
                continue
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            p = multiprocessing.get_context("fork").Process(target=quiet, args=(PEERS[peer], path, out))
            p.start()
            p.join(120)
            p.kill()
            p.join()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            took[path, peer] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took


def quiet(function, path, out):
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    function(path, out)


def sizes(model):
    """Sizes of named axes, one for each name, small ones."""
    named, out = {}, {}
    initializers = {t.name for t in model.graph.initializer}
    for i in model.graph.input:
        if i.name in initializers:
            continue
        if not i.type.HasField("tensor_type"):
            raise ValueError(f"{i.name} is no tensor")
        if not i.type.tensor_type.HasField("shape"):
            raise ValueError(f"{i.name} has no rank")
        dims = []
        for d in i.type.tensor_type.shape.dim:
            dims.append(d.dim_value if d.HasField("dim_value") else named.setdefault(d.dim_param or object(), len(named) + 2))
        out[i.name] = i.type.tensor_type.elem_type, dims
    return out


def random(model, seed):
    """Random inputs: numbers about 0, small ints that are positions in most shapes."""
    r, out = numpy.random.default_rng(seed), {}
    for name, (kind, dims) in sizes(model).items():
        if numpy.prod(dims, dtype=float) > 1 << 24:
            raise ValueError(f"{name} is too large")
        t = onnx.helper.tensor_dtype_to_np_dtype(kind)
        if t == numpy.bool_:
            v = r.random(dims) < 0.5
        elif t.kind in "iu":
            v = r.integers(0, 3, dims)
        elif t.kind in "OU":
            v = numpy.full(dims, "a")
        else:
            v = r.standard_normal(dims)
        out[name] = numpy.asarray(v).astype(t)
    return out


def values(path, feeds):
    s = judge.session(path, optimized=False, threads=1)
    return [o.name for o in s.get_outputs()], [s.run(None, {k: v for k, v in f.items() if k in {i.name for i in s.get_inputs()}}) for f in feeds]


def same(a, b):
    """Whether two lists of outputs are the same numbers, up to rounding."""
    def one(x, y):
        if isinstance(x, (list, tuple)):
            return isinstance(y, (list, tuple)) and len(x) == len(y) and all(map(one, x, y))
        if x is None or y is None or isinstance(x, dict):
            return x is y or x == y
        x, y = numpy.asarray(x), numpy.asarray(y)
        if x.dtype != y.dtype or x.shape != y.shape:
            return False
        if x.dtype.kind != "f":
            return bool((x == y).all())
        rtol = 2e-3 if x.dtype == numpy.float16 else 1e-4
        x, y = x.astype("f8"), y.astype("f8")
        finite = numpy.abs(x[numpy.isfinite(x)])
        return numpy.allclose(x, y, rtol=rtol, atol=1e-4 * max(finite.max(initial=0), 1e-3), equal_nan=True)
    return len(a) == len(b) and all(map(one, a, b))


def accepted(path):
    try:
        onnx.checker.check_model(path)
        return True
    except Exception:
        return False


def kinds(path):
    """The operators of a file, those of its functions once each but no constants, and their domains. A call of a function is none."""
    m = judge.loaded(path)
    functions = {(f.domain, f.name) for f in m.functions}
    nodes = [n for g in judge.graphs(m.graph) for n in g.node] + [n for f in m.functions for n in f.node]
    nodes = [n for n in nodes if n.op_type != "Constant" and (n.domain, n.op_type) not in functions]
    return collections.Counter(n.op_type for n in nodes), {n.domain for n in nodes}


def one(path, aton, work):
    """What became of a model: a row of texts."""
    base = os.path.basename(path)[:-5]
    row = {"model": base, "before": sum(kinds(path)[0].values())}
    try:
        feeds = [random(onnx.load(path), s) for s in (0, 1)]
        names, want = values(path, feeds)
    except Exception as e:
        row["note"] = "not run: " + str(e).splitlines()[0][:100]
        return row
    out = os.path.join(work, base + ".aton.onnx")
    try:
        judge.export(aton, path, out, "--repair", seconds=60)
    except judge.Refused as e:
        row["note"] = "refused: " + str(e)[:160]
        return row
    try:
        n, got = values(out, feeds)
        if n != names or not all(map(same, want, got)):
            row["note"] = "WRONG"
        elif accepted(path) and not accepted(out):
            row["note"] = "WRONG: the checker refuses it"
    except Exception as e:
        row["note"] = "WRONG: " + str(e).splitlines()[0][:120]
    mine = kinds(out)[0]
    row["aton"] = sum(mine.values())
    best = None
    candidates = [(re.sub(r"^.*?\.", "", os.path.basename(p)[:-5]), p) for p in glob.glob(glob.escape(path[:-5]) + ".*.onnx")]
    candidates += [(peer, result(path, peer, work)) for peer in PEERS]
    allowed = kinds(path)[1] | {""}
    for who, p in candidates:
        try:
            count, domains = kinds(p)
            n = sum(count.values())
            if best is not None and n >= best[0]:
                continue
            if not domains <= allowed or (accepted(path) and not accepted(p)):
                continue
            names2, got = values(p, feeds)
            if names2 != names or not all(map(same, want, got)):
                continue
            best = n, who, count
        except Exception:
            continue
    if best is not None:
        row["best"], row["who"] = best[0], best[1]
        if row["aton"] > best[0]:
            row["more"] = " ".join(f"{k}+{v}" for k, v in sorted((mine - best[2]).items())) + " / " + " ".join(f"{k}+{v}" for k, v in sorted((best[2] - mine).items()))
    return row


def compare(a):
    work = os.path.join(a.dir, "results")
    os.makedirs(work, exist_ok=True)
    models = [p for p in sorted(glob.glob(os.path.join(a.dir, "*.onnx"))) if os.path.basename(p).count(".") == 1 and re.search(a.filter, " ".join(glob.glob(p[:-5] + "*")))]
    optimized(models, work)
    rows = [one(p, a.aton, work) for p in models]
    run = [r for r in rows if "aton" in r]
    more = [r for r in run if r["aton"] > r.get("best", r["aton"])]
    wrong = [r for r in run if r.get("note", "").startswith("WRONG")]
    if a.out:
        with open(a.out, "w", newline="") as f:
            w = csv.DictWriter(f, ["model", "before", "aton", "best", "who", "more", "note"], delimiter="\t", lineterminator="\n")
            w.writeheader()
            w.writerows(rows)
    for r in more + wrong:
        print(*(f"{k}={r[k]}" for k in r))
    why = collections.Counter(r["note"].split(":")[0] for r in rows if "aton" not in r)
    print(f"{len(rows)} models, {len(run)} compared ({', '.join(f'{n} {k}' for k, n in why.items())}): "
          f"aton leaves more nodes than the smallest in {len(more)} ({100 - 100 * len(more) / max(len(run), 1):.1f} % not), fewer in "
          f"{sum(r['aton'] < r.get('best', 0) for r in run)}; wrong: {len(wrong)}")
    return 1 if wrong else 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    s = p.add_subparsers(dest="what", required=True)
    r = s.add_parser("record")
    r.add_argument("checkout")
    r.add_argument("dir")
    r.add_argument("tests", nargs="*")
    c = s.add_parser("compare")
    c.add_argument("dir")
    c.add_argument("--aton", default="bin/aton")
    c.add_argument("--filter", default="")
    c.add_argument("--out")
    a = p.parse_args()
    return record(a) if a.what == "record" else compare(a)


if __name__ == "__main__":
    sys.exit(main())
