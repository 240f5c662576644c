"""A plugin of pytest: what calls PyTorch's exporter goes through aton.patch(). PyTorch's own tests call a private function besides."""
import torch.onnx.utils

import aton


def private(model, args, f, *rest, fixed_batch_size=False, **options):
    """torch.onnx.utils._export, which PyTorch's verify calls: export with options that are of no use here."""
    aton.export(model, args, f, *rest, **options)


def named(export):
    """The same with the identifiers of what is wrong before the message, for the table."""
    def call(*args, **kwargs):
        try:
            return export(*args, **kwargs)
        except aton.ExportError as e:
            e.args = (f"[{e.diagnostics[0].id} {e.diagnostics[0].op}] {e}",)
            raise
    return call


def pytest_configure(config):
    aton.patch()
    torch.onnx.export = torch.onnx.utils.export = named(torch.onnx.export)
    torch.onnx.utils._export = named(private)
