"""Progress on a terminal, and a notebook that runs: the table of an ExportError and the line of progress."""
import io
import re
import time

import pytest
import torch

import aton
from aton import _progress

CELLS = [
    "import warnings; warnings.simplefilter('ignore'); import torch, aton",
    "class Refused(torch.nn.Module):\n    def forward(self, x):\n        return torch.linalg.ldl_factor(x)[0]",
    "aton.export(Refused(), (torch.randn(3, 3),), source='trace')",
    "aton._progress.PATIENCE = 0.1\nimport time\nwith aton._progress.stage('waiting'):\n    time.sleep(0.5)",
]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress(monkeypatch):
    monkeypatch.setattr(_progress, "PATIENCE", 0.05)
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        with _progress.stage("saving", stream):
            time.sleep(0.3)
    assert terminal.getvalue().startswith("\raton: saving (0 s)") and terminal.getvalue().endswith("\r")
    assert file.getvalue() == "", "nobody looks"
    quick = Terminal()
    monkeypatch.setattr(_progress, "PATIENCE", 60.0)
    with pytest.raises(KeyError), _progress.stage("saving", quick):
        raise KeyError
    assert quick.getvalue() == ""


def test_shown(tmp_path):
    program = aton.export(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU()), (torch.randn(2, 3),), tmp_path / "m.onnx")
    page = program._repr_html_()
    assert "m.onnx" in page and "1 Gemm, 1 Relu" in page and "data:image/svg+xml;base64," in page, page
    table = aton.ExportError([aton.Diagnostic("unsupported-op", "error", "no <such> operator", file=__file__, line=1)])._repr_html_()
    assert "test_notebook.py:1<br><code>&quot;&quot;&quot;Progress" in table and "no &lt;such&gt; operator" in table, table


def test_notebook(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    nbclient.NotebookClient(notebook, timeout=300, allow_errors=True, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [o for o in notebook.cells[2].outputs if o.output_type == "display_data"]
    assert len(shown) == 1, notebook.cells[2].outputs
    page = shown[0]["data"]["text/html"]
    assert "<table>" in page and "aten::linalg_ldl_factor" in page and ":3<br><code>return torch.linalg.ldl_factor(x)[0]</code></td>" in page, page
    failed = [o for o in notebook.cells[2].outputs if o.output_type == "error"]
    assert failed[0].ename == "ExportError"
    said = re.sub(r"\x1b\[[\d;]*m", "", "".join(failed[0].traceback))
    assert "aton.export(Refused()" in said and "_export.py" not in said, "the user's calls, and none of the package's"
    assert "waiting" in "".join(o.get("text", "") for o in notebook.cells[3].outputs)
