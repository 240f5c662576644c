"""python -m aton.transformers MODEL -o FOLDER: export_transformers as a command."""
import argparse
import sys
from typing import Optional, Sequence

from ._errors import Error
from ._transformers import export_transformers


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Exports the model that the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m aton.transformers", description="Converts a model of transformers to the files that optimum makes of it.",
                                     epilog="More flags are those of `aton export`, such as --float16.", allow_abbrev=False)
    parser.add_argument("model", help="a folder of save_pretrained, or a name that transformers loads")
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="the folder of the files")
    parser.add_argument("--task", help="what the files are for, such as text-generation-with-past; by default what the model's class is for")
    parser.add_argument("--opset", type=int, help="the ONNX opset, 7 to 28 (default 20)")
    parser.add_argument("--no-verify", action="store_true", help="do not compare the files with the model in onnxruntime")
    given, flags = parser.parse_known_args(arguments)
    try:
        programs = export_transformers(given.model, given.output, task=given.task, opset_version=given.opset, verify=not given.no_verify, options=flags)
    except Error as e:
        print(f"error: {e}", file=sys.stderr)
        return 1
    for program in programs.values():
        print(program.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
