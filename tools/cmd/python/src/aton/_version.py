"""The version of the package."""
from importlib import metadata

try:
    __version__ = metadata.version("aton-onnx")
except metadata.PackageNotFoundError:  # the sources, without an installation
    __version__ = "0.0.0"
