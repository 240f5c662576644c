"""Export the archives of models.py with a dynamic batch, count nodes, compare numbers in onnxruntime, print a table.

usage: nodecount.py DIR [--aton bin/aton] [--opset 20] [--filter RE] [--ops] [--no-run]

The limits are the smallest counts of torch.onnx, onnxsim, onnxslim and torch's dynamo exporter on the same models. Exit status 1
if a count is above its limit or a number differs. Needs onnx, onnxruntime and numpy.
"""

import argparse
import os
import re
import sys
import tempfile

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../judge/python"))
import judge  # noqa: E402

LIMITS = {
    "resnet50": 122, "mobilenet_v3_small": 122, "shufflenet_v2_x1_0": 173, "efficientnet_b0": 239, "convnext_tiny": 230, "vit_b_16": 575,
    "swin_t": 492, "googlenet": 139, "inception_v3": 215, "densenet121": 368, "regnet_y_400mf": 217, "maxvit_t": 962,
}


def difference(path, data):
    """The largest difference at two batch sizes, relative to the largest output."""
    session = judge.session(path)
    return max(judge.distance(judge.run(session, [data[f"x{n}"]])[0], data[f"y{n}"]) for n in (2, 3))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("dir")
    p.add_argument("--aton", default="bin/aton")
    p.add_argument("--opset", default="20")
    p.add_argument("--filter", default="")
    p.add_argument("--ops", action="store_true", help="count each operator")
    p.add_argument("--no-run", action="store_true", help="do not compare numbers")
    args = p.parse_args()
    failed = False
    print(f"{'model':<20} {'form':<7} {'nodes':>5} {'limit':>5} {'MB':>7} {'export s':>8} {'difference':>10}")
    with tempfile.TemporaryDirectory() as tmp:
        for name, limit in LIMITS.items():
            for form in ("trace", "script"):
                if not re.search(args.filter, f"{name}.{form}"):
                    continue
                src, dst = f"{args.dir}/{name}.{form}.pt", f"{tmp}/model.onnx"
                size = 299 if name == "inception_v3" else 224
                try:
                    took = judge.export(args.aton, src, dst, "--input", f"x:f32[N,3,{size},{size}]", opset=args.opset)
                except judge.Refused as e:
                    print(f"{name:<20} {form:<7} FAILED {e}", flush=True)
                    failed = True
                    continue
                count = judge.operators(dst)
                total = count.total()
                diff = 0.0 if args.no_run else difference(dst, numpy.load(f"{args.dir}/{name}.npz"))
                bad = total > limit or not diff < 1e-3
                failed |= bad
                print(f"{name:<20} {form:<7} {total:>5} {limit:>5} {os.path.getsize(dst) / 1e6:>7.1f} {took:>8.2f} {diff:>10.1e}{'  <--' if bad else ''}", flush=True)
                if args.ops:
                    print("    " + ", ".join(f"{k} {v}" for k, v in sorted(count.items(), key=lambda kv: (-kv[1], kv[0]))), flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
