#!/usr/bin/env python3
"""Makes cases of the programs in the test suites of torch-mlir and pnnx, for `make conformance CASES=DIR`.

    PYTHON tools/judge/conformance/others.py torch-mlir CHECKOUT DIR [--filter RE] [--jobs N] [--script]
    PYTHON tools/judge/conformance/others.py pnnx CHECKOUT DIR [--filter RE] [--jobs N] [--script]

CHECKOUT is a clone of github.com/llvm/torch-mlir or github.com/Tencent/ncnn. The tests run as they are, with modules in the place of their frameworks that take down the
program and its inputs: torch-mlir's tests call methods of a module, pnnx's trace it. DIR/SUITE/NAME.trace (or .script) is a case, with the program by torch.export beside it;
DIR/SUITE/skipped.tsv says of each other test why it is none. Each test runs in a process of its own. PYTHON has torch, torchvision, and what the tests import.
"""
import argparse
import collections
import glob
import importlib
import importlib.util
import multiprocessing
import os
import re
import sys
import types

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../python"))
import casefile  # noqa: E402

LARGEST = 2_000_000  # elements
SECONDS = 120  # for a test


class Inputs:
    """What torch-mlir's tests make their inputs with."""

    def rand(self, *sizes, low=0.0, high=1.0):
        return torch.empty(sizes).uniform_(low, high)

    def randint(self, *sizes, low=0, high=10, dtype=torch.int64):
        return torch.randint(low, high, sizes, dtype=dtype)

    def nans(self, *sizes):
        return torch.full(sizes, float("nan"))


class Calls:
    """A module of which the calls of methods are taken down."""

    def __init__(self, module, calls, path=()):
        self.module, self.calls, self.path = module, calls, path

    def __getattr__(self, name):
        return Calls(getattr(self.module, name), self.calls, (*self.path, name))

    def __call__(self, *args, **kwargs):
        if kwargs:
            raise casefile.Skip("arguments by name")
        self.calls.append((".".join(self.path), args))
        return self.module(*args)


def standing_in(name, **values):
    m = types.ModuleType(name)
    m.__dict__.update(values)
    sys.modules[name] = m


def torch_mlir(checkout):
    """The tests: name, and a function that gives module, inputs and dynamic axes."""
    tests = {}

    def register_test_case(module_factory, timeout_seconds=0):
        return lambda f: tests.update({f.__name__: (module_factory, f)}) or f

    def annotate_args(annotations):
        return lambda f: setattr(f, "annotations", annotations) or f

    from packaging import version
    for package in "torch_mlir_e2e_test", "torch_mlir":
        standing_in(package)
    standing_in("torch_mlir_e2e_test.framework", TestUtils=Inputs)
    standing_in("torch_mlir_e2e_test.registry", register_test_case=register_test_case)
    standing_in("torch_mlir_e2e_test.annotations", annotate_args=annotate_args, export=lambda f: f)
    standing_in("torch_mlir._version", version=version, torch_version_for_comparison=lambda: version.parse(torch.__version__.split("+")[0]))
    standing_in("torch_mlir._torch_mlir_custom_op_example")
    folder = os.path.join(checkout, "projects/pt1/python/torch_mlir_e2e_test/test_suite")
    for path in sorted(glob.glob(os.path.join(folder, "*.py"))):
        name = os.path.basename(path)[:-3]
        if name == "__init__":
            continue
        before = set(tests)
        spec = importlib.util.spec_from_file_location("suite_" + name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as e:
            print(f"{name}: {casefile.first_line(e)}", file=sys.stderr)
        for test in set(tests) - before:
            tests[test] = (*tests[test], name)

    def program(factory, invoke):
        def made():
            torch.manual_seed(0)
            module, calls = factory().eval(), []
            torch.manual_seed(0)
            invoke(Calls(module, calls), Inputs())
            methods = {name for name, _ in calls}
            if methods != {"forward"}:
                raise casefile.Skip("calls of " + ", ".join(sorted(methods)))
            annotations = getattr(type(module).forward, "annotations", [None] * 9)[1:]
            axes = [[i for i, n in enumerate(a[0]) if n == -1] if a and a[0] else [] for a in annotations]
            return module, [args for _, args in calls][:1], axes
        return made

    return {f"{file}.{name}": program(factory, invoke) for name, (factory, invoke, file) in sorted(tests.items())}


class Traced(Exception):
    """A test has traced its program."""


def pnnx(checkout):
    def program(path):
        def made():
            def trace(module, inputs, *args, **kwargs):
                raise Traced(module, inputs if isinstance(inputs, tuple) else (inputs,))

            torch.jit.trace, kept = trace, torch.jit.trace
            os.chdir(os.path.dirname(path))  # some read files beside them
            name = os.path.basename(path)[:-3]
            try:
                spec = importlib.util.spec_from_file_location(name, path)
                m = importlib.util.module_from_spec(spec)
                sys.modules[name] = m  # torch.jit.script looks for the source
                spec.loader.exec_module(m)
                m.test()
            except Traced as e:
                module, inputs = e.args
            else:
                raise casefile.Skip("it traces nothing")
            finally:
                torch.jit.trace = kept
            flat = [v for v in inputs]
            if not all(isinstance(v, torch.Tensor) for v in flat):
                raise casefile.Skip("an input that is no tensor")
            return module, [tuple(flat)], None
        return made

    return {os.path.basename(p)[5:-3]: program(os.path.abspath(p)) for p in sorted(glob.glob(os.path.join(checkout, "tools/pnnx/tests/test_*.py")))}


SUITES = {"torch-mlir": torch_mlir, "pnnx": pnnx}


def write(program, folder, suite, name, script, tell):
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    try:
        module, sets, axes = program()
        casefile.write(folder, name, module, sets, script=script, suite=suite, op=name, pt2=not script, dynamic=axes, largest=LARGEST)
        tell.put("")
    except casefile.Skip as e:
        tell.put(str(e))
    except Exception as e:
        tell.put(casefile.first_line(e))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("suite", choices=SUITES)
    p.add_argument("checkout")
    p.add_argument("dir")
    p.add_argument("--filter", default="")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--script", action="store_true", help="torch.jit.script in the place of torch.jit.trace")
    a = p.parse_args()
    a.dir = os.path.abspath(a.dir)
    suite = a.suite + ("-script" if a.script else "")
    fork, running, why = multiprocessing.get_context("fork"), collections.deque(), {}

    def ended():
        name, process, tell = running.popleft()
        process.join(SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
            why[name] = f"more than {SECONDS} s"
        else:
            why[name] = tell.get() if process.exitcode == 0 else f"the test ends with {process.exitcode}"

    for name, program in SUITES[a.suite](a.checkout).items():
        if not re.search(a.filter, name):
            continue
        if len(running) >= a.jobs:
            ended()
        tell = fork.SimpleQueue()
        process = fork.Process(target=write, args=(program, a.dir, suite, name, a.script, tell))
        process.start()
        running.append((name, process, tell))
    while running:
        ended()
    os.makedirs(os.path.join(a.dir, suite), exist_ok=True)
    with open(os.path.join(a.dir, suite, "skipped.tsv"), "w") as f:
        f.writelines(f"{name}\t{reason}\n" for name, reason in why.items() if reason)
    print(f"{suite}: {len(why)} tests, {sum(not r for r in why.values())} cases")


if __name__ == "__main__":
    main()
