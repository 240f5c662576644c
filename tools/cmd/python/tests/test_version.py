"""The version of the wheel, by what git says."""
import importlib.util
import os

import pytest

pytest.importorskip("hatchling")


@pytest.mark.parametrize("described, version", [
    ("v1.2.3", "1.2.3"),
    ("v1.2.3-rc.1", "1.2.3rc1"),
    ("v1.2.3-4-g0123456", "1.2.4.dev4+g0123456"),
    ("v1.2.3-rc.1-4-g0123456-dirty", "1.2.3rc2.dev4+g0123456.dirty"),
    ("v0.0.0-dirty", "0.0.0+dirty"),
])
def test_version(monkeypatch, described, version):
    spec = importlib.util.spec_from_file_location("hatch_build", os.path.join(os.path.dirname(__file__), "..", "hatch_build.py"))
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    monkeypatch.setenv("ATON_VERSION", described)
    assert hook.python_version() == version
    monkeypatch.setenv("ATON_VERSION", "1.2")
    with pytest.raises(ValueError):
        hook.python_version()
